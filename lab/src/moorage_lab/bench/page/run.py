"""Measures what the page costs the scheduler that serves it: the first picture, and ten viewers.

The cluster is `cluster`'s. Nothing draws here: what a browser adds is printed by the tests of
the page, which drive one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

import msgspec

from moorage.base import aio
from moorage.base.clock import Clock
from moorage.base.rng import Streams
from moorage_lab.bench.page.cluster import PageCluster, Viewer, logged_in, page_cluster
from moorage_lab.bench.timing import Stopwatch, median

_NEXT_LOOKS: Final = 5
_SETTLE_SECONDS: Final = 5.0  # the scheduler tidies its memory after the first lists


class ViewerCost(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The cost of some viewers.

    Parameters
    ----------
    viewers
        Number of viewers.
    arrivals_per_second
        Pods created each second.
    core_percent
        Processor time of the scheduler's process, percent of one core.
    bytes_per_second
        What one viewer received.
    """

    viewers: int
    arrivals_per_second: int
    core_percent: float
    bytes_per_second: int


class PageResult(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The cost of a page.

    Parameters
    ----------
    nodes, pods
        Size of the cluster.
    first_ms
        Time until everything that the page shows has arrived at its first viewer, milliseconds.
    first_cpu_ms
        Processor time of the scheduler's process for that, milliseconds.
    first_bytes
        The size of that.
    next_ms
        Time for the next viewers, in the median: only what changed is asked of the scheduler.
    costs
        The cost of viewers, at rest and while pods arrive.
    """

    nodes: int
    pods: int
    first_ms: float
    first_cpu_ms: float
    first_bytes: int
    next_ms: float
    costs: tuple[ViewerCost, ...]


class PagePlan(msgspec.Struct, frozen=True, kw_only=True):
    """The plan of a measurement.

    Parameters
    ----------
    nodes, pods
        Size of the cluster.
    viewers
        Numbers of viewers to measure, one after the other.
    arrivals_per_second
        Pods created each second in the second half.
    seconds
        How long each number of viewers is measured.
    """

    nodes: int
    pods: int
    viewers: tuple[int, ...] = (0, 1, 10)
    arrivals_per_second: int = 5
    seconds: float = 20.0


async def measure_page(
    plan: PagePlan,
    *,
    clock: Clock,
    streams: Streams,
    progress: Callable[[str], None] = lambda line: None,
) -> PageResult:
    """Start a cluster with a page and measure what the page costs.

    Raises
    ------
    MoorageError
        A process ended early or did not start, or the page refuses.
    """
    size = {"nodes": plan.nodes, "pods": plan.pods}
    async with page_cluster(**size, clock=clock, streams=streams, progress=progress) as cluster:
        viewer = await logged_in(await cluster.login_link())
        try:
            await viewer.all_counted(plan.pods)
            await aio.sleep(_SETTLE_SECONDS)
            run = _Run(plan, cluster, clock)
            progress("the first picture")
            first = await run.look(viewer)
            next_ms = [(await run.look(viewer))[0] for _ in range(_NEXT_LOOKS)]
            costs = []
            for arrivals in (0, plan.arrivals_per_second):
                for viewers in plan.viewers:
                    progress(f"{viewers} viewers, {arrivals} pods arrive each second")
                    costs.append(await run.cost(viewer, viewers, arrivals))
        finally:
            await viewer.close()
        return PageResult(
            **size,
            first_ms=round(first[0], 1),
            first_cpu_ms=round(first[1], 1),
            first_bytes=first[2],
            next_ms=round(median(next_ms), 1),
            costs=tuple(costs),
        )


class _Run:
    """The measurement of one cluster."""

    def __init__(self, plan: PagePlan, cluster: PageCluster, clock: Clock) -> None:
        self._plan = plan
        self._cluster = cluster
        self._clock = clock
        self._created = 0

    async def look(self, viewer: Viewer) -> tuple[float, float, int]:
        """Ask for everything; return wall time and processor time in ms, and the bytes."""
        watch, cpu = Stopwatch(self._clock.monotonic_ns), self._cpu_seconds()
        body = await viewer.state()
        took_ms = watch.milliseconds
        return took_ms, 1e3 * (self._cpu_seconds() - cpu), len(body)

    async def cost(self, viewer: Viewer, viewers: int, arrivals: int) -> ViewerCost:
        """Measure some viewers for a while; they share a login."""
        async with asyncio.TaskGroup() as group:
            works = [viewer.follow() for _ in range(viewers)]
            tasks = [group.create_task(each) for each in (*works, self._arrive(arrivals))]
            await aio.sleep(_SETTLE_SECONDS)  # each viewer has loaded everything
            watch = Stopwatch(self._clock.monotonic_ns)
            cpu, received = self._cpu_seconds(), viewer.received
            await aio.sleep(self._plan.seconds)
            seconds = watch.seconds
            cost = ViewerCost(
                viewers=viewers,
                arrivals_per_second=arrivals,
                core_percent=round(100 * (self._cpu_seconds() - cpu) / seconds, 2),
                bytes_per_second=round((viewer.received - received) / seconds / max(viewers, 1)),
            )
            for task in tasks:
                task.cancel()
        return cost

    async def _arrive(self, per_second: int) -> None:
        while per_second:
            await self._cluster.create_pod(self._created)
            self._created += 1
            await aio.sleep(1 / per_second)

    def _cpu_seconds(self) -> float:
        return self._cluster.scheduler.own_processor_seconds()
