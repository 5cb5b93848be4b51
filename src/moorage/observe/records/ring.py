"""Keeps records within a bound of bytes: the newest; of each pod the first and the last longest.

The bound is parted in two. One half is for what records share: the filter results on every node,
and the logs of scores. Each of these counts once. The filter results that were not used for the
longest time are dropped first, and their records stay; a log is dropped with its last record. The
other half is for the records themselves. Of that, at least half again belongs to the newest
records. The rest belongs to the first and the last record of each pod, which outlive the pod's
other records.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from typing import Final

from moorage.engine.notes.attempt_note import ShapeNote
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
    dropped
        How many records were dropped.
    """

    def __init__(self, bytes_max: int = BYTES_MAX) -> None:
        self.bytes_max = bytes_max
        self.dropped = 0
        self._filed = 0
        # The newest records, and older ones that are the first or the last of their pod, by age.
        self._newest: deque[AttemptRecord] = deque()
        self._newest_bytes = 0
        self._edges: deque[AttemptRecord] = deque()
        self._edges_bytes = 0
        # Records that are not filed yet.
        self._arrived: list[AttemptRecord] = []
        # The last record of the newest pod of each name; `earlier` leads to the others.
        self._by_pod: dict[PodKey, AttemptRecord] = {}
        # The notes that records share, by identity, in the order of their last use.
        self._telling: dict[int, ShapeNote] = {}
        self._last_used: ShapeNote | None = None
        self._shared_bytes = 0
        self._left_behind = 0
        self._half = bytes_max // 2

    @property
    def added(self) -> int:
        """Number of records added so far."""
        return self._filed + len(self._arrived)

    def __len__(self) -> int:
        self._settle()
        return self._filed - self.dropped

    def __iter__(self) -> Iterator[AttemptRecord]:
        """Iterate over all records, oldest first."""
        self._settle()
        yield from (each for each in self._edges if each.size)
        yield from self._newest

    def newest_first(self) -> Iterator[AttemptRecord]:
        """Iterate over the newest records, from the newest on; edges of pods are left out."""
        self._settle()
        return reversed(self._newest)

    def of_pod(self, key: PodKey) -> list[AttemptRecord]:
        """Return the records of the newest pod of a name, oldest first."""
        self._settle()
        found, each = [], self._by_pod.get(key)
        while each is not None:
            found.append(each)
            each = each.earlier
        return found[::-1]

    @property
    def nbytes(self) -> int:
        """Memory of all records, bytes; a little more than it takes."""
        self._settle()
        return self._filed_bytes

    @property
    def _filed_bytes(self) -> int:
        return self._newest_bytes + self._edges_bytes + self._shared_bytes

    # -- filing --------------------------------------------------------------------------------

    def add(self, record: AttemptRecord) -> None:
        """Add the record of the newest attempt, and drop others beyond the bound."""
        arrived = self._arrived
        arrived.append(record)
        if len(arrived) >= _ARRIVED_MAX:
            self._settle()

    def _settle(self) -> None:
        """File the records that arrived: many at once cost half of one by one."""
        arrived, self._arrived = self._arrived, []
        by_pod, arrived_bytes = self._by_pod, 0
        self._filed += len(arrived)
        self._newest.extend(arrived)
        for record in arrived:
            record.size = size = record.own_bytes
            arrived_bytes += size
            key, note = record.key, record.note
            before = by_pod.setdefault(key, record)
            if before is not record:
                self._follow(before, record)
                by_pod[key] = record
            shape = None if note is None else note.shape
            if shape is not None:
                shape.holders += 1
                if shape is not self._last_used:
                    self._use(shape)
        self._newest_bytes += arrived_bytes
        if self._filed_bytes > self._half:
            self._drop_beyond_bound()

    def _follow(self, before: AttemptRecord, record: AttemptRecord) -> None:
        """File a record behind the last record of its name."""
        if before.uid == record.uid:
            record.earlier = before
            if before.earlier is not None and before.number < self._newest[0].number:
                self._edges_bytes -= before.size  # it was kept as the last one of its pod
                self._forget(before, record)
                self._leave_behind()
            return
        each: AttemptRecord | None = before
        while each is not None:  # the records of an older pod of the name are not looked up
            each.earlier, each = None, each.earlier

    # -- what records share --------------------------------------------------------------------

    def _use(self, shape: ShapeNote) -> None:
        """Note that the newest record holds what others may hold as well."""
        self._last_used = shape
        if shape.holders == 1:
            self._hold(shape)
        if not shape.dropped:
            self._telling.pop(id(shape), None)
            self._telling[id(shape)] = shape

    def _hold(self, shape: ShapeNote) -> None:
        """Count what the first record holds."""
        filtered, log = shape.filtered, shape.log
        filtered.holders += 1
        if filtered.holders == 1:
            self._shared_bytes += filtered.nbytes
            filtered.names.holders += 1
            if filtered.names.holders == 1:
                self._shared_bytes += filtered.names.nbytes
        if log is not None:
            log.holders += 1
            if log.holders == 1:
                self._shared_bytes += log.nbytes
        shape.dropped = filtered.filtered is None  # dropped for all other records before
        if not shape.dropped:
            filtered.showing += 1

    def _drop_rejections(self, shape: ShapeNote) -> None:
        """Drop the rejections; the nodes that passed stay where a ranking needs them."""
        del self._telling[id(shape)]
        shape.dropped = True
        filtered = shape.filtered
        filtered.showing -= 1
        if not filtered.showing:
            self._shared_bytes -= filtered.nbytes
            filtered.shrink()
            self._shared_bytes += filtered.nbytes

    def _let_go(self, shape: ShapeNote) -> None:
        """Give up what the last record held."""
        if not shape.dropped:
            self._drop_rejections(shape)
        if shape is self._last_used:
            self._last_used = None
        filtered, log = shape.filtered, shape.log
        filtered.holders -= 1
        if not filtered.holders:
            self._shared_bytes -= filtered.nbytes
            filtered.names.holders -= 1
            if not filtered.names.holders:
                self._shared_bytes -= filtered.names.nbytes
        if log is not None:
            log.holders -= 1
            if not log.holders:
                self._shared_bytes -= log.nbytes

    # -- staying within the bound --------------------------------------------------------------

    def _drop_beyond_bound(self) -> None:
        half, telling = self._half, self._telling
        while self._shared_bytes > half and telling:
            self._drop_rejections(next(iter(telling.values())))
        while True:
            own_bytes = self._newest_bytes + self._edges_bytes
            if own_bytes <= half and own_bytes + self._shared_bytes <= self.bytes_max:
                return
            if self._edges and self._newest_bytes <= half // 2:
                record = self._edges.popleft()
                if record.size:
                    self._edges_bytes -= record.size
                    self._forget(record)
                else:
                    self._left_behind -= 1
            elif len(self._newest) > 1:
                self._retire(self._newest.popleft())
            else:
                return

    def _retire(self, record: AttemptRecord) -> None:
        """Keep the oldest of the newest records on as an edge of its pod, or drop it."""
        self._newest_bytes -= record.size
        last = self._by_pod.get(record.key)
        if last is None or last is record or (last.uid == record.uid and record.earlier is None):
            self._edges.append(record)
            self._edges_bytes += record.size
        else:
            self._forget(record)

    def _forget(self, record: AttemptRecord, later: AttemptRecord | None = None) -> None:
        """Drop a record.

        Parameters
        ----------
        record
            The record.
        later
            The record behind it, where that is known.
        """
        self._unlink(record, self._by_pod.get(record.key) if later is None else later)
        note, record.note = record.note, None
        record.size = 0
        self.dropped += 1
        if note is not None and note.shape is not None:
            note.shape.holders -= 1
            if not note.shape.holders:
                self._let_go(note.shape)

    def _leave_behind(self) -> None:
        """Leave the place of a dropped record among the edges until its turn comes, or a sweep."""
        self._left_behind += 1
        if self._left_behind > self._filed - self.dropped + _LEFT_BEHIND_MIN:
            self._left_behind = 0
            self._edges = deque(each for each in self._edges if each.size)

    def _unlink(self, record: AttemptRecord, later: AttemptRecord | None) -> None:
        """Take a record out of the records of its pod, given a later one of the name."""
        earlier, record.earlier = record.earlier, None
        if later is record:
            if earlier is None:
                del self._by_pod[record.key]
            else:
                self._by_pod[record.key] = earlier
            return
        while later is not None and later.earlier is not record:
            later = later.earlier
        if later is not None:  # otherwise the record is of an older pod of the name
            later.earlier = earlier

    def validate(self) -> None:
        """Check every invariant; for tests."""
        kept = list(self)
        assert len(kept) == len(self), "records are miscounted"
        assert all(each.size for each in kept), "a dropped record is listed"
        numbers = [each.number for each in kept]
        filed = {each.number for key in self._by_pod for each in self.of_pod(key)}
        assert filed <= set(numbers), "a dropped record is filed under its pod"
        assert self._edges_bytes == sum(each.size for each in self._edges)
        assert self._left_behind == sum(not each.size for each in self._edges)
        assert self._newest_bytes == sum(each.size for each in self._newest)
        holders = Counter(id(each.shape) for each in kept if each.shape is not None)
        shapes = {id(each.shape): each.shape for each in kept if each.shape is not None}
        assert holders == {at: each.holders for at, each in shapes.items()}
        assert self._telling == {at: each for at, each in shapes.items() if not each.dropped}
        filtered = {id(each.filtered): each.filtered for each in shapes.values()}
        names = {id(each.names): each.names for each in filtered.values()}
        logs = {id(each.log): each.log for each in shapes.values() if each.log is not None}
        parts: tuple[FilteredNodes | NodeNames | ScoreLog, ...]
        parts = (*filtered.values(), *names.values(), *logs.values())
        size = sum(each.nbytes for each in parts)
        assert self._shared_bytes == size, "what records share is miscounted"
        assert self.nbytes <= self.bytes_max or len(kept) == 1, "beyond the bound"
