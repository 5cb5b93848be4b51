"""Nominated pods as sums by row, kept by what changed: thousands may wait for room at once.

A wave of preemptors nominates as many nodes; adding all of them up for each attempt would make the
wave cost its square. One set of sums is kept for each priority that was asked about.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from moorage.snapshot.key_log import KeyLog
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.shape import RESOURCES
from moorage.snapshot.table import NodeTable

IntArray = NDArray[np.int64]

# Priorities that sums are kept for; a guess, more than a cluster has classes.
_LEVELS_MOST = 16


class NominatedSums:
    """What nominated pods would add to the sums of some rows.

    Attributes
    ----------
    rows
        int64, ascending.
    amounts
        By resource, int64, (rows,).
    pods
        int64, (rows,): their number.
    """

    __slots__ = ("_n", "_position_n", "amounts", "pods", "rows")

    def __init__(
        self, rows: IntArray, amounts: dict[str, IntArray], pods: IntArray, *, n: int
    ) -> None:
        self.rows = rows
        self.amounts = amounts
        self.pods = pods
        self._n = n
        self._position_n: IntArray | None = None

    def among(self, rows: IntArray) -> tuple[IntArray, NominatedSums]:
        """Return where in some rows there are such pods, and the sums of just those rows.

        Parameters
        ----------
        rows
            int64, each row at most once, in any order.
        """
        if self._position_n is None:
            self._position_n = np.full(self._n, -1, np.int64)
            self._position_n[self.rows] = np.arange(len(self.rows))
        found = self._position_n[rows]
        positions = np.flatnonzero(found >= 0)
        mine = found[positions]
        amounts = {name: array[mine] for name, array in self.amounts.items()}
        return positions, NominatedSums(rows[positions], amounts, self.pods[mine], n=self._n)


class _Level:
    """Sums of the nominated pods of one priority or more, over all rows."""

    __slots__ = ("amounts", "count_n")

    def __init__(self, n: int) -> None:
        self.count_n = np.zeros(n, np.int64)
        self.amounts: dict[str, IntArray] = {}

    def put(self, row: int, pods: Sequence[PodInfo]) -> None:
        self.count_n[row] = len(pods)
        for array in self.amounts.values():
            array[row] = 0
        for pod in pods:
            for name, amount in pod.part(RESOURCES).value.balanced.items():
                if name not in self.amounts:
                    self.amounts[name] = np.zeros_like(self.count_n)
                self.amounts[name][row] += amount


class NominatedRows:
    """The nominated pods of a table's rows.

    Parameters
    ----------
    table
        Tells which pods are on a node already: those are nominated no more.
    """

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._source: Mapping[str, Sequence[PodInfo]] | None = None
        self._structure = -1
        self._positions = (0, 0)
        self._pods: dict[str, tuple[PodInfo, ...]] = {}
        self._where: dict[str, str] = {}
        self._placed: dict[str, None] = {}
        self._levels: dict[int, _Level] = {}

    def before(
        self,
        pod: PodInfo,
        nominations: Mapping[str, Sequence[PodInfo]],
        changed: KeyLog[str] | None,
    ) -> NominatedSums:
        """Return the sums of the nominated pods that a pod has to leave room for.

        Those are of equal or higher priority, not the pod itself, and not on a node already.

        Parameters
        ----------
        nominations
            Pods by the name of the node they are nominated to.
        changed
            Names of nodes whose pods changed; None where that is not known.
        """
        self._follow(nominations, changed)
        level = self._level(pod.priority)
        count_n = level.count_n
        own = self._row_of(self._where.get(pod.uid, ""))
        if own is not None:
            # Taken out for this once, and put back below: everybody else has to leave it room.
            others = [each for each in self._first(own[1], pod.priority) if each.uid != pod.uid]
            level.put(own[0], others)
        rows = np.flatnonzero(count_n)
        nothing = np.zeros(len(rows), np.int64)
        amounts = {
            name: level.amounts[name][rows] if name in level.amounts else nothing
            for name, amount in pod.part(RESOURCES).value.filter.items()
            if amount
        }
        found = NominatedSums(rows, amounts, count_n[rows], n=len(count_n))
        if own is not None:
            level.put(own[0], self._first(own[1], pod.priority))
        return found

    # -- keeping up ----------------------------------------------------------------------------

    def _follow(
        self, nominations: Mapping[str, Sequence[PodInfo]], changed: KeyLog[str] | None
    ) -> None:
        table = self._table
        rows = table.pod_log.since(self._positions[1])
        names = None if changed is None else changed.since(self._positions[0])
        known = nominations is self._source and self._structure == table.columns.structure
        self._source, self._structure = nominations, table.columns.structure
        self._positions = (0 if changed is None else changed.position, table.pod_log.position)
        if not known or rows is None or names is None:
            self._reset(nominations)
            return
        due = dict.fromkeys(names)
        for uid in (*self._placed, *self._arrived(rows)):
            due[self._where[uid]] = None
        for name in due:
            self._refresh(name, tuple(nominations.get(name, ())))

    def _arrived(self, rows: Sequence[int]) -> list[str]:
        by_row = self._table.pods_by_row
        return [uid for row in rows for uid in by_row[row] if uid in self._where]

    def _reset(self, nominations: Mapping[str, Sequence[PodInfo]]) -> None:
        self._pods, self._where, self._placed, self._levels = {}, {}, {}, {}
        for name, pods in nominations.items():
            self._refresh(name, tuple(pods))

    def _refresh(self, name: str, pods: tuple[PodInfo, ...]) -> None:
        for old in self._pods.pop(name, ()):
            if self._where.get(old.uid) == name:
                del self._where[old.uid]
                self._placed.pop(old.uid, None)
        if pods:
            self._pods[name] = pods
        for pod in pods:
            self._where[pod.uid] = name
            if self._table.node_of_pod(pod.uid) is not None:
                self._placed[pod.uid] = None
        at = self._row_of(name)
        row = self._table.row_of(name) if at is None else at[0]
        if row is not None:
            for priority, level in self._levels.items():
                level.put(row, self._first(pods, priority))

    def _level(self, priority: int) -> _Level:
        found = self._levels.get(priority)
        if found is None:
            if len(self._levels) >= _LEVELS_MOST:
                self._levels.clear()
            found = self._levels[priority] = _Level(self._table.columns.n)
            for name, pods in self._pods.items():
                row = self._table.row_of(name)
                if row is not None and (first := self._first(pods, priority)):
                    found.put(row, first)
        return found

    def _row_of(self, name: str) -> tuple[int, tuple[PodInfo, ...]] | None:
        pods = self._pods.get(name)
        row = None if pods is None else self._table.row_of(name)
        return None if row is None or pods is None else (row, pods)

    def _first(self, pods: Sequence[PodInfo], priority: int) -> list[PodInfo]:
        return [each for each in pods if each.priority >= priority and each.uid not in self._placed]
