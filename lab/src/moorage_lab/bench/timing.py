"""How every benchmark measures: a stopwatch, laps, samples of a piece of work, percentiles.

The caller names the clock: `Clock.monotonic_ns` for the time that a user waits, processor time for
work that must not depend on the load of the machine. Memory is measured in new processes.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Final, TypeAlias, TypeVar

from moorage.base.clock import NS_PER_SECOND

NowNs: TypeAlias = Callable[[], int]
"""Reads a clock, nanoseconds from any start."""

NS_PER_US: Final = 1_000
NS_PER_MS: Final = 1_000_000

T = TypeVar("T")


class Stopwatch:
    """Measures the time since it was made."""

    def __init__(self, now_ns: NowNs) -> None:
        self._now_ns = now_ns
        self._began_ns = now_ns()

    @property
    def elapsed_ns(self) -> int:
        """Time so far, nanoseconds."""
        return self._now_ns() - self._began_ns

    @property
    def seconds(self) -> float:
        """Time so far, seconds."""
        return self.elapsed_ns / NS_PER_SECOND

    @property
    def milliseconds(self) -> float:
        """Time so far, milliseconds."""
        return self.elapsed_ns / NS_PER_MS


class Laps:
    """Sums the time of parts that follow each other.

    Parameters
    ----------
    now_ns
        The clock.
    parts
        Names of the parts, in the order of the report.
    """

    def __init__(self, now_ns: NowNs, *parts: str) -> None:
        self._now_ns = now_ns
        self._spent_ns = dict.fromkeys(parts, 0)
        self._mark_ns = 0

    def start_lap(self) -> None:
        """Begin a part; the time since the part before counts for none."""
        self._mark_ns = self._now_ns()

    def end_lap(self, part: str) -> int:
        """End a part and begin the next one; return the time of this part, nanoseconds."""
        now_ns = self._now_ns()
        spent_ns = now_ns - self._mark_ns
        self._spent_ns[part] += spent_ns
        self._mark_ns = now_ns
        return spent_ns

    def seconds_by_part(self) -> dict[str, float]:
        """Return the sum of each part."""
        return {part: spent_ns / NS_PER_SECOND for part, spent_ns in self._spent_ns.items()}


class Samples:
    """Durations of one piece of work, done again and again.

    Parameters
    ----------
    now_ns
        The clock.
    warm_up
        Number of first samples that are measured and forgotten.

    Attributes
    ----------
    durations_ns
        In the order of the work, nanoseconds, without the warm-up.
    """

    def __init__(self, now_ns: NowNs, *, warm_up: int = 0) -> None:
        self._now_ns = now_ns
        self._warm_up = warm_up
        self.durations_ns: list[int] = []

    def measure_work(self, work: Callable[[], T]) -> T:
        """Do the work once more, keep its duration, and return what it returns."""
        began_ns = self._now_ns()
        result = work()
        took_ns = self._now_ns() - began_ns
        if self._warm_up:
            self._warm_up -= 1
        else:
            self.durations_ns.append(took_ns)
        return result

    def median_in(self, ns_per_unit: int) -> float:
        """Return the median in another unit; 0 of nothing."""
        return median(self.durations_ns) / ns_per_unit


def percentile(samples: Sequence[float], percent: float) -> float:
    """Return the least sample that so many percent of the samples do not exceed; 0 of nothing.

    A percentile is a sample of its own, as scheduler_perf has it (nearest rank).
    """
    if not samples:
        return 0.0
    return sorted(samples)[max(0, math.ceil(len(samples) * percent / 100) - 1)]


def median(samples: Sequence[float]) -> float:
    """Return the middle sample, or the mean of the two in the middle; 0 of nothing.

    For a handful of runs. The 50th percentile of two runs would be the faster one.
    """
    return statistics.median(samples) if samples else 0.0


def in_new_processes(
    measure: Callable[..., T], calls: Sequence[tuple[str, int, int]]
) -> Iterator[T]:
    """Yield what a function returns for each tuple of arguments, in order, one after another.

    Each call has a new process, so that none finds the memory or the caches of another.
    """
    fresh = get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=fresh, max_tasks_per_child=1) as pool:
        yield from pool.map(measure, *zip(*calls, strict=True))
