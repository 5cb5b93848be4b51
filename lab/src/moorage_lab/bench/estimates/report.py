"""The figures of estimates, and their table."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from statistics import fmean, median
from typing import Any

import msgspec

from moorage.cli.render import Columns
from moorage.estimates.intervals import SHARE, Interval, interval_of, interval_score
from moorage_lab.bench.estimates.asking import ASKED_AT, EstimateOutcome

_HEADINGS = (
    *("run times", "asked at", "asked", "held", "thirds", "width", "by rate", "score"),
    *("by rate", "by waits"),
)


class EstimateFigures(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """How good the estimates of one kind were; times in seconds.

    Parameters
    ----------
    run_times, asked_at
        What was known, and when the question came.
    questions
        Number of questions.
    covered
        Share of intervals that held; one without an end did not.
    covered_by_third
        The same for short, middle and long waits.
    width_median
        Median width of the intervals.
    width_by_rate
        The same of "position x mean time between starts", widened by factors that are fitted to
        the outcomes so that the same share of them holds.
    score_mean, score_by_rate, score_by_waits
        Mean interval score; of the last waits, the middle share of twenty.
    """

    run_times: str
    asked_at: str
    questions: int
    covered: float
    covered_by_third: tuple[float, ...]
    width_median: float
    width_by_rate: float
    score_mean: float
    score_by_rate: float
    score_by_waits: float


def figures_of(run_times: str, estimates: Sequence[EstimateOutcome]) -> list[EstimateFigures]:
    """Return the figures by the time of the question, for times that anything was asked at."""
    return [
        _figures(run_times, at, [each for each in estimates if each.at == at])
        for at in ASKED_AT
        if any(each.at == at for each in estimates)
    ]


def _figures(run_times: str, at: str, estimates: Sequence[EstimateOutcome]) -> EstimateFigures:
    covered = _covered(estimates)
    rates = _by_rate(estimates, covered)
    by_wait = sorted(estimates, key=lambda each: each.whole_wait)
    cuts = [round(len(by_wait) * part / 3) for part in range(4)]
    return EstimateFigures(
        run_times=run_times,
        asked_at=at,
        questions=len(estimates),
        covered=covered,
        covered_by_third=tuple(_covered(by_wait[low:high]) for low, high in pairwise(cuts)),
        width_median=median(each.shown.high - each.shown.low for each in estimates),
        width_by_rate=median(each.high - each.low for each in rates),
        score_mean=_score(estimates, lambda index: estimates[index].shown),
        score_by_rate=_score(estimates, lambda index: rates[index]),
        score_by_waits=_score(estimates, lambda index: estimates[index].by_waits),
    )


def _covered(estimates: Sequence[EstimateOutcome]) -> float:
    return _mean_or_nan([float(each.shown.holds(each.wait)) for each in estimates])


def _by_rate(estimates: Sequence[EstimateOutcome], covered: float) -> list[Interval]:
    """Return the intervals of the simple rule: the factors are fitted, which favours the rule."""
    ratios = [each.wait / each.by_rate for each in estimates if each.by_rate > 0]
    if not ratios:
        return [Interval(0.0, math.inf) for _ in estimates]
    factors = interval_of(ratios, covered if 0 < covered < 1 else SHARE)
    return [Interval(factors.low * each.by_rate, factors.high * each.by_rate) for each in estimates]


def _score(estimates: Sequence[EstimateOutcome], interval: Callable[[int], Interval]) -> float:
    scores = (interval_score(interval(index), each.wait) for index, each in enumerate(estimates))
    return _mean_or_nan([each for each in scores if math.isfinite(each)])


def _mean_or_nan(values: Sequence[float]) -> float:
    return fmean(values) if values else math.nan


def as_lines(figures: Sequence[EstimateFigures]) -> list[str]:
    """Return the table."""
    return Columns(_HEADINGS).lines([_row(each) for each in figures])


def _row(figures: EstimateFigures) -> list[str]:
    seconds = (figures.width_median, figures.width_by_rate, figures.score_mean)
    width, by_rate, score = (f"{each / 60:.1f} min" for each in seconds)
    return [
        figures.run_times,
        figures.asked_at,
        str(figures.questions),
        f"{figures.covered:.1%}",
        " ".join(f"{each:.0%}" for each in figures.covered_by_third),
        width,
        by_rate,
        score,
        f"{figures.score_by_rate / 60:.1f} min",
        f"{figures.score_by_waits / 60:.1f} min",
    ]


def as_json(figures: Sequence[EstimateFigures]) -> dict[str, Any]:
    """Return everything as plain values."""
    return {"estimates": [msgspec.to_builtins(each) for each in figures]}
