"""Rejections that are about the node itself, in words: labels, taints, cordons, features.

Each function returns a noun phrase that names the parts at fault. Conditions that end by
themselves or by an administrator, such as a cordon, are whole clauses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from moorage.api.meta import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from moorage.api.node import Node, Taint
from moorage.api.selectors import compile_node_selector
from moorage.api.taints import SCHEDULING_EFFECTS, tolerated
from moorage.engine.inquiry import BoolArray, Inquiry
from moorage.explain.rejections import Rejection
from moorage.explain.words import expression_text, joined, listed, on_some, taint_text, term_text
from moorage.framework.subjects import Subject
from moorage.snapshot.shape import FEATURES

Rows = NDArray[np.int64]

CORDON_TAINT: Final = "node.kubernetes.io/unschedulable"
_CONDITIONS: Final = {
    CORDON_TAINT: "cordoned",
    "node.kubernetes.io/not-ready": "not ready",
    "node.kubernetes.io/unreachable": "unreachable",
    "node.kubernetes.io/memory-pressure": "under memory pressure",
    "node.kubernetes.io/disk-pressure": "under disk pressure",
    "node.kubernetes.io/pid-pressure": "under process id pressure",
    "node.kubernetes.io/network-unavailable": "without network",
    "node.kubernetes.io/out-of-service": "out of service",
    "node.cloudprovider.kubernetes.io/uninitialized": "not initialized by the cloud provider",
    "node.cloudprovider.kubernetes.io/shutdown": "shut down",
}
"""The taints that controllers set for a condition of a node, and take off when it ends."""
_PREFIXES: Final = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")
_NOT_READY: Final = "not-ready"
"""The end of taints that an agent takes off when it has started, as ``/agent-not-ready``."""
_PLAIN: Final = frozenset({"Exists", "DoesNotExist", "NotIn"})
"""The operators that no value of another node explains."""
_LOOKED_AT_MOST: Final = 2048
"""Nodes whose labels are compared with a selector, at most; a guess."""


# --- taints and cordons ---------------------------------------------------------------------------


def untolerated(inquiry: Inquiry, rows: Rows) -> list[tuple[Taint, BoolArray]]:
    """Return the taints of some rows that the pod does not tolerate, the most frequent first.

    Returns
    -------
    list of tuple
        (taint, bool, (rows,): the rows that have it).
    """
    column, tolerations = inquiry.snapshot.taint_sets, inquiry.attempt.pod.pod.spec.tolerations
    ids = column.ids[rows]
    by_text: dict[str, Taint] = {}
    having: dict[str, BoolArray] = {}
    for set_id in np.unique(ids).tolist():
        for taint in column.item(set_id):
            if taint.effect in SCHEDULING_EFFECTS and not tolerated(taint, tolerations):
                text = taint_text(taint)
                by_text.setdefault(text, taint)
                having[text] = having.get(text, np.zeros(len(rows), np.bool_)) | (ids == set_id)
    order = sorted(having, key=lambda text: (-int(having[text].sum()), text))
    return [(by_text[text], having[text]) for text in order]


def condition_of(taint: Taint) -> str:
    """Return the condition of the node that a taint tells: ``not ready``; "" for other taints."""
    known = _CONDITIONS.get(taint.key)
    if known is not None:
        return known
    of_kubernetes = taint.key.startswith(_PREFIXES)
    return f"tainted {taint.key}" if of_kubernetes or taint.key.endswith(_NOT_READY) else ""


def taints_fact(rejection: Rejection) -> str:
    """Return the taints that the pod does not tolerate, or the conditions that they tell."""
    inquiry, rows = rejection.inquiry, rejection.rows
    taints = untolerated(inquiry, rows)
    own = [(taint, having_n) for taint, having_n in taints if not condition_of(taint)]
    if own and (rejection.never or len(own) == len(taints)):
        if all(having_n.all() for _, having_n in own):
            plural = "s" if len(own) > 1 else ""
            texts = listed(taint_text(taint) for taint, _ in own)
            return f"the taint{plural} {texts}, which it does not tolerate"
        texts = listed(
            f"{taint_text(taint)} of {_nodes(inquiry, rows[having_n])}" for taint, having_n in own
        )
        return f"the taints {texts}, which it does not tolerate"
    return _closed(rejection, [condition_of(taint) for taint, _ in taints])


def cordon_fact(rejection: Rejection) -> str:
    """Return how many nodes are cordoned, and which."""
    return _closed(rejection, [_CONDITIONS[CORDON_TAINT]])


def _closed(rejection: Rejection, conditions: Iterable[str]) -> str:
    """Return how many nodes some conditions close to the pod, of those that would do, and which."""
    inquiry, parts = rejection.inquiry, []
    among = rejection.rows if rejection.in_question is None else rejection.in_question
    for condition in dict.fromkeys(filter(None, conditions)):
        rows = np.intersect1d(_rows_with(inquiry, condition), among)
        count, of = len(rows), inquiry.snapshot.num_nodes
        verb = "is" if count == 1 else "are"
        share = f"{count} of {of} nodes"
        if count == of > 1 and condition == _CONDITIONS[CORDON_TAINT]:
            share = f"all {of} nodes"
        elif of == 1:
            share = "the only node"
        parts.append(f"{share} {verb} {condition} ({_nodes(inquiry, rows)})")
    return " and ".join(parts)


def _rows_with(inquiry: Inquiry, condition: str) -> Rows:
    """Return int64: the rows of the cluster that a condition closes to the pod."""
    found_n = np.zeros(inquiry.snapshot.num_nodes, np.bool_)
    if condition == _CONDITIONS[CORDON_TAINT]:
        found_n |= inquiry.rejects_about(Subject.CORDON)
    rows = np.flatnonzero(inquiry.rejects_about(Subject.TAINTS))
    for taint, having_n in untolerated(inquiry, rows):
        if condition_of(taint) == condition:
            found_n[rows[having_n]] = True
    return np.flatnonzero(found_n)


def closing_conditions(inquiry: Inquiry) -> tuple[BoolArray, BoolArray]:
    """Return which rows are tainted for conditions alone, and which of them for a cordon alone.

    Returns
    -------
    tuple
        Two of bool, (nodes,); the second is a part of the first.
    """
    n = inquiry.snapshot.num_nodes
    conditions_n, cordons_n = np.zeros(n, np.bool_), np.zeros(n, np.bool_)
    rows = np.flatnonzero(inquiry.rejects_about(Subject.TAINTS))
    conditions_n[rows], cordons_n[rows] = True, True
    for taint, having_n in untolerated(inquiry, rows):
        if not condition_of(taint):
            conditions_n[rows[having_n]] = False
        if taint.key != CORDON_TAINT:
            cordons_n[rows[having_n]] = False
    return conditions_n, cordons_n


def _nodes(inquiry: Inquiry, rows: Rows) -> str:
    names = inquiry.snapshot.names
    return listed(sorted(names[row] for row in rows.tolist()))


# --- nodes that the pod chooses -------------------------------------------------------------------


def node_affinity_fact(rejection: Rejection) -> str:
    """Return the labels and expressions of the pod that some of these rows do not match."""
    if any("enforced" in reason for reason in rejection.reasons):
        return "the node affinity that its profile adds"
    snapshot, spec = rejection.inquiry.snapshot, rejection.pod.spec
    rows = rejection.rows[:_LOOKED_AT_MOST].tolist()
    nodes = [snapshot.node(row) for row in rows]
    parts = []
    wanted = [
        NodeSelectorRequirement(key=key, operator="In", values=[value])
        for key, value in (spec.node_selector or {}).items()
    ]
    unmatched = _unmatched(rejection.inquiry, wanted, nodes, fields=False, text=_label_text)
    if unmatched:
        parts.append(f"its nodeSelector {joined(unmatched)}")
    node = spec.affinity.node_affinity if spec.affinity else None
    required = node.required_during_scheduling_ignored_during_execution if node else None
    failing = [] if required is None else _failing(required, nodes)
    if required is not None and failing:
        terms = [
            _term_text(rejection.inquiry, each, failing) for each in required.node_selector_terms
        ]
        parts.append(f"its required node affinity {' or '.join(terms)}")
    return joined(parts)


def _label_text(part: NodeSelectorRequirement) -> str:
    return f"{part.key}={part.values[0]}"


def _term_text(inquiry: Inquiry, term: NodeSelectorTerm, nodes: Sequence[Node]) -> str:
    """Return the expressions of a term that some nodes do not match: ``(disk In [ssd])``."""
    found = [
        *_unmatched(inquiry, term.match_expressions, nodes, fields=False, text=expression_text),
        *_unmatched(inquiry, term.match_fields, nodes, fields=True, text=expression_text),
    ]
    return f"({', '.join(found)})" if found else term_text(term)


def _unmatched(
    inquiry: Inquiry,
    parts: Sequence[NodeSelectorRequirement],
    nodes: Sequence[Node],
    *,
    fields: bool,
    text: Callable[[NodeSelectorRequirement], str],
) -> list[str]:
    """Return the expressions that some nodes do not match, each with what the cluster has."""
    texts = []
    for part in parts:
        listing = [part]
        term = (
            NodeSelectorTerm(match_fields=listing)
            if fields
            else NodeSelectorTerm(match_expressions=listing)
        )
        alone = NodeSelector(node_selector_terms=[term])
        failing = len(_failing(alone, nodes))
        if failing:
            has = _known_nodes(inquiry, part) if fields else _known_values(inquiry, part)
            texts.append(on_some(f"{text(part)}{has}", failing, len(nodes)))
    return texts


def _failing(selector: NodeSelector, nodes: Sequence[Node]) -> list[Node]:
    """Return the nodes that a selector does not match."""
    matcher = compile_node_selector(selector)
    if matcher.error is not None:
        return list(nodes)
    return [each for each in nodes if not matcher.matches_node(each.metadata.labels, each.name)]


def _known_values(inquiry: Inquiry, part: NodeSelectorRequirement) -> str:
    """Return the values of an expression's label in the cluster, in brackets.

    They are left out where they say nothing: of a label that these nodes lack or should lack, and
    where other nodes have all of the wanted values.
    """
    nodes = inquiry.snapshot.table.nodes[: inquiry.snapshot.num_nodes]
    labels = (each.metadata.labels for each in nodes)
    values = sorted({each[part.key] for each in labels if part.key in each})
    if not values:
        return f" (no node has the label {part.key})"
    if part.operator in _PLAIN or {*part.values} <= {*values}:
        return ""
    return f" (nodes have {listed(values)})"


def _known_nodes(inquiry: Inquiry, part: NodeSelectorRequirement) -> str:
    """Return which of the nodes that an expression names do not exist, in brackets."""
    if part.operator != "In":
        return ""
    missing = [name for name in part.values if inquiry.snapshot.row_of(name) is None]
    return f" (there is no node {listed(missing)})" if missing else ""


def node_name_fact(rejection: Rejection) -> str:
    """Return the node that the pod names."""
    name = rejection.pod.spec.node_name
    missing = ", which does not exist" if rejection.inquiry.snapshot.row_of(name) is None else ""
    return f"the node that it names, {name}{missing}"


def features_fact(rejection: Rejection) -> str:
    """Return the features of the kubelet that some of these rows do not declare."""
    column = rejection.inquiry.snapshot.feature_sets
    declared = [column.item(set_id) for set_id in np.unique(column.ids[rejection.rows]).tolist()]
    wanted = sorted(rejection.inquiry.attempt.pod.part(FEATURES).value)
    lacking = [name for name in wanted if any(name not in each for each in declared)]
    plural = "s" if len(lacking) > 1 else ""
    return f"the feature{plural} {listed(lacking)}, which these nodes do not declare"
