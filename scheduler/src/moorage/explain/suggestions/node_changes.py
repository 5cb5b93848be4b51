"""Changes of one node that is there: uncordon it, label it, or take a taint off.

`node_changes` lists them, and `node_changed` makes one on trial: for the pod, for its group, for
all pods of a workload, and as the first change of a pair.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

import numpy as np

from moorage.api.codec import from_dict, to_dict
from moorage.api.meta import NodeSelectorTerm
from moorage.api.node import Node, Taint
from moorage.api.patch_operations import merge_patch
from moorage.api.pod import Pod
from moorage.api.requirement import Operator, Requirement
from moorage.api.selectors import compile_node_selector_term
from moorage.api.taints import SCHEDULING_EFFECTS, tolerated
from moorage.engine.inquiry import Inquiry
from moorage.explain.answer import ObjectChange, Suggestion
from moorage.explain.node_facts import CORDON_TAINT, condition_of
from moorage.explain.suggestions.ranked import LABEL, UNCORDON, UNTAINT, RankedSuggestion
from moorage.explain.trying import Trying
from moorage.explain.words import listed, taint_text
from moorage.framework.subjects import Subject
from moorage.snapshot.snapshot import Snapshot

_NODES_MOST: Final = 3
"""Nodes of which one kind of change is tried; a guess."""
_FACTS: Final = (
    "kubernetes.io/",
    "node.kubernetes.io/",
    "topology.kubernetes.io/",
    "beta.kubernetes.io/",
    "failure-domain.beta.kubernetes.io/",
)
"""Prefixes of labels that say what a node is: another value would be a lie."""


class NodeChange(NamedTuple):
    """A change of one node.

    Attributes
    ----------
    kind, text, command
        As a `Suggestion` has them.
    node
        The node's name.
    patch
        The change as a merge patch.
    size
        As `RankedSuggestion` has it.
    """

    kind: str
    text: str
    node: str
    patch: dict[str, Any]
    command: str
    size: float

    def suggestion(self, *, nodes: int, node: str) -> RankedSuggestion:
        """Return the change as a suggestion.

        Parameters
        ----------
        nodes, node
            How many nodes take the pod then, and one of them.
        """
        change = ObjectChange(api_version="v1", kind="Node", name=self.node, patch=self.patch)
        suggestion = Suggestion(
            kind=self.kind,
            text=self.text,
            nodes=nodes,
            node=node,
            uncordon=self.node if self.kind == "uncordon" else "",
            changes=(change,),
            command=self.command,
        )
        return RankedSuggestion(self.size, suggestion)


def changed_nodes(trying: Trying) -> Iterator[RankedSuggestion]:
    """Yield, of each kind of change, the first with which its node takes the pod."""
    snapshot = trying.inquiry.snapshot
    kinds: set[str] = set()
    for change in node_changes(trying.inquiry):
        if change.kind in kinds:
            continue
        with node_changed(snapshot, change.node, change.patch) as row:
            takes = len(trying.rows_of(trying.pod, snapshot.rows([row]))) > 0
        if takes:
            kinds.add(change.kind)
            yield change.suggestion(nodes=1, node=change.node)


def node_changes(inquiry: Inquiry) -> Iterator[NodeChange]:
    """Yield changes of a few nodes, those first that the fewest plugins reject; untried."""
    pod = inquiry.attempt.pod.pod
    for node in _nearest(inquiry, Subject.CORDON):
        taints = _taints_without(node, [each for each in node.spec.taints if _is_cordon(each)])
        patch = {"spec": {"unschedulable": None, **taints}}
        text, command = f"uncordon node {node.name}", f"kubectl uncordon {node.name}"
        yield NodeChange("uncordon", text, node.name, patch, command, UNCORDON)
    for node in _nearest(inquiry, Subject.NODE_AFFINITY):
        labels = _missing_labels(pod, node.metadata.labels)
        if labels:
            yield _label_change(node, labels)
    for node in _nearest(inquiry, Subject.TAINTS):
        rejecting = [
            each
            for each in node.spec.taints
            if each.effect in SCHEDULING_EFFECTS and not tolerated(each, pod.spec.tolerations)
        ]
        if rejecting and not any(map(condition_of, rejecting)):
            yield _taint_change(node, rejecting[0])


@contextmanager
def node_changed(snapshot: Snapshot, name: str, patch: Mapping[str, Any]) -> Iterator[int]:
    """Change a node on trial by a merge patch; yields its row."""
    row = snapshot.row_of(name)
    assert row is not None, "a node of the snapshot"
    before = snapshot.node(row)
    snapshot.table.update_node(from_dict(Node, merge_patch(to_dict(before), dict(patch))))
    try:
        yield row
    finally:
        snapshot.table.update_node(before)


def _nearest(inquiry: Inquiry, subject: Subject) -> list[Node]:
    """Return a few nodes that are rejected for a subject, and by the fewest other plugins."""
    others_n = np.zeros(inquiry.snapshot.num_nodes, np.int64)
    for each_n in inquiry.rejects.values():
        others_n += each_n
    rows = np.flatnonzero(inquiry.rejects_about(subject))
    rows = rows[np.argsort(others_n[rows], kind="stable")][:_NODES_MOST]
    return [inquiry.snapshot.node(row) for row in rows.tolist()]


# --- taints ---------------------------------------------------------------------------------------


def _is_cordon(taint: Taint) -> bool:
    return taint.key == CORDON_TAINT


def _taints_without(node: Node, gone: Sequence[Taint]) -> dict[str, Any]:
    """Return what a patch says of the taints of a node; nothing where they stay."""
    if not gone:
        return {}
    return {"taints": [to_dict(each) for each in node.spec.taints if each not in gone]}


def _taint_change(node: Node, taint: Taint) -> NodeChange:
    text = taint_text(taint)
    return NodeChange(
        "taint",
        f"remove the taint {text} from node {node.name}",
        node.name,
        {"spec": _taints_without(node, [taint])},
        f"kubectl taint node {node.name} {shlex.quote(f'{text}-')}",
        UNTAINT,
    )


# --- labels ---------------------------------------------------------------------------------------


def _label_change(node: Node, labels: Mapping[str, str | None]) -> NodeChange:
    added = [f"{key}={value}" for key, value in labels.items() if value is not None]
    removed = [key for key, value in labels.items() if value is None]
    parts = [f"label node {node.name} {listed(added)}"] if added else []
    parts += [f"remove the label {listed(removed)} from node {node.name}"] if removed else []
    words = [*added, *(f"{key}-" for key in removed)]
    words += ["--overwrite"] if any(key in node.metadata.labels for key in labels) else []
    return NodeChange(
        "label",
        ", and ".join(parts),
        node.name,
        {"metadata": {"labels": dict(labels)}},
        f"kubectl label node {node.name} {shlex.join(words)}",
        LABEL,
    )


def _missing_labels(pod: Pod, labels: Mapping[str, str]) -> dict[str, str | None] | None:
    """Return the labels with which a node is one that a pod selects; None where no label does.

    Parameters
    ----------
    pod
        The pod with a selector or a required affinity.
    labels
        The labels of the node.

    Returns
    -------
    dict or None
        The labels to set; None as a value takes a label off.
    """
    selector = pod.spec.node_selector or {}
    wanted: dict[str, str | None] = {
        key: value for key, value in selector.items() if labels.get(key) != value
    }
    node = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    required = node.required_during_scheduling_ignored_during_execution if node else None
    if required is not None:
        terms = [_labels_of_term(each, labels) for each in required.node_selector_terms]
        possible = [each for each in terms if each is not None]
        if not possible:
            return None
        fewest: dict[str, str | None] = min(possible, key=len)
        wanted |= fewest
    return None if any(key.startswith(_FACTS) for key in wanted) else wanted


def _labels_of_term(
    term: NodeSelectorTerm, labels: Mapping[str, str]
) -> dict[str, str | None] | None:
    matcher = compile_node_selector_term(term)
    if matcher is None or matcher.error or matcher.fields:
        return None
    missing = [each for each in matcher.labels if not each.matches(labels)]
    if any(each.op not in _VALUES for each in missing):
        return None  # labels only report the amounts that Gt and Lt compare
    return {each.key: _VALUES[each.op](each) for each in missing}


_VALUES: Final[Mapping[Operator, Callable[[Requirement], str | None]]] = {
    Operator.IN: lambda requirement: min(requirement.values),
    Operator.EXISTS: lambda _: "true",
    Operator.NOT_IN: lambda _: None,
    Operator.DOES_NOT_EXIST: lambda _: None,
}
"""The value that fulfils an expression; None where the label has to go."""
