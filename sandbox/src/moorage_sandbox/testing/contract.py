"""Checks a plugin against the contract of extension points, over random clusters.

::

    report = check_contract("keep_headroom.py:KeepHeadroom", args={"cpuPercent": 25})
    assert report.faults == ()

The clusters are drawn from a seed, so that a fault can be seen again. ``moorage plugin test`` is
this module on the command line.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

import msgspec

from moorage.api.codec import encode
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.base.aio import sleep
from moorage.base.clock import Clock, ManualClock, SystemClock
from moorage.base.rng import Random, Streams
from moorage.engine.attempt import CycleError
from moorage.engine.evaluation import Evaluation
from moorage.framework.containment import Containment
from moorage.framework.enabling import points_of
from moorage_sandbox.testing.builders import Manifest, node, node_manifest, pod, pod_manifest
from moorage_sandbox.testing.plugins import StillCluster, with_plugins
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from moorage_sandbox.testing.virtual_loop import run_virtual

T = TypeVar("T")

CHECKS: Final = ("answers", "twice", "unchanged", "reuse", "time", "binding")
"""Every check: allowed answers, the same answer twice, objects left unchanged, the same decisions
with reused answers, time for a call, and the points after a decision."""

_PODS_MOST: Final = 8
_NODES_MOST: Final = 7
_FAULTS_SHOWN: Final = 3
_NS_PER_SECOND: Final = 1_000_000_000
_BUDGET_SECONDS: Final = 1.0
_LIVE_SECONDS: Final = 60.0
_LIVE_PODS: Final = 5
# The queue sorts without the stopwatch.
_UNMEASURED: Final = "QueueSort"
_BROKEN_ATTEMPT: Final = "SchedulerError"


class Fault(msgspec.Struct, frozen=True):
    """A breach of the contract.

    Parameters
    ----------
    check
        One of `CHECKS`.
    text
        The pod, the node and the answers concerned.
    """

    check: str
    text: str


class PointTime(msgspec.Struct, frozen=True):
    """The duration of the calls of one extension point.

    Parameters
    ----------
    point
        The extension point. A scalar Filter or Score is called for all nodes at once.
    calls
        Number of calls.
    mean_us, longest_us
        Mean and longest time, microseconds.
    """

    point: str
    calls: int
    mean_us: float
    longest_us: float


class ContractReport(msgspec.Struct, frozen=True):
    """The result of `check_contract`.

    Parameters
    ----------
    plugin
        Name of the plugin.
    clusters, pods
        Number of random clusters and pods that the plugin was asked about.
    faults
        The first faults of each check.
    times
        Times by extension point, in the order of the first call.
    unasked
        The extension points of the plugin that were never called, so that nothing is known of them.
    """

    plugin: str
    clusters: int
    pods: int
    faults: tuple[Fault, ...]
    times: tuple[PointTime, ...]
    unasked: tuple[str, ...]


class _Stopwatch:
    """A budget that measures every call and stops none."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.took_ns: defaultdict[str, list[int]] = defaultdict(list)

    def run(
        self, label: str, call: Callable[..., T], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> T:
        """Return what the call returns."""
        began_ns = self._clock.monotonic_ns()
        try:
            return call(*args, **kwargs)
        finally:
            self.took_ns[label].append(self._clock.monotonic_ns() - began_ns)


def check_contract(
    plugin: object,
    *,
    args: Mapping[str, Any] | None = None,
    clusters: int = 20,
    seed: int = 0,
    on_cluster: Callable[[int], None] | None = None,
    clock: Clock | None = None,
) -> ContractReport:
    """Ask a plugin about random clusters and pods, and report every breach of its contract.

    Parameters
    ----------
    plugin
        A class, a decorated function, or a reference as ``--plugin`` takes it.
    args
        Its arguments, as plain values.
    clusters
        Number of random clusters.
    seed
        Seed of the random clusters.
    on_cluster
        Called with the number of clusters done so far.
    clock
        Measures the calls; the system's clock when None.

    Raises
    ------
    UsageError
        The value is not a plugin, or cannot be made.
    """
    watch = _Stopwatch(SystemClock() if clock is None else clock)
    with _quiet():
        check = _Check(plugin, args, watch)
        for index in range(clusters):
            check.cluster(Streams(seed).stream(f"cluster {index}"))
            if on_cluster is not None:
                on_cluster(index + 1)
        check.binding()
    times = _times(check.name, watch.took_ns)
    check.add(
        f"{each.point} took {each.longest_us / 1e6:.1f} s; a call may take {_BUDGET_SECONDS:g} s"
        for each in times
        if each.longest_us > _BUDGET_SECONDS * 1e6
    )
    called = {each.point for each in times}
    unasked = tuple(point for point in check.points if point not in {*called, _UNMEASURED})
    return ContractReport(check.name, clusters, check.pods, tuple(check.faults), times, unasked)


class _Check:
    """The checks of one plugin."""

    def __init__(self, plugin: object, args: Mapping[str, Any] | None, watch: _Stopwatch) -> None:
        self._plugin = plugin
        self._args = {}
        self._watch = watch
        _, registry = with_plugins([plugin])
        entry = next(entry for entry in registry if entry.origin)
        self.name = entry.name
        self.points = [f"{point[0].upper()}{point[1:]}" for point in points_of(entry)]
        if args is not None:
            self._args = {self.name: args}
        self.faults: list[Fault] = []
        self.pods = 0

    def add(self, texts: Iterator[str], check: str = "time") -> None:
        """Keep the first faults of a check."""
        for text in texts:
            if sum(fault.check == check for fault in self.faults) < _FAULTS_SHOWN:
                self.faults.append(Fault(check, text))

    def _still(self, nodes: Sequence[Node], placed: Mapping[str, Sequence[Pod]]) -> StillCluster:
        containment = Containment(self._watch)
        return StillCluster(
            nodes, plugins=[self._plugin], args=self._args, pods=placed, containment=containment
        )

    def cluster(self, rng: Random) -> None:
        """Draw a cluster and pods, and ask the plugin."""
        # Two nodes have room for any pod, so that there is always something to score.
        nodes = [node(f"roomy-{index}", cpu="64", memory="256Gi") for index in range(2)]
        nodes += [_random_node(rng, index) for index in range(rng.randint(0, _NODES_MOST))]
        placed = {
            each.metadata.name: [
                _random_pod(rng, f"on-{each.metadata.name}-{index}")
                for index in range(rng.randint(0, 3))
            ]
            for each in nodes
        }
        pods = [_random_pod(rng, f"pod-{index}") for index in range(rng.randint(1, _PODS_MOST))]
        self.pods += len(pods)
        before = [encode(each) for each in (*nodes, *pods)]
        first, again = self._still(nodes, placed), self._still(nodes, placed)
        for each in pods:
            self.add(self._differences(first, again, each), "answers")
        self.add(_changed(before, [*nodes, *pods]), "unchanged")
        self.add(self._reused(nodes, placed, pods), "reuse")

    def _differences(self, first: StillCluster, again: StillCluster, pod: Pod) -> Iterator[str]:
        try:
            answers = [_answers(cluster.evaluation(pod), self.name) for cluster in (first, first)]
            answers.append(_answers(again.evaluation(pod), self.name))
        except CycleError as error:
            yield f"pod {pod.metadata.name}: {error.status.message}"
            return
        for where, other in (("asked again", answers[1]), ("in an equal cluster", answers[2])):
            if other != answers[0]:
                text = _difference(answers[0], other)
                self.add(iter([f"pod {pod.metadata.name}, {where}: {text}"]), "twice")

    def _reused(
        self, nodes: Sequence[Node], placed: Mapping[str, Sequence[Pod]], pods: Sequence[Pod]
    ) -> Iterator[str]:
        """Compare decisions with and without reused answers, while pods are placed one by one."""
        clusters = [
            StillCluster(nodes, plugins=[self._plugin], args=self._args, pods=placed, reuse=reuse)
            for reuse in (True, False)
        ]
        for index, example in enumerate([*pods, *pods]):
            name = f"replica-{index}"
            metadata = msgspec.structs.replace(example.metadata, name=name, uid=f"uid-{name}")
            replica = msgspec.structs.replace(example, metadata=metadata)
            decided = [cluster.decide(replica) for cluster in clusters]
            told = [each.node_name or each.message for each in decided]
            if told[0] != told[1]:
                yield (
                    f"pod {example.metadata.name}: {told[0]!r} with reused answers, {told[1]!r} "
                    "without: a declared capability does not hold"
                )
                return
            if decided[1].node_name:
                for cluster in clusters:
                    cluster.place(replica, decided[1].node_name)

    def binding(self) -> None:
        """Let a whole cluster run for a minute of virtual time."""
        clock, containment = ManualClock(), Containment(self._watch)
        config, registry = with_plugins([self._plugin], args=self._args, containment=containment)

        broken: list[str] = []

        async def live() -> None:
            nodes = [node_manifest(f"node-{index}") for index in range(3)]
            async with VirtualCluster(
                clock, nodes=nodes, config=config, registry=registry
            ) as cluster:
                for index in range(_LIVE_PODS):
                    await cluster.create_objects(_live_pod(index))
                await sleep(_LIVE_SECONDS)
                for index in range(_LIVE_PODS):
                    _, reason, message = cluster.condition_of(f"pod-{index}")
                    if reason == _BROKEN_ATTEMPT:
                        broken.append(f"pod pod-{index}: {message}")

        run_virtual(live(), clock)
        self.add(iter(broken), "binding")
        failures = sorted(containment.failures.items())
        texts = (f"{point}: {kind}, {count} times" for (_, point, kind), count in failures)
        self.add(texts, "binding")


class _quiet:  # noqa: N801 - used as a function
    """Keeps the tracebacks of a failing plugin out of the report."""

    def __enter__(self) -> None:
        logging.disable(logging.ERROR)

    def __exit__(self, *error: object) -> None:
        logging.disable(logging.NOTSET)


def _answers(evaluation: Evaluation, name: str) -> dict[str, object]:
    """Return the answers of one plugin, by what they are about."""
    answers: dict[str, object] = {
        f"Filter on node {node_name}": (status.code.name, status.reasons)
        for node_name, status in evaluation.by_plugin.get(name, {}).items()
    }
    if evaluation.pre_enqueue is not None:
        answers["PreEnqueue"] = (evaluation.pre_enqueue.code.name, evaluation.pre_enqueue.reasons)
    if evaluation.scores is not None and name in evaluation.scores.plugins:
        scores = evaluation.scores.plugins[name].raw_n.tolist()
        answers |= {
            f"Score of node {node_name}": score
            for node_name, score in zip(evaluation.feasible, scores, strict=True)
        }
    return answers


def _difference(first: Mapping[str, object], other: Mapping[str, object]) -> str:
    about = next(key for key in sorted({*first, *other}) if first.get(key) != other.get(key))
    return f"{about}: {first.get(about, 'no answer')!r}, then {other.get(about, 'no answer')!r}"


def _changed(before: Sequence[bytes], objects: Sequence[Node | Pod]) -> Iterator[str]:
    for was, each in zip(before, objects, strict=True):
        if encode(each) != was:
            kind = "node" if isinstance(each, Node) else "pod"
            yield f"the plugin changed {kind} {each.metadata.name}, which it may only read"


def _times(name: str, took_ns: Mapping[str, Sequence[int]]) -> tuple[PointTime, ...]:
    return tuple(
        PointTime(
            label.removeprefix(f"{name} at "),
            len(took),
            sum(took) / len(took) / 1e3,
            max(took) / 1e3,
        )
        for label, took in took_ns.items()
    )


# -- random objects --------------------------------------------------------------------------------


def _random_node(rng: Random, index: int) -> Node:
    labels = {"topology.kubernetes.io/zone": rng.choice("abc")}
    if rng.random() < 0.3:
        labels["example.com/spot"] = "true"
    taints = [{"key": "dedicated", "value": "batch", "effect": "NoSchedule"}]
    return node(
        f"node-{index}",
        cpu=rng.choice(["2", "4", "8", "1500m"]),
        memory=rng.choice(["4Gi", "16Gi"]),
        pods=rng.choice(["3", "110"]),
        labels=labels,
        taints=taints if rng.random() < 0.2 else (),
        unschedulable=rng.random() < 0.1,
        **({"nvidia.com/gpu": "8"} if rng.random() < 0.3 else {}),
    )


def _random_pod(rng: Random, name: str) -> Pod:
    return pod(name, **_pod_fields(rng), priority=rng.choice([0, 0, 1000]))


def _live_pod(index: int) -> Manifest:
    return pod_manifest(f"pod-{index}", **_pod_fields(Streams(0).stream(f"pod {index}")))


def _pod_fields(rng: Random) -> dict[str, Any]:
    return {
        "cpu": rng.choice([None, "100m", "1", "1500m"]),
        "memory": rng.choice([None, "256Mi", "2Gi"]),
        "labels": {"app": rng.choice(["web", "batch"])},
        "annotations": rng.choice([{}, {"example.com/owner": "somebody"}]),
        "tolerations": [{"operator": "Exists"}] if rng.random() < 0.3 else [],
    }
