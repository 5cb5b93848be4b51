"""A pod's affinity to other pods, compiled once for each shape.

Used by the index of existing pods' terms and by the plugin that judges incoming pods. The two ask
a term's namespace selector in different ways, so a term keeps names and selector apart.

Rules mirrored: kubernetes v1.36 ``staging/src/k8s.io/kube-scheduler/framework/types.go``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from moorage.api.pod import Pod, PodAffinity, PodAffinityTerm, WeightedPodAffinityTerm
from moorage.api.selectors import Selector, compile_label_selector
from moorage.snapshot.shape import PartKind


class AffinityTerm(msgspec.Struct, frozen=True, cache_hash=True):
    """An affinity term: the selected pods, and the topology.

    Parameters
    ----------
    selector
        On the other pod's labels; an absent one matches nothing.
    namespaces
        Names listed, or the pod's own namespace where neither names nor a selector are given.
    namespace_selector
        On the other pod's namespace's labels; an absent one matches nothing.
    topology_key
        Node label whose value names the domain.
    """

    selector: Selector
    namespaces: frozenset[str]
    namespace_selector: Selector
    topology_key: str

    def selects_pod(
        self, namespace: str, labels: Mapping[str, str], namespace_labels: Mapping[str, str]
    ) -> bool:
        """Whether the term selects a pod with these labels in this namespace."""
        return (
            namespace in self.namespaces or self.namespace_selector.matches(namespace_labels)
        ) and self.selector.matches(labels)


Terms = tuple[AffinityTerm, ...]
WeightedTerms = tuple[tuple[AffinityTerm, int], ...]
"""(term, weight) in the order of the pod's spec."""


class PodAffinitySpec(msgspec.Struct, frozen=True):
    """All terms of a pod; a group with a term that cannot be read is empty.

    Parameters
    ----------
    required, required_anti
        The terms that must hold.
    preferred, preferred_anti
        The terms that are preferred, with weights.
    error
        Why some group cannot be read, as upstream words it; "" when all can.
    has_preferred
        Whether the pod has any preferred term, readable or not.
    """

    required: Terms = ()
    required_anti: Terms = ()
    preferred: WeightedTerms = ()
    preferred_anti: WeightedTerms = ()
    error: str = ""
    has_preferred: bool = False


_NO_AFFINITY: Final = PodAffinity()


def compile_term(namespace: str, term: PodAffinityTerm) -> AffinityTerm:
    """Compile one term of a pod of this namespace.

    Raises
    ------
    ValueError
        A selector is malformed.
    """
    names = frozenset(term.namespaces)
    if not names and term.namespace_selector is None:
        names = frozenset({namespace})
    selector = compile_label_selector(term.label_selector)
    by_label = compile_label_selector(term.namespace_selector)
    return AffinityTerm(selector, names, by_label, term.topology_key)


def required_terms(namespace: str, affinity: PodAffinity | None) -> Terms:
    """Compile the required terms of an affinity or anti-affinity.

    Raises
    ------
    ValueError
        A selector is malformed.
    """
    found = (affinity or _NO_AFFINITY).required_during_scheduling_ignored_during_execution
    return tuple(compile_term(namespace, term) for term in found)


def _weighted(namespace: str, terms: Iterable[WeightedPodAffinityTerm]) -> WeightedTerms:
    return tuple((compile_term(namespace, one.pod_affinity_term), one.weight) for one in terms)


def compile_pod_affinity(pod: Pod) -> PodAffinitySpec:
    """Compile every group of a pod's terms; a malformed group counts as absent."""
    affinity = pod.spec.affinity
    if affinity is None or (affinity.pod_affinity is None and affinity.pod_anti_affinity is None):
        return NO_TERMS
    namespace = pod.metadata.namespace
    near, away = affinity.pod_affinity or _NO_AFFINITY, affinity.pod_anti_affinity or _NO_AFFINITY
    wishes = near.preferred_during_scheduling_ignored_during_execution
    dislikes = away.preferred_during_scheduling_ignored_during_execution
    groups = {"requiredAffinityTerms": near, "requiredAntiAffinityTerms": away}
    required: dict[str, Terms] = {}
    weighted: dict[str, WeightedTerms] = {}
    faults: list[str] = []
    for name, group in groups.items():
        try:
            required[name] = required_terms(namespace, group)
        except ValueError as fault:
            faults.append(f"{name}: {fault}")
    for name, terms in (
        ("preferredAffinityTerms", wishes),
        ("preferredAntiAffinityTerms", dislikes),
    ):
        try:
            weighted[name] = _weighted(namespace, terms)
        except ValueError as fault:
            faults.append(f"{name}: {fault}")
    return PodAffinitySpec(
        required=required.get("requiredAffinityTerms", ()),
        required_anti=required.get("requiredAntiAffinityTerms", ()),
        preferred=weighted.get("preferredAffinityTerms", ()),
        preferred_anti=weighted.get("preferredAntiAffinityTerms", ()),
        error=faults[0] if len(faults) == 1 else f"[{', '.join(faults)}]" if faults else "",
        has_preferred=bool(wishes or dislikes),
    )


NO_TERMS: Final = PodAffinitySpec()


def _fields(pod: Pod) -> object:
    affinity = pod.spec.affinity
    if affinity is None or (affinity.pod_affinity is None and affinity.pod_anti_affinity is None):
        return None  # one shared part for all pods without affinity
    return pod.metadata.namespace, affinity.pod_affinity, affinity.pod_anti_affinity


POD_AFFINITY: PartKind[PodAffinitySpec] = PartKind(
    "pod affinity", _fields, compile_pod_affinity, beside_volumes=True
)
