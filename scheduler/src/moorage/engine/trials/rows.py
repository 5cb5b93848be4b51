"""A trial on many rows at once: the sums of requests are shifted for each row.

Only for attempts whose Filters say which pods of a row they see as more than sums or counts. A row
where such a pod matters has to be tried alone, unless an earlier Filter fails it.

Rules: scheduling spec, cycle sections 3.4 and 10.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from moorage.base.no_names import NO_NAMES
from moorage.engine.attempt import Attempt
from moorage.engine.filters.asking import ask_filters, ask_into, broken_filter
from moorage.engine.filters.filter_results import FilterResults
from moorage.engine.filters.nominated import nominated_first
from moorage.engine.trials.counts import FollowedCounts
from moorage.framework.pods_seen import PodsSeen
from moorage.framework.profile import Profile
from moorage.framework.status import Code, Status
from moorage.framework.what_if import Room
from moorage.snapshot.importance import RankedPods
from moorage.snapshot.nominated_rows import NominatedSums
from moorage.snapshot.shifted import ShiftedSums
from moorage.snapshot.view import NodeView

Rows = NDArray[np.int64]


class FilterResult:
    """`RowsResult` over the filter result of the Filters.

    Parameters
    ----------
    profile
        The profile of the Filters.
    results
        Their filter result.
    alone
        bool, (rows,): the rows to be tried alone; None for no row.
    """

    def __init__(
        self, profile: Profile, results: FilterResults, alone: NDArray[np.bool_] | None
    ) -> None:
        self._profile = profile
        self._results = results
        self.alone = alone
        self.passed: NDArray[np.bool_] = results.passed
        if alone is not None:
            self.passed &= ~alone
        self.broken: NDArray[np.bool_] = results.broken
        self.nbytes = results.nbytes + self.passed.nbytes + self.broken.nbytes

    def status(self, position: int) -> Status:
        """Return the status of one row."""
        status = self._results.status(self._profile, position)
        return status if status.ok or status.rejected else broken_filter(status)


class TriedRows:
    """`RowsTrial` over shifted sums of the snapshot.

    Parameters
    ----------
    attempt, view
        The attempt, and the rows.
    sums
        The rows' sums.
    pods_seen
        How the Filters see the pods of a row.
    nominated
        Positions in the view where nominated pods come first, and their sums; None without any.
    by_node
        The result on every row of the Filters that read the node alone; None when they must be
        asked.
    waived
        The plugins whose Pending is taken for Success, as in `row.TriedRow`.
    """

    def __init__(
        self,
        attempt: Attempt,
        view: NodeView,
        sums: ShiftedSums,
        pods_seen: PodsSeen,
        *,
        nominated: tuple[Rows, NominatedSums] | None,
        by_node: FilterResults | None,
        waived: frozenset[str] = NO_NAMES,
    ) -> None:
        self._attempt = attempt
        self._view = view
        self._waived = waived
        self._counts: list[FollowedCounts] | None = None
        self._awaiting: dict[int, str] = {}
        self._pods_seen = pods_seen
        self._by_sums = pods_seen.by_sums
        self._nominated = nominated
        self._by_node = by_node
        self._room: Room | None = None
        self._shift = sums.shift

    def shift(self, amounts: Mapping[str, Rows], pods: Rows) -> None:
        """Add to the sums of each row."""
        self._shift(amounts, pods)
        self._room = None

    def take_off(self, ranked: RankedPods, which: NDArray[np.bool_]) -> None:
        """Take pods off the counts of Filters; `shift` takes them off the sums."""
        at, view = self._attempt, self._view
        forms = [at.profile.filter_forms[index] for index in self._pods_seen.by_counts]
        self._counts = [
            FollowedCounts(at, each, view, ranked, which, waives=each.name in self._waived)
            for each in forms
        ]

    def judge(self) -> FilterResult:
        """Run every Filter on the rows as they are now; only pods of lower priority are gone."""
        at, pods_seen, view = self._attempt, self._pods_seen, self._view
        if self._by_node is None:
            results = self._pass(pods_seen.by_node, view)
        else:
            results = self._by_node.at_rows(view.row_numbers())
        results.merge(self._pass(pods_seen.by_sums, view))
        for index in pods_seen.others:
            ask_into(results, at, at.profile.filter_forms[index], view)
        if self._counts is None:
            for index in pods_seen.by_counts:
                ask_into(results, at, at.profile.filter_forms[index], view)
        else:
            _ask_counts(results, self._counts)
        self._beside(results.put_sooner)
        if pods_seen.only_sums:
            return FilterResult(at.profile, results, None)
        alone = self._alone(results)
        if self._counts:
            waiting = results.code_n == Code.PENDING
            self._note_waiting(results, waiting if alone is None else waiting & ~alone)
        return FilterResult(at.profile, results, alone)

    def put_back(
        self, amounts: Mapping[str, Rows], which: NDArray[np.bool_], ranks: Rows | None = None
    ) -> NDArray[np.bool_]:
        """Put a pod back on rows that still pass with it; return the rows without room."""
        gone, failing = self._put_back_sums(amounts, which)
        # The rows pass as they are now, so that a count to which no pod adds fails none of them.
        counts = [each for each in self._counts or () if each.follows]
        if not counts:
            return gone
        assert ranks is not None, "the trial counts kinds"
        first_decides = max(self._by_sums, default=-1) < counts[0].index
        judged = which & ~gone if first_decides else which
        if not judged.any():
            return gone
        for each in counts:
            each.put_back(ranks, judged)
        results = FilterResults(len(self._view))
        _ask_counts(results, counts)
        failed = judged & ~results.passed
        decides = failed & (~gone | (results.plugin_n < failing))
        self._note_waiting(results, decides & (results.code_n == Code.PENDING))
        for each in counts:
            each.take_again(ranks, failed | (judged & gone))
        self._take_again(amounts, failed & ~gone)
        return gone | failed

    def awaited_by(self) -> Mapping[int, str]:
        """Return positions of rows where only nominated pods were missing, with the plugin."""
        return self._awaiting

    def are_counted(self, which: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return bool, (rows,): the rows with a pod that counts next to nominated pods."""
        there = np.zeros(len(self._view), np.bool_)
        profile = self._attempt.profile
        for each in self._counts or ():
            if profile.filters[each.index].name in profile.count_nominated:
                there |= each.counts_any(which)
        return there

    def _note_waiting(self, results: FilterResults, which: NDArray[np.bool_]) -> None:
        for position in np.flatnonzero(which).tolist():
            plugin = self._attempt.profile.filters[results.plugin_n.item(position)]
            self._awaiting[position] = plugin.name

    def _put_back_sums(
        self, amounts: Mapping[str, Rows], which: NDArray[np.bool_]
    ) -> tuple[NDArray[np.bool_], int | NDArray[np.uint8]]:
        """Put pods back as sums; return the rows without room, and the Filter that fails them."""
        room = self._room or self._measured()
        if room is None:
            return self._put_back_and_judge(amounts, which)
        self._room = room
        return which & ~room.take_room(amounts, which), self._by_sums[0]

    def _take_again(self, amounts: Mapping[str, Rows], which: NDArray[np.bool_]) -> None:
        """Take pods off rows again whose sums have room for them."""
        if self._room is None:
            less = {name: -amount * which for name, amount in amounts.items()}
            self._shift(less, -which.astype(np.int64))
            return
        positions = np.flatnonzero(which)
        less = {name: -amount[positions] for name, amount in amounts.items()}
        self._room.lessen(positions, less, np.full(len(positions), -1))

    def _put_back_and_judge(
        self, amounts: Mapping[str, Rows], which: NDArray[np.bool_]
    ) -> tuple[NDArray[np.bool_], NDArray[np.uint8]]:
        added = {name: amount * which for name, amount in amounts.items()}
        self._shift(added, which.astype(np.int64))
        passed = self._pass(self._by_sums, self._view)
        self._beside(passed.put_failures)
        gone: NDArray[np.bool_] = which & ~passed.passed
        if gone.any():
            less = {name: -amount * gone for name, amount in amounts.items()}
            self._shift(less, -gone.astype(np.int64))
        return gone, passed.plugin_n

    def _measured(self) -> Room | None:
        """Return the room on the rows as they are now; None where a Filter cannot tell the room."""
        at = self._attempt
        smallest: Room | None = None
        for index in self._by_sums:
            room = at.profile.filter_forms[index].room
            if smallest is not None or room is None:
                return None
            smallest = room(at.state, at.pod, self._view)
        if smallest is not None and self._nominated is not None:
            # Nominated pods only take room, so a row that passes next to them passes without.
            positions, added = self._nominated
            smallest.lessen(positions, added.amounts, added.pods)
        return smallest

    def _alone(self, results: FilterResults) -> NDArray[np.bool_] | None:
        """Return the rows where a Filter sees a pod of lower priority, or one nominated first."""
        at, pods_seen, rows = self._attempt, self._pods_seen, self._view.row_numbers()
        alone = pods_seen.below(rows, at.pod.priority)
        if alone is not None:
            alone &= results.plugin_n >= pods_seen.first_of_placed
        for each in self._counts or ():
            if each.alone is not None:
                undecided = each.alone & (results.plugin_n >= each.index)
                alone = undecided if alone is None else alone | undecided
        if self._nominated is not None:
            if alone is None:
                alone = np.zeros(len(rows), np.bool_)
            undecided = results.plugin_n >= pods_seen.first
            snapshot, positions = at.snapshot, self._nominated[0]
            for position in positions[undecided[positions]].tolist():
                nominated = snapshot.nominations[snapshot.names[rows.item(position)]]
                if pods_seen.sees(nominated_first(snapshot, at.pod, nominated)):
                    alone[position] = True
        return alone

    def _beside(self, put: Callable[[Rows, FilterResults], None]) -> None:
        """Judge the rows with nominated pods, those pods counted, and record the filter results."""
        if self._nominated is None:
            return
        positions, added = self._nominated
        snapshot = self._attempt.snapshot
        view = snapshot.rows(added.rows)
        with ShiftedSums(snapshot.table, view, frozenset(added.amounts)) as sums:
            sums.shift(added.amounts, added.pods)
            put(positions, self._pass(self._by_sums, view))

    def _pass(self, only: Iterable[int], view: NodeView) -> FilterResults:
        return ask_filters(self._attempt, view, only=only)


def _ask_counts(results: FilterResults, counts: Iterable[FollowedCounts]) -> None:
    for each in counts:
        answer = each.judge()
        if answer is not None:
            results.record_answer(each.index, answer)
