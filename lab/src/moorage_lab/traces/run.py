"""One run: the pods of a scenario come, are placed and end, in virtual time.

Place in the flow: `inputs`, a variant and a seed to here; a `RunResult` to `sweep`. The queue, the
decisions, preemption and groups are those of a scheduler, by `moorage.virtual.model`. A run is
a function of its arguments: it gives the same result in any process.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import msgspec

from moorage.api.node import Node
from moorage.base.clock import NS_PER_SECOND, Clock, SystemClock
from moorage.base.digests import digest
from moorage.base.rng import Streams
from moorage.nodeshapes.annotations import START_SECONDS, number, run_seconds
from moorage.virtual.deciding_half import ClusterInputs
from moorage.virtual.effects import CALL_SECONDS
from moorage.virtual.live_objects import fresh
from moorage.virtual.model import ClusterModel
from moorage.virtual.objects import ClusterObjects
from moorage_lab.traces.arrivals import Planned, most_common, planned
from moorage_lab.traces.inputs import START_NS, Inputs
from moorage_lab.traces.jobs.members import MemberStarts
from moorage_lab.traces.records import PodRecord, Records
from moorage_lab.traces.sampling import Series
from moorage_lab.traces.scenario import seconds_of
from moorage_lab.traces.totals import totals
from moorage_lab.traces.variants import Variant

Progress = Callable[[float], None]
"""Gets the share of a run that is done, from 0 to 1."""

_POINTS: Final = 200  # of a series, about
_SHARE_OF_PODS: Final = 0.95  # Weng et al., ATC 2023: the typical pods are 95 % of the trace
_RESOURCES_FIRST: Final = ("cpu", "memory")


class RunResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one run.

    Parameters
    ----------
    configuration, seed, arguments
        The variant, and the seed.
    digest
        SHA-256 over the placements, in the order in which they were made.
    totals
        Figures of the whole run, by name.
    pods, series
        Columns of the tables of pods and of series.
    took_seconds
        Real time that the run took.
    """

    configuration: str
    seed: int
    arguments: dict[str, Any]
    digest: str
    totals: dict[str, float]
    pods: dict[str, list[Any]]
    series: dict[str, list[Any]]
    took_seconds: float


def pods_of(result: RunResult) -> int:
    """Return the number of pods of a run."""
    return len(next(iter(result.pods.values()), ()))


def run(
    inputs: Inputs,
    variant: Variant,
    seed: int,
    *,
    progress: Progress = lambda share: None,
    clock: Clock | None = None,
) -> RunResult:
    """Run a scenario once.

    Parameters
    ----------
    progress
        Told from time to time.
    clock
        Measures how long the run takes; the system's if None.

    Raises
    ------
    ConfigError, UsageError
        The configuration cannot be used.
    """
    clock = SystemClock() if clock is None else clock
    begin = clock.monotonic_ns()
    simulation = Simulation(inputs, variant, seed, progress)
    simulation.play()
    took = (clock.monotonic_ns() - begin) / NS_PER_SECOND
    return simulation.result(took)


