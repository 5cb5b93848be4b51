"""InterPodAffinity: required and preferred affinity and anti-affinity between pods.

Count columns answer the terms of incoming pods. The snapshot's index of distinct terms answers the
terms of existing pods. Both become tables by domain. No loop over pods is needed.

Rules mirrored: kubernetes v1.36 ``pkg/scheduler/framework/plugins/interpodaffinity``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from moorage.base.errors import ConfigError
from moorage.config.plugin_args import InterPodAffinityArgs, validate_inter_pod_affinity_args
from moorage.framework.capabilities import Capabilities, Skips
from moorage.framework.cycle_state import CycleState, StateKey
from moorage.framework.handle import Handle
from moorage.framework.points import (
    MAX_NODE_SCORE,
    EventRegistration,
    PreFilterResult,
    ScoreArray,
)
from moorage.framework.status import (
    SKIP,
    SUCCESS,
    Code,
    FilterAnswer,
    Status,
    error,
    unresolvable,
)
from moorage.framework.subjects import Subject
from moorage.framework.what_if import RowCounts
from moorage.plugins.affinity.counts import (
    NO_COUNTS,
    NOBODY_GONE,
    AffinityCounts,
    Counts,
    Gone,
    after,
    namespace_labels,
    taken,
    unmet,
)
from moorage.plugins.affinity.counts_by_row import CountsByRow
from moorage.plugins.affinity.domain_counts import (
    BoolArray,
    ByKey,
    DomainArray,
    Domains,
    DomainSums,
    has_any,
    no_counts,
)
from moorage.plugins.affinity.hints import AffinityHints
from moorage.plugins.affinity.incoming import IncomingAffinity, Resolver
from moorage.snapshot.affinity_terms import (
    NO_MATCH,
    ExistingTerm,
    MatchingTerms,
    TermKind,
    add_times,
)
from moorage.snapshot.importance import RankedPods
from moorage.snapshot.pod_affinity import POD_AFFINITY
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot
from moorage.snapshot.view import NodeView

REASON_AFFINITY: Final = "node(s) didn't match pod affinity rules"
REASON_ANTI_AFFINITY: Final = "node(s) didn't match pod anti-affinity rules"
REASON_EXISTING: Final = "node(s) didn't satisfy existing pods anti-affinity rules"

_Check = tuple[BoolArray | None, Code, int]
"""The rows that fail, None for no row; their code; the id of their reasons."""


_PRE_FILTER: StateKey[Counts] = StateKey("PreFilterInterPodAffinity")
_PRE_SCORE: StateKey[tuple[Domains, ...]] = StateKey("PreScoreInterPodAffinity")


class InterPodAffinity:
    """PreFilter (with extensions), Filter, PreScore, Score and NormalizeScore plugin.

    Parameters
    ----------
    args
        Arguments: how terms of existing pods score.
    handle
        Snapshot and reasons.

    Raises
    ------
    ConfigError
        The arguments are invalid; upstream, too, validates them here.
    """

    name = "InterPodAffinity"

    def __init__(self, args: InterPodAffinityArgs, handle: Handle) -> None:
        faults = validate_inter_pod_affinity_args(args, "")
        if faults:
            raise ConfigError(faults, source=self.name)
        self._ignore_wishes_of_existing = args.ignore_preferred_terms_of_existing_pods
        self._hard_weight = args.hard_pod_affinity_weight
        self._snapshot = handle.snapshot
        self._resolver = Resolver(handle.snapshot.listers.namespaces)
        self._sums = DomainSums(handle.snapshot)
        intern = handle.reasons.intern
        self._reason_affinity = intern(REASON_AFFINITY)
        self._reason_anti_affinity = intern(REASON_ANTI_AFFINITY)
        self._reason_existing = intern(REASON_EXISTING)

    def capabilities(self) -> Capabilities:
        """Declare which pods PreFilter skips, and for how long."""
        return Capabilities(
            skips_spec=self.skips_spec,
            counts_nominated=True,
            filter_counts=self.filter_counts,
            rejects_about=Subject.POD_AFFINITY,
        )

    # -- filtering -----------------------------------------------------------------------------

    def pre_filter(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot
    ) -> tuple[PreFilterResult | None, Status]:
        """Count the matching pods by domain; skip a pod that no term concerns.

        Notes
        -----
        Upstream reads the terms of pods on nodes only, so that the anti-affinity of a nominated
        pod is forgotten unless a pod on a node has a matching one (kubernetes issue 114889).
        """
        part = pod.part(POD_AFFINITY)
        if part.value.error:
            return None, unresolvable(f"parsing pod: {part.value.error}")
        existing = self._existing(snapshot, self._matching(snapshot, pod).required_anti)
        own_terms = bool(part.value.required or part.value.required_anti)
        nominated = (
            list(snapshot.nominated_before(pod))
            if own_terms or snapshot.any_nominated_repels
            else []
        )
        if not (existing or nominated or own_terms):
            return None, SKIP
        incoming = self._resolver.resolve(part)
        placed = AffinityCounts(
            incoming=incoming,
            existing=existing,
            near=self._near(incoming),
            away=self._away(incoming),
        )
        beside = after(snapshot, placed, pod, nominated, step=+1) if nominated else placed
        if beside is placed and not (existing or own_terms):
            return None, SKIP
        state.write(_PRE_FILTER, Counts(placed, None if beside is placed else beside))
        return None, SUCCESS

    def skips_spec(self, pod: PodInfo) -> Skips:
        """Skip a pod without required terms as long as no other pod's term can matter."""
        wanted = pod.part(POD_AFFINITY).value
        if wanted.error or wanted.required or wanted.required_anti:
            return False
        return _no_pod_repels

    def add_pod(self, state: CycleState, pod: PodInfo, added: PodInfo, *, row: int) -> None:
        """Add a pod on a row to the counts."""
        self._move(state, pod, added, row=row, step=+1)

    def remove_pod(self, state: CycleState, pod: PodInfo, removed: PodInfo, *, row: int) -> None:
        """Remove a pod on a row from the counts."""
        self._move(state, pod, removed, row=row, step=-1)

    def filter(self, state: CycleState, pod: PodInfo, view: NodeView) -> FilterAnswer | None:
        """Reject rows by the pod's affinity, then its anti-affinity, then that of existing pods.

        A row must pass with the pods nominated first, and without them.

        Raises
        ------
        StateMissingError
            PreFilter of this plugin is not enabled.
        """
        return self._answer(state.read(_PRE_FILTER), pod, view, NOBODY_GONE)

    def _answer(
        self, counts: Counts, pod: PodInfo, view: NodeView, gone: Gone
    ) -> FilterAnswer | None:
        checks = self._checks(counts.placed, pod, view, gone)
        if counts.beside is not None:
            checks = (*self._checks(counts.beside, pod, view, gone), *checks)
        return _first_failure(checks)

    def _checks(
        self, counts: AffinityCounts, pod: PodInfo, view: NodeView, gone: Gone
    ) -> tuple[_Check, ...]:
        """Return the rows that fail by each kind of term, in upstream's order."""
        return (
            (
                unmet(counts, pod, view, gone.near),
                Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
                self._reason_affinity,
            ),
            (taken(counts.away, view, gone.away), Code.UNSCHEDULABLE, self._reason_anti_affinity),
            (
                taken(counts.existing, view, gone.existing),
                Code.UNSCHEDULABLE,
                self._reason_existing,
            ),
        )

    def filter_counts(
        self, state: CycleState, pod: PodInfo, view: NodeView, ranked: RankedPods
    ) -> RowCounts:
        """Return the counts of domains by which `filter` judges rows.

        Raises
        ------
        StateMissingError
            PreFilter of this plugin is not enabled.
        """
        counts = state.read(_PRE_FILTER)

        def judge(gone: Gone) -> FilterAnswer | None:
            return self._answer(counts, pod, view, gone)

        return CountsByRow(self._snapshot, counts, pod, view, ranked=ranked, judge=judge)

    # -- scoring -------------------------------------------------------------------------------

    def pre_score(self, state: CycleState, pod: PodInfo, feasible: NodeView) -> Status:
        """Sum weights by domain over all nodes; skip when no term matched anywhere."""
        del feasible
        part, snapshot = pod.part(POD_AFFINITY), self._snapshot
        if self._ignore_wishes_of_existing and not part.value.has_preferred:
            return SKIP
        if part.value.error:
            return error(f"failed to parse pod: {part.value.error}")
        sums: dict[str, DomainArray] = {}
        if part.value.has_preferred:
            self._add_own_wishes(sums, self._resolver.resolve(part))
        for term in self._matching(snapshot, pod).scored:
            weight = self._weight(term)
            if weight is not None and term.in_domains:
                total_d = self._sums_of(sums, term.term.topology_key)
                snapshot.affinity_terms.domain_counts(term, total_d, weight)
        if not sums:
            return SKIP
        label_column = snapshot.label_column
        state.write(_PRE_SCORE, tuple(Domains(label_column(k), d) for k, d in sums.items()))
        return SUCCESS

    def score(self, state: CycleState, pod: PodInfo, view: NodeView) -> ScoreArray:
        """Add up the weights of each row's domains; the sum may be negative.

        Raises
        ------
        StateMissingError
            PreScore of this plugin is not enabled.
        """
        del pod
        first, *others = state.read(_PRE_SCORE)
        raw_n = first.domain_of_rows(view)
        for domains in others:
            raw_n += domains.domain_of_rows(view)
        return raw_n

    def normalize(self, state: CycleState, pod: PodInfo, raw_n: ScoreArray) -> ScoreArray:
        """Scale the scores to 0 to 100; all 0 when all raw scores are equal.

        The order of the float64 operations is upstream's, because the result is truncated.
        """
        del state, pod
        if len(raw_n) == 0:
            return raw_n.copy()
        # By position: the reductions of NumPy take three times as long.
        low, high = raw_n.item(raw_n.argmin()), raw_n.item(raw_n.argmax())
        if high == low:
            return np.zeros_like(raw_n)
        share_n = (raw_n - low).astype(np.float64)
        share_n /= float(high - low)
        share_n *= float(MAX_NODE_SCORE)
        return share_n.astype(np.int64)

    def events_to_register(self) -> Sequence[EventRegistration]:
        """Register new, deleted and relabelled pods and nodes, and labels of namespaces."""
        return AffinityHints(self._snapshot).registrations()

    # -- counting ------------------------------------------------------------------------------

    def _matching(self, snapshot: Snapshot, pod: PodInfo) -> MatchingTerms:
        terms = snapshot.affinity_terms
        if not terms:
            return NO_MATCH
        labels = namespace_labels(snapshot, pod.namespace)
        return terms.matching(pod, labels, labels_version=snapshot.listers.namespaces.generation)

    def _existing(self, snapshot: Snapshot, terms: Iterable[ExistingTerm]) -> ByKey:
        sums: dict[str, Domains] = {}
        for term in terms:
            if term.in_domains:
                key = term.term.topology_key
                if key not in sums:
                    sums[key] = Domains(term.column, no_counts(term.column))
                snapshot.affinity_terms.domain_counts(term, sums[key].by_domain, 1)
        return sums

    def _near(self, incoming: IncomingAffinity) -> ByKey:
        if incoming.together is None:
            return NO_COUNTS
        return {key: self._sums.domains_of(key, incoming.together) for key in incoming.keys}

    def _away(self, incoming: IncomingAffinity) -> ByKey:
        sums: dict[str, Domains] = {}
        for term in incoming.anti:
            key, more = term.topology_key, self._sums.domains_of(term.topology_key, term.count)
            known = sums.get(key)
            if known is not None:
                more = Domains(more.column, known.by_domain + more.by_domain)
            sums[key] = more
        return sums

    def _move(
        self, state: CycleState, pod: PodInfo, other: PodInfo, *, row: int, step: int
    ) -> None:
        counts, moves = state.read(_PRE_FILTER), ((row, other),)
        placed = after(self._snapshot, counts.placed, pod, moves, step=step)
        beside = counts.beside
        if beside is not None:
            beside = after(self._snapshot, beside, pod, moves, step=step)
        if placed is not counts.placed or beside is not counts.beside:
            state.write(_PRE_FILTER, Counts(placed, beside))

    def _add_own_wishes(self, sums: dict[str, DomainArray], incoming: IncomingAffinity) -> None:
        for wish in incoming.wishes:
            more_d = self._sums.domains_of(wish.topology_key, wish.count).by_domain
            if not has_any(more_d):
                continue
            total_d = self._sums_of(sums, wish.topology_key)
            if wish.weight:
                add_times(total_d, more_d, wish.weight)

    def _sums_of(self, sums: dict[str, DomainArray], key: str) -> DomainArray:
        found = sums.get(key)
        if found is None:
            found = sums[key] = no_counts(self._snapshot.label_column(key))
        return found

    def _weight(self, term: ExistingTerm) -> int | None:
        """Return the weight that one pod with the term adds; None when the term does not score."""
        if term.kind is TermKind.REQUIRED:
            return self._hard_weight or None
        return term.weight if term.kind is TermKind.PREFERRED else -term.weight


def _no_pod_repels(snapshot: Snapshot) -> bool:
    """Whether no pod with required terms of its own is on a node or nominated."""
    return not len(snapshot.affinity_terms) and not snapshot.any_nominated_repels


def _first_failure(checks: Iterable[_Check]) -> FilterAnswer | None:
    """Build the filter result of checks; the first check that fails decides a row."""
    failing = [
        (failed, code, reason)
        for failed, code, reason in checks
        if failed is not None and np.count_nonzero(failed)
    ]
    return FilterAnswer.of_checks(*failing) if failing else None
