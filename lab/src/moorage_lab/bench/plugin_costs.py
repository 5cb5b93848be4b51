"""Costs of each plugin, alone and uncached, and of whole decisions, by cluster size.

Every sample is a new pod, and the cluster took another pod since the previous sample. The measured
time therefore includes the updates of anything that a plugin keeps between pods.
"""

from __future__ import annotations

import os
import platform
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from moorage.api.codec import decode, encode
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.base.clock import Clock, rfc3339
from moorage.base.errors import UsageError
from moorage.base.ids import new_uid
from moorage.base.memory import settle_memory
from moorage.base.rng import Streams
from moorage.config.own import LoadedConfiguration
from moorage.engine.attempt import Attempt
from moorage.engine.cycle import Cycle
from moorage.engine.decision import Decision
from moorage.engine.scoring import ask_score, normalized
from moorage.engine.select_node import seeded
from moorage.framework.cycle_state import CycleState
from moorage.framework.registry import Registry
from moorage.framework.status import Code, Status
from moorage.service.core import build_core
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.shape import RESOURCES
from moorage.snapshot.view import NodeView
from moorage_lab.bench.manifests import csi_node
from moorage_lab.bench.objects import put_objects
from moorage_lab.bench.plugin_cases import (
    CASES,
    MIXES,
    NODES_LEAST,
    claims_and_volumes,
    node,
    resident,
)
from moorage_lab.bench.timing import NS_PER_US, Samples
from moorage_lab.bench.workload import CreateObjects, Template

Progress = Callable[[str], None]

_PROFILE = "default-scheduler"
_WARM_UP = 2
_NODES_A_PLACED_POD = 50
"""Number of nodes that keep a pod of a case: few enough to fit on any size, a guess."""
_CPU_INFO = Path("/proc/cpuinfo")


class PluginCost(msgspec.Struct, frozen=True):
    """Median microseconds of a plugin on one size; None where it lacks the extension point."""

    filter_us: float | None
    score_us: float | None

    @property
    def total_us(self) -> float:
        """Filtering and scoring together, microseconds."""
        return round((self.filter_us or 0.0) + (self.score_us or 0.0), 1)


class MixCost(msgspec.Struct, frozen=True):
    """Median microseconds of a whole decision, with answers reused for replicas and without."""

    reused_us: float
    full_us: float


class SizeCosts(msgspec.Struct, frozen=True):
    """Everything measured on one size of cluster."""

    plugins: Mapping[str, PluginCost]
    mixes: Mapping[str, MixCost]


