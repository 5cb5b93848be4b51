"""The nominated cache: the filter result of one shape for every row, next to nominated pods.

While a wave of preemptors waits for room, thousands of nodes have nominated pods, and from one
replica to the next a few of them change. The key is the priority of the pod, because nominated
pods of lower priority do not count.

Rules: scheduling spec, cycle section 3.4.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from moorage.engine.attempt import Attempt
from moorage.engine.filters.filter_results import PASSES, FilterResults
from moorage.engine.filters.nominated import filter_beside_sums, filter_nominated, judge_row
from moorage.framework.caches import ROWS_MOST, Changes
from moorage.snapshot.nominated_rows import NominatedLevel

# From this share of the rows on, one pass over all costs less than following changes; a guess.
_CHANGED_SHARE = 4

# Priorities for which a shape keeps a filter result; a guess.
_PRIORITIES_MOST = 4


class _PriorityResult:
    """The filter result for one priority.

    Parameters
    ----------
    base
        The shape's filter result without nominated pods, which is followed in place.
    level
        The nominated pods that count.
    by_sums
        Indexes of the Filters that judged next to them.
    filtered
        The filter result with and without them.

    Attributes
    ----------
    due
        The rows that changed since the result was brought up to date.
    position
        Position in the log of the level, up to which changes are included.
    """

    __slots__ = ("base", "by_sums", "due", "filtered", "level", "position")

    def __init__(
        self,
        base: FilterResults,
        level: NominatedLevel,
        by_sums: tuple[int, ...],
        filtered: FilterResults,
    ) -> None:
        self.base = base
        self.level = level
        self.by_sums = by_sums
        self.filtered = filtered
        self.due: set[int] = set()
        self.position = level.log.position

    def take_due(self) -> list[int] | None:
        """Return the rows to judge again, and count them as judged; None where not known."""
        log, due = self.level.log, self.due
        if log.position != self.position:
            nominated = log.since(self.position)
            if nominated is None:
                return None
            due.update(nominated)
            self.position = log.position
        self.due = set()
        return sorted(due)


class NominatedCache:
    """The filter result of one shape next to nominated pods, by priority."""

    __slots__ = ("_by_priority",)

    def __init__(self) -> None:
        self._by_priority: dict[int, _PriorityResult] = {}

    def __len__(self) -> int:
        return len(self._by_priority)

    def follow(self, changes: Changes) -> None:
        """Note the changed rows; a filter result is brought up to date when it is asked for."""
        for kept in self._by_priority.values():
            kept.due.update(changes.rows)

    def forget(self) -> None:
        """Forget every filter result."""
        self._by_priority.clear()

    @property
    def nbytes(self) -> int:
        """Memory of the filter results, bytes."""
        return sum(kept.filtered.nbytes for kept in self._by_priority.values())

    def judge(self, attempt: Attempt, filtered: FilterResults, *, is_kept: bool) -> FilterResults:
        """Return the filter result on every row next to nominated pods; not to be changed.

        Parameters
        ----------
        attempt
            The attempt, after PreFilter.
        filtered
            The filter result without nominated pods, up to date.
        is_kept
            Whether `filtered` is the shape's own result, without plugins asked afresh.

        Raises
        ------
        CycleError
            A plugin broke.
        """
        snapshot, pod = attempt.snapshot, attempt.pod
        by_sums = attempt.profile.filters_by_sums(attempt.state.skip_filter) if is_kept else None
        level, own = snapshot.nominated_level(pod)
        if by_sums is None or own is not None:
            both = filtered.copy()
            filter_nominated(attempt, snapshot.all(), both)
            return both
        entry = self._by_priority.get(pod.priority)
        if entry is not None and entry.base is filtered and entry.level is level:
            rows = entry.take_due() if entry.by_sums == by_sums else None
            if rows is not None and len(rows) * _CHANGED_SHARE <= snapshot.num_nodes:
                _follow(entry, attempt, rows)
                return entry.filtered
        both = filtered.copy()
        filter_beside_sums(attempt, by_sums, snapshot.all(), both)
        self._keep_level(pod.priority, _PriorityResult(filtered, level, by_sums, both))
        return both

    def _keep_level(self, priority: int, entry: _PriorityResult) -> None:
        if priority not in self._by_priority and len(self._by_priority) >= _PRIORITIES_MOST:
            self._by_priority.clear()
        self._by_priority[priority] = entry


def _follow(entry: _PriorityResult, attempt: Attempt, rows: Sequence[int]) -> None:
    """Judge the changed rows again."""
    if not rows or _follow_in_scalars(entry, attempt, rows):
        return
    at = np.array(rows, np.int64)
    part = entry.base.at_rows(at)
    filter_beside_sums(attempt, entry.by_sums, attempt.snapshot.rows(at), part)
    entry.filtered.put_rows(at, part)


def _follow_in_scalars(entry: _PriorityResult, attempt: Attempt, rows: Sequence[int]) -> bool:
    """Judge a few rows again without arrays; False when that takes arrays.

    In that case all changed rows are judged again in arrays.
    """
    if len(rows) > ROWS_MOST:
        return False
    for row in rows:
        result, more = entry.base.result_at(row), entry.level.row_sums(row)
        if more is not None:
            beside = judge_row(attempt, entry.by_sums, row, more)
            if beside is None:
                return False
            if beside is not PASSES and beside[0] <= result[0]:
                result = beside
        entry.filtered.put_row(row, result)
    return True
