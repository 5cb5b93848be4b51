"""Affinity terms of an incoming pod, in the form in which pods are counted.

Namespace selectors become names. The required terms, which must match together, become one count
key. Preferred terms get signed weights.

Rules mirrored: kubernetes v1.36 ``pkg/scheduler/framework/plugins/interpodaffinity/plugin.go``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from types import MappingProxyType

import msgspec

from moorage.api.selectors import NOTHING, Selector, make_selector
from moorage.api.workloads import Namespace
from moorage.snapshot.listers import Lister
from moorage.snapshot.pod_affinity import AffinityTerm, PodAffinitySpec, Terms
from moorage.snapshot.pod_columns import CountKey
from moorage.snapshot.shape import Part

_NO_LABELS: Mapping[str, str] = MappingProxyType({})


class CountedTerm(msgspec.Struct, frozen=True):
    """One term as the key of a count column.

    Parameters
    ----------
    count
        Key of the matching pods, terminating pods included.
    topology_key
        Node label that names the domains.
    weight
        Signed weight of a preferred term; 1 for a required term.
    """

    count: CountKey
    topology_key: str
    weight: int = 1


class IncomingAffinity(msgspec.Struct, frozen=True):
    """The terms of an incoming pod with namespace selectors resolved.

    Parameters
    ----------
    required, required_anti
        The required terms, for matching one pod at a time.
    together
        Count key of the pods that match every required term; None without required terms.
    keys
        Topology keys of the required terms, each once.
    anti
        The required anti-affinity terms, as count keys.
    wishes
        Preferred terms; the weight of anti-affinity is negative. Terms with the same count key are
        merged and their weights added. A sum of 0 still counts as a match.
    """

    required: Terms = ()
    required_anti: Terms = ()
    together: CountKey | None = None
    keys: tuple[str, ...] = ()
    anti: tuple[CountedTerm, ...] = ()
    wishes: tuple[CountedTerm, ...] = ()

    def is_near(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Whether a pod matches every required term; False without required terms."""
        return bool(self.required) and all(means(term, namespace, labels) for term in self.required)


def means(term: AffinityTerm, namespace: str, labels: Mapping[str, str]) -> bool:
    """Whether a resolved term of an incoming pod matches another pod.

    Labels of the namespace do not matter here: the matching namespaces were added by name. A
    selector with only negative conditions still matches every namespace, as upstream.
    """
    return term.selects_pod(namespace, labels, _NO_LABELS)


class Resolver:
    """Resolves the terms of pods, once for each shape until a namespace changes.

    Parameters
    ----------
    namespaces
        All namespaces with their labels.
    """

    __slots__ = ("_namespaces",)

    def __init__(self, namespaces: Lister[Namespace]) -> None:
        self._namespaces = namespaces

    def resolve(self, part: Part[PodAffinitySpec]) -> IncomingAffinity:
        """Return a shape's terms, resolved against the current namespaces."""
        generation = self._namespaces.generation
        known: tuple[int, IncomingAffinity] | None = part.memo.get(self)
        if known is None or known[0] != generation:
            known = part.memo[self] = (generation, self._resolved(part.value))
        return known[1]

    def _resolved(self, spec: PodAffinitySpec) -> IncomingAffinity:
        required = tuple(self._merged(term) for term in spec.required)
        required_anti = tuple(self._merged(term) for term in spec.required_anti)
        wishes = [_counted_term(self._merged(term), weight) for term, weight in spec.preferred]
        wishes += [
            _counted_term(self._merged(term), -weight) for term, weight in spec.preferred_anti
        ]
        return IncomingAffinity(
            required=required,
            required_anti=required_anti,
            together=_together(required) if required else None,
            keys=tuple(dict.fromkeys(term.topology_key for term in required)),
            anti=tuple(_counted_term(term) for term in required_anti),
            wishes=_summed(wishes),
        )

    def _merged(self, term: AffinityTerm) -> AffinityTerm:
        wanted = term.namespace_selector
        if wanted.nothing or wanted.is_empty:
            return term
        names = {
            namespace.metadata.name
            for namespace in self._namespaces.all()
            if wanted.matches(namespace.metadata.labels)
        }
        return msgspec.structs.replace(term, namespaces=term.namespaces | names)


def _namespaces_of(term: AffinityTerm) -> frozenset[str] | None:
    return None if term.namespace_selector.matches(_NO_LABELS) else term.namespaces


def _counted_term(term: AffinityTerm, weight: int = 1) -> CountedTerm:
    key = CountKey(term.selector, _namespaces_of(term), live_only=False)
    return CountedTerm(key, term.topology_key, weight)


def _summed(wishes: Iterable[CountedTerm]) -> tuple[CountedTerm, ...]:
    weights: Counter[tuple[CountKey, str]] = Counter()
    for wish in wishes:
        weights[wish.count, wish.topology_key] += wish.weight
    return tuple(CountedTerm(count, key, weight) for (count, key), weight in weights.items())


def _together(terms: Sequence[AffinityTerm]) -> CountKey:
    """Return the count key of the pods that match all terms: the intersection."""
    namespaces = reduce(_in_both, (_namespaces_of(term) for term in terms))
    return CountKey(_all_of([term.selector for term in terms]), namespaces, live_only=False)


def _in_both(a: frozenset[str] | None, b: frozenset[str] | None) -> frozenset[str] | None:
    if a is None or b is None:
        return b if a is None else a
    return a & b


def _all_of(selectors: Sequence[Selector]) -> Selector:
    if any(selector.nothing for selector in selectors):
        return NOTHING
    return make_selector(r for selector in selectors for r in selector.requirements)