class Simulation:
    """A run in progress.

    Attributes
    ----------
    model
        The model in which it takes place.
    records
        Its pods.
    """

    def __init__(self, inputs: Inputs, variant: Variant, seed: int, progress: Progress) -> None:
        self._inputs = inputs
        self._variant = variant
        self._seed = seed
        self._progress = progress
        objects = ClusterObjects()
        for item in inputs.objects:
            objects.add_json(item)
        loaded = variant.load()
        start = ClusterInputs(
            objects=objects,
            registry=loaded.registry,
            config=loaded.config,
            seed=seed,
            now_ns=START_NS,
        )
        self.model = ClusterModel(start)
        self._streams = Streams(seed)
        self._open = 0  # arrivals, ends and failures that are still to come
        self._placements: list[tuple[str, str]] = []
        self.records = Records(self.model, on_placed=self._placed, on_gone=self._gone)
        snapshot = self.model.half.core.snapshot
        offered = {name for node in objects.nodes.values() for name in node.status.allocatable}
        capacity = {name: int(snapshot.allocatable(name).sum()) for name in sorted(offered)}
        self._plan = planned(inputs, self._streams, capacity)
        self._starts = MemberStarts(self._start)
        shapes = most_common(self._plan, share=_SHARE_OF_PODS)
        asked = {name for amounts, _ in shapes for name, amount in amounts.items() if amount}
        told = [name for name in capacity if name in asked or name in _RESOURCES_FIRST]
        self._resources = sorted(told, key=lambda name: ("/" in name, name))
        self._series = Series(
            snapshot,
            self.records,
            shapes=shapes,
            resources=self._resources,
            domain=inputs.domain,
        )
        self._down: dict[str, Node] = {}

    # --- what is to come ------------------------------------------------------------------------

    def play(self) -> None:
        """Let everything happen."""
        for each in self._plan:
            self._soon(each.at, partial(self._arrive, each))
        for failure in self._inputs.failures:
            self._soon(seconds_of(failure.at), partial(self._fail, failure.node))
            if failure.for_:
                back = seconds_of(failure.at) + seconds_of(failure.for_)
                self._soon(back, partial(self._return, failure.node))
        self._draw_failures()
        self._begin_samples()
        until = self._inputs.until_seconds
        until_ns = None if math.isinf(until) else START_NS + round(until * NS_PER_SECOND)
        self.model.run(lambda: self._open > 0, until_ns=until_ns)
        self._series.sample()
        self.records.explain(self.model.reasons())
        self._progress(1.0)

    def result(self, took_seconds: float) -> RunResult:
        """Return what came of the run."""
        return RunResult(
            configuration=self._variant.name,
            seed=self._seed,
            arguments=self._variant.arguments,
            digest=digest(self._placements),
            totals=totals(self.records, self._series, self.model.attempts),
            pods=self.records.table(),
            series=self._series.table(),
            took_seconds=took_seconds,
        )

    def _soon(self, seconds: float, act: Callable[[], None]) -> None:
        """Note something for a moment, seconds after the begin."""

        def happen() -> None:
            self._open -= 1
            act()

        self._open += 1
        self.model.call_at(START_NS + round(seconds * NS_PER_SECOND), happen)

    # --- pods -----------------------------------------------------------------------------------

    def _arrive(self, plan: Planned) -> None:
        record = self.records.arrive(plan.pod, group=plan.group, runs=plan.runs)
        patience = self._inputs.groups[plan.group].give_up_seconds
        if not math.isinf(patience):
            # A binding takes a call; a pod that is tried once has time for it.
            due = self.records.now + max(patience, 2 * CALL_SECONDS)
            self._soon(due, partial(self._give_up, record))

    def _give_up(self, record: PodRecord) -> None:
        if not record.node and record.ended is None:
            record.outcome = "gaveUp"
            record.reason = self.model.reasons().get(record.pod.uid, "")
            self.model.leave(record.pod, returns=False)

    def _placed(self, record: PodRecord) -> None:
        self._placements.append((record.pod.full_name, record.node))
        if self._count_step and not len(self._placements) % self._count_step:
            self._sample()
        self._starts.place_member(record)

    def _start(self, record: PodRecord) -> None:
        """Let a pod end after its run time, which counts from when all members of its job run."""
        runs = _own_seconds(record) if record.runs is None else record.runs
        if runs is not None:
            starts = number(record.pod, START_SECONDS, 1.0)
            self._soon(self.records.now + starts + runs, partial(self._complete, record))

    def _complete(self, record: PodRecord) -> None:
        current = self.model.current(record.pod)
        if current is not None and not current.metadata.deletion_timestamp:
            record.outcome = "completed"
            self.model.drop_pod(current)

    def _gone(self, record: PodRecord) -> None:
        if record.outcome != "completed":
            self._starts.lose_member(record)
        returns = record.group >= 0 and self._inputs.groups[record.group].resubmitted
        owned = any(each.controller for each in record.pod.metadata.owner_references)
        if record.outcome in ("evicted", "lost") and returns and not owned:
            pod = fresh(record.pod, name=record.pod.name)
            again = Planned(self.records.now, pod, record.runs, record.group)
            self._soon(self.records.now + CALL_SECONDS, partial(self._arrive, again))

    # --- nodes ----------------------------------------------------------------------------------

    def _fail(self, name: str) -> None:
        node = self.model.objects.nodes.get(name)
        if node is not None:
            self._down[name] = node
            self.model.remove_node(name)

    def _return(self, name: str) -> None:
        node = self._down.pop(name, None)
        if node is not None:
            self.model.put_node(node)

    def _draw_failures(self) -> None:
        drawn = self._inputs.random_failures
        if drawn is None:
            return
        every, lasts, until = (seconds_of(each) for each in (drawn.every, drawn.for_, drawn.until))
        for name in self.model.objects.nodes:
            rng = self._streams.stream(f"simulate/failures/{name}")
            now = rng.expovariate(1 / every)
            while now < until:
                self._soon(now, partial(self._fail, name))
                now += rng.expovariate(1 / lasts)
                self._soon(now, partial(self._return, name))
                now += rng.expovariate(1 / every)

    # --- points of series -----------------------------------------------------------------------

    def _begin_samples(self) -> None:
        horizon = max((each.at + (each.runs or 0.0) for each in self._plan), default=0.0)
        horizon = min(horizon, self._inputs.until_seconds)
        self._step = self._inputs.every_seconds
        if math.isinf(self._step) and horizon:
            self._step = horizon / _POINTS
        # Where all pods come together, time hardly passes while they are placed.
        self._count_step = max(1, len(self._plan) // _POINTS) if not horizon else 0
        self._series.sample()
        self._next_sample()

    def _next_sample(self) -> None:
        if not math.isinf(self._step) and self._open:
            due_ns = self.model.virtual_now_ns + round(self._step * NS_PER_SECOND)
            self.model.call_at(due_ns, self._timed_sample)

    def _timed_sample(self) -> None:
        self._sample()
        self._next_sample()

    def _sample(self) -> None:
        self._series.sample()
        arrived = len(self.records.pods)
        self._progress(min(0.99, arrived / max(1, len(self._plan))))

    _count_step: int = 0
    _step: float = math.inf


def _own_seconds(record: PodRecord) -> float | None:
    """Return how long a pod runs by its own annotation; None for ever."""
    pod = record.pod
    if not pod.spec.containers or pod.spec.restart_policy == "Always":
        return None
    lengths = [run_seconds(pod, each, 0, init=False) for each in pod.spec.containers]
    known = [each for each in lengths if each is not None]
    return max(known) if len(known) == len(lengths) else None
