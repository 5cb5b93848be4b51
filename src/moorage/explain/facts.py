"""The subject of a rejection in words: amounts, taints, selectors, ports, constraints.

Only words: which plugin rejects which node comes from the plugins. A plugin without words of its
own is quoted with its reasons.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from moorage.api.meta import NodeSelector
from moorage.api.node import Node, Taint
from moorage.api.pod import Pod, PodAffinityTerm, TopologySpreadConstraint
from moorage.api.selectors import compile_node_selector
from moorage.api.taints import SCHEDULING_EFFECTS, tolerated
from moorage.explain.asking import Asked, Rejection
from moorage.explain.devices import devices_told
from moorage.explain.volumes import volume_use_told, volumes_told
from moorage.explain.words import (
    amount_text,
    listed,
    pod_term_text,
    request_text,
    taint_text,
    terms_text,
)
from moorage.framework.subjects import Subject
from moorage.snapshot.shape import FEATURES, PORTS, RESOURCES

Rows = NDArray[np.int64]

_INSUFFICIENT: Final = "Insufficient "
_TOO_MANY: Final = "Too many pods"
_AT_PRE_FILTER: Final = frozenset({Subject.VOLUMES, Subject.VOLUME_USE, Subject.DEVICES})
"""The subjects whose words need no nodes."""
_LOOKED_AT_MOST: Final = 64
"""Nodes whose labels are compared with a selector, to leave out the parts that they match."""


def fact_about(rejection: Rejection) -> str:
    """Return the subject of a plugin's rejection of some rows, as a noun phrase."""
    subject = rejection.asked.subject(rejection.plugin)
    worded = None if subject is None else _WORDED.get(subject)
    if not len(rejection.rows) and subject not in _AT_PRE_FILTER:
        worded = None  # words about nodes
    told = worded(rejection) if worded is not None else ""
    return told or f"{rejection.plugin} ({'; '.join(rejection.reasons)})"


# --- resources ------------------------------------------------------------------------------------


def _resources(rejection: Rejection) -> str:
    short = [each for each in rejection.reasons if each.startswith(_INSUFFICIENT)]
    parts = [_resource(rejection, each.removeprefix(_INSUFFICIENT)) for each in short]
    if _TOO_MANY in rejection.reasons:
        parts.append(_pod_count(rejection))
    return " and ".join(part for part in parts if part)


def _resource(rejection: Rejection, name: str) -> str:
    rows, never, snapshot = rejection.rows, rejection.never, rejection.asked.snapshot
    pod = rejection.asked.attempt.pod
    wanted = pod.part(RESOURCES).value.filter.get(name, 0)
    asks = f"it requests {request_text(name, wanted, pod.pod.spec)}"
    have_n = snapshot.allocatable(name)[rows]
    if not never:
        have_n = have_n - snapshot.requested(name)[rows]
    most = max(0, int(have_n.max()))
    if never and wanted <= most:  # other nodes of the group lack it
        return ""
    what = "the largest of these nodes has" if never else "the most that is free on one of them is"
    if never and most == 0:
        return f"{name} ({asks}, none of these nodes has any)"
    return f"{name} ({asks}, {what} {amount_text(name, most)})"


def _pod_count(rejection: Rejection) -> str:
    most = int(rejection.asked.snapshot.allowed_pods[rejection.rows].max())
    if rejection.never:
        return f"the number of pods (these nodes take {most})"
    return f"the number of pods (each node has as many as it takes, at most {most})"


# --- nodes that are closed, and nodes that the pod chooses ----------------------------------------


def untolerated(asked: Asked, rows: Rows) -> list[Taint]:
    """Return the taints of some rows that the pod does not tolerate, the most frequent first."""
    column, tolerations = asked.snapshot.taint_sets, asked.attempt.pod.pod.spec.tolerations
    ids, numbers = np.unique(column.ids[rows], return_counts=True)
    by_text: dict[str, Taint] = {}
    counts: Counter[str] = Counter()
    for set_id, number in zip(ids.tolist(), numbers.tolist(), strict=True):
        for taint in column.item(set_id):
            if taint.effect in SCHEDULING_EFFECTS and not tolerated(taint, tolerations):
                by_text.setdefault(taint_text(taint), taint)
                counts[taint_text(taint)] += number
    order = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    return [by_text[text] for text, _ in order]


def _taints(rejection: Rejection) -> str:
    found = untolerated(rejection.asked, rejection.rows)
    if not found:
        return ""
    plural = "s" if len(found) > 1 else ""
    return f"the taint{plural} {listed(map(taint_text, found))}, which it does not tolerate"


def _unschedulable(rejection: Rejection) -> str:
    names = sorted(rejection.asked.snapshot.names[row] for row in rejection.rows.tolist())
    return f"cordoned nodes ({listed(names)})"


