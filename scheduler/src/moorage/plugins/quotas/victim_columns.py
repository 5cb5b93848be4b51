"""The rules of elastic quotas for many rows at once: which pods may be evicted, and what holds.

Part of CapacityScheduling. Which borrowers may go is known by namespace. Row by row only the sums
differ: how much of what a namespace borrows the row's pods would give back. Tests compare with
`victims`, which asks pod by pod.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from moorage.framework.status import Status
from moorage.plugins.quotas.elastic_quotas import (
    NOTHING,
    Amounts,
    Claim,
    Usage,
    excess,
    request_of,
)
from moorage.snapshot.importance import RankedPods
from moorage.snapshot.pod_info import PodInfo

IntArray = NDArray[np.int64]
Mask = NDArray[np.bool_]

# Rows times borrowing namespaces that are looked at in one pass; a guess: 8 MiB by resource.
_CELLS_MOST: Final = 1 << 20
# More than all pods of a row request.
_NO_AMOUNT: Final = int(np.iinfo(np.int64).max)


class QuotaColumns:
    """`ColumnRules` and `WithinRules` of one preemptor.

    Parameters
    ----------
    pod, claim
        The preemptor; `claim` is None where its namespace has no quota.
    usage
        The quotas and their use; not changed.
    reclaims
        Whether borrowers must give back to the preemptor.
    refused
        The status of a row where the quotas do not hold.
    """

    def __init__(
        self, pod: PodInfo, claim: Claim | None, usage: Usage, *, reclaims: bool, refused: Status
    ) -> None:
        self._pod = pod
        self._claim = claim
        self._usage = usage
        self._reclaims = reclaims
        self._refused = refused
        self._needs = NOTHING if claim is None else self._needs_of(claim)

    # -- which pods may be evicted -------------------------------------------------------------

    def allowed(self, ranked: RankedPods, number_of: Callable[[str], int | None]) -> Mask:
        """Return bool, (rows, ranks): the pods that may be evicted together.

        Parameters
        ----------
        ranked
            The pods of the rows.
        number_of
            The number of a namespace there.
        """
        namespace, usage = ranked.namespace, self._usage
        if self._reclaims:
            borrowing = [
                each for each in usage.quotas if each != self._pod.namespace and usage.borrows(each)
            ]
            return self._giving_back(ranked, _positions(namespace, borrowing, number_of), borrowing)
        less: Mask = ranked.priority < self._pod.priority
        if self._claim is None:
            bounded = _positions(namespace, list(usage.quotas), number_of)
            return less & (bounded < 0) & (namespace >= 0)
        own = number_of(self._pod.namespace)
        return less & (namespace == own) if own is not None else np.zeros_like(less)

    def _giving_back(self, ranked: RankedPods, position: IntArray, borrowing: list[str]) -> Mask:
        """Return the pods that give back no more than is borrowed; the least important go first."""
        going = position >= 0
        if not borrowing:
            return going
        borrowed = self._borrowed(borrowing, list(ranked.requests))
        at_once = max(1, _CELLS_MOST // len(borrowing))
        for begin in range(0, len(going), at_once):
            part = slice(begin, begin + at_once)
            requests = {name: array[part] for name, array in ranked.requests.items()}
            _bound_by_use(going[part], position[part], requests, borrowed)
        return going

    def _borrowed(self, borrowing: list[str], names: list[str]) -> dict[str, IntArray]:
        """Return int64, (namespaces,): by requested resource, the use above the minimum."""
        usage = self._usage
        used = [(usage.used(each), usage.quotas[each].minimum) for each in borrowing]
        over = [dict(excess(amounts, amounts, minimum)) for amounts, minimum in used]
        return {
            name: np.array([each.get(name, 0) for each in over], np.int64)
            for name in dict.fromkeys([*names, *(name for each in over for name in each)])
        }

    # -- what must hold ------------------------------------------------------------------------

    def within(self) -> QuotaColumns:
        """Return the rules that must hold on the rows."""
        return self

    def refusal(self, relief: Mapping[str, IntArray]) -> tuple[Mask, Status] | None:
        """Return the rows where the quotas forbid the preemptor alone, and their status."""
        if self._claim is None:
            return None
        own = request_of(self._pod)
        holds = _covers(relief, self._needs_of(Claim(own, own)))
        return None if holds is None else (~holds, self._refused)

    def holds(self, relief: Mapping[str, IntArray]) -> Mask | None:
        """Return bool, (rows,): where the quotas hold, nominated pods included; None everywhere."""
        return _covers(relief, self._needs)

    def _needs_of(self, claim: Claim) -> Amounts:
        """Return what victims must give back, by resource, so that the quotas hold.

        Borrowers give nothing back to the preemptor's own quota: where its maximum is too little,
        no amount suffices.
        """
        usage = self._usage
        quota = usage.quotas[self._pod.namespace]
        of_quota = dict(quota.excess_over_max(claim.in_quota, usage.used(self._pod.namespace)))
        of_all = dict(usage.excess_over_total(claim.in_all))
        if self._reclaims:
            of_quota = dict.fromkeys(of_quota, _NO_AMOUNT)
        names = sorted(of_all.keys() | of_quota.keys())
        return {name: max(of_all.get(name, 0), of_quota.get(name, 0)) for name in names}


def _positions(
    namespace: IntArray, wanted: list[str], number_of: Callable[[str], int | None]
) -> IntArray:
    """Return int64, (rows, ranks): the position of each pod's namespace in a list; -1: absent."""
    position_of = np.full(int(namespace.max(initial=-1)) + 2, -1, np.int64)
    for position, name in enumerate(wanted):
        number = number_of(name)
        if number is not None and number < len(position_of) - 1:
            position_of[number] = position
    return position_of[namespace]  # -1, no pod, is the last entry


def _bound_by_use(
    going: Mask,
    position: IntArray,
    requests: Mapping[str, IntArray],
    borrowed: Mapping[str, IntArray],
) -> None:
    """Clear the pods of rows that would give back more than their namespaces borrow.

    A pod may go as long as its namespace still borrows some resource when the less important pods
    of the row are gone.
    """
    count = len(next(iter(borrowed.values()))) if borrowed else 0
    first_cell = np.arange(len(going)) * count
    relief = {name: np.zeros(len(going) * count, np.int64) for name in borrowed}
    for rank in range(going.shape[1] - 1, -1, -1):
        rows = going[:, rank].nonzero()[0]
        if not len(rows):
            continue
        where = position[rows, rank]
        cells = first_cell[rows] + where
        borrows = np.zeros(len(rows), np.bool_)
        for name, over in borrowed.items():
            borrows |= relief[name][cells] < over[where]
        going[rows[~borrows], rank] = False
        rows, cells = rows[borrows], cells[borrows]
        for name, array in requests.items():
            if name in relief:
                relief[name][cells] += array[rows, rank]


def _covers(relief: Mapping[str, IntArray], needs: Amounts) -> Mask | None:
    """Return bool, (rows,): where all needed amounts are given back; None for every row.

    Without a dimension, it is the same on every row.
    """
    covered: Mask | None = None
    for name, amount in needs.items():
        if name not in relief:  # no pod of any row requests it
            return np.zeros((), np.bool_)
        enough = relief[name] >= amount
        covered = enough if covered is None else covered & enough
    return covered
