"""Scalar reference of PodTopologySpread, from the scheduling spec, plugin topology spread.

Plain loops over nodes and pods; nothing is kept between questions. The oracle of attempts and the
property tests hold the vector plugin equal to it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, Final, TypeAlias

from moorage.api.meta import LabelSelector
from moorage.api.node import Node
from moorage.api.pod import Pod, TopologySpreadConstraint
from moorage.snapshot.listers import Listers
from moorage_lab.fault_sim.reference.filters import UNRESOLVABLE, Rejection, selects, taints

Cluster: TypeAlias = Sequence[tuple[Node, Sequence[Pod]]]
Moves: TypeAlias = Sequence[tuple[str, Pod, int]]
"""Pods added to (+1) or removed from (-1) a node, by its name."""

Requirements: TypeAlias = list[tuple[str, str, Sequence[str]]]

HARD: Final = "DoNotSchedule"
SOFT: Final = "ScheduleAnyway"
HOSTNAME: Final = "kubernetes.io/hostname"
REASON: Final = "node(s) didn't match pod topology spread constraints"

SYSTEM: Final = [
    TopologySpreadConstraint(max_skew=3, topology_key=HOSTNAME, when_unsatisfiable=SOFT),
    TopologySpreadConstraint(
        max_skew=5, topology_key="topology.kubernetes.io/zone", when_unsatisfiable=SOFT
    ),
]


class Wanted:
    """A selector as a list of requirements; None matches nothing."""

    def __init__(self, requirements: Requirements | None) -> None:
        self.requirements = requirements

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether labels meet every requirement."""
        if self.requirements is None:
            return False
        return all(holds(item, labels) for item in self.requirements)


def holds(item: tuple[str, str, Sequence[str]], labels: Mapping[str, str]) -> bool:
    """Return whether labels meet a requirement."""
    key, operator, values = item
    if operator == "In":
        return key in labels and labels[key] in values
    if operator == "NotIn":
        return labels.get(key) not in values
    return (key in labels) == (operator == "Exists")


def written(selector: LabelSelector | None) -> Requirements | None:
    """Return a selector as a list of requirements."""
    if selector is None:
        return None
    equal: Requirements = [(key, "In", [value]) for key, value in selector.match_labels.items()]
    return equal + [(e.key, e.operator, e.values) for e in selector.match_expressions]


def default_selector(pod: Pod, listers: Listers) -> Requirements:
    """Return the selector of the services and of the controller of a pod."""
    namespace, labels = pod.namespace, pod.metadata.labels
    equal: dict[str, str] = {}
    for service in listers.services.in_namespace(namespace):
        selector = service.spec.selector
        if selector is not None and all(labels.get(k) == v for k, v in selector.items()):
            equal |= selector
    further: Requirements = []
    for owner in pod.metadata.owner_references:
        if not owner.controller:
            continue
        kind = (owner.api_version, owner.kind)
        if kind == ("v1", "ReplicationController"):
            owner_object = listers.replication_controllers.get(owner.name, namespace)
            equal |= (owner_object and owner_object.spec.selector) or {}
        lister: Any = {
            ("apps/v1", "ReplicaSet"): listers.replica_sets,
            ("apps/v1", "StatefulSet"): listers.stateful_sets,
        }.get(kind)
        owner_object = lister and lister.get(owner.name, namespace)
        if owner_object:
            further = written(owner_object.spec.selector) or []
    return [(key, "In", [value]) for key, value in equal.items()] + further


def constraints(
    pod: Pod, kind: str, defaults: Sequence[TopologySpreadConstraint], listers: Listers
) -> list[tuple[TopologySpreadConstraint, Wanted]]:
    """Return (constraint, its selector) in order."""
    if not pod.spec.topology_spread_constraints:
        selector = default_selector(pod, listers)
        return [
            (c, Wanted(selector)) for c in defaults if c.when_unsatisfiable == kind and selector
        ]
    wanted_constraints = []
    for c in pod.spec.topology_spread_constraints:
        if c.when_unsatisfiable == kind:
            requirements = written(c.label_selector)
            if requirements is not None:
                labels = pod.metadata.labels
                requirements += [(k, "In", [labels[k]]) for k in c.match_label_keys if k in labels]
            wanted_constraints.append((c, Wanted(requirements)))
    return wanted_constraints


