"""Counters, gauges and histograms that cost little where they are written.

Everything runs on one loop, so no lock is needed; a child is looked up once and kept by its writer.
`exposition` turns them into Prometheus' text when somebody asks.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence


class Histogram:
    """Counts of observations by bucket.

    Parameters
    ----------
    bounds
        Upper bounds of the buckets, inclusive, ascending; one without bound follows.
    """

    __slots__ = ("_bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = tuple(bounds)
        self.counts = [0] * (len(self._bounds) + 1)
        """By bucket, not cumulated."""
        self.total = 0.0
        """Sum of everything observed."""

    def observe(self, value: float) -> None:
        """Count one observation."""
        self.counts[bisect_left(self._bounds, value)] += 1
        self.total += value

    @property
    def count(self) -> int:
        """Number of observations."""
        return sum(self.counts)

    def cumulated(self) -> Iterator[tuple[str, float]]:
        """Yield each bucket's bound as text, and how many observations it and those below hold."""
        running = 0
        for bound, count in zip((*self._bounds, float("inf")), self.counts, strict=True):
            running += count
            yield "+Inf" if bound == float("inf") else repr(float(bound)), running


def exponential(start: float, factor: float, count: int) -> tuple[float, ...]:
    """Return the bounds of buckets as Prometheus' ``ExponentialBuckets`` computes them."""
    bounds, bound = [], start
    for _ in range(count):
        bounds.append(bound)
        bound *= factor
    return tuple(bounds)
