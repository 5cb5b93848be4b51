"""One measurement: a scheduler in this process, and the null server in another."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import msgspec

from moorage.base import aio
from moorage.base.clock import Clock
from moorage.base.errors import MoorageError
from moorage.base.rng import Streams
from moorage.client.http_transport import open_transport
from moorage.client.transport import Call, Transport
from moorage.config.own import LoadedConfiguration
from moorage.framework.registry import Registry
from moorage.observe.calls import CallFacts
from moorage.observe.records.recorder import Recorder
from moorage.service.assembly import assemble
from moorage.service.process.loop_stalls import watch_loop
from moorage.service.process.metered import MeteredTransport
from moorage_lab.bench.path.null_server import Report, Script, null_server_program
from moorage_lab.bench.path.parts import LOOP, PARTS, PartTimes
from moorage_lab.bench.path.standing import Standing
from moorage_lab.bench.processes import Child, open_harness
from moorage_lab.bench.timing import NS_PER_MS, Stopwatch, percentile

_LOOK_SECONDS: Final = 0.2
_STALL_SECONDS: Final = 60.0
_LOOK_AT_LOOP_SECONDS: Final = 0.005
"""Time between two looks how late the loop is; a pause may be longer by up to this."""


class PathPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The size of a measurement.

    Parameters
    ----------
    nodes
        Number of nodes.
    init_pods
        Pods before measuring begins.
    pods
        Pods measured.
    window
        Pods without a node at a time.
    rate
        Pods a second; 0 keeps the window full.
    parts
        Whether processor time is measured by part, which costs a few microseconds a pod itself.
    """

    nodes: int
    init_pods: int
    pods: int
    window: int
    rate: float = 0.0
    parts: bool = True


