"""A small cluster on which groups and pods with exact run times come, wait, run and end.

Decisions are those of the engine; the queue is a list that is tried in random order at each event,
so that nothing depends on who is tried first. `Workload.run` plays one random workload and checks
every promise of `moorage.engine.groups.reserved_room` against numbers of its own.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from moorage.base.clock import ManualClock
from moorage.base.rng import Random, Streams
from moorage.config.load import parse_config
from moorage.engine.attempt import Scope
from moorage.engine.decision import Outcome
from moorage.engine.groups.cycle import GroupCycle
from moorage.engine.groups.decision import GroupOutcome
from moorage.engine.groups.reserved_room import Head, ReservedRoom
from moorage.plugins.in_tree import in_tree_registry
from moorage.service.core import Core, build_core
from moorage.snapshot.pod_info import PodInfo, info_of
from moorage_sandbox.testing.builders import node, pod

Way: TypeAlias = Literal["pass", "backfill", "strict"]
"""Others pass the head freely, as far as they do not delay it, or not at all."""

SECOND = 10**9
_CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins: {multiPoint: {enabled: [{name: Coscheduling}], disabled: [{name: PrioritySort}]}}
"""
_CORE = parse_config(_CONFIG)


class Job(msgspec.Struct, frozen=True):
    """Like pods that start together. `runs` is None where the end is known to nobody."""

    name: str
    size: int
    cpu: int
    arrives: int
    runs: int
    known: bool


class Result(msgspec.Struct, frozen=True):
    """What one run came to; times in seconds."""

    waits: tuple[int, ...]
    group_waits: tuple[int, ...]
    makespan: int
    utilisation: float
    heads: int