def _node_affinity(rejection: Rejection) -> str:
    """Return the nodeSelector and the required terms, without parts that all these rows match."""
    if any("enforced" in reason for reason in rejection.reasons):
        return "the node affinity that its profile adds"
    snapshot, spec = rejection.asked.snapshot, rejection.asked.attempt.pod.pod.spec
    nodes = [snapshot.node(row) for row in rejection.rows[:_LOOKED_AT_MOST].tolist()]
    parts = []
    unmatched = [
        f"{key}={value}"
        for key, value in (spec.node_selector or {}).items()
        if any(node.metadata.labels.get(key) != value for node in nodes)
    ]
    if unmatched:
        parts.append(f"its nodeSelector {listed(unmatched)}")
    node = spec.affinity.node_affinity if spec.affinity else None
    required = node.required_during_scheduling_ignored_during_execution if node else None
    if required is not None and not all(_matched(required, nodes)):
        parts.append(f"its required node affinity {terms_text(required)}")
    return " and ".join(parts)


def _matched(selector: NodeSelector, nodes: Iterable[Node]) -> Iterator[bool]:
    matcher = compile_node_selector(selector)
    for node in nodes:
        yield matcher.error is None and matcher.matches(node.metadata.labels, node.name)


def _node_name(rejection: Rejection) -> str:
    return f"the node that it names, {rejection.asked.attempt.pod.pod.spec.node_name}"


def _features(rejection: Rejection) -> str:
    """Return the features of the kubelet that some of these rows do not declare."""
    column = rejection.asked.snapshot.feature_sets
    declared = [column.item(set_id) for set_id in np.unique(column.ids[rejection.rows]).tolist()]
    wanted = sorted(rejection.asked.attempt.pod.part(FEATURES).value)
    lacking = [name for name in wanted if any(name not in each for each in declared)]
    plural = "s" if len(lacking) > 1 else ""
    return f"the feature{plural} {listed(lacking)}, which these nodes do not declare"


# --- other pods -----------------------------------------------------------------------------------


def _ports(rejection: Rejection) -> str:
    ports = rejection.asked.attempt.pod.part(PORTS).value
    wanted = [f"{port}/{protocol}" for _, protocol, port in ports]
    plural = "s" if len(wanted) > 1 else ""
    return f"the host port{plural} {listed(wanted)}, which other pods have"


def _spread(rejection: Rejection) -> str:
    spec = rejection.asked.attempt.pod.pod.spec
    hard = [
        f"{each.topology_key} (maxSkew {each.max_skew}{_min_domains(each)})"
        for each in spec.topology_spread_constraints
        if each.when_unsatisfiable != "ScheduleAnyway"
    ]
    plural = "s" if len(hard) > 1 else ""
    missing = any("missing required label" in reason for reason in rejection.reasons)
    lacks = ", whose label these nodes lack" if missing else ""
    return f"its topology spread constraint{plural} over {listed(hard)}{lacks}" if hard else ""


def _min_domains(constraint: TopologySpreadConstraint) -> str:
    return f", minDomains {constraint.min_domains}" if constraint.min_domains else ""


def _pod_affinity(rejection: Rejection) -> str:
    pod, reasons, parts = rejection.asked.attempt.pod.pod, rejection.reasons, []
    if any("pod affinity rules" in reason for reason in reasons):
        parts.append(f"its required pod affinity {_terms(affinity_terms(pod))}")
    if any("existing pods anti-affinity" in reason for reason in reasons):
        parts.append("the required anti-affinity of pods that are there")
    if any("pod anti-affinity rules" in reason and "existing" not in reason for reason in reasons):
        parts.append(f"its required pod anti-affinity {_terms(anti_affinity_terms(pod))}")
    return " and ".join(parts)


def affinity_terms(pod: Pod) -> list[PodAffinityTerm]:
    """Return the required pod affinity terms of a pod."""
    found = pod.spec.affinity.pod_affinity if pod.spec.affinity else None
    return [] if found is None else found.required_during_scheduling_ignored_during_execution


def anti_affinity_terms(pod: Pod) -> list[PodAffinityTerm]:
    """Return the required pod anti-affinity terms of a pod."""
    found = pod.spec.affinity.pod_anti_affinity if pod.spec.affinity else None
    return [] if found is None else found.required_during_scheduling_ignored_during_execution


def _terms(terms: Iterable[PodAffinityTerm]) -> str:
    return listed(f"({pod_term_text(term)})" for term in terms)


_WORDED: Final[dict[Subject, Callable[[Rejection], str]]] = {
    Subject.RESOURCES: _resources,
    Subject.TAINTS: _taints,
    Subject.CORDON: _unschedulable,
    Subject.NODE_AFFINITY: _node_affinity,
    Subject.NODE_NAME: _node_name,
    Subject.PORTS: _ports,
    Subject.SPREAD: _spread,
    Subject.POD_AFFINITY: _pod_affinity,
    Subject.FEATURES: _features,
    Subject.VOLUMES: volumes_told,
    Subject.VOLUME_USE: volume_use_told,
    Subject.DEVICES: devices_told,
}
