"""Hints of InterPodAffinity: which cluster events may help a rejected pod.

Rules mirrored: kubernetes v1.36 ``pkg/scheduler/framework/plugins/interpodaffinity/plugin.go``, and
beyond it: any anti-affinity term instead of all of them (kubernetes#139161), affinity of a pod to
itself (kubernetes#141354), namespace selectors (kubernetes#141953), and the domains of existing
pods. The pods in these cases wait for up to five minutes there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from moorage.api.changes import Action, ClusterEvent, Resource
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.workloads import Namespace
from moorage.framework.points import EventRegistration
from moorage.plugins.affinity.counts import namespace_labels
from moorage.plugins.pod_hints import holds_place
from moorage.snapshot.pod_affinity import POD_AFFINITY, AffinityTerm, Terms, required_terms
from moorage.snapshot.pod_info import info_of
from moorage.snapshot.snapshot import Snapshot

_Labels = Mapping[str, str]


class AffinityHints:
    """The hints; a malformed term counts as "retry".

    Parameters
    ----------
    snapshot
        The labels of namespaces, and the anti-affinity of existing pods.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def registrations(self) -> Sequence[EventRegistration]:
        """Return the events that may help: changes of pods, nodes and labels of namespaces."""
        pod = ClusterEvent(Resource.POD, Action.ADD | Action.UPDATE_POD_LABEL | Action.DELETE)
        node = ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL | Action.DELETE)
        namespace = ClusterEvent(Resource.NAMESPACE, Action.ADD | Action.UPDATE | Action.DELETE)
        return (
            EventRegistration(pod, self.pod_hint, replicas_agree=True),
            EventRegistration(node, self.node_hint, replicas_agree=True),
            EventRegistration(namespace, self.namespace_hint, replicas_agree=True),
        )

    def pod_hint(self, waiting: Pod, old: object | None, new: object | None) -> bool:
        """Whether a new, deleted or relabelled pod may help."""
        before = old if isinstance(old, Pod) else None
        after = new if isinstance(new, Pod) else None
        if after is not None and after.uid == waiting.uid:
            return True
        subject = after or before
        assert subject is not None
        if not holds_place(subject):
            return False
        try:
            return self._pod_may_help(waiting, before, after)
        except ValueError:
            return True

    def node_hint(self, waiting: Pod, old: object | None, new: object | None) -> bool:
        """Whether a new, deleted or relabelled node may help.

        A domain may gain pods that the waiting pod wants to be near, or lose pods that it may not
        be near; and a node may leave a domain.
        """
        before = old.metadata.labels if isinstance(old, Node) else {}
        after = new.metadata.labels if isinstance(new, Node) else {}
        try:
            near, away = _required(waiting)
        except ValueError:
            return True
        if not isinstance(old, Node):
            return bool(away) or _any_key(near, after) or self._is_repelled(waiting)
        changed = {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
        left = {key for key in changed if key in before}
        if not isinstance(new, Node):
            left = set(before)
        return (
            any(term.topology_key in changed and term.topology_key in after for term in near)
            or _any_key(away, left)
            or (_any_key(near, left) and self._means_all(near, waiting))
            or self._is_repelled(waiting, left)
        )

    def namespace_hint(self, waiting: Pod, old: object | None, new: object | None) -> bool:
        """Whether labels of a namespace changed that a term of the pod, or about the pod, reads."""
        known = new if isinstance(new, Namespace) else old
        assert isinstance(known, Namespace)
        before = old.metadata.labels if isinstance(old, Namespace) else {}
        after = new.metadata.labels if isinstance(new, Namespace) else {}
        if before == after and old is not None and new is not None:
            return False
        if known.name == waiting.namespace:
            return True  # existing pods may have terms about the namespace of the waiting pod
        try:
            near, away = _required(waiting)
        except ValueError:
            return True
        return any(
            term.namespace_selector.matches(before) != term.namespace_selector.matches(after)
            for term in (*near, *away)
        )

    def _pod_may_help(self, waiting: Pod, before: Pod | None, after: Pod | None) -> bool:
        near, away = _required(waiting)
        was_near = before is not None and self._means_all(near, before)
        is_near = after is not None and self._means_all(near, after)
        if is_near and not was_near:
            return True
        if before is None:
            return False
        left = [term for term in away if self._means(term, before)]
        if any(after is None or not self._means(term, after) for term in left):
            return True
        if was_near and not is_near and self._means_all(near, waiting):
            return True  # without peers, a pod with affinity to itself may go anywhere
        return after is None and any(self._means(term, waiting) for term in _away(before))

    def _is_repelled(self, waiting: Pod, keys: Iterable[str] | None = None) -> bool:
        """Whether anti-affinity of an existing pod, in domains of the keys, is about the pod."""
        snapshot = self._snapshot
        if snapshot.any_nominated_repels:
            return True
        if not snapshot.affinity_terms:
            return False
        terms = snapshot.affinity_terms.matching(
            info_of(waiting),
            namespace_labels(snapshot, waiting.namespace),
            labels_version=snapshot.listers.namespaces.generation,
        )
        return any(keys is None or each.term.topology_key in keys for each in terms.required_anti)

    def _means_all(self, terms: Terms, pod: Pod) -> bool:
        return bool(terms) and all(self._means(term, pod) for term in terms)

    def _means(self, term: AffinityTerm, pod: Pod) -> bool:
        """Whether a term may select a pod; every selector may select an unknown namespace."""
        name, selector = pod.metadata.namespace, term.namespace_selector
        if selector.nothing or name in term.namespaces:
            return term.selects_pod(name, pod.metadata.labels, {})
        known = self._snapshot.listers.namespaces.get(name)
        in_scope = known is None or selector.matches({}) or selector.matches(known.metadata.labels)
        return in_scope and term.selector.matches(pod.metadata.labels)


def _any_key(terms: Terms, keys: Iterable[str]) -> bool:
    return any(term.topology_key in keys for term in terms)


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
