"""Intervals made of drawn starts, and how good they are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import msgspec

SHARE: Final = 0.8
"""The share of intervals that should hold."""


class Interval(msgspec.Struct, frozen=True):
    """From when until when something happens, in seconds of any clock."""

    low: float
    high: float

    @property
    def is_finite(self) -> bool:
        """Whether both ends are known, in order."""
        return math.isfinite(self.low) and math.isfinite(self.high) and self.low <= self.high

    def holds(self, value: float) -> bool:
        """Whether a value lies within; a second to either side is no difference."""
        return self.is_finite and self.low - 1.0 <= value <= self.high + 1.0

    def widened(self, factor: float, *, least: float) -> Interval:
        """Return the interval, wider on both sides by a factor of its width; below 0 narrower."""
        if not self.is_finite:
            return self
        more = factor * scale_of(self)
        if self.low - more > self.high + more:
            middle = (self.low + self.high) / 2
            return Interval(max(least, middle), max(least, middle))
        return Interval(max(least, self.low - more), max(least, self.high + more))


def scale_of(interval: Interval) -> float:
    """Return the seconds that an interval is widened by at factor 1; never 0."""
    return max(interval.high - interval.low, 1.0)


def interval_of(values: Sequence[float], share: float = SHARE) -> Interval:
    """Return the middle share of values; infinite values count as the largest."""
    ordered, tail = sorted(values), (1.0 - share) / 2
    return Interval(_quantile(ordered, tail), _quantile(ordered, 1.0 - tail))


def _quantile(ordered: Sequence[float], share: float) -> float:
    place = share * (len(ordered) + 1) - 1
    below = min(max(math.floor(place), 0), len(ordered) - 1)
    above = min(max(math.ceil(place), 0), len(ordered) - 1)
    low, high = ordered[below], ordered[above]
    if below == above or low == high:
        return low
    return low + (high - low) * (place - below)


def miss_of(interval: Interval, value: float) -> float:
    """Return by how much of its width an interval misses a value; below 0 where it holds it."""
    if not interval.is_finite:
        return math.inf
    return max(interval.low - value, value - interval.high) / scale_of(interval)


def interval_score(interval: Interval, value: float, share: float = SHARE) -> float:
    """Return the interval score (Gneiting and Raftery 2007): width, and a penalty for a miss."""
    penalty = 2.0 / (1.0 - share)
    below, above = max(0.0, interval.low - value), max(0.0, value - interval.high)
    return interval.high - interval.low + penalty * (below + above)
