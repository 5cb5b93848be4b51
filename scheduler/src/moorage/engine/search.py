"""The outcome of a search for nodes, and the reasons where it found none.

Rules: scheduling spec, cycle sections 3.2, 3.4 and 4.
"""

from __future__ import annotations

from typing import Final

import msgspec
import numpy as np

from moorage.base.no_names import NO_NAMES
from moorage.engine.answers import Answers, KnownRows, ScoreNotes
from moorage.engine.attempt import Attempt, CycleError
from moorage.engine.filters.filter_results import FilterResults
from moorage.engine.filters.tally import Tally
from moorage.framework.diagnosis import Diagnosis
from moorage.framework.points import PreFilterOutcome
from moorage.framework.profile import Profile
from moorage.framework.status import Code, Status, unresolvable
from moorage.snapshot.view import NodeView

_UNRESOLVABLE: Final = unresolvable()


class Search(msgspec.Struct, frozen=True):
    """The filtered rows, their filter result, and the outcome of PreFilter.

    Parameters
    ----------
    answers
        The answers of the plugins about the attempt; they hold the attempt itself.
    pre_filter
        The outcome of PreFilter.
    view
        The rows filtered; none when PreFilter rejected the pod.
    filtered
        The filter result on them.
    known
        The cached filter results for pods of this shape; None where there are none.
    nominated_row
        The row of the pod's own nominated node when the pod fits there and no other row was
        filtered.
    nominated_rejectors
        The plugins that turned the pod away from its nominated node, when the pod does not fit
        there.
    start
        Position in the order of nodes at which the search began.
    notes
        Takes the scores of each plugin, for the note of the attempt; None where none is written.
    """

    answers: Answers
    pre_filter: PreFilterOutcome
    view: NodeView
    filtered: FilterResults
    known: KnownRows | None = None
    nominated_row: int | None = None
    nominated_rejectors: frozenset[str] = NO_NAMES
    start: int = 0
    notes: ScoreNotes | None = None

    @property
    def attempt(self) -> Attempt:
        """The attempt for which nodes were searched."""
        return self.answers.attempt

    @property
    def absent_status(self) -> Status:
        """Status of the nodes that were not filtered.

        kube-scheduler names the plugins from the set in which it collects rejectors. A plugin that
        had turned the pod away from its nominated node is named too, though it restricted nothing.
        """
        if self.pre_filter.status.rejected:
            return self.pre_filter.status
        if self.pre_filter.node_names is None:
            return _UNRESOLVABLE
        names = " ".join(sorted(self.pre_filter.plugins | self.nominated_rejectors))
        return unresolvable(f"node(s) didn't satisfy plugin(s) [{names}]")


class NominatedNode(msgspec.Struct, frozen=True, gc=False):
    """The pod's own nominated node, and the filter result on it."""

    row: int
    filtered: FilterResults


def filter_nominated_node(answers: Answers, name: str) -> NominatedNode | None:
    """Filter the nominated node alone; None without such a node, or where a plugin breaks."""
    attempt = answers.attempt
    row, within = attempt.snapshot.row_of(name), attempt.scope.within
    if row is None or (within is not None and row not in within.row_numbers()):
        return None
    try:
        return NominatedNode(row, answers.filter_row(row))
    except CycleError:  # looking here first is a short cut: the full search reports the error
        return None


def diagnose(search: Search) -> Diagnosis:
    """Say why no row passed; the text of PostFilter is added later."""
    outcome, attempt = search.pre_filter, search.attempt
    within = attempt.scope.within
    num_nodes = attempt.snapshot.num_nodes if within is None else len(within)
    if outcome.status.rejected:
        pending = outcome.status.code is Code.PENDING
        return Diagnosis(
            num_nodes=num_nodes,
            unschedulable_plugins=outcome.plugins,
            pending_plugins=outcome.plugins if pending else NO_NAMES,
            pre_filter_message=outcome.status.message,
        )
    tally, left_out = search.filtered.tally, num_nodes - len(search.view)
    if left_out:
        return _diagnosed(attempt.profile, search, tally, num_nodes, left_out)
    # Then the diagnosis depends only on PreFilter and the numbers, so replicas get the same
    # diagnosis.
    if tally.diagnosed is None or tally.diagnosed[0] is not outcome:
        tally.diagnosed = outcome, _diagnosed(attempt.profile, search, tally, num_nodes, 0)
    return tally.diagnosed[1]


def _diagnosed(
    profile: Profile, search: Search, tally: Tally, num_nodes: int, left_out: int
) -> Diagnosis:
    outcome, counts = search.pre_filter, tally.reason_counts(profile.handle.reasons)
    if left_out and outcome.node_names is not None:
        for reason in search.absent_status.reasons:
            counts[reason] = counts.get(reason, 0) + left_out
    return Diagnosis(
        num_nodes=num_nodes,
        reason_counts=counts,
        unschedulable_plugins=outcome.plugins | tally.rejectors(profile.filters),
        pending_plugins=tally.pending(profile.filters),
    )


def with_row(
    view: NodeView, filtered: FilterResults, row: int, own: FilterResults
) -> tuple[NodeView, FilterResults]:
    """Add the nominated node's own filter result, even where PreFilter left the node out."""
    rows = view.row_numbers()
    if view.is_all or row in rows:
        return view, filtered
    wider = NodeView(view.size_of_all, np.append(rows, row))
    joined = FilterResults.from_columns(
        np.append(filtered.code_n, own.code_n),
        np.append(filtered.reason_n, own.reason_n),
        np.append(filtered.plugin_n, own.plugin_n),
    )
    return wider, joined
