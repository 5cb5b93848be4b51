"""Which rows have a pod that a function selects: the lowest priority of such a pod, by row.

For preemption, which may take pods of lower priority off a row. A row is looked at when it is first
asked for, and again when a pod came, went or changed.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.table import NodeTable

_NO_POD = np.iinfo(np.int64).max  # no priority is lower


class SelectedPods:
    """The pods of a table that a function selects, row by row.

    Parameters
    ----------
    table
        The pods by row. Not to be used while a trial is open.
    selects
        Whether a pod is selected; the answer about a pod never changes.
    """

    def __init__(self, table: NodeTable, selects: Callable[[PodInfo], bool]) -> None:
        self._table = table
        self._selects = selects
        self._structure = -1
        self._position = 0
        self._lowest_n = np.empty(0, np.int64)
        self._stale_n = np.empty(0, np.bool_)

    def below(self, rows: NDArray[np.int64], priority: int) -> NDArray[np.bool_]:
        """Return bool, (rows,): whether a row has a selected pod of lower priority."""
        self._follow()
        for row in rows[self._stale_n[rows]].tolist():
            pods = self._table.pods_by_row[row].values()
            priorities = [pod.priority for pod in pods if self._selects(pod)]
            self._lowest_n[row] = min(priorities, default=_NO_POD)
            self._stale_n[row] = False
        found: NDArray[np.bool_] = self._lowest_n[rows] < priority
        return found

    def _follow(self) -> None:
        table, log = self._table, self._table.pod_log
        if self._structure != table.columns.structure:
            self._structure = table.columns.structure
            self._lowest_n = np.full(table.columns.n, _NO_POD, np.int64)
            self._stale_n = np.ones(table.columns.n, np.bool_)
        elif self._position != log.position:
            changed = log.since(self._position)
            self._stale_n[slice(None) if changed is None else changed] = True
        self._position = log.position
