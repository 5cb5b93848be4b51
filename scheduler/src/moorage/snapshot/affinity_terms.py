"""The affinity terms of pods on nodes: each distinct term once, with counts by topology domain.

The node table feeds the terms as pods come and go; plugins ask for the terms that select an
incoming pod. The counts are sparse and kept by increments, so neither asking nor placing walks pods
or nodes. A term of a single pod costs a few hundred bytes.

Rules mirrored: scheduling spec, inter-pod affinity sections 2, 3 and 6 (what existing pods want).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import IntEnum
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from moorage.snapshot.labels import ABSENT, LabelColumn
from moorage.snapshot.pod_affinity import POD_AFFINITY, AffinityTerm, PodAffinitySpec
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.selector_index import SelectorIndex
from moorage.snapshot.shape import LABELS

# From this many domains on, a term's counts are also kept as an array; below, a loop is as fast.
_DENSE_FROM: Final = 48
# Arrays kept at a time (20 MB at 5000 domains) and askers remembered: guesses.
_DENSE_MOST: Final = 512
_ASKERS_MOST: Final = 4096


class TermKind(IntEnum):
    """The demand of an existing pod's term on the pods it selects."""

    REQUIRED = 0
    REQUIRED_ANTI = 1
    PREFERRED = 2
    PREFERRED_ANTI = 3


TermKey = tuple[TermKind, AffinityTerm, int]
"""(kind, term, weight); the weight of a required term is 0."""


class ExistingTerm:
    """A distinct term, and the places of the pods that have it.

    Attributes
    ----------
    kind, term, weight
        The term's key.
    column
        The node label that names its domains.
    uses
        Pods that have the term; including pods on nodes without the label.
    """

    __slots__ = ("_by_domain", "_dense", "column", "kind", "term", "uses", "weight")

    def __init__(self, key: TermKey, column: LabelColumn) -> None:
        self.kind, self.term, self.weight = key
        self.column = column
        self.uses = 0
        self._by_domain: dict[int, int] = {}
        self._dense: NDArray[np.int64] | None = None

    @property
    def in_domains(self) -> bool:
        """Whether any pod that has the term is on a node with the label."""
        return bool(self._by_domain)

    def counts(self) -> dict[str, int]:
        """Return the number of pods by label value, for people and tests."""
        return {self.column.values[d]: count for d, count in sorted(self._by_domain.items())}

    def add_to(self, total_d: NDArray[np.int64], times: int) -> None:
        """Add the counts, times a factor, to a table by domain.

        Parameters
        ----------
        total_d
            int64, (column.size or more,): by label value id; changed in place.
        times
            The factor, of any sign.
        """
        dense = self._dense
        if dense is None:
            for domain, count in self._by_domain.items():
                total_d[domain] += times * count
        else:
            add_times(total_d[: len(dense)], dense, times)

    def count_in_domain(self, domain: int, step: int) -> None:
        """Count one pod more or less in a domain; `ABSENT` is not counted."""
        if domain == ABSENT:
            return
        count = self._by_domain.get(domain, 0) + step
        if count:
            self._by_domain[domain] = count
        else:
            del self._by_domain[domain]
        if self._dense is not None:
            if domain >= len(self._dense):
                self._dense = None  # a new value: made again on the next request
            else:
                self._dense[domain] = count

    @property
    def wants_array(self) -> bool:
        """Whether an array would save time and does not exist."""
        return self._dense is None and len(self._by_domain) >= _DENSE_FROM

    def make_array(self) -> None:
        """Keep the counts as an array too."""
        size = self.column.size
        self._dense = np.zeros(size, np.int64)
        domains = np.fromiter(self._by_domain, np.int64, len(self._by_domain))
        self._dense[domains] = np.fromiter(self._by_domain.values(), np.int64, len(domains))

    def drop_array(self) -> None:
        """Forget the array."""
        self._dense = None


def add_times(total_d: NDArray[np.int64], more_d: NDArray[np.int64], times: int) -> None:
    """Add one table by domain, times a factor, to another in place; weights are often 1 or -1."""
    if times == 1:
        total_d += more_d
    elif times == -1:
        total_d -= more_d
    else:
        total_d += times * more_d


class MatchingTerms(msgspec.Struct, frozen=True):
    """The terms of existing pods that select one incoming pod, in order of their first use.

    Parameters
    ----------
    required_anti
        The terms that keep the pod off.
    scored
        All other terms.
    """

    required_anti: tuple[ExistingTerm, ...] = ()
    scored: tuple[ExistingTerm, ...] = ()


NO_MATCH: Final = MatchingTerms()


