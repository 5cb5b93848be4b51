"""A trial on one row: pods are taken off and put back, and every Filter is asked.

Rules: scheduling spec, cycle sections 3.4 and 10.
"""

from __future__ import annotations

from moorage.engine.attempt import Attempt, CycleError
from moorage.engine.filters.asking import ask_filter, broken_filter
from moorage.engine.filters.filter_results import PASSES, result_status
from moorage.engine.filters.moving import put_on_row, take_off_row
from moorage.engine.filters.nominated import filter_beside, judge_row, nominated_first
from moorage.engine.filters.tally import RowResult
from moorage.framework.status import SUCCESS, Status
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
    """

    def __init__(
        self, attempt: Attempt, trial: Trial, row: int, *, by_node: RowResult | None
    ) -> None:
        self._attempt = attempt
        self._trial = trial
        self._row = row
        self._by_node = by_node
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

    def judge(self) -> Status:
        """Run every Filter on the row: next to nominated pods first, then without them."""
        at = self._attempt
        try:
            nominated = at.snapshot.nominations.get(at.snapshot.names[self._row], ())
            if nominated:
                added = nominated_first(at.snapshot, at.pod, nominated)
                first = filter_beside(at, self._row, added)
                if first is not None and not first.passed[0]:
                    return first.status(at.profile, 0)
        except CycleError as broken:
            return broken.status
        status = result_status(at.profile, self._first_failing())
        return status if status.ok or status.rejected else broken_filter(status)

    def _first_failing(self) -> RowResult:
        """Ask the Filters about the row until one fails it."""
        at, row, by_node = self._attempt, self._row, self._by_node
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
            if said is not PASSES:
                return said
        return result
