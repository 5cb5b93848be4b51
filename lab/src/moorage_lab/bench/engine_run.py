"""Runs a workload against the deciding half alone: queue, cycle, cache; nothing is written.

Each pod takes every step that it takes in a scheduler, except the API calls. It enters through
ingest, is popped, decided and assumed. The watch event that an API server would send confirms it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

import msgspec

from moorage.api.codec import decode, encode
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.base.clock import Clock
from moorage.base.digests import digest
from moorage.base.errors import UsageError
from moorage.base.ids import new_uid
from moorage.base.memory import settle_memory
from moorage.base.rng import Random, Streams
from moorage.config.own import LoadedConfiguration
from moorage.framework.registry import Registry
from moorage.observe.records.recorder import Recorder
from moorage.service.attempts.failure import FailureHandler
from moorage.service.core import Core, CoreInputs, build_core
from moorage.service.intake.ingest import NodeIngest, PodIngest
from moorage.service.process.facts import Facts
from moorage_lab.bench.claims.writes import ClaimWrites
from moorage_lab.bench.objects import put_objects
from moorage_lab.bench.preempting import Preempting
from moorage_lab.bench.report import Result, make_result, peak_memory_mib
from moorage_lab.bench.timing import Laps, Stopwatch
from moorage_lab.bench.workload import (
    ChurnPods,
    CreateNodes,
    CreateObjects,
    CreatePods,
    JsonObject,
    Op,
    PlacePods,
    Workload,
)

Progress = Callable[[str], None]

_PROFILE = "default-scheduler"


class _Times:
    """The laps of the pods of one operation, and how long each decision took."""

    def __init__(self, clock: Clock) -> None:
        self.laps = Laps(clock.monotonic_ns, "queue", "decide", "assume", "confirm")
        self.decisions_ns: list[int] = []


class EngineRun:
    """One run of one workload.

    Parameters
    ----------
    workload
        The operations.
    registry
        Every known plugin.
    clock, streams
        Time for measuring; the seed decides ties, so the same seed gives the same digest.
    loaded
        The scheduler's configuration; None for the default.
    records
        Whether each attempt leaves a record, as in a running scheduler.

    Attributes
    ----------
    decisions_ns
        The time of each measured decision, nanoseconds.
    """

    def __init__(
        self,
        workload: Workload,
        registry: Registry,
        *,
        clock: Clock,
        streams: Streams,
        loaded: LoadedConfiguration | None = None,
        records: bool = False,
    ) -> None:
        self._workload = workload
        self._clock = clock
        self._uids: Random = streams.stream("bench/uids")
        loaded = loaded or LoadedConfiguration()
        self._recorder = Recorder(clock) if records else None
        around = CoreInputs(recorder=self._recorder)
        self._core: Core = build_core(
            loaded, registry, clock=clock, streams=streams, surroundings=around
        )
        self.decisions_ns: list[int] = []
        self._claims = ClaimWrites(self._core.snapshot, self._core.profiles[_PROFILE])
        self._histories = self._core.queue.lifecycle.histories
        facts, core = Facts(clock), self._core
        self._nodes = NodeIngest(core.cache, core.queue, facts)
        self._pods = PodIngest(
            core.cache,
            core.queue,
            core.store,
            profiles=core.profiles.keys(),
            writes=None,
            facts=facts,
        )

    def run(self, progress: Progress = lambda line: None) -> Result:
        """Run every operation and return the measurements.

        Raises
        ------
        UsageError
            The workload does not fit its own nodes.
        """
        settle_memory()
        placements: list[tuple[str, str]] = []
        times, seconds = _Times(self._clock), 0.0
        for op in self._workload.ops:
            progress(f"{type(op).__name__} {op.count}")
            if self._prepare(op):
                continue
            assert isinstance(op, CreatePods), "everything else prepares"
            if op.preempting:
                return self._preempt(op)
            made = self._schedule(op)
            if op.measured:
                placements, times, seconds = made
                self.decisions_ns = times.decisions_ns
        return make_result(
            self._workload,
            "engine",
            placements=placements,
            seconds=seconds,
            decisions_ns=times.decisions_ns,
            memory_peak_mib={"engine": peak_memory_mib()},
            seconds_by_part=times.laps.seconds_by_part(),
        )

    def in_blocks(self, size: int) -> Iterator[list[tuple[str, str]]]:
        """Run every operation, in steps, so that runs in one process can take turns.

        The first step ends before the first measured pod, and returns nothing. Each later step
        decides so many measured pods, and returns their placements. There are no preemptors here.

        Parameters
        ----------
        size
            The number of pods in a step.
        """
        for op in self._workload.ops:
            if self._prepare(op):
                continue
            assert isinstance(op, CreatePods), "everything else prepares"
            assert not op.preempting, "a wave of preemptors is not parted"
            if not op.measured:
                self._schedule(op)
                continue
            pods = [self._pod(op.template(index)) for index in range(op.count)]
            times = _Times(self._clock)
            yield []
            for start in range(0, op.count, size):
                block = pods[start : start + size]
                yield [(pod.full_name, self._one(pod, times)) for pod in block]

    def _prepare(self, op: Op) -> bool:
        """Carry out an operation that decides no pod, or none that fits; False for any other."""
        match op:
            case CreateNodes():
                self._create_nodes(op)
            case CreateObjects():
                put_objects(self._core.snapshot.listers, op)
            case PlacePods():
                self._place(op)
            case ChurnPods():
                self._churn(op)
            case CreatePods(waiting=True):
                self._have_wait(op)
            case _:
                return False
        return True

    def _preempt(self, op: CreatePods) -> Result:
        """Schedule a wave of preemptors, the last operation of its workload."""
        pods = [self._pod(op.template(index)) for index in range(op.count)]
        wave = Preempting(self._core, self._pods, _PROFILE, clock=self._clock)
        watch = Stopwatch(self._clock.monotonic_ns)
        placements = wave.run(pods)
        seconds, self.decisions_ns = watch.seconds, wave.decisions_ns
        result = make_result(
            self._workload,
            "engine",
            placements=placements,
            seconds=seconds,
            decisions_ns=wave.decisions_ns,
            memory_peak_mib={"engine": peak_memory_mib()},
            seconds_by_part=wave.seconds_by_part,
        )
        return msgspec.structs.replace(
            result,
            digest=digest([*placements, *wave.victims]),
            evicted=len(wave.victims),
            candidates_per_second=wave.candidates_per_second,
        )

    def _create_nodes(self, op: CreateNodes) -> None:
        for index in range(op.count):
            self._nodes.on_add(decode(Node, encode(op.template(index))))

    def _place(self, op: PlacePods) -> None:
        for index in range(op.count):
            self._pods.on_add(self._pod(op.template(index)))

    def _churn(self, op: ChurnPods) -> None:
        there: deque[Pod] = deque()
        for index in range(op.count):
            pod = self._pod(op.template(index))
            node_name = self._one(pod, _Times(self._clock))
            there.append(_on_node(pod, node_name))
            if len(there) > op.present:
                self._pods.on_delete(there.popleft(), missed=False)

    def _have_wait(self, op: CreatePods) -> None:
        """Try pods that fit nowhere, so that the queue keeps them."""
        core = self._core
        failures = FailureHandler(core.queue, core.store.get, recorder=None, writes=None)
        for index in range(op.count):
            self._pods.on_add(self._pod(op.template(index)))
            queued = core.queue.pop()
            assert queued is not None, "the pod was just added"
            decision = core.cycles[_PROFILE].decide(queued.info)
            if decision.node_name:
                raise UsageError(
                    f"{queued.pod.full_name} is to wait, and {decision.node_name} fits"
                )
            failures.handle(
                queued,
                decision.status,
                decision.diagnosis,
                message=decision.message,
                nomination=decision.nomination,
            )

    def _schedule(self, op: CreatePods) -> tuple[list[tuple[str, str]], _Times, float]:
        pods = [self._pod(op.template(index)) for index in range(op.count)]
        times, watch = _Times(self._clock), Stopwatch(self._clock.monotonic_ns)
        placements = []
        there: deque[Pod] = deque()
        for pod in pods:
            node_name = self._one(pod, times)
            placements.append((pod.full_name, node_name))
            there.append(_on_node(pod, node_name))
            if op.present and len(there) > op.present:
                gone = there.popleft()
                self._pods.on_delete(gone, missed=False)
                self._claims.free_devices(gone)
        return placements, times, watch.seconds

    def _one(self, pod: Pod, times: _Times) -> str:
        core, laps = self._core, times.laps
        laps.start_lap()
        self._pods.on_add(pod)
        queued = core.queue.pop()
        assert queued is not None, f"{pod.full_name} was just added and is not in the queue"
        laps.end_lap("queue")
        decision = core.cycles[_PROFILE].decide(queued.info)
        took_ns = laps.end_lap("decide")
        times.decisions_ns.append(took_ns)
        recorder = self._recorder
        if recorder is not None:
            recorder.decided(queued, decision, self._histories, took_ns=took_ns)
        if not decision.node_name:
            raise UsageError(f"the workload does not fit: {pod.full_name}: {decision.message}")
        if self._core.snapshot.listers.device_classes.generation:
            self._claims.reserve_devices(decision)
        core.cache.assume_pod(queued.pod, decision.node_name)
        core.queue.end_in_flight(queued.uid)
        laps.end_lap("assume")
        self._claims.show_allocations(pod)
        self._pods.on_update(pod, _on_node(pod, decision.node_name))
        if recorder is not None:
            recorder.ended(queued.uid, "bound")
        laps.end_lap("confirm")
        return decision.node_name

    def _pod(self, manifest: JsonObject) -> Pod:
        manifest["metadata"]["uid"] = new_uid(self._uids)
        manifest["spec"]["schedulerName"] = _PROFILE
        return decode(Pod, encode(manifest))


def _on_node(pod: Pod, node_name: str) -> Pod:
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=node_name))