def draw(rng: Random, *, jobs: int) -> tuple[list[int], list[Job]]:
    """Return the cpus of nodes, and jobs in the order of arrival."""
    nodes = [rng.randint(2, 6) for _ in range(rng.randint(1, 4))]
    made: list[Job] = []
    at = 0
    for index in range(jobs):
        at += rng.randint(0, 8)
        cpu = rng.randint(1, 2)
        room = sum(each // cpu for each in nodes)
        size = rng.randint(2, max(2, room)) if rng.random() < 0.4 else 1
        known = rng.random() < 0.9
        made.append(Job(f"j{index}", min(size, room), cpu, at, rng.randint(1, 40), known))
    return nodes, made


class Workload:
    """One run of a workload in one way.

    Parameters
    ----------
    nodes
        The cpus of each node.
    jobs
        The jobs.
    way
        What may pass a group that waits.
    after_seconds
        How long a group waits before room is held for it.
    """

    def __init__(
        self, nodes: list[int], jobs: list[Job], way: Way, *, after_seconds: int, rng: Random
    ) -> None:
        self._nodes = nodes
        self._jobs = {job.name: job for job in jobs}
        self._way: Way = way
        self._after = after_seconds
        self._rng = rng
        self._core: Core = build_core(
            _CORE, in_tree_registry(), clock=ManualClock(), streams=Streams(1)
        )
        self._cycle = self._core.cycles["default-scheduler"]
        self._groups = GroupCycle(self._cycle)
        self._room = ReservedRoom(self._core.snapshot, self._end_of)
        for index, cpu in enumerate(nodes):
            self._core.snapshot.table.add_node(node(f"n{index}", cpu=str(cpu), memory="64Gi"))
        self._now = 0
        self._pods: dict[str, list[PodInfo]] = {
            name: self._made(job) for name, job in self._jobs.items()
        }
        self._waiting: dict[str, Job] = {}
        self._running: dict[str, tuple[int, dict[str, str]]] = {}
        self._refused_since: dict[str, int] = {}
        self._started: dict[str, int] = {}
        self._promised: int | None = None
        self._heads = 0

    def run(self) -> Result:
        """Play until every job has run, event by event."""
        times = {job.arrives for job in self._jobs.values()}
        while times:
            self._now = min(times)
            times.remove(self._now)
            self._end_and_arrive()
            names = list(self._waiting)
            self._rng.shuffle(names)
            for name in names:
                self._try(self._waiting[name])
            times |= {end for end, _ in self._running.values()}
            checks = {since + self._after for since in self._refused_since.values()}
            times |= {at for at in checks if at > self._now}
        assert not self._waiting, f"{list(self._waiting)} never start"
        return self._result()

    # -- events --------------------------------------------------------------------------------

    def _end_and_arrive(self) -> None:
        snapshot = self._core.snapshot
        for name in [n for n, (end, _) in self._running.items() if end <= self._now]:
            del self._running[name]
            for info in self._pods[name]:
                snapshot.table.remove_pod(info.uid)
                snapshot.groups.remove(info.uid)
        for job in self._jobs.values():
            if job.arrives == self._now:
                self._waiting[job.name] = job
                for info in self._pods[job.name]:
                    snapshot.groups.put_pod(info.pod)

    def _try(self, job: Job) -> None:
        """Try a job as the scheduler does: the group as one, a single pod by itself."""
        pods, rank = self._pods[job.name], (0, job.arrives * SECOND + int(job.name[1:]))
        key = self._core.snapshot.groups.key_of(pods[0].pod)
        held = self._room.reservation
        is_head = held is not None and held.head.key == key
        if self._way == "strict" and held is not None and rank > held.head.rank:
            return
        within = None if is_head else self._room.open_to(pods, rank, now_ns=self._now * SECOND)
        if key is None:
            scope = Scope(within=within, post_filter=False)
            decision = self._cycle.decide(pods[0], scope)
            if decision.outcome is Outcome.BIND:
                self._start(job, {pods[0].uid: decision.node_name})
            return
        found = self._groups.decide_group(key, pods, within=within)
        if found.outcome is GroupOutcome.PLACED:
            self._start(job, {each.decision.pod.uid: each.node_name for each in found.members})
            return
        since = self._refused_since.setdefault(job.name, self._now)
        if self._way != "pass" and self._now - since >= self._after:
            self._consider(Head(key, tuple(pods), rank), job)

    def _consider(self, head: Head, job: Job) -> None:
        """Hold room as `moorage.service.groups.backfill` does."""
        held = self._room.reservation
        if held is not None and held.head.rank <= head.rank:
            late = held.head.key == head.key and self._now * SECOND > held.start_ns
            assert not late or self._promised is None, f"{head.key} has not started in time"
            if not late:
                return
        expected = self._start_if_nobody_passes(job)
        fits = self._room.reserve(self._groups.decide_without, head, now_ns=self._now * SECOND)
        assert fits == (expected is not None), f"{job}: {fits}, {expected}"
        self._promised = expected
        if fits:
            self._heads += 1
            reservation = self._room.reservation
            assert reservation is not None
            assert expected is not None
            assert reservation.start_ns == expected * SECOND

    def _start(self, job: Job, nodes: dict[str, str]) -> None:
        held = self._room.reservation
        key = self._core.snapshot.groups.key_of(self._pods[job.name][0].pod)
        if held is not None and held.head.key == key:
            on_time = self._promised is None or self._now <= self._promised
            assert on_time, f"{job} starts at {self._now}, without backfill at {self._promised}"
            self._room.release()
            self._promised = None
        elif held is not None and job.arrives * SECOND + int(job.name[1:]) < held.head.rank[1]:
            self._promised = None  # an earlier job may delay the head
        del self._waiting[job.name]
        self._refused_since.pop(job.name, None)
        self._started[job.name] = self._now
        self._running[job.name] = (self._now + job.runs, nodes)
        for info in self._pods[job.name]:
            self._core.snapshot.table.add_pod(info, nodes[info.uid])
            self._core.snapshot.groups.assume(info.uid)

    # -- numbers of its own --------------------------------------------------------------------

    def _start_if_nobody_passes(self, job: Job) -> int | None:
        """Return when a job starts if no other job starts before, by adding up cpus alone."""
        known = sorted(end for name, (end, _) in self._running.items() if self._jobs[name].known)
        for moment in known:
            free = {f"n{index}": cpu for index, cpu in enumerate(self._nodes)}
            for name, (end, nodes) in self._running.items():
                if self._jobs[name].known and end <= moment:
                    continue
                for node_name in nodes.values():
                    free[node_name] -= self._jobs[name].cpu
            if sum(room // job.cpu for room in free.values()) >= job.size:
                return moment
        return None

    def _end_of(self, info: PodInfo, now_ns: int) -> int | None:
        name = info.name.partition("-")[0]
        job = self._jobs[name]
        if not job.known:
            return None
        running = self._running.get(name)
        return now_ns + job.runs * SECOND if running is None else running[0] * SECOND

    def _made(self, job: Job) -> list[PodInfo]:
        prefix = "pod-group.scheduling.sigs.k8s.io"
        labels = {f"{prefix}/name": job.name, f"{prefix}/min-available": str(job.size)}
        return [
            info_of(
                pod(f"{job.name}-{i}", cpu=str(job.cpu), labels=labels if job.size > 1 else None)
            )
            for i in range(job.size)
        ]

    def _result(self) -> Result:
        jobs = self._jobs.values()
        end = max(self._started[job.name] + job.runs for job in jobs)
        work = sum(job.size * job.cpu * job.runs for job in jobs)
        wait = {job.name: self._started[job.name] - job.arrives for job in jobs}
        return Result(
            waits=tuple(wait.values()),
            group_waits=tuple(wait[job.name] for job in jobs if job.size > 1),
            makespan=end,
            utilisation=work / (end * sum(self._nodes)),
            heads=self._heads,
        )
