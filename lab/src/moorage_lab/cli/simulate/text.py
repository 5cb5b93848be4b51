"""The results of a simulation as text for people; pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from moorage_lab.traces.results import Results
from moorage_lab.traces.statistics import Interval, difference, interval

_COUNTS: Final = ("placed", "pending", "completed", "evicted", "lost", "gaveUp")
_ALWAYS: Final = ("placed", "pending")
_DIGEST_SHOWN: Final = 12


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
        elif metric == "fragmentationEnd" and _any(results, name):
            columns.append((name, f"{short} FRAGMENTED", _percent))
    return columns


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
    return f"{value:.3g} s"


def _percent(value: float) -> str:
    return f"{100 * value:.1f} %"


def _aligned(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[n]) for row in rows) for n in range(len(rows[0]))]
    return "\n".join(
        "   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )
