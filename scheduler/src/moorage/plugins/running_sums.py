"""Count columns summed over groups of rows, kept up to date by the rows that changed.

Plugins that compare topology domains use these sums. Each placed replica changes one row, so an
update costs one row, not a pass over the cluster.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

import numpy as np
from numpy.typing import NDArray

from moorage.snapshot.pod_columns import CountKey
from moorage.snapshot.snapshot import Snapshot

Sums = NDArray[np.int64]

_SUMS_MAX: Final = 128  # number of sums; a guess: at most 80 kB each at 5000 nodes, each a domain
_ROWS_A_PASS: Final = 16  # one changed row costs about a sixteenth of a pass over 5000; a guess


class Places:
    """The group of each row; compared by identity, because it is valid for one set of nodes.

    Parameters
    ----------
    place_n
        int64, (n,): group of each row, below `size`; `size` itself and -1 are the last entry.
    size
        Number of groups, without the last entry.
    counted_n
        bool, (n,): counted rows; None for all rows.
    """

    __slots__ = ("_places", "counted_n", "place_n", "rows", "size")

    def __init__(
        self, place_n: NDArray[np.int64], size: int, counted_n: NDArray[np.bool_] | None
    ) -> None:
        if counted_n is not None and counted_n.all():
            counted_n = None
        self.place_n, self.size, self.counted_n = place_n, size, counted_n
        self.rows = None if counted_n is None else np.flatnonzero(counted_n)
        self._places = place_n if self.rows is None else place_n[self.rows]

    @property
    def counted_places(self) -> NDArray[np.int64]:
        """int64: the group of each counted row."""
        return self._places

    def sums(self, count_n: NDArray[np.int64]) -> Sums:
        """Return int64, (size + 1,): sums of a column by group; exact below 2**53."""
        counted = count_n if self.rows is None else count_n[self.rows]
        return np.bincount(self._places, counted, self.size + 1).astype(np.int64)


class _RunningSum:
    __slots__ = ("position", "seen_n", "total_d")

    def __init__(self, total_d: Sums, seen_n: NDArray[np.int64], position: int) -> None:
        self.total_d = total_d
        self.seen_n = seen_n
        self.position = position


class RunningSums:
    """Sums by group of the recently used count columns.

    Parameters
    ----------
    snapshot
        The cluster.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._sums: OrderedDict[tuple[Places, CountKey], _RunningSum] = OrderedDict()

    def sums_of(self, places: Places, count: CountKey) -> Sums:
        """Return int64, (places.size + 1,): pods by group; the caller must not change the array.

        The array itself never changes: after pods have moved, the result is another array.

        Parameters
        ----------
        places
            The groups of the current nodes.
        count
            Key of the counted pods.
        """
        count_n = self._snapshot.count_column(count)
        position = self._snapshot.table.pod_log.position
        key = (places, count)
        entry = self._sums.get(key)
        if entry is None:
            entry = self._sums[key] = _RunningSum(places.sums(count_n), count_n.copy(), position)
            if len(self._sums) > _SUMS_MAX:
                self._sums.popitem(last=False)
            return entry.total_d
        self._sums.move_to_end(key)
        if entry.position != position:
            self._follow(entry, places, count_n)
            entry.position = position
        return entry.total_d

    def _follow(self, entry: _RunningSum, places: Places, count_n: NDArray[np.int64]) -> None:
        changed = self._snapshot.table.pod_log.since(entry.position)
        if changed is None or len(changed) * _ROWS_A_PASS > len(count_n):
            entry.total_d, entry.seen_n = places.sums(count_n), count_n.copy()
            return
        seen_n, counted_n = entry.seen_n, places.counted_n
        total_d: Sums | None = None
        for row in changed:
            step = count_n.item(row) - seen_n.item(row)
            if step == 0:
                continue
            seen_n[row] += step
            if counted_n is None or counted_n[row]:
                if total_d is None:  # earlier callers keep the old array unchanged
                    total_d = entry.total_d.copy()
                total_d[places.place_n[row]] += step
        if total_d is not None:
            entry.total_d = total_d
