"""Scores by the free shares of all nodes at once, as `scoring.least_allocated`.

Part of NodeResourcesFit, with the usual strategy. What a node has left does not depend on the pod,
so it is kept as a column for all shapes of pods.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from moorage.framework.points import MAX_NODE_SCORE, ScoreArray
from moorage.plugins.resources.derived_column import DerivedColumn
from moorage.plugins.resources.device_totals import DeviceTotals
from moorage.plugins.resources.scoring import mean_share, share_of_free
from moorage.snapshot.snapshot import Snapshot


def is_plain(snapshot: Snapshot, totals: DeviceTotals, resource: str) -> bool:
    """Whether every node offers a resource itself, in amounts that are exact in float64."""
    return (
        snapshot.everywhere(resource)
        and snapshot.exact_float(resource)
        and totals.totals_of(snapshot.all(), resource) is None
    )


class FreeShares:
    """The free amounts of every row.

    Parameters
    ----------
    snapshot, totals
        The cluster, and its devices.
    used_of
        Returns the column of used amounts of a resource.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        totals: DeviceTotals,
        used_of: Callable[[str], NDArray[np.int64]],
    ) -> None:
        self._snapshot = snapshot
        self._totals = totals
        self._used_of = used_of
        self._free: dict[str, DerivedColumn[np.float64]] = {}

    def score(self, terms: Sequence[tuple[str, int, int]]) -> ScoreArray | None:
        """Return int64, (n,): the mean of free shares; None where a resource is not plain.

        Parameters
        ----------
        terms
            (resource, weight, request) of the scored resources.
        """
        snapshot = self._snapshot
        shares = []
        for resource, weight, request in terms:
            if not is_plain(snapshot, self._totals, resource):
                return None
            free = self._free_of(resource) - float(request * MAX_NODE_SCORE)
            shares.append((weight, share_of_free(free, snapshot.allocatable_float(resource))))
        return mean_share(shares, snapshot.num_nodes)

    def _free_of(self, resource: str) -> NDArray[np.float64]:
        """Return float64, (n,): what every row has left of a resource, times 100."""
        column = self._free.get(resource)
        if column is None:
            column = self._free[resource] = self._column(resource)
        return column.read()

    def _column(self, resource: str) -> DerivedColumn[np.float64]:
        capacity_of, used_of = self._snapshot.allocatable, self._used_of

        def free() -> NDArray[np.float64]:
            left = (capacity_of(resource) - used_of(resource)).astype(np.float64)
            left *= MAX_NODE_SCORE
            return left

        def free_of(row: int) -> float:
            left: int = capacity_of(resource).item(row) - used_of(resource).item(row)
            return float(left * MAX_NODE_SCORE)

        return DerivedColumn(self._snapshot.table, free, free_of)
