"""The table of a benchmark of job queues, for people and for programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from moorage.cli.render import Columns
from moorage_lab.bench.queues.experiment import QueueRun

_HEADINGS = (
    *("trace", "policy", "backfill", "slowdown", "published"),
    *("used", "published", "mean wait", "longest"),
)
_VALUES_A_RUN = 2


def as_lines(runs: Sequence[QueueRun]) -> list[str]:
    """Return the table, and how many of the published values are equal."""
    lines = Columns(_HEADINGS).lines(map(_row, runs))
    means = _means(runs)
    if means:
        lines += ["", *Columns(("mean of", "policy", "backfill", "slowdown", "worst")).lines(means)]
    if any(run.published for run in runs):
        equal, total = equal_values(runs)
        lines += ["", f"{equal} of {total} published values are equal to the last digit"]
    return lines


def equal_values(runs: Sequence[QueueRun]) -> tuple[int, int]:
    """Return how many published values are equal, and how many there are."""
    known = [run for run in runs if run.published is not None]
    return sum(run.equal for run in known), _VALUES_A_RUN * len(known)


def as_json(runs: Sequence[QueueRun]) -> dict[str, Any]:
    """Return everything as plain values."""
    equal, total = equal_values(runs)
    return {
        "runs": [run.as_json() for run in runs],
        "publishedValues": total,
        "publishedValuesEqual": equal,
    }


def _row(run: QueueRun) -> list[str]:
    published = run.published
    return [
        run.trace,
        run.policy,
        "EASY" if run.backfill else "none",
        f"{run.slowdown:.2f}",
        "-" if published is None else published.slowdown,
        f"{run.utilisation:.3f}",
        "-" if published is None else published.utilisation,
        _duration(run.wait_mean_seconds),
        _duration(run.wait_max_seconds),
    ]


def _means(runs: Sequence[QueueRun]) -> list[list[str]]:
    """Return a row for each policy over all traces that were drawn in the same way."""
    groups: dict[tuple[str, str, bool], list[float]] = {}
    for run in runs:
        if run.kinds:
            groups.setdefault((run.kinds, run.policy, run.backfill), []).append(run.slowdown)
    return [
        [
            f"{kinds}, {len(values)} seeds",
            policy,
            "EASY" if easy else "none",
            f"{sum(values) / len(values):.2f}",
            f"{max(values):.2f}",
        ]
        for (kinds, policy, easy), values in groups.items()
        if len(values) > 1
    ]


def _duration(seconds: float) -> str:
    """Return a time that a person can compare: minutes below two hours, then hours, then days."""
    if seconds < 7200:
        return f"{seconds / 60:.1f} min"
    if seconds < 48 * 3600:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 86400:.1f} d"
