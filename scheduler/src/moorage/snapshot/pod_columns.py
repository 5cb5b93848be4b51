"""Bound pods as columns, and counts of matching pods by node.

A constraint asks how many pods of some namespaces that match a selector are on each node. This
*count column* is built by one bincount when it is first asked for and then kept by increments.
There is never a matrix of label sets times nodes: StatefulSets give every pod a label set of its
own. A pod that comes or goes looks only at the columns whose selectors its labels may match. A new
column looks only at the label sets its selector may match.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import numpy as np
from numpy.typing import NDArray

from moorage.api.selectors import Selector
from moorage.snapshot.columns import Columns
from moorage.snapshot.interning import LabelSets
from moorage.snapshot.selector_index import SelectorIndex

_FIRST_CAPACITY = 256
_FREE = -1
_FEW = 8  # up to this number, label sets are looked up one by one; above, all at once


class CountKey(msgspec.Struct, frozen=True, cache_hash=True):
    """The pods that a count column counts.

    Parameters
    ----------
    selector
        Compiled label selector of the pods.
    namespaces
        The namespaces counted; None means all.
    live_only
        Leave out pods that have a deletionTimestamp (spread does, affinity does not).
    """

    selector: Selector
    namespaces: frozenset[str] | None
    live_only: bool


class _Count:
    __slots__ = ("column", "key", "last_use")

    def __init__(self, key: CountKey, column: tuple[str, int]) -> None:
        self.key = key
        self.column = column
        self.last_use = 0

    def means(self, namespace: str, labels: Mapping[str, str], *, live: bool) -> bool:
        """Whether a pod is counted."""
        key = self.key
        return (
            (live or not key.live_only)
            and (key.namespaces is None or namespace in key.namespaces)
            and key.selector.matches(labels)
        )


class PodColumns:
    """The pod table: row of the node, label set, liveness; one slot a pod.

    Parameters
    ----------
    columns
        Node columns; count columns are added to them.
    """

    # How many count columns are kept, and after how many requests without use one is dropped:
    # guesses, wide enough that a roll-out's old keys go and everyday ones stay. Never more than
    # _MOST (20 MB at 5000 nodes), however many selectors are asked about at once.
    _KEEP = 64
    _IDLE = 10_000
    _MOST = 512

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._row = np.full(_FIRST_CAPACITY, _FREE, np.int64)
        self._label_set = np.full(_FIRST_CAPACITY, _FREE, np.int64)
        self._live = np.zeros(_FIRST_CAPACITY, np.bool_)
        self._see_cells()
        self._free = list(range(_FIRST_CAPACITY - 1, -1, -1))
        self._slots: dict[str, int] = {}
        self._label_sets = LabelSets()
        self._counts: dict[CountKey, _Count] = {}  # least recently used first
        self._by_selector: SelectorIndex[_Count] = SelectorIndex()
        self._next_count = 0
        self._uses = 0

    def add(
        self, uid: str, row: int, namespace: str, labels: Mapping[str, str], *, live: bool
    ) -> None:
        """Put a pod on a row."""
        if not self._free:
            self._grow()
        slot = self._slots[uid] = self._free.pop()
        label_set = self._label_sets.use(namespace, labels)
        self._row_cells[slot], self._label_set_cells[slot] = row, label_set
        self._live_cells[slot] = live
        if self._counts:
            self._count(slot, +1)

    def remove(self, uid: str) -> None:
        """Take a pod off its row."""
        slot = self._slots.pop(uid)
        if self._counts:
            self._count(slot, -1)
        self._label_sets.release(self._label_set_cells[slot])
        self._row_cells[slot] = self._label_set_cells[slot] = _FREE
        self._free.append(slot)

    def move(self, uid: str, row: int) -> None:
        """Note that a pod's node has a new row number; count columns moved with the row."""
        self._row_cells[self._slots[uid]] = row

    def counts(self, key: CountKey) -> NDArray[np.int64]:
        """Return int64, (n,): matching pods on each row, read-only."""
        self._uses += 1
        cached = self._counts.pop(key, None)
        if cached is None:
            self._drop_idle()
            cached = self._build(key)
        self._counts[key] = cached
        cached.last_use = self._uses
        return self._columns.view(cached.column)

    @property
    def count_keys(self) -> tuple[CountKey, ...]:
        """The keys of the count columns kept now."""
        return tuple(self._counts)

    def _build(self, key: CountKey) -> _Count:
        count = _Count(key, ("count", self._next_count))
        self._next_count += 1
        self._by_selector.add(count, key.selector, key.namespaces)
        array = self._columns.ensure(count.column)
        slots = self._slots_of(self._label_sets.matching(key.selector, key.namespaces))
        if key.live_only:
            slots = slots[self._live[slots]]
        if len(slots):
            array[: self._columns.n] = np.bincount(self._row[slots], minlength=self._columns.n)
        return count

    def _slots_of(self, label_sets: list[int]) -> NDArray[np.int64]:
        """Return the slots of all pods that have one of these label sets."""
        if not label_sets:
            return np.zeros(0, np.int64)
        if len(label_sets) <= _FEW:
            return np.concatenate([np.flatnonzero(self._label_set == one) for one in label_sets])
        matching = np.zeros(self._label_sets.size + 1, np.bool_)  # the last is for free slots
        matching[label_sets] = True
        return np.flatnonzero(matching[self._label_set])

    def _count(self, slot: int, step: int) -> None:
        namespace, labels = self._label_sets.item(self._label_set_cells[slot])
        row, live = self._row_cells[slot], bool(self._live_cells[slot])
        for count in self._by_selector.candidates(namespace, labels):
            if count.means(namespace, labels, live=live):
                self._columns.ensure(count.column)[row] += step

    def _drop_idle(self) -> None:
        if len(self._counts) < self._KEEP:
            return
        while self._counts:
            key, count = next(iter(self._counts.items()))
            idle = self._uses - count.last_use > self._IDLE
            if not idle and len(self._counts) < self._MOST:
                return
            del self._counts[key]
            self._by_selector.remove(count, key.selector, key.namespaces)
            self._columns.drop(count.column)

    def _grow(self) -> None:
        old = len(self._row)
        self._row = np.concatenate([self._row, np.full(old, _FREE, np.int64)])
        self._label_set = np.concatenate([self._label_set, np.full(old, _FREE, np.int64)])
        self._live = np.concatenate([self._live, np.zeros(old, np.bool_)])
        self._see_cells()
        self._free = list(range(2 * old - 1, old - 1, -1))

    def _see_cells(self) -> None:
        """Make cell-by-cell views of the arrays, because NumPy is slow at single cells."""
        self._row_cells = self._row.data
        self._label_set_cells = self._label_set.data
        self._live_cells = self._live.data
