"""Keeps records within a bound of bytes: the newest; of each pod the first and the last longest.

The bound is parted in two. One half is for the filter results on every node. Many records share one
such array, which counts once; the oldest are dropped first, and their records stay. The other half
is for the records themselves. Of that, at least half again belongs to the newest records. The rest
belongs to the first and the last record of each pod, which outlive the pod's other records.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final

from moorage.engine.notes import FilteredNodes
from moorage.observe.records.record import AttemptRecord
from moorage.state.queued_pod import PodKey

BYTES_MAX: Final = 64 * 1024 * 1024
"""Memory of all records, bytes, unless told otherwise."""
_LEFT_BEHIND_MIN: Final = 1024
"""Places of dropped records that are tolerated before they are swept up."""


class RecordRing:
    """The records, by number and by pod.

    Parameters
    ----------
    bytes_max
        Memory of all records.

    Attributes
    ----------
    added, dropped
        How many records were added, and how many of them were dropped.
    """

    def __init__(self, bytes_max: int = BYTES_MAX) -> None:
        self.bytes_max = bytes_max
        self.added = 0
        self.dropped = 0
        # The newest records, and older ones that are the first or the last of their pod, by age.
        self._newest: deque[AttemptRecord] = deque()
        self._newest_bytes = 0
        self._edges: deque[AttemptRecord] = deque()
        self._edges_bytes = 0
        # The records of the newest pod of each name.
        self._by_pod: dict[PodKey, list[AttemptRecord]] = {}
        # Records that hold filter results, by age.
        self._holding: deque[AttemptRecord] = deque()
        self._array_bytes = 0
        self._left_behind = 0
        self._half = bytes_max // 2

    def __len__(self) -> int:
        return self.added - self.dropped

    def __iter__(self) -> Iterator[AttemptRecord]:
        """Iterate over all records, oldest first."""
        yield from (each for each in self._edges if each.size)
        yield from self._newest

    @property
    def nbytes(self) -> int:
        """Memory of all records, bytes; a little more than it takes."""
        return self._newest_bytes + self._edges_bytes + self._array_bytes

    def add(self, record: AttemptRecord) -> None:
        """Add the record of the newest attempt, and drop others beyond the bound."""
        self.added += 1
        record.size = size = record.own_bytes
        self._newest.append(record)
        self._newest_bytes += size
        of_pod = self._by_pod.get(record.key)
        if of_pod is None or of_pod[0].uid != record.uid:
            self._by_pod[record.key] = [record]
        else:
            of_pod.append(record)
            if len(of_pod) > 2 and of_pod[-2].number < self._newest[0].number:
                self._edges_bytes -= of_pod[-2].size  # it was kept as the last one of its pod
                self._forget(of_pod[-2])
        filtered = record.filtered
        if filtered is not None:
            self._holding.append(record)
            filtered.holders += 1
            if filtered.holders == 1:
                self._hold(filtered)
        if self._newest_bytes + self._edges_bytes + self._array_bytes > self._half:
            self._drop_beyond_bound()

    def of_pod(self, key: PodKey) -> list[AttemptRecord]:
        """Return the records of the newest pod of a name, oldest first."""
        return list(self._by_pod.get(key, ()))

    # -- filter results ------------------------------------------------------------------------

    def _hold(self, filtered: FilteredNodes) -> None:
        """Count filter results that the first record holds."""
        self._array_bytes += filtered.nbytes
        filtered.names.holders += 1
        if filtered.names.holders == 1:
            self._array_bytes += filtered.names.nbytes

    def _let_go(self, record: AttemptRecord) -> None:
        """Drop the filter results of a record; nothing happens where it has none."""
        filtered = record.filtered
        if filtered is None:
            return
        filtered.holders -= 1
        if not filtered.holders:
            filtered.names.holders -= 1
            self._array_bytes -= filtered.nbytes
            if not filtered.names.holders:
                self._array_bytes -= filtered.names.nbytes
        record.filtered, record.dropped = None, True

    # -- staying within the bound --------------------------------------------------------------

    def _drop_beyond_bound(self) -> None:
        half = self._half
        while self._array_bytes > half and self._holding:
            self._let_go(self._holding.popleft())
        while self._newest_bytes + self._edges_bytes > half:
            if self._edges and self._newest_bytes <= half // 2:
                record = self._edges.popleft()
                if record.size:
                    self._edges_bytes -= record.size
                    self._forget(record)
            elif len(self._newest) > 1:
                self._retire(self._newest.popleft())
            else:
                return

    def _retire(self, record: AttemptRecord) -> None:
        """Keep the oldest of the newest records on as an edge of its pod, or drop it."""
        self._newest_bytes -= record.size
        of_pod = self._by_pod.get(record.key, [record])
        if record is of_pod[0] or record is of_pod[-1]:
            self._edges.append(record)
            self._edges_bytes += record.size
        else:
            self._forget(record)

    def _forget(self, record: AttemptRecord) -> None:
        """Drop a record; its place among the edges stays behind until its turn comes."""
        self._let_go(record)
        record.size = 0
        self.dropped += 1
        self._left_behind += 1
        if self._left_behind > len(self) + _LEFT_BEHIND_MIN:
            self._sweep()
        of_pod = self._by_pod.get(record.key, [])
        if record in of_pod:  # otherwise it is of an older pod of the same name
            of_pod.remove(record)
            if not of_pod:
                del self._by_pod[record.key]

    def _sweep(self) -> None:
        """Drop the places of records that are gone."""
        self._left_behind = 0
        self._edges = deque(each for each in self._edges if each.size)
        self._holding = deque(each for each in self._holding if each.filtered is not None)

    def validate(self) -> None:
        """Check every invariant; for tests."""
        kept = list(self)
        assert len(kept) == len(self), "records are miscounted"
        assert all(each.size for each in kept), "a dropped record is listed"
        numbers = [each.number for each in kept]
        filed = sorted(each.number for found in self._by_pod.values() for each in found)
        assert set(filed) <= set(numbers), "a dropped record is filed under its pod"
        assert self._edges_bytes == sum(each.size for each in self._edges)
        assert self._newest_bytes == sum(each.size for each in self._newest)
        held = {id(each.filtered): each.filtered for each in kept if each.filtered is not None}
        names = {id(each.names): each.names for each in held.values()}
        size = sum(each.nbytes for each in held.values())
        size += sum(each.nbytes for each in names.values())
        assert self._array_bytes == size, "arrays are miscounted"
        assert self.nbytes <= self.bytes_max or len(kept) == 1, "beyond the bound"
