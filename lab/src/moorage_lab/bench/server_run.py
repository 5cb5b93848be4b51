"""Runs a workload through an API server: three processes, everything over HTTPS.

The server is ``moorage up --no-scheduler``, the scheduler is ``moorage run``, and this process
creates the pods and watches them get their nodes, as a user's programs would. On two cores the
three share the machine, so the number is what a user sees, not what the scheduler alone can do.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol, TypeVar

from moorage.api.pod import Pod
from moorage.api.resources import NODES, PODS, ResourceType
from moorage.base import aio
from moorage.base.clock import Clock
from moorage.base.errors import DecodeError, MoorageError
from moorage.base.rng import Streams
from moorage.client.reflector import Reflector
from moorage.client.transport import Transport
from moorage.client.writes import Client
from moorage_lab.bench.processes import Child, Harness, open_harness
from moorage_lab.bench.report import Result, make_result, peak_memory_mib
from moorage_lab.bench.timing import Stopwatch
from moorage_lab.bench.workload import CreateNodes, CreatePods, Workload

Progress = Callable[[str], None]
T = TypeVar("T")

OWN_CPU = "scheduler's own cpu"
"""Name of the scheduler's processor time without that of processes which it has started."""
_STALL_SECONDS = 60.0
_CHECK_SECONDS = 0.5  # a process that ended is noticed within this time
_IN_FLIGHT = 32  # concurrent calls


class BoundPods:
    """The pods that have a node, as seen by the watch.

    Attributes
    ----------
    nodes
        The node of each, by the name of the pod.
    changed
        Set when there is another one.
    """

    def __init__(self) -> None:
        self.nodes: dict[str, str] = {}
        self.changed = asyncio.Event()

    def on_add(self, pod: Pod) -> None:
        """Take in a pod that appeared or changed."""
        if pod.spec.node_name:
            self.nodes[pod.name] = pod.spec.node_name
            self.changed.set()

    def on_update(self, old: Pod, new: Pod) -> None:
        """Take in a newer version."""
        del old
        self.on_add(new)

    def on_delete(self, pod: Pod, *, missed: bool) -> None:
        """Do nothing: what was bound counts."""
        del pod, missed

    def on_synced(self) -> None:
        """Take in that everything has been listed."""
        self.changed.set()

    def on_undecodable(self, key: tuple[str, str], error: DecodeError) -> None:
        """Refuse to measure with a pod that cannot be read."""
        raise MoorageError(f"pod {key[1]} cannot be read: {error}")


class Companion(Protocol):
    """Something that happens during the measurement."""

    @property
    def flags(self) -> Sequence[str]:
        """Flags of the scheduler, instead of serving nothing."""
        ...

    async def before(self, scheduler: Child) -> None:
        """Prepare, when the scheduler runs and before measured pods are created."""
        ...

    async def during(self) -> None:
        """Go on while measured pods are created, until cancelled."""
        ...


