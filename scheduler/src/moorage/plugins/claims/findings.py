"""The allocations that one attempt found, by row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from moorage.api.devices import AllocationResult
from moorage.plugins.claims.devices.requests import Demand
from moorage.plugins.claims.devices.search import Solution
from moorage.plugins.claims.extended import NodeClaim

RowArray = NDArray[np.int64]
NumberArray = NDArray[np.int32]

_NONE = -1
SUB_REQUESTS_MOST = 8
"""Greatest number of alternatives of a request (kubernetes v1.36 ``api/resource/v1``)."""


class ClaimDemands(NamedTuple):
    """The claims to allocate on some nodes, compiled."""

    special: NodeClaim | None
    """The special claim on these nodes; None without such a claim."""
    demands: Sequence[Demand]


class OnNode(NamedTuple):
    """The allocations for unallocated claims on one node, and the special claim on that node."""

    results: Sequence[AllocationResult] = ()
    special: NodeClaim | None = None


class _Batch(NamedTuple):
    """The solutions of one call of Filter, by number."""

    claim_demands: ClaimDemands
    solutions: Mapping[int, Solution]


class Findings:
    """The rows that passed Filter, with the solution of each.

    Rows are good until the next change of the table, so an attempt must not await between Filter
    and Reserve.

    Parameters
    ----------
    rows
        Number of rows of the table.
    build
        Returns the allocations that a solution means on a row.
    """

    def __init__(
        self, rows: int, build: Callable[[int, ClaimDemands, Solution], list[AllocationResult]]
    ) -> None:
        self._build = build
        self._batch_n = np.full(rows, _NONE, np.int32)
        self._number_n = np.zeros(rows, np.int32)
        self._batches: list[_Batch] = []

    def passed(
        self,
        rows: RowArray,
        demands: ClaimDemands,
        solutions: Mapping[int, Solution],
        number_n: NumberArray,
    ) -> None:
        """Note rows that passed, with the number of each row's solution.

        Parameters
        ----------
        rows
            int64, (k,).
        demands
            The claims that the rows have to serve.
        solutions
            Solutions by number; empty if there is no claim to allocate.
        number_n
            int32, (k,).
        """
        last = self._batches[-1] if self._batches else None
        if last is None or last.claim_demands is not demands or last.solutions is not solutions:
            self._batches.append(_Batch(demands, solutions))
        self._batch_n[rows] = len(self._batches) - 1
        self._number_n[rows] = number_n

    def rejected(self, rows: RowArray) -> None:
        """Note rows that did not pass."""
        self._batch_n[rows] = _NONE

    def on(self, row: int) -> OnNode | None:
        """Return the allocations on a row; None for a row that did not pass."""
        index = self._batch_n.item(row)
        if index == _NONE:
            return None
        batch = self._batches[index]
        solution = batch.solutions.get(self._number_n.item(row))
        results = () if solution is None else self._build(row, batch.claim_demands, solution)
        return OnNode(results, batch.claim_demands.special)

    def scores(self, rows: RowArray, more: int) -> NDArray[np.int64]:
        """Return int64, (k,): the scores of rows for requests with alternatives.

        The first alternative is worth 8 points, the next 7, and so on.

        Parameters
        ----------
        rows
            int64, (k,).
        more
            Points to add on each row that passed.
        """
        batch_n = self._batch_n[rows]
        score_n = np.where(batch_n == _NONE, 0, np.int64(more))
        for index, batch in enumerate(self._batches):
            if not any(demand.has_alternatives for demand in batch.claim_demands.demands):
                continue
            here = (batch_n == index).nonzero()[0]
            numbers, at = np.unique(self._number_n[rows[here]], return_inverse=True)
            points = [_points(batch.solutions.get(number)) for number in numbers.tolist()]
            score_n[here] += np.array(points, np.int64)[at]
        return score_n


def _points(solution: Solution | None) -> int:
    """Return the points for the chosen alternatives."""
    return sum(
        SUB_REQUESTS_MOST - index
        for claim in (() if solution is None else solution.chosen)
        for index in claim
        if index is not None
    )
