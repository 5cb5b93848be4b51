"""Keeps records within a bound of bytes: the newest; of each pod the first and the last longest.

The bound is parted in two. One half is for the filter results on every node, and for the logs of
scores. Many records share one of these, which counts once. The oldest filter results are dropped
first, and their records stay; a log is dropped with its last record. The other half is for the
records themselves. Of that, at least half again belongs to the newest records. The rest belongs to
the first and the last record of each pod, which outlive the pod's other records.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final

from moorage.engine.notes.filtered_nodes import FilteredNodes, NodeNames
from moorage.engine.notes.score_log import ScoreLog
from moorage.observe.records.record import AttemptRecord
from moorage.state.queued_pod import PodKey

BYTES_MAX: Final = 64 * 1024 * 1024
"""Memory of all records, bytes, unless told otherwise."""
_LEFT_BEHIND_MIN: Final = 1024
"""Places of dropped records that are tolerated before they are swept up."""
_ARRIVED_MAX: Final = 32
"""Records that wait to be filed together; until then they are not counted; a guess."""


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
        # Records that are not filed yet.
        self._arrived: list[AttemptRecord] = []
        # The records of the newest pod of each name, oldest first.
        self._by_pod: dict[PodKey, tuple[AttemptRecord, ...]] = {}
        # Records that hold filter results, by age.
        self._holding: deque[AttemptRecord] = deque()
        self._array_bytes = 0
        self._left_behind = 0
        self._half = bytes_max // 2

    def __len__(self) -> int:
        self._settle()
        return self.added - self.dropped

    def __iter__(self) -> Iterator[AttemptRecord]:
        """Iterate over all records, oldest first."""
        self._settle()
        yield from (each for each in self._edges if each.size)
        yield from self._newest

    def newest_first(self) -> Iterator[AttemptRecord]:
        """Iterate over the newest records, from the newest on; edges of pods are left out."""
        self._settle()
        return reversed(self._newest)

    @property
    def nbytes(self) -> int:
        """Memory of all records, bytes; a little more than it takes."""
        self._settle()
        return self._filed_bytes

    @property
    def _filed_bytes(self) -> int:
        return self._newest_bytes + self._edges_bytes + self._array_bytes

    def add(self, record: AttemptRecord) -> None:
        """Add the record of the newest attempt, and drop others beyond the bound."""
        self.added += 1
        self._arrived.append(record)
        if len(self._arrived) >= _ARRIVED_MAX:
            self._settle()

    def _settle(self) -> None:
        """File the records that arrived: many at once cost half of one by one."""
        arrived, self._arrived = self._arrived, []
        for record in arrived:
            self._file(record)
            if self._filed_bytes > self._half:
                self._drop_beyond_bound()

    def _file(self, record: AttemptRecord) -> None:
        record.size = size = record.own_bytes
        self._newest.append(record)
        self._newest_bytes += size
        of_pod = self._by_pod.get(record.key)
        if of_pod is None or of_pod[0].uid != record.uid:
            self._by_pod[record.key] = (record,)
        else:
            self._by_pod[record.key] = (*of_pod, record)
            before = of_pod[-1]
            if len(of_pod) > 1 and before.number < self._newest[0].number:
                self._edges_bytes -= before.size  # it was kept as the last one of its pod
                self._forget(before)
        filtered, best = record.filtered, record.best
        if filtered is not None:
            filtered.holders += 1
            if filtered.holders == 1:
                self._hold(filtered)
            if filtered.filtered is not None:
                self._holding.append(record)
                filtered.showing += 1
            else:  # dropped for all other records before this one was filed
                record.dropped = True
                if not record.ranks_passed:
                    self._release(record, filtered)
        log = None if best is None else best.log
        if log is not None:
            log.holders += 1
            if log.holders == 1:
                self._array_bytes += log.nbytes

    def of_pod(self, key: PodKey) -> list[AttemptRecord]:
        """Return the records of the newest pod of a name, oldest first."""
        self._settle()
        return list(self._by_pod.get(key, ()))

    # -- filter results and logs of scores, which records share --------------------------------

    def _hold(self, filtered: FilteredNodes) -> None:
        """Count filter results that the first record holds."""
        self._array_bytes += filtered.nbytes
        filtered.names.holders += 1
        if filtered.names.holders == 1:
            self._array_bytes += filtered.names.nbytes

    def _drop_rejections(self, record: AttemptRecord) -> None:
        """Drop the rejections of a record; the nodes that passed stay where the ranking needs them.

        Nothing happens where the record has none.
        """
        filtered = record.filtered
        if filtered is None or record.dropped:
            return
        record.dropped = True
        filtered.showing -= 1
        if not filtered.showing and filtered.filtered is not None:
            self._array_bytes -= filtered.nbytes
            filtered.shrink()
            self._array_bytes += filtered.nbytes
        if not record.ranks_passed:
            self._release(record, filtered)

    def _release(self, record: AttemptRecord, filtered: FilteredNodes) -> None:
        record.filtered = None
        filtered.holders -= 1
        if filtered.holders:
            return
        self._array_bytes -= filtered.nbytes
        filtered.names.holders -= 1
        if not filtered.names.holders:
            self._array_bytes -= filtered.names.nbytes

    def _let_go(self, record: AttemptRecord) -> None:
        """Give up what a record shares with others."""
        self._drop_rejections(record)
        if record.filtered is not None:
            self._release(record, record.filtered)
        best = record.best
        log = None if best is None else best.log
        if log is not None:
            log.holders -= 1
            if not log.holders:
                self._array_bytes -= log.nbytes
        record.best = None

    # -- staying within the bound --------------------------------------------------------------

    def _drop_beyond_bound(self) -> None:
        half = self._half
        while self._array_bytes > half and self._holding:
            self._drop_rejections(self._holding.popleft())
        while self._newest_bytes + self._edges_bytes > half or self._filed_bytes > self.bytes_max:
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
        of_pod = self._by_pod.get(record.key, (record,))
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
        if self._left_behind > self.added - self.dropped + _LEFT_BEHIND_MIN:
            self._sweep()
        of_pod = self._by_pod.get(record.key, ())
        left = tuple([each for each in of_pod if each is not record])
        if left:
            self._by_pod[record.key] = left
        elif of_pod:  # otherwise it is of an older pod of the same name
            del self._by_pod[record.key]

    def _sweep(self) -> None:
        """Drop the places of records that are gone."""
        self._left_behind = 0
        self._edges = deque(each for each in self._edges if each.size)
        self._holding = deque(each for each in self._holding if each.size and not each.dropped)

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
        written = [each.best.log for each in kept if each.best is not None]
        logs = {id(log): log for log in written if log is not None}
        parts: tuple[FilteredNodes | NodeNames | ScoreLog, ...]
        parts = (*held.values(), *names.values(), *logs.values())
        size = sum(each.nbytes for each in parts)
        assert self._array_bytes == size, "arrays are miscounted"
        assert self.nbytes <= self.bytes_max or len(kept) == 1, "beyond the bound"
