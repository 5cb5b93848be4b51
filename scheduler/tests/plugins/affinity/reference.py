"""InterPodAffinity pod by pod and node by node, from the scheduling spec, with no columns.

Slow and plain on purpose. Reads the API objects only; selectors are matched by hand.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping

from moorage.api.meta import LabelSelector
from moorage.api.node import Node
from moorage.api.pod import Pod, PodAffinity, PodAffinityTerm, WeightedPodAffinityTerm

Cluster = list[tuple[Node, list[Pod]]]
Namespaces = Mapping[str, Mapping[str, str]]
Pairs = Counter[tuple[str, str]]

AFFINITY = ("UnschedulableAndUnresolvable", ("node(s) didn't match pod affinity rules",))
ANTI = ("Unschedulable", ("node(s) didn't match pod anti-affinity rules",))
EXISTING = ("Unschedulable", ("node(s) didn't satisfy existing pods anti-affinity rules",))


def selects(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
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
    if not term.namespaces and term.namespace_selector is None:
        return {owner.metadata.namespace}
    return set(term.namespaces)


def existing_means(owner: Pod, term: PodAffinityTerm, asked: Pod, namespaces: Namespaces) -> bool:
    """A term of a pod on a node, about the incoming pod."""
    there = namespaces.get(asked.metadata.namespace, {})
    return (
        asked.metadata.namespace in names(owner, term) or selects(term.namespace_selector, there)
    ) and selects(term.label_selector, asked.metadata.labels)


def incoming_means(owner: Pod, term: PodAffinityTerm, other: Pod, namespaces: Namespaces) -> bool:
    """A term of the incoming pod, about a pod on a node: names are added, the selector stays."""
    listed = names(owner, term)
    if term.namespace_selector is not None:
        listed |= {
            ns for ns, labels in namespaces.items() if selects(term.namespace_selector, labels)
        }
    return (other.metadata.namespace in listed or selects(term.namespace_selector, {})) and selects(
        term.label_selector, other.metadata.labels
    )


def near(pod: Pod) -> PodAffinity:
    affinity = pod.spec.affinity
    return (affinity and affinity.pod_affinity) or PodAffinity()


def away(pod: Pod) -> PodAffinity:
    affinity = pod.spec.affinity
    return (affinity and affinity.pod_anti_affinity) or PodAffinity()


def required(affinity: PodAffinity) -> list[PodAffinityTerm]:
    return affinity.required_during_scheduling_ignored_during_execution


def preferred(affinity: PodAffinity) -> list[WeightedPodAffinityTerm]:
    return affinity.preferred_during_scheduling_ignored_during_execution


def everyone(cluster: Cluster) -> Iterator[tuple[Node, Pod]]:
    for node, pods in cluster:
        for pod in pods:
            yield node, pod


def counts(asked: Pod, cluster: Cluster, namespaces: Namespaces) -> tuple[Pairs, Pairs, Pairs]:
    """Return the three maps of PreFilter: EA, AF, AA."""
    existing, matching, avoided = Pairs(), Pairs(), Pairs()
    for node, other in everyone(cluster):
        labels = node.metadata.labels

        def put(pairs: Pairs, key: str, labels: Mapping[str, str] = labels) -> None:
            if key in labels:
                pairs[key, labels[key]] += 1

        for term in required(away(other)):
            if existing_means(other, term, asked, namespaces):
                put(existing, term.topology_key)
        terms = required(near(asked))
        if terms and all(incoming_means(asked, term, other, namespaces) for term in terms):
            for term in terms:
                put(matching, term.topology_key)
        for term in required(away(asked)):
            if incoming_means(asked, term, other, namespaces):
                put(avoided, term.topology_key)
    return existing, matching, avoided


def rejection(asked: Pod, node: Node, cluster: Cluster, namespaces: Namespaces):
    """Return (code, reasons) of one node, None where it passes."""
    existing, matching, avoided = counts(asked, cluster, namespaces)
    labels, terms = node.metadata.labels, required(near(asked))
    if any(term.topology_key not in labels for term in terms):
        return AFFINITY
    met = all(matching[term.topology_key, labels[term.topology_key]] > 0 for term in terms)
    first = not matching and all(incoming_means(asked, t, asked, namespaces) for t in terms)
    if not met and not first:
        return AFFINITY
    for term in required(away(asked)):
        key = term.topology_key
        if key in labels and avoided[key, labels[key]] > 0:
            return ANTI
    return EXISTING if any(existing[pair] > 0 for pair in labels.items()) else None


def skips_filter(asked: Pod, cluster: Cluster, namespaces: Namespaces) -> bool:
    existing, _, _ = counts(asked, cluster, namespaces)
    return not existing and not required(near(asked)) and not required(away(asked))


def sums(asked: Pod, cluster: Cluster, namespaces: Namespaces, hard: int, *, ignore: bool):
    """Return the map of PreScore by (key, value); None for Skip."""
    wishes = bool(preferred(near(asked)) or preferred(away(asked)))
    if ignore and not wishes:
        return None
    found: dict[tuple[str, str], int] = {}
    for node, other in everyone(cluster):
        labels = node.metadata.labels
        weights = [
            (one.pod_affinity_term, sign * one.weight)
            for sign, affinity in ((1, near(asked)), (-1, away(asked)))
            for one in preferred(affinity)
            if incoming_means(asked, one.pod_affinity_term, other, namespaces)
        ]
        theirs = [(term, hard) for term in required(near(other)) if hard]
        theirs += [(one.pod_affinity_term, one.weight) for one in preferred(near(other))]
        theirs += [(one.pod_affinity_term, -one.weight) for one in preferred(away(other))]
        weights += [one for one in theirs if existing_means(other, one[0], asked, namespaces)]
        for term, weight in weights:
            if term.topology_key in labels:
                pair = term.topology_key, labels[term.topology_key]
                found[pair] = found.get(pair, 0) + weight
    return found or None


def scores(asked: Pod, cluster: Cluster, namespaces: Namespaces, hard: int, *, ignore: bool):
    """Return raw and normalised scores of all nodes; None for Skip."""
    found = sums(asked, cluster, namespaces, hard, ignore=ignore)
    if found is None:
        return None
    raw = [sum(found.get(pair, 0) for pair in n.metadata.labels.items()) for n, _ in cluster]
    low, width = min(raw), max(raw) - min(raw)
    if width == 0:
        return raw, [0] * len(raw)
    return raw, [math.trunc(100.0 * (float(value - low) / float(width))) for value in raw]
