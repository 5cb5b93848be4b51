"""The pods of each row by importance, as arrays: whom preemption would take first, last.

Row by row and rank by rank: priority, start and requests. A row is compiled when it is first
asked for, and again when a pod came, went or changed.

Rules mirrored: kubernetes v1.36 ``pkg/scheduler/util`` ``MoreImportantPod``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from operator import itemgetter

import msgspec
import numpy as np
from numpy.typing import NDArray

from moorage.base.clock import parse_rfc3339
from moorage.snapshot.key_log import KeyLog
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.shape import RESOURCES
from moorage.snapshot.table import NodeTable
from moorage.snapshot.view import as_index

NOT_STARTED = np.iinfo(np.int64).max
"""Start of a pod that has none: it counts as started now, after every other."""

_NO_POD = np.iinfo(np.int64).max  # priority where a row has no pod of this rank: never lower
_FIRST_RANKS = 8

_lowered_priority_and_start = itemgetter(0, 1)

RankArray = NDArray[np.int64]
Rows = NDArray[np.int64]


@lru_cache(maxsize=65536)
def _parsed_ns(text: str) -> int:
    try:
        return parse_rfc3339(text)
    except ValueError:
        return int(NOT_STARTED)


def start_ns(pod: PodInfo) -> int:
    """Return when a pod was started, nanoseconds, or `NOT_STARTED`.

    A time that cannot be read tells nothing; it must not keep others from being looked at.
    """
    text = pod.pod.status.start_time
    return int(NOT_STARTED) if text is None else _parsed_ns(text)


class RankedPods(msgspec.Struct, frozen=True):
    """Some rows' pods, most important first; arrays are int64, (rows, ranks).

    Parameters
    ----------
    priority
        The greatest int64 where a row has no pod of this rank.
    start_ns
        Nanoseconds, or `NOT_STARTED`.
    requests
        By resource, in the units of the columns; a resource no pod requests is missing.
    """

    priority: RankArray
    start_ns: RankArray
    requests: Mapping[str, RankArray]


class Importance:
    """The pods of a table by rank, kept row by row.

    Parameters
    ----------
    table
        The pods by row. Not to be asked while a trial is open.
    """

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._structure = -1
        self._positions = (0, 0)
        self._names_structure = -1
        self._name_ranks = np.empty(0, np.int64)
        self._reset(0)

    def take(self, rows: Rows) -> RankedPods:
        """Return the ranks of these rows, in this order; good until a row is taken again."""
        self._follow()
        for row in rows[self._stale[rows]].tolist():
            self._fill(row, self._ranked(row))
        index = as_index(rows)
        ranks = int(self._count[index].max(initial=0))
        return RankedPods(
            self._priority[index, :ranks],
            self._start[index, :ranks],
            {name: array[index, :ranks] for name, array in self._requests.items()},
        )

    def name_ranks(self) -> Rows:
        """Return int64, (n,): the place of each row's node in the order of names."""
        if self._names_structure != self._table.columns.structure:
            self._names_structure = self._table.columns.structure
            # By code point, which is the order of bytes as well.
            names = list(self._table.names)
            self._name_ranks = np.empty(len(names), np.int64)
            self._name_ranks[sorted(range(len(names)), key=names.__getitem__)] = np.arange(
                len(names)
            )
        return self._name_ranks

    def pods(self, row: int) -> tuple[PodInfo, ...]:
        """Return a row's pods by rank, as last taken."""
        return self._pods[row]

    def take_row(self, row: int) -> tuple[PodInfo, ...]:
        """Return a row's pods by rank."""
        self._follow()
        return self._ranked(row)

    def _follow(self) -> None:
        table = self._table
        logs = (table.pod_log, table.version_log)
        if self._structure != table.columns.structure:
            self._structure = table.columns.structure
            self._reset(table.columns.n)
        else:
            for log, position in zip(logs, self._positions, strict=True):
                self._mark(log, position)
        self._positions = (logs[0].position, logs[1].position)

    def _mark(self, log: KeyLog[int], position: int) -> None:
        changed = log.since(position)
        if changed is None:
            self._stale[:] = True
            self._unranked[:] = True
        elif changed:
            self._stale[changed] = True
            self._unranked[changed] = True

    def _reset(self, rows: int) -> None:
        self._ranks = _FIRST_RANKS
        # Rows whose pods are to be ranked anew, and those whose arrays are not of these ranks.
        self._unranked = np.ones(rows, np.bool_)
        self._stale = np.ones(rows, np.bool_)
        self._count = np.zeros(rows, np.int64)
        self._priority = np.full((rows, self._ranks), _NO_POD, np.int64)
        self._start = np.full((rows, self._ranks), NOT_STARTED, np.int64)
        self._requests: dict[str, RankArray] = {}
        self._pods: list[tuple[PodInfo, ...]] = [()] * rows

    def _ranked(self, row: int) -> tuple[PodInfo, ...]:
        if self._unranked[row]:
            pods = [(-p.priority, start_ns(p), p) for p in self._table.pods_by_row[row].values()]
            # Stable: equals stay in the row's order, and in reverse of it where they are not
            # started, as if each had started at the moment it is looked at.
            late = [each for each in pods if each[1] == NOT_STARTED]
            pods = [each for each in pods if each[1] != NOT_STARTED] + late[::-1]
            pods.sort(key=_lowered_priority_and_start)
            self._pods[row] = tuple([pod for _, _, pod in pods])
            self._unranked[row] = False
        return self._pods[row]

    def _fill(self, row: int, pods: Sequence[PodInfo]) -> None:
        if len(pods) > self._ranks:
            self._widen(len(pods))
        self._priority[row] = _NO_POD
        self._count[row] = len(pods)
        for array in self._requests.values():
            array[row] = 0
        for rank, pod in enumerate(pods):
            self._priority[row, rank] = pod.priority
            self._start[row, rank] = start_ns(pod)
            for name, amount in pod.part(RESOURCES).value.balanced.items():
                if amount:
                    self._of(name)[row, rank] = amount
        self._stale[row] = False

    def _of(self, resource: str) -> RankArray:
        found = self._requests.get(resource)
        if found is None:
            found = self._requests[resource] = np.zeros_like(self._priority)
        return found

    def _widen(self, ranks: int) -> None:
        more = max(ranks, 2 * self._ranks) - self._ranks
        self._ranks += more

        def wider(array: RankArray, fill: int) -> RankArray:
            return np.pad(array, ((0, 0), (0, more)), constant_values=fill)

        self._priority = wider(self._priority, int(_NO_POD))
        self._start = wider(self._start, int(NOT_STARTED))
        self._requests = {name: wider(array, 0) for name, array in self._requests.items()}
