"""Bound pods as columns, and counts of matching pods by node.

A constraint asks how many pods of some namespaces that match a selector are on each node. Such a
*count column* is built by one bincount when it is first asked for and then kept by increments.
There is never a matrix of label sets times nodes: StatefulSets give every pod a label set of its
own.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import numpy as np
from numpy.typing import NDArray

from moorage.api.selectors import Selector
from moorage.snapshot.columns import Columns
from moorage.snapshot.interning import LabelSets

_FIRST_CAPACITY = 256
_FREE = -1
_UNKNOWN = -1  # a label set nobody has held against the selector yet


class CountKey(msgspec.Struct, frozen=True):
    """What a count column counts.

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
    __slots__ = ("column", "last_use", "matches")

    def __init__(self, column: tuple[str, int]) -> None:
        self.column = column
        # int8 by label set id: one byte, because every indexed pod has a label set of its own.
        self.matches = np.full(0, _UNKNOWN, np.int8)
        self.last_use = 0

    def reach(self, size: int) -> NDArray[np.int8]:
        """Return `matches`, long enough for ids below a size."""
        if len(self.matches) < size:
            wider = np.full(max(size, 2 * len(self.matches)), _UNKNOWN, np.int8)
            wider[: len(self.matches)] = self.matches
            self.matches = wider
        return self.matches


class PodColumns:
    """The pod table: row of the node, label set, liveness; one slot a pod.

    Parameters
    ----------
    columns
        Node columns; count columns are added to them.
    """

    # How many count columns are kept, and how many requests one may sleep through before it is
    # dropped: guesses, wide enough that a roll-out's old keys go and everyday ones stay. Never
    # more than _MOST (20 MB at 5000 nodes), however many selectors are asked about at once.
    _KEEP = 64
    _IDLE = 10_000
    _MOST = 512

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._row = np.full(_FIRST_CAPACITY, _FREE, np.int64)
        self._label_set = np.zeros(_FIRST_CAPACITY, np.int64)
        self._live = np.zeros(_FIRST_CAPACITY, np.bool_)
        self._free = list(range(_FIRST_CAPACITY - 1, -1, -1))
        self._slots: dict[str, int] = {}
        self._label_sets = LabelSets()
        self._counts: dict[CountKey, _Count] = {}
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
        self._row[slot], self._label_set[slot], self._live[slot] = row, label_set, live
        self._count(slot, +1)

    def remove(self, uid: str) -> None:
        """Take a pod off its row."""
        slot = self._slots.pop(uid)
        self._count(slot, -1)
        gone = self._label_sets.release(int(self._label_set[slot]))
        if gone is not None:
            for count in self._counts.values():
                if gone < len(count.matches):
                    count.matches[gone] = _UNKNOWN
        self._row[slot] = _FREE
        self._free.append(slot)

    def move(self, uid: str, row: int) -> None:
        """Note that a pod's node has a new row number; count columns moved with the row."""
        self._row[self._slots[uid]] = row

    def counts(self, key: CountKey) -> NDArray[np.int64]:
        """Return int64, (n,): matching pods on each row, read-only."""
        self._uses += 1
        found = self._counts.get(key)
        if found is None:
            self._drop_idle()
            found = self._counts[key] = self._build(key)
        found.last_use = self._uses
        return self._columns.view(found.column)

    @property
    def count_columns(self) -> int:
        """How many count columns are kept right now."""
        return len(self._counts)

    def copy(self, columns: Columns) -> PodColumns:
        """Return the same table over copied node columns."""
        twin = PodColumns(columns)
        twin._row, twin._label_set = self._row.copy(), self._label_set.copy()
        twin._live, twin._free = self._live.copy(), self._free[:]
        twin._slots, twin._label_sets = dict(self._slots), self._label_sets.copy()
        twin._next_count, twin._uses = self._next_count, self._uses
        for key, count in self._counts.items():
            kept = twin._counts[key] = _Count(count.column)
            kept.matches, kept.last_use = count.matches.copy(), count.last_use
        return twin

    def _build(self, key: CountKey) -> _Count:
        count = _Count(("count", self._next_count))
        self._next_count += 1
        array = self._columns.ensure(count.column)
        used = self._row != _FREE
        if key.live_only:
            used = used & self._live
        matching = np.zeros(self._label_sets.size + 1, np.bool_)  # free slots say 0, in use or not
        for label_set in self._label_sets.live():
            matching[label_set] = self._matches(key, count, label_set)
        rows = self._row[used & matching[self._label_set]]
        array[: self._columns.n] = np.bincount(rows, minlength=self._columns.n)
        return count

    def _count(self, slot: int, step: int) -> None:
        label_set, row = int(self._label_set[slot]), int(self._row[slot])
        live = bool(self._live[slot])
        for key, count in self._counts.items():
            if (live or not key.live_only) and self._matches(key, count, label_set):
                self._columns.ensure(count.column)[row] += step

    def _matches(self, key: CountKey, count: _Count, label_set: int) -> bool:
        matches = count.reach(self._label_sets.size)
        if matches[label_set] == _UNKNOWN:
            namespace, labels = self._label_sets.item(label_set)
            matches[label_set] = (key.namespaces is None or namespace in key.namespaces) and (
                key.selector.matches(labels)
            )
        return bool(matches[label_set])

    def _drop_idle(self) -> None:
        if len(self._counts) < self._KEEP:
            return
        by_age = sorted(self._counts.items(), key=lambda item: item[1].last_use)
        for key, count in by_age:
            idle = self._uses - count.last_use > self._IDLE
            if not idle and len(self._counts) < self._MOST:
                return
            del self._counts[key]
            self._columns.drop(count.column)

    def _grow(self) -> None:
        old = len(self._row)
        self._row = np.concatenate([self._row, np.full(old, _FREE, np.int64)])
        self._label_set = np.concatenate([self._label_set, np.zeros(old, np.int64)])
        self._live = np.concatenate([self._live, np.zeros(old, np.bool_)])
        self._free = list(range(2 * old - 1, old - 1, -1))
