"""Counters, gauges and histograms that cost little where they are written.

Everything runs on one loop, so no lock is needed; a child is looked up once and kept by its writer.
`exposition` turns the numbers into Prometheus' text on request.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import TypeVar

from moorage.base.clock import NS_PER_SECOND

_WAITING_MOST = 1000  # kube-scheduler's buffer of plugin metrics is as long


class Histogram:
    """Counts of observations by bucket.

    Parameters
    ----------
    bounds
        Upper bounds of the buckets, inclusive, ascending; a bucket without bound follows.
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

    def observe_equal(self, value: float, times: int) -> None:
        """Count a number of equal observations."""
        self.counts[bisect_left(self._bounds, value)] += times
        self.total += value * times

    def observe_all(self, durations_ns: Sequence[int]) -> None:
        """Count many observations at once, given in nanoseconds and kept in seconds."""
        ordered, below = sorted(durations_ns), 0
        for i, bound in enumerate(self._bounds):
            at_most = bisect_right(ordered, bound, lo=below, key=_seconds)
            self.counts[i] += at_most - below
            below = at_most
        self.counts[-1] += len(ordered) - below
        self.total += _seconds(sum(ordered))

    @property
    def count(self) -> int:
        """Number of observations."""
        return sum(self.counts)

    def cumulated(self) -> Iterator[tuple[str, float]]:
        """Yield each bucket's bound as text, and the count in this bucket and all lower buckets."""
        running = 0
        for bound, count in zip((*self._bounds, float("inf")), self.counts, strict=True):
            running += count
            yield "+Inf" if bound == float("inf") else repr(float(bound)), running


LabelsT = TypeVar("LabelsT")


class Histograms(dict[LabelsT, Histogram]):
    """Histograms by labels, each made when its labels are first asked for.

    Parameters
    ----------
    bounds
        Upper bounds of the buckets of each.
    """

    __slots__ = ("_bounds",)

    def __init__(self, bounds: Sequence[float]) -> None:
        super().__init__()
        self._bounds = bounds

    def __missing__(self, labels: LabelsT) -> Histogram:
        """Make the histogram of labels that are new."""
        made = self[labels] = Histogram(self._bounds)
        return made


class Durations:
    """A histogram of durations that is written on every attempt: many are sorted in at once.

    Parameters
    ----------
    bounds
        Upper bounds of the buckets, seconds.
    """

    __slots__ = ("_histogram", "_waiting")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._histogram = Histogram(bounds)
        self._waiting: list[int] = []

    def add(self, duration_ns: int) -> None:
        """Count one duration, nanoseconds."""
        self._waiting.append(duration_ns)
        if len(self._waiting) >= _WAITING_MOST:
            self._sort_in()

    def extend(self, durations_ns: Sequence[int]) -> None:
        """Count many durations, nanoseconds."""
        self._waiting.extend(durations_ns)
        if len(self._waiting) >= _WAITING_MOST:
            self._sort_in()

    @property
    def histogram(self) -> Histogram:
        """Everything counted, in seconds."""
        self._sort_in()
        return self._histogram

    def _sort_in(self) -> None:
        self._histogram.observe_all(self._waiting)
        self._waiting.clear()


def _seconds(nanoseconds: int) -> float:
    return nanoseconds / NS_PER_SECOND


def exponential(start: float, factor: float, count: int) -> tuple[float, ...]:
    """Return the bounds of buckets as Prometheus' ``ExponentialBuckets`` computes them."""
    bounds, bound = [], start
    for _ in range(count):
        bounds.append(bound)
        bound *= factor
    return tuple(bounds)