def count(pods: Iterable[Pod], wanted: Wanted, namespace: str) -> int:
    """Return how many pods of a namespace are selected; those that end do not count."""
    if not wanted.requirements:
        return 0
    return sum(
        p.namespace == namespace
        and p.metadata.deletion_timestamp is None
        and wanted.matches(p.metadata.labels)
        for p in pods
    )


def eligible(c: TopologySpreadConstraint, pod: Pod, node: Node) -> bool:
    """Return whether the pods of a node count."""
    if c.node_affinity_policy in (None, "Honor") and not selects(pod, node):
        return False
    return c.node_taints_policy != "Honor" or taints(pod, node) is None


def filtered(
    cluster: Cluster,
    pod: Pod,
    defaults: Sequence[TopologySpreadConstraint],
    listers: Listers,
    moves: Moves = (),
) -> dict[str, Rejection] | None:
    """Return rejections of failing nodes, or None for Skip."""
    hard = constraints(pod, HARD, defaults, listers)
    if not hard:
        return None
    tallies: list[dict[str, int]] = []
    for c, wanted in hard:
        tally: dict[str, int] = {}
        for node, pods in cluster:
            labels = node.metadata.labels
            if all(d.topology_key in labels for d, _ in hard) and eligible(c, pod, node):
                value = labels[c.topology_key]
                tally[value] = tally.get(value, 0) + count(pods, wanted, pod.namespace)
                for name, moved, step in moves:
                    if name == node.name and moved.namespace == pod.namespace:
                        tally[value] += step * wanted.matches(moved.metadata.labels)
        tallies.append(tally)
    rejections: dict[str, Rejection] = {}
    for node, _ in cluster:
        for (c, wanted), tally in zip(hard, tallies, strict=True):
            own = node.metadata.labels.get(c.topology_key)
            if own is None:
                reason = f"{REASON} (missing required label)"
                rejections[node.name] = (UNRESOLVABLE, (reason,))
                break
            least = min(tally.values(), default=0) if len(tally) >= (c.min_domains or 1) else 0
            if tally.get(own, 0) + wanted.matches(pod.metadata.labels) - least > c.max_skew:
                rejections[node.name] = ("Unschedulable", (REASON,))
                break
    return rejections


def scored(
    cluster: Cluster,
    pod: Pod,
    feasible: Sequence[str],
    defaults: Sequence[TopologySpreadConstraint],
    listers: Listers,
) -> tuple[list[int], list[int]] | None:
    """Return (raw, normalized) scores of the feasible nodes, or None for Skip."""
    soft = constraints(pod, SOFT, defaults, listers)
    if not soft:
        return None
    require_all = bool(pod.spec.topology_spread_constraints) or defaults is not SYSTEM
    nodes = {node.name: (node, pods) for node, pods in cluster}

    def lacks(node: Node) -> bool:
        keys = {c.topology_key for c, _ in soft}
        return require_all and not keys <= node.metadata.labels.keys()

    names = [name for name in feasible if not lacks(nodes[name][0])]
    tallies, weights = [], []
    for c, wanted in soft:
        tally = {nodes[name][0].metadata.labels.get(c.topology_key, ""): 0 for name in names}
        size = len(names) if c.topology_key == HOSTNAME else len(tally)
        for node, pods in cluster:
            value = node.metadata.labels.get(c.topology_key, "")
            if not lacks(node) and eligible(c, pod, node) and value in tally:
                tally[value] += count(pods, wanted, pod.namespace)
        tallies.append(tally)
        weights.append(math.log(size + 2))
    raw = []
    for name in feasible:
        node, pods = nodes[name]
        score = 0.0
        for (c, wanted), tally, weight in zip(soft, tallies, weights, strict=True):
            own = node.metadata.labels.get(c.topology_key)
            if own is not None and name in names:
                here = count(pods, wanted, pod.namespace)
                number = here if c.topology_key == HOSTNAME else tally[own]
                score += float(number) * weight + float(c.max_skew - 1)
        raw.append(int(Decimal(score).quantize(Decimal(1), ROUND_HALF_UP)))
    valid = [score for name, score in zip(feasible, raw, strict=True) if name in names]
    low, high = min(valid, default=0), max(valid, default=0)
    final = [
        0 if name not in names else 100 if high == 0 else 100 * (high + low - score) // high
        for name, score in zip(feasible, raw, strict=True)
    ]
    return raw, final
