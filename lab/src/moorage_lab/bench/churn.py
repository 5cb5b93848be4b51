"""``moorage bench churn``: memory of server and scheduler while many pods come and go.

The server is ``moorage up --no-scheduler`` without node agents, the scheduler is ``moorage run``.
This process creates pods and deletes each as soon as it has a node, many at a time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from moorage.api.meta import ObjectReference
from moorage.api.pod import Pod
from moorage.api.resources import NODES, PODS
from moorage.base import aio
from moorage.base.clock import Clock
from moorage.base.errors import DecodeError, MoorageError
from moorage.base.rng import Streams
from moorage.client.follow import Follower
from moorage.client.reflector import Reflector
from moorage.client.writes import Client
from moorage_lab.bench.processes import Child, open_harness
from moorage_lab.bench.server_run import create_all
from moorage_lab.bench.timing import Stopwatch
from moorage_lab.bench.workload import NAMESPACE, CreateNodes, default_node, default_pod

_START_SECONDS: Final = 60.0
_LOOK_SECONDS: Final = 0.5
_STALL_SECONDS: Final = 120.0
_LOOKS: Final = 8
"""Looks at the memory, evenly over the pods."""


class ChurnPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The size of a measurement.

    Parameters
    ----------
    nodes
        Number of nodes, which stay.
    pods
        Number of pods that come and go.
    present
        Most pods at a time.
    """

    nodes: int
    pods: int
    present: int


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    """The resident memory of both processes, MiB, after a number of pods.

    Parameters
    ----------
    pods
        Pods that have come and gone.
    server, scheduler
        Memory of the process now.
    """

    pods: int
    server: float
    scheduler: float


class ChurnResult(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured.

    Parameters
    ----------
    plan
        The size.
    seconds
        From the first pod to the deletion of the last pod.
    memory
        The memory after the first pod, and from time to time until after the last pod.
    peak
        Peak memory of each process, MiB.
    """

    plan: ChurnPlan
    seconds: float
    memory: list[Memory]
    peak: dict[str, float]

    def as_json(self) -> dict[str, Any]:
        """Return the result as plain JSON values."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        return found

    def as_lines(self) -> list[str]:
        """Return the result for people."""
        plan, peak = self.plan, self.peak
        return [
            f"{plan.pods:,} pods came and went on {plan.nodes:,} nodes, at most {plan.present} at "
            f"a time, in {self.seconds:.0f} s",
            "      pods  server, MiB  scheduler, MiB",
            *(f"{m.pods:>10,}{m.server:>13.0f}{m.scheduler:>16.0f}" for m in self.memory),
            f"{'peak':>10}{peak['server']:>13.0f}{peak['scheduler']:>16.0f}",
        ]


async def measure_churn(
    plan: ChurnPlan, *, clock: Clock, streams: Streams, progress: Callable[[str], None]
) -> ChurnResult:
    """Start server and scheduler, have the pods come and go, and look at the memory.

    Raises
    ------
    MoorageError
        A process ended, or no pod came and went for two minutes.
    """
    async with open_harness(clock) as harness:
        transport = harness.open_transport()
        client = Client(transport, rng=streams.stream("bench/client"))
        scheduler = harness.scheduler("--secure-port", "0", "--seed", str(streams.seed))
        tasks = aio.TaskOwner()
        try:
            await create_all(client, NODES, CreateNodes(plan.nodes, default_node))
            await scheduler.start()
            run = _Run(plan, client, (harness.server, scheduler), clock=clock, progress=progress)
            watch = Reflector(
                transport,
                PODS,
                Pod,
                handler=run.bound,
                clock=clock,
                rng=streams.stream("bench/reflector"),
            )
            tasks.spawn(watch.run(), name="watch pods")
            await watch.synced.wait()
            return await run.measure()
        finally:
            await tasks.cancel_all()


class Bound(Follower[Pod]):
    """Wakes those who wait until a pod has a node; a handler of watched pods."""

    def __init__(self) -> None:
        super().__init__(self._take_in, lambda pod: None)
        self._waits: dict[str, asyncio.Event] = {}

    def wait_for(self, name: str) -> asyncio.Event:
        """Return what is set when the pod has a node; to be called before the pod is created."""
        return self._waits.setdefault(name, asyncio.Event())

    def on_undecodable(self, key: tuple[str, str], error: DecodeError) -> None:
        """Fail for a pod that cannot be read."""
        raise MoorageError(f"pod {key[1]} cannot be read: {error}")

    def _take_in(self, pod: Pod) -> None:
        if pod.spec.node_name and (wait := self._waits.pop(pod.name, None)):
            wait.set()


class _Run:
    def __init__(
        self,
        plan: ChurnPlan,
        client: Client,
        children: tuple[Child, Child],
        *,
        clock: Clock,
        progress: Callable[[str], None],
    ) -> None:
        self._plan = plan
        self._client = client
        self._children = children
        self._clock = clock
        self._progress = progress
        self._gone = 0
        self._memory: list[Memory] = []
        self.bound = Bound()

    async def measure(self) -> ChurnResult:
        plan = self._plan
        indexes = iter(range(plan.pods))
        watch = Stopwatch(self._clock.monotonic_ns)
        async with asyncio.TaskGroup() as group:
            watching = group.create_task(self._watch())
            async with asyncio.TaskGroup() as works:
                for _ in range(min(plan.present, plan.pods)):
                    works.create_task(self._come_and_go(indexes))
            watching.cancel()
        server, scheduler = self._children
        return ChurnResult(
            plan=plan,
            seconds=watch.seconds,
            memory=self._memory,
            peak={each.name: each.peak_memory_mib() for each in (server, scheduler)},
        )

    async def _come_and_go(self, indexes: Iterator[int]) -> None:
        template = default_pod("churn")
        for index in indexes:
            pod = template(index)
            name = pod["metadata"]["name"]
            has_node = self.bound.wait_for(name)
            await self._client.create(PODS, pod, namespace=NAMESPACE)
            await has_node.wait()
            target = ObjectReference(namespace=NAMESPACE, name=name)
            await self._client.delete_pod(target, grace_seconds=0)
            self._gone += 1
            if self._gone * _LOOKS // self._plan.pods >= len(self._memory):
                self._look()

    async def _watch(self) -> None:
        """Fail when a process ends, or when no pod comes and goes any more."""
        before, stalled_seconds = -1, 0.0
        while True:
            for child in self._children:
                child.raise_if_ended()
            stalled_seconds = 0.0 if self._gone > before else stalled_seconds + _LOOK_SECONDS
            before = self._gone
            if stalled_seconds > _STALL_SECONDS:
                raise MoorageError(
                    f"no pod came and went for {_STALL_SECONDS:.0f} s, after {before} pods"
                )
            await aio.sleep(_LOOK_SECONDS)

    def _look(self) -> None:
        server, scheduler = self._children
        self._memory.append(
            Memory(pods=self._gone, server=server.memory_mib(), scheduler=scheduler.memory_mib())
        )
        self._progress(f"{self._gone} of {self._plan.pods} pods have come and gone")
