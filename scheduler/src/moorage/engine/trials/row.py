"""A trial on one row: pods are taken off and put back, and every Filter is asked.

Rules: scheduling spec, cycle sections 3.4 and 10.
"""

from __future__ import annotations

from collections.abc import Sequence

from moorage.base.no_names import NO_NAMES
from moorage.engine.attempt import Attempt, CycleError
from moorage.engine.filters.asking import ask_filter, broken_filter
from moorage.engine.filters.filter_results import PASSES, result_status
from moorage.engine.filters.moving import nominate_on_row, put_on_row, take_off_row
from moorage.engine.filters.nominated import filter_beside, judge_row, nominated_first
from moorage.engine.filters.tally import RowResult
from moorage.framework.status import SUCCESS, Code, Status
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.shifted import NOTHING_MORE
from moorage.snapshot.trial import Trial


class TriedRow:
    """`RowTrial` over a trial of the snapshot.

    Parameters
    ----------
    attempt
        The attempt, with a cycle state of the trial's own.
    trial
        The trial, which undoes everything.
    row
        The row.
    by_node
        The filter result of the Filters that read the node alone; None when these Filters must
        still be asked.
    counting
        The plugins whose Pending is taken for Success: they say that the row takes the pod once
        nominated pods are placed.
    """

    def __init__(
        self,
        attempt: Attempt,
        trial: Trial,
        row: int,
        *,
        by_node: RowResult | None,
        counting: frozenset[str] = NO_NAMES,
    ) -> None:
        self._attempt = attempt
        self._trial = trial
        self._row = row
        self._by_node = by_node
        self._counting = counting
        self._rows_of: dict[str, int | None] = {}  # of pods that were taken off

    def take_off(self, other: PodInfo) -> Status:
        """Take a pod off its row, which may be another one; Error where a plugin cannot follow."""
        table = self._attempt.snapshot.table
        row = self._rows_of[other.uid] = table.row_of(table.node_of_pod(other.uid) or "")
        if row is None:  # on a node that is unknown: no Filter counts it
            return SUCCESS
        try:
            take_off_row(self._attempt, self._trial, other, row)
        except CycleError as broken:
            return broken.status
        return SUCCESS

    def put_on(self, other: PodInfo) -> Status:
        """Put a pod back that was taken off; Error where a plugin cannot follow."""
        row = self._rows_of[other.uid]
        if row is None:
            return SUCCESS
        try:
            put_on_row(self._attempt, self._trial, other, row)
        except CycleError as broken:
            return broken.status
        return SUCCESS

    def is_counted(self, other: PodInfo, *, by: str = "") -> bool:
        """Whether a Filter that counts nominated pods everywhere counts a pod of the row, too.

        Parameters
        ----------
        other
            The pod.
        by
            The name of the Filter; "" for any.
        """
        profile, tried = self._attempt.profile, self._attempt.branch()
        state, skipped = tried.state, tried.state.skip_filter
        keys = state.keys()
        before = [state.find(key) for key in keys]
        for plugin in profile.extensions:
            if by and plugin.name != by:
                continue
            if plugin.name in profile.count_nominated and plugin.name not in skipped:
                plugin.remove_pod(state, tried.pod, other, row=self._row)
        # A plugin writes a new value if the pod makes a difference: states share their values.
        return any(state.find(key) is not old for key, old in zip(keys, before, strict=True))

    def judge(self) -> Status:
        """Run every Filter on the row: next to nominated pods first, then without them."""
        at = self._attempt
        try:
            nominated = at.snapshot.nominations.get(at.snapshot.names[self._row], ())
            if nominated:
                added = nominated_first(at.snapshot, at.pod, nominated)
                if self._counting and added:
                    status = self._judge_beside(added)
                    if not status.ok:
                        return status
                else:
                    first = filter_beside(at, self._row, added)
                    if first is not None and not first.passed[0]:
                        return first.status(at.profile, 0)
        except CycleError as broken:
            return broken.status
        return self._status(self._first_failing(at, self._by_node))

    def _judge_beside(self, added: Sequence[PodInfo]) -> Status:
        """Run every Filter on the row with the pods nominated there on it."""
        with self._attempt.snapshot.trial() as trial:
            tried = self._attempt.branch()
            for other in added:
                nominate_on_row(tried, trial, other, self._row)
            return self._status(self._first_failing(tried, None))

    def _status(self, result: RowResult) -> Status:
        status = result_status(self._attempt.profile, result)
        return status if status.ok or status.rejected else broken_filter(status)

    def _first_failing(self, at: Attempt, by_node: RowResult | None) -> RowResult:
        """Ask the Filters about the row until one fails it."""
        row = self._row
        result = PASSES if by_node is None else by_node
        view = at.snapshot.rows([row])
        for forms in at.profile.filter_forms:
            if forms.index >= result[0]:
                break
            if (by_node is not None and forms.by_node) or forms.name in at.state.skip_filter:
                continue
            said = judge_row(at, (forms.index,), row, NOTHING_MORE)
            if said is None:
                answer = ask_filter(at, forms, view)
                if answer is None or not answer.code_n[0]:
                    continue
                said = forms.index, answer.code_n.item(0), answer.reason_n.item(0)
            if said is not PASSES and not self._waits(forms.name, said):
                return said
        return result

    def _waits(self, name: str, said: RowResult) -> bool:
        """Whether a Filter only waits for nominated pods, which are taken for placed here."""
        return said[1] == Code.PENDING and name in self._counting
