"""Counts of run times, in bins that grow with the run time: four to a doubling.

A run time is known within 19 % (the fourth root of 2), and the number of bins is bounded. When a
sketch has many run times, all counts are halved: newer ones count more.
"""

from __future__ import annotations

import math
from typing import Final

import msgspec

BINS_A_DOUBLING: Final = 4
_BIN_LEAST: Final = -40
"""From a thousandth of a second on."""
_BIN_MOST: Final = 120
"""About 34 years."""
_TOTAL_MOST: Final = 1000.0
"""A guess: enough for quantiles, and old run times are forgotten."""


def position_of(value: float) -> float:
    """Return the place of a value among bins: the bin, and how far into it."""
    if value <= 0:
        return _BIN_LEAST
    return min(max(BINS_A_DOUBLING * math.log2(value), _BIN_LEAST), _BIN_MOST + 1)


def value_at(position: float) -> float:
    """Return the value at a place among bins."""
    return float(2.0 ** (position / BINS_A_DOUBLING))


class RunTimeSketch(msgspec.Struct):
    """How many run times fell into each bin.

    Parameters
    ----------
    bins
        Counts by bin.
    """

    bins: dict[int, float] = {}

    @property
    def total(self) -> float:
        """The number of run times that still count."""
        return sum(self.bins.values())

    def add_value(self, value: float) -> None:
        """Count a run time."""
        index = min(math.floor(position_of(value)), _BIN_MOST)
        self.bins[index] = self.bins.get(index, 0.0) + 1.0
        if self.total > _TOTAL_MOST:
            halves = ((each, count / 2) for each, count in self.bins.items())
            self.bins = {each: count for each, count in halves if count >= 1 / 2}
