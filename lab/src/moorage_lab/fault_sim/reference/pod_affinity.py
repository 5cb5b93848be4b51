"""InterPodAffinity pod by pod and node by node, from the scheduling spec, with no columns.

Slow and plain on purpose. Reads the API objects only; selectors are matched by hand.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from moorage.api.meta import LabelSelector
from moorage.api.node import Node
from moorage.api.pod import Pod, PodAffinity, PodAffinityTerm, WeightedPodAffinityTerm
from moorage_lab.fault_sim.reference.filters import Verdict

Cluster: TypeAlias = Sequence[tuple[Node, Sequence[Pod]]]
Namespaces: TypeAlias = Mapping[str, Mapping[str, str]]
Pairs: TypeAlias = Counter[tuple[str, str]]

AFFINITY: Final = ("UnschedulableAndUnresolvable", ("node(s) didn't match pod affinity rules",))
ANTI: Final = ("Unschedulable", ("node(s) didn't match pod anti-affinity rules",))
EXISTING: Final = ("Unschedulable", ("node(s) didn't satisfy existing pods anti-affinity rules",))


def selects(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    """Return whether a selector selects labels; none selects nothing."""
    if selector is None:
        return False
    if any(labels.get(key) != value for key, value in selector.match_labels.items()):
        return False
    return all(
        {
            "In": labels.get(one.key) in one.values,
            "NotIn": labels.get(one.key) not in one.values,
            "Exists": one.key in labels,
            "DoesNotExist": one.key not in labels,
        }[one.operator]
        for one in selector.match_expressions
    )


def names(owner: Pod, term: PodAffinityTerm) -> set[str]:
    """Return the namespaces that a term lists."""
    if not term.namespaces and term.namespace_selector is None:
        return {owner.metadata.namespace}
    return set(term.namespaces)


def existing_means(owner: Pod, term: PodAffinityTerm, pod: Pod, namespaces: Namespaces) -> bool:
    """Return whether a term of a pod on a node means the incoming pod."""
    there = namespaces.get(pod.metadata.namespace, {})
    return (
        pod.metadata.namespace in names(owner, term) or selects(term.namespace_selector, there)
    ) and selects(term.label_selector, pod.metadata.labels)


def incoming_means(owner: Pod, term: PodAffinityTerm, other: Pod, namespaces: Namespaces) -> bool:
    """Return whether a term of the incoming pod means a pod on a node.

    The namespaces that its selector selects are added to the list, and the selector stays.
    """
    listed = names(owner, term)
    if term.namespace_selector is not None:
        listed |= {
            ns for ns, labels in namespaces.items() if selects(term.namespace_selector, labels)
        }
    return (other.metadata.namespace in listed or selects(term.namespace_selector, {})) and selects(
        term.label_selector, other.metadata.labels
    )


def near(pod: Pod) -> PodAffinity:
    """Return the affinity of a pod."""
    affinity = pod.spec.affinity
    return (affinity and affinity.pod_affinity) or PodAffinity()


def away(pod: Pod) -> PodAffinity:
    """Return the anti-affinity of a pod."""
    affinity = pod.spec.affinity
    return (affinity and affinity.pod_anti_affinity) or PodAffinity()


def required(affinity: PodAffinity) -> list[PodAffinityTerm]:
    """Return the terms that must hold."""
    return affinity.required_during_scheduling_ignored_during_execution


def preferred(affinity: PodAffinity) -> list[WeightedPodAffinityTerm]:
    """Return the wishes."""
    return affinity.preferred_during_scheduling_ignored_during_execution


def everyone(cluster: Cluster) -> Iterator[tuple[Node, Pod]]:
    """Yield each pod with its node."""
    for node, pods in cluster:
        for pod in pods:
            yield node, pod


def counts(pod: Pod, cluster: Cluster, namespaces: Namespaces) -> tuple[Pairs, Pairs, Pairs]:
    """Return the three maps of PreFilter: EA, AF, AA."""
    existing, matching, avoided = Pairs(), Pairs(), Pairs()
    for node, other in everyone(cluster):
        labels = node.metadata.labels

        def put(pairs: Pairs, key: str, labels: Mapping[str, str] = labels) -> None:
            if key in labels:
                pairs[key, labels[key]] += 1

        for term in required(away(other)):
            if existing_means(other, term, pod, namespaces):
                put(existing, term.topology_key)
        terms = required(near(pod))
        if terms and all(incoming_means(pod, term, other, namespaces) for term in terms):
            for term in terms:
                put(matching, term.topology_key)
        for term in required(away(pod)):
            if incoming_means(pod, term, other, namespaces):
                put(avoided, term.topology_key)
    return existing, matching, avoided


def rejection(pod: Pod, node: Node, cluster: Cluster, namespaces: Namespaces) -> Verdict:
    """Judge one node."""
    return verdict(pod, node, counts(pod, cluster, namespaces), namespaces)


def verdict(
    pod: Pod, node: Node, affinity_counts: tuple[Pairs, Pairs, Pairs], namespaces: Namespaces
) -> Verdict:
    """Judge one node, with the maps of PreFilter."""
    existing, matching, avoided = affinity_counts
    labels, terms = node.metadata.labels, required(near(pod))
    if any(term.topology_key not in labels for term in terms):
        return AFFINITY
    met = all(matching[term.topology_key, labels[term.topology_key]] > 0 for term in terms)
    first = not matching and all(incoming_means(pod, t, pod, namespaces) for t in terms)
    if not met and not first:
        return AFFINITY
    for term in required(away(pod)):
        key = term.topology_key
        if key in labels and avoided[key, labels[key]] > 0:
            return ANTI
    return EXISTING if any(existing[pair] > 0 for pair in labels.items()) else None


def sums(
    pod: Pod, cluster: Cluster, namespaces: Namespaces, hard: int, *, ignore: bool
) -> dict[tuple[str, str], int] | None:
    """Return the map of PreScore by (key, value); None for Skip."""
    wishes = bool(preferred(near(pod)) or preferred(away(pod)))
    if ignore and not wishes:
        return None
    total: dict[tuple[str, str], int] = {}
    for node, other in everyone(cluster):
        labels = node.metadata.labels
        weights = [
            (one.pod_affinity_term, sign * one.weight)
            for sign, affinity in ((1, near(pod)), (-1, away(pod)))
            for one in preferred(affinity)
            if incoming_means(pod, one.pod_affinity_term, other, namespaces)
        ]
        theirs = [(term, hard) for term in required(near(other)) if hard]
        theirs += [(one.pod_affinity_term, one.weight) for one in preferred(near(other))]
        theirs += [(one.pod_affinity_term, -one.weight) for one in preferred(away(other))]
        weights += [one for one in theirs if existing_means(other, one[0], pod, namespaces)]
        for term, weight in weights:
            if term.topology_key in labels:
                pair = term.topology_key, labels[term.topology_key]
                total[pair] = total.get(pair, 0) + weight
    return total or None


def scores(
    pod: Pod, cluster: Cluster, namespaces: Namespaces, hard: int, *, ignore: bool
) -> tuple[list[int], list[int]] | None:
    """Return raw and normalised scores of all nodes; None for Skip."""
    found = sums(pod, cluster, namespaces, hard, ignore=ignore)
    return None if found is None else scores_of([node for node, _ in cluster], found)


def scores_of(
    nodes: Sequence[Node], weights: Mapping[tuple[str, str], int]
) -> tuple[list[int], list[int]]:
    """Return raw and normalised scores of nodes, with the map of PreScore."""
    raw = [sum(weights.get(pair, 0) for pair in node.metadata.labels.items()) for node in nodes]
    low, width = min(raw), max(raw) - min(raw)
    if width == 0:
        return raw, [0] * len(raw)
    return raw, [math.trunc(100.0 * (float(value - low) / float(width))) for value in raw]
