"""The scalar trial: pods are tried on one row as numbers; the cluster does not change.

For the frequent case that one or two rows must be tried for the next preemptor.
"""

from __future__ import annotations

from collections.abc import Mapping

from moorage.engine.attempt import Attempt
from moorage.engine.filters.filter_results import PASSES, result_status
from moorage.engine.filters.nominated import judge_row
from moorage.engine.filters.tally import PASSED, RowResult
from moorage.framework.status import SUCCESS, Status
from moorage.framework.what_if import TakesArraysError
from moorage.snapshot.shifted import RowSums


class ScalarTrial:
    """`SumsTrial` over numbers of its own.

    Parameters
    ----------
    attempt, row
        The attempt, and the row.
    by_sums
        Indexes of the Filters that read sums.
    by_node
        The filter result of the Filters that read the node alone.
    nominated
        Sums of the pods nominated to the row first; None where there are none.
    """

    __slots__ = (
        "_amounts",
        "_attempt",
        "_by_node",
        "_by_sums",
        "_nominated",
        "_pods",
        "_row",
        "_soonest",
    )

    def __init__(
        self,
        attempt: Attempt,
        row: int,
        by_sums: tuple[int, ...],
        *,
        by_node: RowResult,
        nominated: RowSums | None,
    ) -> None:
        self._attempt = attempt
        self._row = row
        self._by_sums = by_sums
        self._soonest = by_sums[0] if by_sums else PASSED
        self._by_node = by_node
        self._nominated = nominated
        self._amounts: dict[str, int] = {}
        self._pods = 0

    def shift(self, amounts: Mapping[str, int], pods: int) -> None:
        """Add to the sums."""
        mine = self._amounts
        for name, amount in amounts.items():
            mine[name] = mine.get(name, 0) + amount
        self._pods += pods

    def judge(self) -> Status:
        """Run every Filter on the row as it is now.

        Raises
        ------
        TakesArraysError
            A Filter could not be asked in scalars.
        """
        found = self._result()
        return SUCCESS if found is PASSES else result_status(self._attempt.profile, found)

    def put_back(self, amounts: Mapping[str, int]) -> bool:
        """Put a pod back if the row still passes with the pod; return whether it does.

        Raises
        ------
        TakesArraysError
            A Filter could not be asked in scalars.
        """
        self.shift(amounts, 1)
        if self._result() is PASSES:
            return True
        self.shift({name: -amount for name, amount in amounts.items()}, -1)
        return False

    def _result(self) -> RowResult:
        """Return the result next to nominated pods if it fails as early, else that without."""
        mine, beside, by_node = self._amounts, self._nominated, self._by_node
        first = PASSES
        if beside is not None:
            both = dict(mine)
            for name, amount in beside.amounts.items():
                both[name] = both.get(name, 0) + amount
            first = self._run_filters(RowSums(both, self._pods + beside.pods))
            if first[0] == self._soonest:  # no Filter fails sooner without these pods
                return first if first[0] <= by_node[0] else by_node
        found = min(by_node, self._run_filters(RowSums(mine, self._pods)))
        return first if first is not PASSES and first[0] <= found[0] else found

    def _run_filters(self, more: RowSums) -> RowResult:
        """Ask the Filters that read sums about the row with more amounts."""
        found = judge_row(self._attempt, self._by_sums, self._row, more)
        if found is None:
            raise TakesArraysError
        return found