class Laboratory:
    """Measures plugins and decisions on a loaded cluster of one size.

    Parameters
    ----------
    nodes
        Number of nodes; each has one pod.
    registry
        Every known plugin.
    clock, streams
        Time for measuring; seed of ties and uids.
    samples
        Number of timed pods of each case.
    """

    def __init__(
        self, nodes: int, registry: Registry, *, clock: Clock, streams: Streams, samples: int
    ) -> None:
        self._clock = clock
        self._uids = streams.stream("bench/uids")
        self._samples = samples
        self._placed: deque[Pod] = deque()
        self._placed_most = nodes // _NODES_A_PLACED_POD + 1
        self._core = build_core(LoadedConfiguration(), registry, clock=clock, streams=streams)
        self._snapshot = self._core.snapshot
        self._profile = self._core.profiles[_PROFILE]
        tie_break = seeded(streams.stream("bench/ties"))
        self._reusing = self._core.cycles[_PROFILE]
        self._full = Cycle(self._profile, self._snapshot, tie_break, reuse=False)
        put_objects(self._snapshot.listers, CreateObjects(nodes, csi_node))
        for index in range(nodes):
            self._core.cache.add_node(decode(Node, encode(node(index))))
        for index in range(nodes):
            self._core.cache.add_pod(self._pod(resident, index))
        settle_memory()

    def plugin(self, name: str) -> PluginCost:
        """Measure one plugin alone.

        Raises
        ------
        UsageError
            The plugin skipped its pod, so the case is wrong, or the cluster is too small for it.
        """
        template = self._prepared(name.lower(), CASES[name], self._samples)
        filtering = Samples(self._clock.monotonic_ns, warm_up=_WARM_UP)
        scoring = Samples(self._clock.monotonic_ns, warm_up=_WARM_UP)
        rows: NodeView | None = None
        for index in range(self._samples + _WARM_UP):
            pod = PodInfo(self._pod(template, index))
            pod.part(RESOURCES)  # a pod's shape is found once, for all plugins
            state = CycleState()
            self._filter(name, state, pod, filtering)
            if rows is not None:
                self._score(name, state, pod, rows, scoring)
            search = self._full.search(self._full.begin(pod))
            fits = search.view.row_numbers()[search.filtered.passed]
            if len(fits) == 0:
                raise UsageError(f"the pod for {name} fits nowhere: take more nodes")
            rows = self._snapshot.rows(fits)
            self._place(pod.pod, self._snapshot.names[int(fits[index * 7919 % len(fits)])])
        self._clear()
        return PluginCost(_median_us(filtering), _median_us(scoring))

    def mix(self, name: str) -> MixCost:
        """Measure whole decisions, one of a pair with reuse and one without.

        Raises
        ------
        UsageError
            A pod fits no node.
        """
        rounds = 2 * self._samples
        template = self._prepared(
            f"mix-{name.replace(' + ', '-').replace(' ', '-')}", MIXES[name], rounds
        )
        now_ns = self._clock.monotonic_ns
        reused, full = Samples(now_ns, warm_up=_WARM_UP), Samples(now_ns, warm_up=_WARM_UP)
        for index in range(rounds + 2 * _WARM_UP):
            cycle, samples = (self._full, full) if index % 2 else (self._reusing, reused)
            pod = self._pod(template, index)
            decision = samples.measure_work(partial(_decide, cycle, pod))
            if not decision.node_name:
                raise UsageError(
                    f"the pod with {name} fits nowhere: take more nodes ({decision.message})"
                )
            self._place(pod, decision.node_name)
        self._clear()
        return MixCost(_median_us(reused) or 0.0, _median_us(full) or 0.0)

    def _prepared(self, prefix: str, case: Callable[[str], Template], count: int) -> Template:
        for op in claims_and_volumes(prefix, count + 2 * _WARM_UP):
            put_objects(self._snapshot.listers, op)
        return case(prefix)

    def _filter(self, name: str, state: CycleState, pod: PodInfo, samples: Samples) -> None:
        """Measure PreFilter and Filter; no sample when the plugin has neither."""
        ask = next((each for each in self._profile.pre_filters if each.name == name), None)
        judge = next((each for each in self._profile.filters if each.name == name), None)
        if ask is None and judge is None:
            return
        view = self._snapshot.all()

        def work() -> Status:
            status = Status()
            if ask is not None:
                _, status = ask.pre_filter(state, pod, self._snapshot)
            if judge is not None and status.ok:
                judge.filter(state, pod, view)
            return status

        status = samples.measure_work(work)
        if not status.ok:
            raise UsageError(f"{name} had nothing to filter: {status.message or 'Skip'}")

    def _score(
        self, name: str, state: CycleState, pod: PodInfo, rows: NodeView, samples: Samples
    ) -> None:
        """Measure PreScore, Score and NormalizeScore; no sample when the plugin does not score."""
        ask = next((each for each in self._profile.pre_scores if each.name == name), None)
        judge = next((each for each in self._profile.score_forms if each.name == name), None)
        if judge is None:
            return
        attempt = Attempt(self._profile, self._snapshot, state, pod)

        def work() -> Status:
            status = Status() if ask is None else ask.pre_score(state, pod, rows)
            if status.code is not Code.SKIP:
                normalized(attempt, judge, ask_score(attempt, judge, rows))
            return status

        status = samples.measure_work(work)
        if status.code is Code.SKIP and name == "VolumeBinding":
            samples.durations_ns.clear()  # scoring by capacity belongs to a gate that is off
        elif not status.ok:
            raise UsageError(f"{name} had nothing to score: {status.message or 'Skip'}")

    def _place(self, pod: Pod, node_name: str) -> None:
        spec = msgspec.structs.replace(pod.spec, node_name=node_name)
        placed = msgspec.structs.replace(pod, spec=spec)
        self._core.cache.add_pod(placed)
        self._placed.append(placed)
        if len(self._placed) > self._placed_most:
            self._core.cache.remove_pod(self._placed.popleft())

    def _clear(self) -> None:
        """Remove the pods of a case, so that the next case starts with the same cluster."""
        for pod in self._placed:
            self._core.cache.remove_pod(pod)
        self._placed.clear()

    def _pod(self, template: Template, index: int) -> Pod:
        manifest = template(index)
        manifest["metadata"]["uid"] = new_uid(self._uids)
        manifest["spec"]["schedulerName"] = _PROFILE
        return decode(Pod, encode(manifest))


