"""Means over seeds, and how far they can be trusted."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist, fmean, stdev
from typing import Final

import msgspec

# Student's t, 97.5 %, for 1 to 30 degrees of freedom (any table of the distribution).
_T: Final = (
    12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281,
    2.2010, 2.1788, 2.1604, 2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860,
    2.0796, 2.0739, 2.0687, 2.0639, 2.0595, 2.0555, 2.0518, 2.0484, 2.0452, 2.0423,
)  # fmt: skip


class Interval(msgspec.Struct, frozen=True):
    """A mean with its 95 % confidence interval.

    Parameters
    ----------
    mean
        Of the values.
    low, high
        Bounds of the interval; None with a single value.
    count
        Number of values.
    """

    mean: float
    low: float | None
    high: float | None
    count: int

    @property
    def half(self) -> float | None:
        """Half the width of the interval."""
        return None if self.high is None else self.high - self.mean


def t_quantile(freedom: int) -> float:
    """Return the 97.5 % quantile of Student's t.

    Notes
    -----
    Beyond the table, Hill's expansion of the normal quantile: exact to four digits there.
    """
    if freedom <= len(_T):
        return _T[freedom - 1]
    z = NormalDist().inv_cdf(0.975)
    first = (z**3 + z) / (4 * freedom)
    second = (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
    return z + first + second


def interval(values: Sequence[float]) -> Interval:
    """Return the mean of values with its 95 % confidence interval, by Student's t.

    Parameters
    ----------
    values
        One a seed; at least one.
    """
    mean = fmean(values)
    if len(values) < 2:
        return Interval(mean, None, None, len(values))
    half = t_quantile(len(values) - 1) * stdev(values) / math.sqrt(len(values))
    return Interval(mean, mean - half, mean + half, len(values))


def difference(of: Sequence[float], base: Sequence[float]) -> Interval:
    """Return the mean difference of values that belong together, such as those of the same seeds.

    Two configurations see the same pods under the same seed, so the differences vary less than the
    values themselves.
    """
    return interval([one - other for one, other in zip(of, base, strict=True)])


def percentile(ordered: Sequence[float], percent: int) -> float:
    """Return the value below which so many percent of ordered values are; 0 of nothing."""
    if not ordered:
        return 0.0
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]
