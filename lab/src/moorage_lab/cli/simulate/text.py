"""The results of a simulation as text for people; pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from moorage_lab.traces.results import Results
from moorage_lab.traces.statistics import Interval, difference, interval

_COUNTS: Final = ("placed", "pending", "completed", "evicted", "lost", "gaveUp")
_ALWAYS: Final = ("placed", "pending")
_DIGEST_SHOWN: Final = 12
_WIDTH: Final = 80
_GAP: Final = "   "
_TIME_UNITS: Final = ((172_800.0, 86_400.0, "d"), (7200.0, 3600.0, "h"), (1000.0, 60.0, "min"))


def report(results: Results) -> str:
    """Return the tables of a simulation: figures, differences, and digests of placements."""
    parts = [_figures(results)]
    if len(results.configurations) > 1:
        parts.append(_differences(results))
    parts.append(_digests(results))
    return "\n\n".join(parts)


def _shown(results: Results) -> list[tuple[str, str, Callable[[float], str]]]:
    """Return the metrics that are shown, each with its heading and form."""
    columns: list[tuple[str, str, Callable[[float], str]]] = [
        (name, "GAVE UP" if name == "gaveUp" else name.upper(), _count)
        for name in _COUNTS
        if name in _ALWAYS or _any(results, name)
    ]
    columns += [
        ("nodesUsed", "NODES USED", _count),
        ("waitP50", "WAIT P50", _seconds),
        ("waitP99", "WAIT P99", _seconds),
    ]
    for name in results.metrics:
        metric, _, resource = name.partition("/")
        short = resource.rpartition("/")[2].upper()
        if metric == "utilisationMean":
            columns.append((name, f"{short} USED", _percent))
        elif metric == "utilisationEnd" and _any(results, name):
            columns.append((name, f"{short} AT END", _percent))
        elif name in _JOB_FIGURES and _has_jobs(results):
            columns.append((name, *_JOB_FIGURES[name]))
        elif metric == "fragmentationEnd" and _any(results, name):
            columns.append((name, f"{short} FRAGMENTED", _percent))
    return columns


def _has_jobs(results: Results) -> bool:
    """Whether pods end, so that figures of jobs say something."""
    return _any(results, "jobsCompleted")


def _any(results: Results, name: str) -> bool:
    """Whether a figure is not zero in every run."""
    return any(value for c in results.configurations for value in results.values(c, name))


def _figures(results: Results) -> str:
    shown = _shown(results)
    rows = [["CONFIGURATION", "SEEDS", *(heading for _, heading, _ in shown)]]
    for configuration in results.configurations:
        count = len(results.values(configuration, "placed"))
        cells = [
            _with_half(interval(results.values(configuration, name)), form)
            for name, _, form in shown
        ]
        rows.append([configuration, str(count), *cells])
    return _aligned(rows)


def _differences(results: Results) -> str:
    base, *others = results.configurations
    rows = [["DIFFERENCE FROM " + base.upper(), "METRIC", "MEAN", "95 % FROM", "TO"]]
    for configuration in others:
        for name, heading, form in _shown(results):
            interval = difference(results.values(configuration, name), results.values(base, name))
            if not interval.mean and not interval.half:
                continue
            low = "-" if interval.low is None else form(interval.low)
            high = "-" if interval.high is None else form(interval.high)
            rows.append([configuration, heading.lower(), form(interval.mean), low, high])
    if len(rows) == 1:
        return "No figure differs."
    return _aligned(rows)


def _digests(results: Results) -> str:
    rows = [["CONFIGURATION", "SEED", "PLACEMENTS", "TOOK"]]
    for each in results.of_runs:
        took = f"{each.took_seconds:.2f} s"
        rows.append([each.configuration, str(each.seed), each.digest[:_DIGEST_SHOWN], took])
    return _aligned(rows)


def _with_half(interval: Interval, form: Callable[[float], str]) -> str:
    return (
        form(interval.mean)
        if interval.half is None
        else f"{form(interval.mean)} ± {form(interval.half)}"
    )


def _count(value: float) -> str:
    return f"{value:.0f}" if value == round(value) else f"{value:.1f}"


def _seconds(value: float) -> str:
    """Return a time; long ones in hours or days, as seconds in the thousands say little."""
    for least, seconds, unit in _TIME_UNITS:
        if abs(value) >= least:
            return f"{value / seconds:.3g} {unit}"
    return f"{value:.3g} s"


def _plain(value: float) -> str:
    return f"{value:.3g}"


def _percent(value: float) -> str:
    return f"{100 * value:.1f} %"


def _aligned(rows: Sequence[Sequence[str]], first: int = 1) -> str:
    """Return rows under each other; columns beyond 80 letters follow below, after the first ones.

    Parameters
    ----------
    first
        Number of columns at the left that are repeated.
    """
    widths = [max(len(row[n]) for row in rows) for n in range(len(rows[0]))]
    left = range(min(first, len(widths)))
    blocks: list[list[int]] = [[*left]]
    for column in range(len(left), len(widths)):
        used = sum(widths[each] + len(_GAP) for each in blocks[-1]) + widths[column]
        if used > _WIDTH and len(blocks[-1]) > len(left):
            blocks.append([*left])
        blocks[-1].append(column)
    return "\n\n".join(
        "\n".join(
            _GAP.join(row[column].ljust(widths[column]) for column in block).rstrip()
            for row in rows
        )
        for block in blocks
    )


_JOB_FIGURES: Final[dict[str, tuple[str, Callable[[float], str]]]] = {
    "jobs": ("JOBS", _count),
    "jobsCompleted": ("JOBS DONE", _count),
    "jobCompletionMean": ("JOB TIME", _seconds),
    "jobCompletionP90": ("JOB TIME P90", _seconds),
    "slowdownMean": ("SLOWDOWN", _plain),
    "groupWaitMean": ("GROUP WAIT", _seconds),
    "groupWaitP90": ("GROUP WAIT P90", _seconds),
    "fairnessSlowdown": ("JAIN, SLOWDOWN", _plain),
    "fairnessShare": ("JAIN, SHARE", _plain),
    "gpuHours": ("GPU HOURS", _plain),
    "makespan": ("MAKESPAN", _seconds),
}
"""The figures of jobs: heading and form."""
