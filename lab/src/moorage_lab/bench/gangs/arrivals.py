"""Jobs of many sizes that arrive at random: all-or-none next to one pod at a time, in virtual time.

A job is a PodGroup and its pods. Pods of a job are created over a few seconds, so that pods of
different jobs arrive interleaved. A job starts when all its pods have a node, works for its time,
and is deleted. API server, node agents and scheduler all run. While members are bound, the run
checks that every group holds places for at least its minimum, or none at all.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any, Final

import msgspec

from moorage.api.coscheduling import COSCHEDULING_POD_GROUPS, GROUP_LABEL
from moorage.api.resources import PODS
from moorage.base import aio
from moorage.base.clock import NS_PER_SECOND, Clock, ManualClock
from moorage.base.rng import Random, Streams
from moorage.client.transport import Answer, Call, LineStream, Transport
from moorage.config.load import parse_config
from moorage.config.own import LoadedConfiguration
from moorage.observe.group_attempts import GroupAttemptFacts
from moorage.service.core import Core
from moorage.service.process.facts import Facts
from moorage_lab.bench.configurations import coscheduling
from moorage_lab.bench.gangs.arrival_report import NODE_CPU, ArrivalResult, Mode
from moorage_lab.bench.timing import Stopwatch
from moorage_sandbox.testing.builders import node_manifest, pod_manifest
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from moorage_sandbox.testing.virtual_loop import run_virtual

_SPREAD_SECONDS: Final = 5.0  # between the first and the last pod of a job
_LOOK_SECONDS: Final = 1.0
_QUIET_SECONDS: Final = 400.0  # longer than the flush of pods that wait for no event
_RENEW_SECONDS: Final = 60  # of leases, which no controller watches here
# The longest backoff, rounded up to whole seconds twice, plus a second to start.
_IDLE_SECONDS_MAX: Final = 13.0
_DIGITS: Final = 12  # of a digest, as in the other reports
_QUICK: Final = {"moorage.dev/start-seconds": "0.05", "moorage.dev/stop-seconds": "0.05"}


class Job(msgspec.Struct, frozen=True):
    """One job: its arrival time, number of pods and duration; times are in seconds."""

    name: str
    size: int
    arrives: float
    works: float
    offsets: tuple[float, ...]


def plan(streams: Streams, *, jobs: int, largest: int, every_seconds: float) -> list[Job]:
    """Return jobs of 1 to `largest` pods, ordered by arrival, with a given mean gap in seconds."""
    rng: Random = streams.stream("gang arrivals")
    plan_of_jobs: list[Job] = []
    at = 0.0
    for index in range(jobs):
        at += rng.uniform(0, 2 * every_seconds)
        size = rng.randint(1, largest)
        offsets = tuple(sorted(rng.uniform(0, _SPREAD_SECONDS) for _ in range(size)))
        plan_of_jobs.append(Job(f"job{index}", size, at, rng.uniform(20, 60), offsets))
    return plan_of_jobs


class BrokenPromiseError(AssertionError):
    """A group holds fewer places than its minimum, or waits although it fits."""


class _Bindings:
    """A transport that counts the pods of each job that the API server bound.

    `look` is called before each binding is sent.

    Attributes
    ----------
    bound
        Number of bound pods by job.
    last_ns
        When the last pod of a job was bound, monotonic nanoseconds, by job.
    digest
        SHA-256 of the bindings so far.
    """

    def __init__(self, inner: Transport, look: Callable[[], None], clock: Clock) -> None:
        self._inner = inner
        self._look = look
        self._clock = clock
        self.bound: Counter[str] = Counter()
        self.last_ns: dict[str, int] = {}
        self.digest = hashlib.sha256()

    async def request(self, call: Call) -> Answer:
        if not call.path.endswith("/binding"):
            return await self._inner.request(call)
        self._look()
        answer = await self._inner.request(call)
        if answer.status == HTTPStatus.CREATED:
            pod = call.path.split("/")[-2]
            self.bound[_job_of(pod)] += 1
            self.last_ns[_job_of(pod)] = self._clock.monotonic_ns()
            body = call.body if isinstance(call.body, bytes) else b"".join(call.body or ())
            node_name = msgspec.json.decode(body)["target"]["name"]
            self.digest.update(f"{pod} {node_name}\n".encode())
        return answer

    @asynccontextmanager
    async def stream(self, call: Call) -> AsyncIterator[LineStream]:
        async with self._inner.stream(call) as lines:
            yield lines

    async def close(self) -> None:
        await self._inner.close()


class _Watched(GroupAttemptFacts):
    """Facts that run all checks after each group attempt, before the next attempt."""

    def __init__(self, clock: Clock, look: Callable[[], None]) -> None:
        super().__init__(clock)
        self._look = look

    def ended(self, result: str, profile: str, *, since_ns: int) -> None:
        super().ended(result, profile, since_ns=since_ns)
        self._look()


class Promises:
    """Checks of a group attempt's promises against the scheduler's books.

    Attributes
    ----------
    ending
        Jobs whose pods are being deleted, one after another.
    checks
        Number of checks so far.
    """

    def __init__(self) -> None:
        self._core: Core | None = None
        self.ending: set[str] = set()
        self.checks = 0

    def start_checking(self, core: Core) -> None:
        """Start checking the promises against the books of a running scheduler."""
        self._core = core

    def check_books(self) -> None:
        """Check every group and every node; does nothing before `start_checking`.

        Raises
        ------
        BrokenPromiseError
            A group holds some places, but fewer than its minimum; or a member waits at Permit and
            holds its place meanwhile; or a node has more pods than fit.
        """
        core = self._core
        if core is None:
            return
        self.checks += 1
        groups = core.snapshot.groups
        for key, members in groups.all_groups().items():
            if not members.placed or key.name in self.ending:
                continue
            terms = groups.source.terms_of(key)
            if terms is not None and members.placed < terms.minimum:
                raise BrokenPromiseError(f"{key.full_name} holds {members.placed} places")
        held = [each.pod.full_name for each in core.waiting.undecided_pods()]
        if held:
            raise BrokenPromiseError(f"wait at Permit, on a node: {held}")
        snapshot = core.snapshot
        if (snapshot.requested("cpu") > snapshot.allocatable("cpu")).any():
            raise BrokenPromiseError("a node has more than fits")


class ArrivalRun:
    """One way of scheduling the jobs.

    Parameters
    ----------
    jobs
        The jobs, ordered by arrival.
    nodes
        Number of nodes, with room for eight pods each.
    mode
        The way of scheduling.
    watch
        Measures the duration of the run.

    Attributes
    ----------
    idle_seconds_max
        How long a job may wait although all of it fits, in the mode that promises no such wait.
    """

    idle_seconds_max = _IDLE_SECONDS_MAX

    def __init__(self, jobs: Sequence[Job], *, nodes: int, mode: Mode, watch: Clock) -> None:
        self._jobs = {job.name: job for job in jobs}
        self._nodes = nodes
        self._mode: Mode = mode
        self._watch = watch
        self._bound: Counter[str] = Counter()
        self._created: Counter[str] = Counter()
        self._fits_since: dict[str, float] = {}
        self._started: dict[str, float] = {}
        self._done: dict[str, float] = {}
        self._complete_ns: dict[str, int] = {}
        self._waits: list[float] = []
        self._digest = ""
        self._idle = self._in_vain = self._now = 0.0
        self._decisions = self._checks = 0

    def run(self) -> ArrivalResult:
        """Create all jobs, and wait until each has ended or no further change is possible.

        Raises
        ------
        BrokenPromiseError
            A promise of group attempts was broken (checked only in that mode).
        """
        watch = Stopwatch(self._watch.monotonic_ns)
        self._run()
        wall_seconds = watch.seconds
        all_done = len(self._done) == len(self._jobs)
        makespan = max(self._done.values()) if all_done else self._now
        room = makespan * self._room
        work = sum(self._jobs[name].size * self._jobs[name].works for name in self._done)
        return ArrivalResult(
            mode=self._mode,
            done=len(self._done),
            stuck=len(self._jobs) - len(self._done),
            makespan_seconds=makespan,
            mean_wait_seconds=sum(self._waits) / len(self._waits) if self._waits else 0.0,
            utilisation=work / room if room else 0.0,
            held_in_vain=min(1.0, self._in_vain / room) if room else 0.0,
            longest_idle_seconds=self._idle,
            decisions=self._decisions,
            checks=self._checks,
            wall_seconds=wall_seconds,
            digest=self._digest,
        )

    @property
    def _room(self) -> int:
        return self._nodes * NODE_CPU

    def _run(self) -> None:
        clock = ManualClock()
        run_virtual(self._play(clock, VirtualCluster), clock)

    async def _play(self, clock: Clock, made_by: type[VirtualCluster]) -> None:
        promises, around = Promises(), list[_Bindings]()
        facts = Facts(clock, group_attempts=_Watched(clock, promises.check_books))

        def with_bindings(inner: Transport) -> Transport:
            around.append(_Bindings(inner, promises.check_books, clock))
            return around[0]

        nodes = [node_manifest(f"n{i}", cpu=str(NODE_CPU)) for i in range(self._nodes)]
        config = LoadedConfiguration()
        if self._mode != "default":
            config = parse_config(coscheduling(self._mode))
        async with made_by(
            clock,
            nodes=nodes,
            config=config,
            around=with_bindings,
            renew_seconds=_RENEW_SECONDS,
            facts=facts,
        ) as cluster:
            scheduler, bindings = cluster.scheduler, around[0]
            self._bound = bindings.bound
            if self._mode == "trial":
                promises.start_checking(scheduler.core)
            await self._drive(cluster, promises.ending)
            self._decisions, self._checks = scheduler.facts.decisions, promises.checks
            self._digest = bindings.digest.hexdigest()[:_DIGITS]
            now_ns = clock.monotonic_ns()
            for name, complete_ns in self._complete_ns.items():
                started_ns = bindings.last_ns[name] if name in self._started else now_ns
                self._waits.append((started_ns - complete_ns) / NS_PER_SECOND)

    async def _drive(self, cluster: VirtualCluster, ending: set[str]) -> None:
        coming = sorted(
            (job.arrives + offset, job.name, index)
            for job in self._jobs.values()
            for index, offset in enumerate(job.offsets)
        )
        began, moved, place = cluster.seconds, 0.0, 0
        while len(self._done) < len(self._jobs):
            now = self._now = cluster.seconds - began
            while place < len(coming) and coming[place][0] <= now:
                await self._create(cluster, self._jobs[coming[place][1]], coming[place][2])
                place += 1
                moved = now
            if self._look(now):
                moved = now
            for name, since in list(self._started.items()):
                if name not in self._done and now - since >= self._jobs[name].works:
                    self._done[name] = moved = now
                    ending.add(name)
                    await self._delete(cluster, self._jobs[name])
            if place == len(coming) and now - moved > _QUIET_SECONDS:
                return
            await aio.sleep(_LOOK_SECONDS)

    def _look(self, now: float) -> bool:
        """Record jobs that started, places held for other jobs, and jobs that would fit.

        Raises
        ------
        BrokenPromiseError
            A group has waited too long although there was room for all of it.
        """
        free = self._room - sum(n for name, n in self._bound.items() if name not in self._done)
        new = False
        for name, job in self._jobs.items():
            bound = self._bound[name]
            if name in self._started or not self._created[name]:
                continue
            if bound == job.size:
                self._started[name] = now
                new = True
                continue
            self._in_vain += bound * _LOOK_SECONDS
            if bound or self._created[name] < job.size or job.size > free:
                self._fits_since.pop(name, None)
                continue
            idle = now - self._fits_since.setdefault(name, now)
            self._idle = max(self._idle, idle)
            if self._mode == "trial" and idle > self.idle_seconds_max:
                raise BrokenPromiseError(f"{name} of {job.size} waits, {free} places are free")
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
        self._created[job.name] += 1
        labels = {GROUP_LABEL: job.name}
        pod = pod_manifest(f"{job.name}-{index}", cpu="1", labels=labels, annotations=_QUICK)
        await cluster.create_objects(pod)
        if self._created[job.name] == job.size:
            self._complete_ns[job.name] = cluster.clock.monotonic_ns()

    async def _delete(self, cluster: VirtualCluster, job: Job) -> None:
        names = [f"{job.name}-{index}" for index in range(job.size)]
        await asyncio.gather(
            *(cluster.client.delete(PODS, name, namespace="default") for name in names)
        )


def _job_of(pod: str) -> str:
    return pod.rpartition("-")[0]