def measure(
    sizes: Iterable[int],
    registry: Registry,
    *,
    clock: Clock,
    streams: Streams,
    samples: int = 41,
    progress: Progress = lambda line: None,
) -> dict[int, SizeCosts]:
    """Measure every plugin and every mix on clusters of these sizes.

    Raises
    ------
    UsageError
        A size is too small for the cases; nothing is measured then.
    """
    sizes = list(sizes)
    if any(nodes < NODES_LEAST for nodes in sizes):
        raise UsageError(f"the cases need at least {NODES_LEAST} nodes, not {min(sizes)}")
    costs: dict[int, SizeCosts] = {}
    for nodes in sizes:
        progress(f"{nodes} nodes")
        lab = Laboratory(nodes, registry, clock=clock, streams=streams, samples=samples)
        plugins = {name: lab.plugin(name) for name in CASES}
        costs[nodes] = SizeCosts(plugins, {name: lab.mix(name) for name in MIXES})
    return costs


def costs_json(costs: Mapping[int, SizeCosts], *, now_ns: int) -> dict[str, Any]:
    """Return median microseconds by plugin and number of nodes, the machine and the day."""
    totals = {
        name: {str(nodes): each.plugins[name].total_us for nodes, each in costs.items()}
        for name in CASES
    }
    return {**totals, "machine": machine(), "measured": rfc3339(now_ns).partition("T")[0]}


def costs_lines(costs: Mapping[int, SizeCosts]) -> list[str]:
    """Return the tables for people; growth is the last size against the first."""
    sizes = list(costs)
    heading = [f"{n:,}" for n in sizes]
    plugins = [(name, [costs[n].plugins[name].total_us for n in sizes]) for name in CASES]
    reused = [(name, [costs[n].mixes[name].reused_us for n in sizes]) for name in MIXES]
    full = [(name, [costs[n].mixes[name].full_us for n in sizes]) for name in MIXES]
    return [
        f"Median microseconds by number of nodes, on {machine()}",
        *_table("plugin, uncached", heading, plugins),
        *_table("decision, reuse on", heading, reused),
        *_table("decision, reuse off", heading, full),
    ]


def machine() -> str:
    """Describe the machine: processor, cores, Python; no name and no path."""
    model = platform.machine()
    if _CPU_INFO.is_file():
        lines = _CPU_INFO.read_text(errors="replace").splitlines()
        named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
        model = next(named, model)
    return f"{model}, {os.cpu_count()} cores, Python {platform.python_version()}"


def _table(
    title: str, heading: Sequence[str], rows: Sequence[tuple[str, Sequence[float]]]
) -> list[str]:
    lines = ["", f"{title:32}" + "".join(f"{each:>10}" for each in heading) + f"{'growth':>10}"]
    for name, values in rows:
        growth = f"{values[-1] / values[0]:.1f}x" if values[0] else "-"
        lines.append(f"{name:32}" + "".join(f"{us:10.0f}" for us in values) + f"{growth:>10}")
    return lines


def _decide(cycle: Cycle, pod: Pod) -> Decision:
    return cycle.decide(PodInfo(pod))


def _median_us(samples: Samples) -> float | None:
    return round(samples.median_in(NS_PER_US), 1) if samples.durations_ns else None
