"""Jobs of many sizes that arrive at random: all-or-none beside one pod at a time, in virtual time.

A job is a PodGroup and its pods, whose creation is spread over a few seconds, so that jobs arrive
mixed up. It starts when all its pods have a node, works for its time, and is deleted. The whole
program runs: API server, node agents, scheduler. While members are bound it is checked that every
group has a place for at least its minimum, or holds none at all.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, Literal, TypeAlias

import msgspec

from moorage.api.coscheduling import COSCHEDULING_POD_GROUPS, GROUP_LABEL
from moorage.api.resources import PODS
from moorage.base import aio
from moorage.base.clock import ManualClock
from moorage.base.rng import Random, Streams
from moorage.client.transport import Answer, Call, LineStream, Transport
from moorage.config.load import parse_config
from moorage.config.own import LoadedConfiguration
from moorage.testing.builders import node_manifest, pod_manifest
from moorage.testing.virtual_cluster import VirtualCluster
from moorage.testing.virtual_loop import run_virtual

Mode: TypeAlias = Literal["trial", "permit", "default"]
MODES: Final[tuple[Mode, ...]] = ("trial", "permit", "default")

_NODE_CPU: Final = 8  # members on a node
_SPREAD_SECONDS: Final = 5.0  # between the first and the last pod of a job
_LOOK_SECONDS: Final = 1.0
_QUIET_SECONDS: Final = 400.0  # longer than the flush of pods that wait for no event
_QUICK: Final = {"moorage.dev/start-seconds": "0.05", "moorage.dev/stop-seconds": "0.05"}

_COSCHEDULING: Final = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins:
    multiPoint: {enabled: [{name: Coscheduling}], disabled: [{name: PrioritySort}]}
---
apiVersion: moorage.dev/v1alpha1
kind: MoorageConfiguration
profiles: [{schedulerName: default-scheduler, groupMode: MODE}]
"""


class Job(msgspec.Struct, frozen=True):
    """One job: when it comes, how many pods it has, and how long it works, in seconds."""

    name: str
    size: int
    arrives: float
    works: float
    offsets: tuple[float, ...]


class ArrivalResult(msgspec.Struct, frozen=True):
    """What became of the jobs under one way of scheduling.

    Parameters
    ----------
    mode
        trial and permit: with Coscheduling; default: one pod at a time, without it.
    done, stuck
        Jobs that ended; jobs that never started, though nothing happened any more.
    makespan_seconds
        Until the last job ended, in virtual time; where some are stuck, until that was certain.
    utilisation
        Of all places until then, the share in which a job worked.
    held_in_vain
        Of all places until then, the share bound for jobs that had not started.
    checks
        How often the groups were looked at; all held what they promise.
    """

    mode: Mode
    done: int
    stuck: int
    makespan_seconds: float
    utilisation: float
    held_in_vain: float
    checks: int


def plan(streams: Streams, *, jobs: int, largest: int, every_seconds: float) -> list[Job]:
    """Return jobs of 1 to `largest` pods, so many seconds apart on average, by arrival."""
    rng: Random = streams.stream("gang arrivals")
    made: list[Job] = []
    at = 0.0
    for index in range(jobs):
        at += rng.uniform(0, 2 * every_seconds)
        size = rng.randint(1, largest)
        offsets = tuple(sorted(rng.uniform(0, _SPREAD_SECONDS) for _ in range(size)))
        made.append(Job(f"job{index}", size, at, rng.uniform(20, 60), offsets))
    return made


class BrokenPromiseError(AssertionError):
    """A group holds places that are too few for it."""


