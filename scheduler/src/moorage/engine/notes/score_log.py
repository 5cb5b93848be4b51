"""The cached raw scores of one shape over time, so that notes need not copy them.

The score cache changes its scores in place: from attempt to attempt one row, or a few. The log
copies all scores once, and later the scores of the rows that changed. A moment is a length of the
log; the scores of that moment are the copy with the changes up to there.

The log learns of rows before they change. It copies the scores of a changed row when the row is to
change again, or when somebody asks. Until then the cache has these scores.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.int64]

CHANGES_MAX: Final = 4096
"""Changes in one log. The next log begins with a new copy, so a look back stays short; a guess."""
UNNOTED_MAX: Final = 16
"""Rows that may change between two notes. If more change, each note has copies; a guess."""
# Row and scores of a change in their lists, without the scores themselves.
_CHANGE_BYTES: Final = 56
_SCORE_BYTES: Final = 8
_EMPTY_BYTES: Final = 600


class ScoreLog:
    """The scores of one shape from one copy on.

    Parameters
    ----------
    raw_pn
        int64, (plugins, n): the scores now, which their owner changes in place.

    Attributes
    ----------
    length, noted
        The number of changes so far, and at the last note.
    holders
        How many records hold this; kept by their ring.
    """

    __slots__ = ("_begin_pn", "_columns", "_open", "_raw_pn", "_rows", "holders", "length", "noted")

    def __init__(self, raw_pn: Scores) -> None:
        self._begin_pn = raw_pn.copy()
        self._raw_pn: Scores | None = raw_pn
        # The changed rows in order, and blocks with their scores: int64, (plugins, rows).
        self._rows: list[int] = []
        self._columns: list[Scores] = []
        # Changed rows whose scores are not copied yet, in order. Values are unused.
        self._open: dict[int, None] = {}
        self.length = self.noted = 0
        self.holders = 0

    @property
    def nbytes(self) -> int:
        """Memory, bytes, as if the log were full: a log that is being written grows."""
        each = _CHANGE_BYTES + _SCORE_BYTES * len(self._begin_pn)
        return _EMPTY_BYTES + 2 * self._begin_pn.nbytes + CHANGES_MAX * each

    def change(self, rows: list[int]) -> bool:
        """Take note that rows are about to change, each row once; False where they are too many.

        Then the log is void.
        """
        self.length = length = self.length + len(rows)
        if length - self.noted > UNNOTED_MAX:
            return False
        if len(rows) == 1:  # as a rule
            (row,) = rows
            if row in self._open:
                self._copy()
            self._open[row] = None
            return True
        if not self._open.keys().isdisjoint(rows):
            self._copy()
        for row in rows:
            self._open[row] = None
        return True

    def release_scores(self) -> None:
        """Give up the owner's scores: later changes are not reported any more."""
        self._copy()
        self._raw_pn = None

    def scores_after(self, length: int) -> Scores:
        """Return int64, (plugins, n): the scores after so many changes."""
        self._copy()
        columns_after = self._begin_pn.copy()
        if length:
            columns = np.concatenate(self._columns, axis=1)
            last = {row: index for index, row in enumerate(self._rows[:length])}
            columns_after[:, list(last)] = columns[:, list(last.values())]  # a row may occur again
        return columns_after

    def _copy(self) -> None:
        """Copy the scores of the rows that changed."""
        if self._open:
            assert self._raw_pn is not None, "an ended log is told of no change"
            rows = list(self._open)
            self._rows += rows
            self._columns.append(self._raw_pn.take(rows, axis=1))
            self._open = {}
