"""Hints of InterPodAffinity: which cluster events may help a rejected pod.

The hints read terms as written, without resolving namespace selectors. So a pod that waits for a
pod of a namespace selected by label is retried by the periodic flush only.

Rules mirrored: kubernetes v1.36 ``pkg/scheduler/framework/plugins/interpodaffinity/plugin.go``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from moorage.api.changes import Action, ClusterEvent, Resource
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.framework.points import EventRegistration
from moorage.plugins.pod_hints import holds_place
from moorage.snapshot.pod_affinity import POD_AFFINITY, Terms, required_terms
from moorage.snapshot.pod_info import info_of


def registrations() -> Sequence[EventRegistration]:
    """Return the events that may help: pods and nodes are new, deleted or relabelled."""
    pod = ClusterEvent(Resource.POD, Action.ADD | Action.UPDATE_POD_LABEL | Action.DELETE)
    node = ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL)
    return EventRegistration(pod, pod_hint, replicas_agree=True), EventRegistration(
        node, node_hint, replicas_agree=True
    )


def pod_hint(waiting: Pod, old: object | None, new: object | None) -> bool:
    """Whether a new, deleted or relabelled pod may help; a malformed term counts as "retry"."""
    try:
        return _pod_may_help(waiting, old, new)
    except ValueError:
        return True


def node_hint(waiting: Pod, old: object | None, new: object | None) -> bool:
    """Whether a new or relabelled node may help; a malformed term counts as "retry"."""
    try:
        return _node_may_help(waiting, old, new)
    except ValueError:
        return True


def _pod_may_help(waiting: Pod, old: object | None, new: object | None) -> bool:
    before = old if isinstance(old, Pod) else None
    after = new if isinstance(new, Pod) else None
    if after is not None and after.uid == waiting.uid:
        return True
    subject = after or before
    assert subject is not None
    if not holds_place(subject):
        return False
    near, away = _required(waiting)
    if after is None:
        assert before is not None
        return _mean_all(away, before) or _mean_all(_away(before), waiting)
    if before is None:
        return _mean_all(near, after)
    comes = not _mean_all(near, before) and _mean_all(near, after)
    return comes or (_mean_all(away, before) and not _mean_all(away, after))


def _node_may_help(waiting: Pod, old: object | None, new: object | None) -> bool:
    assert isinstance(new, Node)
    (near, away), labels = _required(waiting), new.metadata.labels
    if not isinstance(old, Node):
        return bool(away) or any(term.topology_key in labels for term in near)
    before = old.metadata.labels
    return any(
        term.topology_key in labels and _differs(term.topology_key, before, labels) for term in near
    ) or any(
        term.topology_key in before and _differs(term.topology_key, before, labels) for term in away
    )


def _required(pod: Pod) -> tuple[Terms, Terms]:
    """Return the terms of a pod's affinity and anti-affinity that must hold."""
    found, affinity = info_of(pod).part(POD_AFFINITY).value, pod.spec.affinity
    if not found.error or affinity is None:
        return found.required, found.required_anti
    return required_terms(pod.metadata.namespace, affinity.pod_affinity), _away(pod)


def _away(pod: Pod) -> Terms:
    found, affinity = info_of(pod).part(POD_AFFINITY).value, pod.spec.affinity
    if not found.error or affinity is None:
        return found.required_anti
    return required_terms(pod.metadata.namespace, affinity.pod_anti_affinity)


def _mean_all(terms: Terms, pod: Pod) -> bool:
    metadata = pod.metadata
    return bool(terms) and all(
        term.matches(metadata.namespace, metadata.labels, {}) for term in terms
    )


def _differs(key: str, before: Mapping[str, str], after: Mapping[str, str]) -> bool:
    return before.get(key) != after.get(key)
