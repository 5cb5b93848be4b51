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
from moorage.observe.records.record import DROPPED, USUAL_BYTES, AttemptRecord, TwoEntries
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
    unbound
        By uid, the last record of each pod that is not bound, as far as it is known. A record is
        taken out by whoever notes that its pod is bound.
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
        self.unbound: dict[str, AttemptRecord] = {}
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
        yield from (each for each in self._edges if not each.is_dropped)
        yield from self._newest

    def newest_first(self) -> Iterator[AttemptRecord]:
        """Iterate over the newest records, from the newest on; edges of pods are left out."""
        self._settle()
        return reversed(self._newest)

    def of_pod(self, key: PodKey) -> list[AttemptRecord]:
        """Return the records of the newest pod of a name, oldest first; looks at all records."""
        found = [each for each in self if each.key == key]
        return [each for each in found if each.uid == found[-1].uid]

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
        unbound = self.unbound
        before = unbound.setdefault(record.uid, record)
        if before is not record:
            unbound[record.uid] = record
            self._follow(before)
        arrived = self._arrived
        arrived.append(record)
        if len(arrived) >= _ARRIVED_MAX:
            self._settle()

    def _settle(self) -> None:
        """File the records that arrived: many at once cost half of one by one."""
        arrived, self._arrived = self._arrived, []
        arrived_bytes = 0
        self._filed += len(arrived)
        self._newest.extend(arrived)
        for record in arrived:
            note = record.note
            # As a rule nothing but the note's shape, which is shared: then no further look.
            if (
                note is None
                or note.near is not None
                or note.more
                or note.extenders
                or type(record.before) is not TwoEntries
                or not record.node
            ):
                size = record.own_bytes
            else:
                size = USUAL_BYTES
            record.size = size
            arrived_bytes += size
            shape = None if note is None else note.shape
            if shape is not None:
                shape.holders += 1
                if shape is not self._last_used:
                    self._use(shape)
        self._newest_bytes += arrived_bytes
        if self._filed_bytes > self._half:
            self._drop_beyond_bound()

    def _follow(self, before: AttemptRecord) -> None:
        """Note that the pod of a record has another one now."""
        before.is_last = False
        filed = before.size > 0
        if filed and before.attempt > 1 and before.number < self._newest[0].number:
            self._edges_bytes -= before.size  # it was kept as the last one of its pod
            self._forget(before)
            self._leave_behind()

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
                if record.is_dropped:
                    self._left_behind -= 1
                else:
                    self._edges_bytes -= record.size
                    self._forget(record)
            elif len(self._newest) > 1:
                self._retire(self._newest.popleft())
            else:
                return

    def _retire(self, record: AttemptRecord) -> None:
        """Keep the oldest of the newest records on as an edge of its pod, or drop it."""
        self._newest_bytes -= record.size
        if record.is_last or record.attempt == 1:
            self._edges.append(record)
            self._edges_bytes += record.size
        else:
            self._forget(record)

    def _forget(self, record: AttemptRecord) -> None:
        """Drop a record."""
        if record.end and self.unbound.get(record.uid) is record:
            del self.unbound[record.uid]
        note, record.note = record.note, None
        record.size = DROPPED
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
            self._edges = deque(each for each in self._edges if not each.is_dropped)

    def validate(self) -> None:
        """Check every invariant; for tests."""
        records = list(self)
        assert len(records) == len(self), "records are miscounted"
        assert all(each.size > 0 for each in records), "a dropped record is listed"
        last = {each.uid: each for each in records if each.is_last}
        assert len(last) == sum(each.is_last for each in records), "a pod has two last records"
        for uid, each in self.unbound.items():
            assert last.get(uid) is each or not each.end, "a dropped record is kept for its pod"
        edges = [each.size for each in self._edges if not each.is_dropped]
        assert self._edges_bytes == sum(edges)
        assert self._left_behind == len(self._edges) - len(edges)
        assert self._newest_bytes == sum(each.size for each in self._newest)
        holders = Counter(id(each.shape) for each in records if each.shape is not None)
        shapes = {id(each.shape): each.shape for each in records if each.shape is not None}
        assert holders == {at: each.holders for at, each in shapes.items()}
        assert self._telling == {at: each for at, each in shapes.items() if not each.dropped}
        filtered = {id(each.filtered): each.filtered for each in shapes.values()}
        names = {id(each.names): each.names for each in filtered.values()}
        logs = {id(each.log): each.log for each in shapes.values() if each.log is not None}
        parts: tuple[FilteredNodes | NodeNames | ScoreLog, ...]
        parts = (*filtered.values(), *names.values(), *logs.values())
        size = sum(each.nbytes for each in parts)
        assert self._shared_bytes == size, "what records share is miscounted"
        assert self.nbytes <= self.bytes_max or len(records) == 1, "beyond the bound"