class PathResult(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured.

    Parameters
    ----------
    pods_per_second
        From the first pod to the last binding.
    cpu_us
        Processor time of the scheduler for each pod, microseconds.
    cpu_us_by_part
        The same by part; empty where parts were not measured.
    calls_per_pod
        Bindings, Events, status patches and other calls for each pod.
    latency_ms
        From a pod's creation to its binding: median, 99th percentile, maximum.
    pause_ms_max
        Longest pause of the event loop.
    """

    plan: PathPlan
    pods_per_second: float
    cpu_us: float
    cpu_us_by_part: dict[str, float]
    calls_per_pod: dict[str, float]
    latency_ms: dict[str, float]
    pause_ms_max: float

    def as_json(self) -> dict[str, Any]:
        """Return the result as plain JSON values."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        return found

    def as_lines(self) -> list[str]:
        """Return the result for people."""
        plan, latency = self.plan, self.latency_ms
        coming = f"{plan.rate:g} pods/s" if plan.rate else f"{plan.window} waiting"
        calls = ", ".join(f"{n:.2f} {name}" for name, n in self.calls_per_pod.items())
        parts = [f"    {name:16}{us:8.1f}" for name, us in self.cpu_us_by_part.items()]
        return [
            f"{plan.nodes} nodes, {plan.pods} pods after {plan.init_pods}, {coming}",
            f"  {self.pods_per_second:,.0f} pods/s, scheduler's CPU {self.cpu_us:.1f} us a pod",
            *parts,
            f"  calls a pod: {calls}",
            f"  creation to binding: p50 {latency['p50']:.1f} ms, p99 {latency['p99']:.1f} ms, "
            f"max {latency['max']:.1f} ms",
            f"  longest pause of the loop: {self.pause_ms_max:.1f} ms",
        ]


async def measure_path(
    plan: PathPlan,
    registry: Registry,
    *,
    clock: Clock,
    streams: Streams,
    progress: Callable[[str], None] = lambda line: None,
) -> PathResult:
    """Start the null server and a scheduler, have the pods come, and measure.

    Raises
    ------
    MoorageError
        The null server ended, or no pod got a node for a minute.
    """
    null_server = partial(null_server_program, Standing(nodes=plan.nodes))
    async with open_harness(clock, name="null server", server_program=null_server) as harness:
        progress("the null server answers")
        access, server = harness.access, harness.server
        transport = open_transport(access, clock=clock, user_agent="moorage-scheduler")
        try:
            control = harness.open_transport()
            run = _Run(plan, transport, control, server, clock=clock, streams=streams)
            return await run.measure(registry, progress)
        finally:
            await transport.close()


class _Run:
    def __init__(
        self,
        plan: PathPlan,
        transport: Transport,
        control: Transport,
        server: Child,
        *,
        clock: Clock,
        streams: Streams,
    ) -> None:
        self._plan = plan
        self._transport = transport
        self._control = control
        self._server = server
        self._clock = clock
        self._streams = streams
        self._times = PartTimes()
        self._pause_seconds_max = 0.0

    async def measure(self, registry: Registry, progress: Callable[[str], None]) -> PathResult:
        """Run the scheduler, and both scripts."""
        tasks = aio.TaskOwner()
        scheduler = assemble(
            LoadedConfiguration(),
            registry,
            MeteredTransport(self._transport, CallFacts("null server"), self._clock),
            clock=self._clock,
            streams=self._streams,
            host="bench",
            elector=None,
            recorder=Recorder(self._clock),
        )
        try:
            if not self._plan.parts:
                tasks.spawn(scheduler.run(), name="scheduler")
                await scheduler.ready.wait()
                return await self._scripts(tasks, progress)
            with self._times.measured():
                tasks.spawn(scheduler.run(), name="scheduler")
                await scheduler.ready.wait()
                return await self._scripts(tasks, progress)
        finally:
            await tasks.cancel_all()

    async def _scripts(self, tasks: aio.TaskOwner, progress: Callable[[str], None]) -> PathResult:
        plan = self._plan
        await self._play(Script(plan.init_pods, plan.window))
        progress(f"{plan.init_pods} pods have a node")
        looking = watch_loop(self._clock, self._late, every_seconds=_LOOK_AT_LOOP_SECONDS)
        tasks.spawn(looking, name="stalls")
        self._times.spent_ns.update(dict.fromkeys(PARTS, 0))
        self._pause_seconds_max = 0.0
        processor_time = Stopwatch(time.thread_time_ns)
        report = await self._play(Script(plan.pods, plan.window, plan.rate))
        return self._result(report, processor_time.elapsed_ns)

    async def _play(self, script: Script) -> Report:
        """Have the pods of a script come; wait until each has a node and no more calls come."""
        await self._call_server("POST", "/null/start", msgspec.json.encode(script))
        before, stalled_seconds = None, 0.0
        while True:
            # Seldom, because each look costs the scheduler's loop a call.
            await aio.sleep(_LOOK_SECONDS)
            self._server.raise_if_ended()
            report = msgspec.json.decode(
                await self._call_server("GET", "/null/report"), type=Report
            )
            if report != before:
                before, stalled_seconds = report, 0.0
                continue
            if report.bindings >= script.pods:
                return report
            stalled_seconds += _LOOK_SECONDS
            if stalled_seconds > _STALL_SECONDS:
                waiting = script.pods - report.bindings
                raise MoorageError(f"no pod got a node for {_STALL_SECONDS:.0f} s; {waiting} wait")

    async def _call_server(self, method: str, path: str, body: bytes | None = None) -> bytes:
        answer = await self._control.request(Call(method, path, body=body))
        return answer.body

    def _late(self, seconds: float) -> None:
        self._pause_seconds_max = max(self._pause_seconds_max, seconds)

    def _result(self, report: Report, cpu_ns: int) -> PathResult:
        plan = self._plan
        spent_ns = dict(self._times.spent_ns)
        spent_ns[LOOP] = cpu_ns - sum(spent_ns.values())
        calls = {
            "bindings": report.bindings,
            "Events": report.events,
            "status patches": report.patches,
            "others": report.others,
        }
        return PathResult(
            plan=plan,
            pods_per_second=plan.pods / report.seconds,
            cpu_us=cpu_ns / 1000 / plan.pods,
            cpu_us_by_part={name: ns / 1000 / plan.pods for name, ns in spent_ns.items()}
            if plan.parts
            else {},
            calls_per_pod={name: n / plan.pods for name, n in calls.items()},
            latency_ms=_percentiles_ms(report.latencies_ns),
            pause_ms_max=self._pause_seconds_max * 1000,
        )


def _percentiles_ms(latencies_ns: Sequence[int]) -> dict[str, float]:
    named = {"p50": 50, "p99": 99, "max": 100}
    return {name: percentile(latencies_ns, each) / NS_PER_MS for name, each in named.items()}
