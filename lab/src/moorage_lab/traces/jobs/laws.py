"""Draws of one seed: how long a job runs, and when jobs come over a day."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

from moorage.base.errors import ConfigError, UsageError
from moorage.base.rng import Random
from moorage_lab.traces.rows import rows_of
from moorage_lab.traces.scenario import RunTime, seconds_of

_DAY_SECONDS: Final = 86_400.0
_HOUR_SECONDS: Final = 3600.0
_FAULTS_SHOWN: Final = 20
RUN_SECONDS_MAX: Final = 10 * 365 * _DAY_SECONDS
"""A longer draw counts as this one; a run ends before it."""


def run_seconds_of(
    law: RunTime, from_source: float | None, known: Sequence[float], rng: Random
) -> float | None:
    """Return how long a job runs; None for ever.

    Parameters
    ----------
    from_source
        As the source says.
    known
        The run times of an empirical law.
    """
    match law.kind:
        case "given":
            return from_source
        case "forever":
            return None
        case "fixed":
            return seconds_of(law.mean)
        case "exponential":
            return rng.expovariate(1 / max(1e-9, seconds_of(law.mean)))
        case "uniform":
            return rng.uniform(seconds_of(law.least), seconds_of(law.most))
        case "lognormal":
            # The logarithm is bounded before it is raised, as a large sigma would overflow.
            log = math.log(max(1e-9, seconds_of(law.median))) + rng.gauss(0.0, law.sigma)
            return math.exp(min(log, math.log(RUN_SECONDS_MAX)))
        case "weibull":
            log = math.log(max(1e-12, -math.log(1 - rng.random()))) / law.shape
            return min(seconds_of(law.scale) * math.exp(min(log, 50.0)), RUN_SECONDS_MAX)
        case "empirical":
            return known[rng.randrange(len(known))]


def known_run_times(law: RunTime) -> list[float]:
    """Return the run times that an empirical law draws from; none for other laws.

    Raises
    ------
    ConfigError
        Rows are no run times; each is listed with its line.
    UsageError
        The file cannot be read, or has no such column or no row.
    """
    if law.kind != "empirical":
        return []
    known, faults = [], []
    for line, row in rows_of(law.file):
        if law.column not in row:
            raise UsageError(f"{law.file}: there is no column {law.column}")
        try:
            seconds = float(row[law.column])
        except ValueError:
            seconds = math.nan
        if 0 <= seconds <= RUN_SECONDS_MAX:
            known.append(seconds)
        else:
            faults.append(f"{law.file}:{line}: {row[law.column]!r} is no run time in seconds")
    if faults:
        raise ConfigError(faults[:_FAULTS_SHOWN])
    if not known:
        raise UsageError(f"{law.file}: there are no rows below its heading")
    return known


def daily_times(
    count: int, mean_gap: float, rng: Random, *, peak_hour: float, swing: float
) -> Iterator[float]:
    """Yield times in seconds from midnight, at a rate that rises and falls over the day.

    Parameters
    ----------
    count
        Number of times.
    mean_gap
        Mean seconds between two of them, over a day.
    peak_hour
        Hour with the highest rate.
    swing
        Departure of the rate from its mean at that hour, from 0 to 1.

    Notes
    -----
    A Poisson process with the rate (1 + swing x cos(time since the peak)) / mean, by thinning one
    of the highest rate (Lewis and Shedler, 1979).
    """
    now = 0.0
    while count:
        now += rng.expovariate((1 + swing) / mean_gap)
        angle = 2 * math.pi * (now - peak_hour * _HOUR_SECONDS) / _DAY_SECONDS
        if rng.random() * (1 + swing) <= 1 + swing * math.cos(angle):
            count -= 1
            yield now