class _Checked:
    """A transport that looks at all groups whenever a pod is bound."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self.cluster: VirtualCluster | None = None
        self.ending: set[str] = set()
        self.checks = 0

    async def request(self, call: Call) -> Answer:
        if call.path.endswith("/binding") and self.cluster is not None:
            self._check(self.cluster)
        return await self._inner.request(call)

    def _check(self, cluster: VirtualCluster) -> None:
        groups = cluster.scheduler.core.snapshot.groups
        self.checks += 1
        for key, members in groups.all().items():
            terms = groups.source.terms_of(key)
            if terms is None or key.name in self.ending or not members.placed:
                continue
            if members.placed < terms.minimum:
                raise BrokenPromiseError(f"{key.full_name} holds {members.placed} places")

    @asynccontextmanager
    async def stream(self, call: Call) -> AsyncIterator[LineStream]:
        async with self._inner.stream(call) as lines:
            yield lines

    async def close(self) -> None:
        await self._inner.close()


class ArrivalRun:
    """One way of scheduling the jobs.

    Parameters
    ----------
    jobs
        By arrival.
    nodes
        How many there are, with room for eight pods each.
    mode
        The way.
    """

    def __init__(self, jobs: Sequence[Job], *, nodes: int, mode: Mode) -> None:
        self._jobs = jobs
        self._nodes = nodes
        self._mode: Mode = mode
        self._started: dict[str, float] = {}
        self._done: dict[str, float] = {}
        self._in_vain = 0.0
        self._now = 0.0
        self._checks = 0

    def run(self) -> ArrivalResult:
        """Let all jobs come, and wait until each has ended or nothing happens any more.

        Raises
        ------
        BrokenPromiseError
            A group held places that were too few for it (only where none may: in a trial).
        """
        clock = ManualClock()
        run_virtual(self._play(clock), clock)
        all_done = len(self._done) == len(self._jobs)
        makespan = max(self._done.values()) if all_done else self._now
        room = makespan * self._nodes * _NODE_CPU
        work = sum(job.size * job.works for job in self._jobs if job.name in self._done)
        return ArrivalResult(
            mode=self._mode,
            done=len(self._done),
            stuck=len(self._jobs) - len(self._done),
            makespan_seconds=makespan,
            utilisation=work / room if room else 0.0,
            held_in_vain=min(1.0, self._in_vain / room) if room else 0.0,
            checks=self._checks,
        )

    async def _play(self, clock: ManualClock) -> None:
        checked: list[_Checked] = []

        def around(inner: Transport) -> Transport:
            checked.append(_Checked(inner))
            return checked[0]

        nodes = [node_manifest(f"n{i}", cpu=str(_NODE_CPU)) for i in range(self._nodes)]
        config = LoadedConfiguration()
        if self._mode != "default":
            config = parse_config(_COSCHEDULING.replace("MODE", self._mode))
        async with VirtualCluster(clock, nodes=nodes, config=config, around=around) as cluster:
            watched = checked[0]
            if self._mode == "trial":
                watched.cluster = cluster
            await self._drive(cluster, watched)
            self._checks = watched.checks

    async def _drive(self, cluster: VirtualCluster, watched: _Checked) -> None:
        coming = sorted(
            (job.arrives + offset, job.name, index)
            for job in self._jobs
            for index, offset in enumerate(job.offsets)
        )
        by_name = {job.name: job for job in self._jobs}
        began, moved, place = cluster.seconds, 0.0, 0
        while len(self._done) < len(self._jobs):
            now = self._now = cluster.seconds - began
            while place < len(coming) and coming[place][0] <= now:
                await self._create(cluster, by_name[coming[place][1]], coming[place][2])
                place += 1
                moved = now
            if self._look(cluster, now):
                moved = now
            for name, since in list(self._started.items()):
                if name not in self._done and now - since >= by_name[name].works:
                    self._done[name] = moved = now
                    watched.ending.add(name)
                    await self._delete(cluster, by_name[name])
            if place == len(coming) and now - moved > _QUIET_SECONDS:
                return
            await aio.sleep(_LOOK_SECONDS)

    def _look(self, cluster: VirtualCluster, now: float) -> bool:
        """Note who started, and what is held for those who did not."""
        bound: dict[str, int] = {}
        for key, node in cluster.placements().items():
            if node:
                name = key.partition("/")[2].rpartition("-")[0]
                bound[name] = bound.get(name, 0) + 1
        new = False
        for job in self._jobs:
            if job.name in self._started:
                continue
            if bound.get(job.name) == job.size:
                self._started[job.name] = now
                new = True
            else:
                self._in_vain += bound.get(job.name, 0) * _LOOK_SECONDS
        return new

    async def _create(self, cluster: VirtualCluster, job: Job, index: int) -> None:
        if self._mode != "default" and index == 0:
            group: dict[str, Any] = {
                "apiVersion": COSCHEDULING_POD_GROUPS.api_version,
                "kind": "PodGroup",
                "metadata": {"name": job.name},
                "spec": {"minMember": job.size},
            }
            await cluster.client.create(COSCHEDULING_POD_GROUPS, group, namespace="default")
        labels = {GROUP_LABEL: job.name}
        pod = pod_manifest(f"{job.name}-{index}", cpu="1", labels=labels, annotations=_QUICK)
        await cluster.create(pod)

    async def _delete(self, cluster: VirtualCluster, job: Job) -> None:
        for index in range(job.size):
            await cluster.client.delete(PODS, f"{job.name}-{index}", namespace="default")


def as_lines(results: Sequence[ArrivalResult], *, nodes: int, jobs: int) -> list[str]:
    """Return results as a table for people."""
    lines = [
        f"{jobs} jobs on {nodes} nodes with room for {_NODE_CPU} pods each, virtual time",
        "           done   stuck   makespan   utilisation   held in vain",
    ]
    lines += [
        f"  {each.mode:8} {each.done:4} {each.stuck:7} {each.makespan_seconds:9.0f}s "
        f"{each.utilisation:12.1%} {each.held_in_vain:14.1%}"
        for each in results
    ]
    return lines