class AffinityTerms:
    """Index of the terms of all pods on known nodes.

    Parameters
    ----------
    label_column
        Returns the column of a node label, making it on first use.
    """

    __slots__ = ("_askers", "_dense", "_index", "_label_column", "_labels_version", "_terms")

    def __init__(self, label_column: Callable[[str], LabelColumn]) -> None:
        self._label_column = label_column
        self._terms: dict[TermKey, ExistingTerm] = {}
        self._index: SelectorIndex[ExistingTerm] = SelectorIndex()
        self._askers: dict[int, MatchingTerms] = {}
        self._labels_version = 0
        self._dense: dict[ExistingTerm, None] = {}

    def __len__(self) -> int:
        return len(self._terms)

    def __iter__(self) -> Iterator[ExistingTerm]:
        return iter(self._terms.values())

    def add(self, pod: PodInfo, row: int) -> None:
        """Count the terms of a pod that is on a row."""
        for key in term_keys(pod.part(POD_AFFINITY).value):
            found = self._terms.get(key)
            if found is None:
                found = self._open(key)
            found.uses += 1
            found.count_in_domain(int(found.column.ids[row]), +1)

    def remove(self, pod: PodInfo, row: int) -> None:
        """Stop counting the terms of a pod that was on a row with these labels."""
        for key in term_keys(pod.part(POD_AFFINITY).value):
            found = self._terms[key]
            found.uses -= 1
            found.count_in_domain(int(found.column.ids[row]), -1)
            if found.uses == 0:
                self._close(key, found)

    def matching(
        self, pod: PodInfo, namespace_labels: Mapping[str, str], *, labels_version: int
    ) -> MatchingTerms:
        """Return the terms that select a pod.

        Parameters
        ----------
        pod
            The incoming pod.
        namespace_labels
            Labels of its namespace; empty where the namespace is unknown.
        labels_version
            Rises whenever the labels of any namespace may have changed.
        """
        if not self._terms:
            return NO_MATCH
        if labels_version != self._labels_version:
            self._askers.clear()
            self._labels_version = labels_version
        part = pod.part(LABELS)
        terms = self._askers.get(part.id)
        if terms is None:
            if len(self._askers) >= _ASKERS_MOST:
                self._askers.clear()
            terms = self._askers[part.id] = self._find_terms(*part.value, namespace_labels)
        return terms

    def domain_counts(self, term: ExistingTerm, total_d: NDArray[np.int64], times: int) -> None:
        """Add a term's counts to a table by domain: `ExistingTerm.add_to`, fast when repeated."""
        if term.wants_array:
            if len(self._dense) >= _DENSE_MOST:
                for other in self._dense:
                    other.drop_array()
                self._dense.clear()
            term.make_array()
            self._dense[term] = None
        term.add_to(total_d, times)

    def _find_terms(
        self, namespace: str, labels: Mapping[str, str], namespace_labels: Mapping[str, str]
    ) -> MatchingTerms:
        anti: list[ExistingTerm] = []
        scored: list[ExistingTerm] = []
        for found in self._index.candidates(namespace, labels):
            if found.term.selects_pod(namespace, labels, namespace_labels):
                (anti if found.kind is TermKind.REQUIRED_ANTI else scored).append(found)
        return MatchingTerms(tuple(anti), tuple(scored)) if anti or scored else NO_MATCH

    def _open(self, key: TermKey) -> ExistingTerm:
        term = key[1]
        made = self._terms[key] = ExistingTerm(key, self._label_column(term.topology_key))
        self._index.add(made, term.selector, _pod_namespaces(term))
        self._askers.clear()
        return made

    def _close(self, key: TermKey, gone: ExistingTerm) -> None:
        del self._terms[key]
        self._dense.pop(gone, None)
        self._index.remove(gone, gone.term.selector, _pod_namespaces(gone.term))
        self._askers.clear()


def term_keys(spec: PodAffinitySpec) -> Iterator[TermKey]:
    """Yield the key of every term; a term listed twice is yielded twice."""
    for term in spec.required:
        yield TermKind.REQUIRED, term, 0
    for term in spec.required_anti:
        yield TermKind.REQUIRED_ANTI, term, 0
    for term, weight in spec.preferred:
        yield TermKind.PREFERRED, term, weight
    for term, weight in spec.preferred_anti:
        yield TermKind.PREFERRED_ANTI, term, weight


def _pod_namespaces(term: AffinityTerm) -> frozenset[str] | None:
    """Return the namespaces of pods that the term may select; None where labels decide."""
    return term.namespaces if term.namespace_selector.nothing else None
