"""How often intervals held, and by how much the next ones have to be wider or narrower."""

from __future__ import annotations

import math
from collections import deque
from typing import Final

import msgspec

from moorage.estimates.intervals import SHARE, Interval, miss_of

OUTCOMES_MOST: Final = 100
_OPEN_MOST: Final = 2000
"""Estimates whose pods have not started yet; the oldest go."""
_OUTCOMES_LEAST: Final = 20
"""A guess: with fewer outcomes, intervals stay as they were drawn."""
_FACTOR_MOST: Final = 20.0


class _OpenEstimate(msgspec.Struct):
    shown: Interval
    drawn: Interval
    overdue: bool = False


class TrackRecord:
    """The last hundred outcomes.

    Attributes
    ----------
    outcomes
        Whether each of the last intervals held.
    """

    def __init__(self) -> None:
        self.outcomes: deque[bool] = deque(maxlen=OUTCOMES_MOST)
        self._misses: deque[float] = deque(maxlen=OUTCOMES_MOST)
        self._open: dict[str, _OpenEstimate] = {}

    def widening(self) -> float:
        """Return the factor by which drawn intervals have to be widened, by the last misses.

        The smallest factor with which the wanted share of them would have held (split conformal
        prediction, over the last hundred).
        """
        if len(self._misses) < _OUTCOMES_LEAST:
            return 0.0
        ordered = sorted(self._misses)
        index = math.ceil(SHARE * (len(ordered) + 1)) - 1
        return min(ordered[min(index, len(ordered) - 1)], _FACTOR_MOST)

    def note_estimate(self, uid: str, *, shown: Interval, drawn: Interval) -> None:
        """Remember an interval of a pod; the first one of a pod counts."""
        if uid in self._open or not shown.is_finite:
            return
        self._open[uid] = _OpenEstimate(shown, drawn)
        if len(self._open) > _OPEN_MOST:
            del self._open[next(iter(self._open))]

    def note_start(self, uid: str, at: float) -> None:
        """Note that a pod has started."""
        estimate = self._open.pop(uid, None)
        if estimate is None:
            return
        if not estimate.overdue:
            self.outcomes.append(estimate.shown.holds(at))
        self._misses.append(miss_of(estimate.drawn, at))

    def note_gone(self, uid: str) -> None:
        """Forget a pod that is gone without a start."""
        self._open.pop(uid, None)

    def count_overdue(self, now: float) -> None:
        """Count the intervals that have ended without a start: they did not hold."""
        for estimate in self._open.values():
            if not estimate.overdue and now > estimate.shown.high + 1.0:
                estimate.overdue = True
                self.outcomes.append(False)
