"""The answers of the default plugins about one pod: a total and a verdict for each node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final, NamedTuple, TypeAlias

from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.requests import pod_requests
from moorage.snapshot.listers import Listers
from moorage_lab.fault_sim.reference import filters, pod_affinity, scores, spread, volumes
from moorage_lab.fault_sim.reference.filters import Rejection, Verdict

Cluster: TypeAlias = Sequence[tuple[Node, Sequence[Pod]]]

WEIGHTS: Final[Mapping[str, int]] = {
    "TaintToleration": 3,
    "NodeAffinity": 2,
    "NodeResourcesFit": 1,
    "VolumeBinding": 1,
    "PodTopologySpread": 2,
    "InterPodAffinity": 2,
    "DynamicResources": 2,
    "NodeResourcesBalancedAllocation": 1,
    "ImageLocality": 1,
}
"""Default weights of scores (kubernetes v1.36 ``pkg/scheduler/apis/config/v1``)."""

_BOTH: Final = (("cpu", 1), ("memory", 1))
_HARD_WEIGHT: Final = 1
"""Weight of the required affinity of pods on nodes (hardPodAffinityWeight)."""


class Question(NamedTuple):
    """A pod and what there is: nodes with their pods, and the objects of other kinds."""

    pod: Pod
    cluster: Cluster
    listers: Listers

    @property
    def namespaces(self) -> dict[str, Mapping[str, str]]:
        """The labels of each namespace."""
        return {each.metadata.name: each.metadata.labels for each in self.listers.namespaces.all()}


def are_default_scores(names: AbstractSet[str]) -> bool:
    """Return whether plugins that score have the default weights, and none is left out."""
    return names == WEIGHTS.keys()


def totals(question: Question, feasible: Sequence[str]) -> dict[str, int]:
    """Return the weighted sum of the scores of each feasible node.

    Parameters
    ----------
    question
        The pod, without claims of volumes and devices: their scores are 0 then.
    feasible
        Names of the nodes that take the pod.
    """
    found = dict.fromkeys(feasible, 0)
    for plugin, row in _scores(question, feasible):
        for name, score in zip(feasible, row, strict=True):
            found[name] += WEIGHTS[plugin] * score
    return found


def _scores(question: Question, feasible: Sequence[str]) -> Iterator[tuple[str, Sequence[int]]]:
    """Yield each plugin with its scores; one that skips the pod is left out."""
    pod, cluster, listers = question
    known = {node.name: (node, pods) for node, pods in cluster}
    rows = [known[name] for name in feasible]
    nodes = [node for node, _ in rows]
    taints = [scores.taint_score(pod, node) for node in nodes]
    yield "TaintToleration", scores.normalized(taints, reverse=True)
    wishes = [scores.affinity_score(pod, node) for node in nodes]
    yield "NodeAffinity", scores.normalized(wishes, reverse=False)
    yield "NodeResourcesFit", [scores.least(pod, *row, _BOTH) for row in rows]
    wanted = pod_requests(pod, use_status=True, pod_level=True)
    if any(wanted.get(name) for name, _ in _BOTH):
        balance = [scores.balanced(pod, *row, _BOTH) for row in rows]
        yield "NodeResourcesBalancedAllocation", balance
    images = [scores.image_locality(pod, node, [each for each, _ in cluster]) for node in nodes]
    yield "ImageLocality", images
    even = spread.scored(cluster, pod, feasible, spread.SYSTEM, listers)
    if even is not None:
        yield "PodTopologySpread", even[1]
    sums = pod_affinity.sums(pod, cluster, question.namespaces, _HARD_WEIGHT, ignore=False)
    if sums is not None:
        yield "InterPodAffinity", pod_affinity.scores_of(nodes, sums)[1]


def rejections(question: Question) -> dict[str, tuple[str, Rejection]]:
    """Return for each node that does not take the pod the first plugin that rejects it, and why.

    Parameters
    ----------
    question
        The pod, without claims of devices. PreFilter has no word against it as a whole.
    """
    pod, cluster, listers = question
    skewed = spread.filtered(cluster, pod, spread.SYSTEM, listers) or {}
    namespaces = question.namespaces
    affinity_counts = pod_affinity.counts(pod, cluster, namespaces)
    everywhere = [other for _, pods in cluster for other in pods]
    named = filters.names_named(pod)
    rejected = {}
    for node, pods in cluster:
        if named is not None and node.name not in named:
            rejected[node.name] = "NodeAffinity", filters.NOT_NAMED
            continue
        verdicts: dict[str, Verdict] = {
            "NodeUnschedulable": filters.unschedulable(pod, node),
            "NodeName": filters.node_name(pod, node),
            "TaintToleration": filters.taints(pod, node),
            "NodeAffinity": filters.node_affinity(pod, node),
            "NodePorts": filters.ports(pod, pods),
            "NodeResourcesFit": filters.fit(pod, node, pods),
            "VolumeRestrictions": volumes.restrictions(pod, pods, everywhere, listers),
            "NodeVolumeLimits": volumes.limits(pod, node, pods, listers),
            "VolumeBinding": volumes.binding(pod, node, listers),
            "VolumeZone": volumes.zone(pod, node, listers),
            "PodTopologySpread": skewed.get(node.name),
            "InterPodAffinity": pod_affinity.verdict(pod, node, affinity_counts, namespaces),
            "NodeDeclaredFeatures": filters.features(pod, node),
        }
        for plugin, verdict in verdicts.items():
            if verdict is not None:
                rejected[node.name] = plugin, verdict
                break
    return rejected


class Why(NamedTuple):
    """How many nodes fail for each reason, and the plugins that say so."""

    reasons: dict[str, int]
    plugins: frozenset[str]


def reasons(question: Question) -> Why:
    """Return why nodes do not take a pod, as a diagnosis counts it."""
    found = rejections(question)
    counted = Counter(reason for _, (_, texts) in found.values() for reason in texts)
    return Why(dict(counted), frozenset(plugin for plugin, _ in found.values()))