class ServerRun:
    """One run of one workload through an API server started for it.

    Parameters
    ----------
    workload
        The operations.
    clock, streams
        Time for measuring; seed of the scheduler's ties.
    progress
        Called with a message at every step.
    flags
        Further flags of the scheduler.
    companion
        Happens while measured pods are created; None for nothing.
    """

    def __init__(
        self,
        workload: Workload,
        *,
        clock: Clock,
        streams: Streams,
        progress: Progress = lambda line: None,
        flags: Sequence[str] = (),
        companion: Companion | None = None,
    ) -> None:
        self._flags = flags
        self._companion = companion
        self._workload = workload
        self._clock = clock
        self._streams = streams
        self._progress = progress

    async def run(self) -> Result:
        """Start the processes, run every operation, end the processes.

        Raises
        ------
        MoorageError
            A process ended early, or no pod got a node for a minute.
        """
        async with open_harness(self._clock) as harness:
            return await self.run_in(harness)

    async def run_in(self, harness: Harness, *, config: Path | None = None) -> Result:
        """Run every operation in a harness that is open.

        Parameters
        ----------
        config
            The scheduler's configuration file; None for the defaults.

        Raises
        ------
        MoorageError
            As `run`.
        """
        serving = ("--secure-port", "0") if self._companion is None else self._companion.flags
        flags = [*serving, *self._flags, "--seed", str(self._streams.seed)]
        flags += [] if config is None else ["--config", str(config)]
        scheduler = harness.scheduler(*flags)
        transport = harness.open_transport()
        client = Client(transport, rng=self._streams.stream("bench/client"))
        bound = BoundPods()
        await self._create_nodes(client)
        await scheduler.start()
        async with watch_pods(transport, bound, clock=self._clock, streams=self._streams):
            return await self._pods(client, bound, harness.server, scheduler)

    async def _create_nodes(self, client: Client) -> None:
        for op in self._workload.ops:
            if isinstance(op, CreateNodes):
                self._progress(f"CreateNodes {op.count}")
                await create_all(client, NODES, op)

    async def _pods(
        self, client: Client, bound: BoundPods, server: Child, scheduler: Child
    ) -> Result:
        result: Result | None = None
        for op in self._workload.ops:
            if not isinstance(op, CreatePods):
                continue
            self._progress(f"CreatePods {op.count}")
            if op.measured and self._companion is not None:
                await self._companion.before(scheduler)
            before = {child.name: child.processor_seconds() for child in (server, scheduler)}
            own_before = scheduler.own_processor_seconds()
            have, watch = len(bound.nodes), Stopwatch(self._clock.monotonic_ns)
            async with asyncio.TaskGroup() as group:
                during = self._begun(group) if op.measured else None
                creating = group.create_task(create_all(client, PODS, op))
                await _all_bound(bound, have + op.count, (server, scheduler))
                await creating
                if during is not None:
                    during.cancel()
            seconds = watch.seconds
            if op.measured:
                names = sorted(op.template(i)["metadata"]["name"] for i in range(op.count))
                result = make_result(
                    self._workload,
                    "server",
                    placements=[(name, bound.nodes[name]) for name in names],
                    seconds=seconds,
                    decisions_ns=[],
                    memory_peak_mib={
                        server.name: server.peak_memory_mib(),
                        scheduler.name: scheduler.peak_memory_mib(),
                        "client": peak_memory_mib(),
                    },
                    seconds_by_part={
                        f"{child.name} cpu": child.processor_seconds() - before[child.name]
                        for child in (server, scheduler)
                    }
                    | {OWN_CPU: scheduler.own_processor_seconds() - own_before},
                )
        assert result is not None, f"{self._workload.name} measures nothing"
        return result

    def _begun(self, group: asyncio.TaskGroup) -> asyncio.Task[None] | None:
        """Begin what happens during the measurement."""
        return None if self._companion is None else group.create_task(self._companion.during())


@asynccontextmanager
async def watch_pods(
    transport: Transport, bound: BoundPods, *, clock: Clock, streams: Streams
) -> AsyncIterator[None]:
    """Watch the pods of a server; what is inside begins once they have been listed."""
    tasks = aio.TaskOwner()
    reflector: Reflector[Pod] = Reflector(
        transport,
        PODS,
        Pod,
        handler=bound,
        clock=clock,
        rng=streams.stream("bench/reflector"),
    )
    tasks.spawn(reflector.run(), name="watch pods")
    try:
        await reflector.synced.wait()
        yield
    finally:
        await tasks.cancel_all()


async def create_all(client: Client, resource: ResourceType, op: CreateNodes | CreatePods) -> None:
    """Create the objects of an operation, some at once, each in the namespace it names.

    Raises
    ------
    MoorageError
        The API server does not create one of them.
    """

    async def create(index: int) -> None:
        made = op.template(index)
        namespace = made["metadata"].get("namespace", "")
        await client.create(resource, made, namespace=namespace)

    await some_at_once(range(op.count), create)


async def some_at_once(items: Iterable[T], work: Callable[[T], Awaitable[None]]) -> None:
    """Do some work for each item, for a bounded number of items at a time."""
    rest = iter(items)

    async def worker() -> None:
        for each in rest:
            await work(each)

    async with asyncio.TaskGroup() as group:
        for _ in range(_IN_FLIGHT):
            group.create_task(worker())


async def _all_bound(bound: BoundPods, count: int, children: tuple[Child, ...]) -> None:
    have, stalled_seconds = len(bound.nodes), 0.0
    while len(bound.nodes) < count:
        for child in children:
            child.raise_if_ended()
        bound.changed.clear()
        try:
            async with asyncio.timeout(_CHECK_SECONDS):
                await bound.changed.wait()
        except TimeoutError:
            stalled_seconds += _CHECK_SECONDS
        if len(bound.nodes) > have:
            have, stalled_seconds = len(bound.nodes), 0.0
        elif stalled_seconds >= _STALL_SECONDS:
            waiting = count - len(bound.nodes)
            raise MoorageError(
                f"no pod got a node for {_STALL_SECONDS:.0f} s; {waiting} still wait"
            )
