"""Pictures of the series of results: what was in use, fragmented, waiting and evicted, over time.

`panels` collects the lines without drawing. `picture` imports matplotlib, from the extra ``plot``.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from moorage_lab.traces.results import Results
from moorage_sandbox.pictures.files import as_bytes, check_library, check_picture, write_picture

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's colours, which people with colour-blindness can tell apart.
_COLOURS: Final = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#000000")
_TITLES: Final = {
    "utilisation": "in use",
    "fragmentation": "fragmented, of what is free",
    "pending": "pods without a node",
    "waiting": "mean wait of these pods, s",
    "evictions": "pods evicted",
}
_POINTS: Final = 400
"""Of a band; a picture is not wider than that."""
_UNITS: Final = ((172_800.0, 86_400.0, "days"), (7_200.0, 3_600.0, "hours"), (0.0, 1.0, "seconds"))


class Line(msgspec.Struct, frozen=True):
    """The points of one run: its configuration, seconds and values."""

    configuration: str
    seconds: list[float]
    values: list[float]


class Band(msgspec.Struct, frozen=True):
    """The runs of one configuration: least, mean and greatest value over the seeds, by second."""

    configuration: str
    seconds: list[float]
    low: list[float]
    mean: list[float]
    high: list[float]


class Panel(msgspec.Struct, frozen=True):
    """One picture: its title, and a line for each run."""

    title: str
    metric: str
    lines: list[Line]


def panels(results: Results) -> list[Panel]:
    """Return a panel for each metric and resource of the cluster that is not zero throughout."""
    lines: dict[tuple[str, str], dict[int, Line]] = {}
    for number, run in enumerate(results.of_runs):
        table = run.series
        rows = zip(
            *(table[name] for name in ("seconds", "metric", "scope", "resource", "value")),
            strict=True,
        )
        for seconds, metric, scope, resource, value in rows:
            if scope == "cluster":
                there = lines.setdefault((metric, resource), {})
                line = there.setdefault(number, Line(run.configuration, [], []))
                line.seconds.append(seconds)
                line.values.append(value)
    panel_list = []
    for metric in _TITLES:
        for (name, resource), there in lines.items():
            if name == metric and any(any(line.values) for line in there.values()):
                title = f"{resource} {_TITLES[metric]}".strip()
                panel_list.append(Panel(title, metric, list(there.values())))
    return panel_list


def bands(lines: Sequence[Line]) -> list[Band]:
    """Return a band for each configuration over its seeds, in the order of the lines."""
    by_configuration: dict[str, list[Line]] = {}
    for line in lines:
        by_configuration.setdefault(line.configuration, []).append(line)
    return [_band(name, group) for name, group in by_configuration.items()]


def _band(configuration: str, lines: Sequence[Line]) -> Band:
    if len(lines) == 1:
        (line,) = lines
        return Band(configuration, line.seconds, line.values, line.values, line.values)
    seconds = sorted({each for line in lines for each in line.seconds})
    if len(seconds) > _POINTS:
        step = len(seconds) / _POINTS
        seconds = [seconds[int(step * number)] for number in range(_POINTS)] + seconds[-1:]
    columns = [_values_at(line, seconds) for line in lines]
    at = list(zip(*columns, strict=True))
    return Band(
        configuration,
        seconds,
        [min(each) for each in at],
        [sum(each) / len(each) for each in at],
        [max(each) for each in at],
    )


def _values_at(line: Line, seconds: Sequence[float]) -> list[float]:
    """Return the values of a line at some times; the last value before a time stays."""
    positions = (bisect_right(line.seconds, each) - 1 for each in seconds)
    return [line.values[max(0, each)] for each in positions]


def picture(panel: Panel, form: str = "svg") -> bytes:
    """Return a panel as a picture.

    Parameters
    ----------
    form
        ``svg``, ``png`` or ``pdf``.

    Raises
    ------
    UsageError
        matplotlib is not installed.
    """
    check_library()
    return as_bytes(_figure([panel]), form)


class Pictures:
    """Every panel of a simulation, for a notebook, which shows it as the last line of a cell."""

    def __init__(self, results: Results) -> None:
        self._panels = panels(results)

    def __repr__(self) -> str:
        return f"Pictures of {', '.join(each.title for each in self._panels) or 'nothing'}"

    def _repr_html_(self) -> str:
        pictures = (picture(each).decode() for each in self._panels)
        return "".join(text[text.index("<svg") :] for text in pictures)


def write_pictures(results: Results, file: Path) -> None:
    """Write every panel into one picture; the suffix says the format.

    Raises
    ------
    UsageError
        The suffix is unknown, matplotlib is missing, or the file cannot be written.
    """
    check_picture(file)
    write_picture(_figure(panels(results)), file)


def _figure(shown: Sequence[Panel]) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 2.6 * len(shown) + 0.3), layout="constrained")
    for number, panel in enumerate(shown, start=1):
        _draw(figure.add_subplot(len(shown), 1, number), panel, legend=number == 1)
    return figure


def _draw(axes: Any, panel: Panel, *, legend: bool) -> None:
    """Draw a line and a band for each configuration: mean, least and greatest over its seeds."""
    longest = max((line.seconds[-1] for line in panel.lines), default=0.0)
    _, unit, name = next(each for each in _UNITS if longest >= each[0])
    share = panel.metric in ("utilisation", "fragmentation")
    factor = 100 if share else 1
    for number, band in enumerate(bands(panel.lines)):
        colour = _COLOURS[number % len(_COLOURS)]
        times = [each / unit for each in band.seconds]
        low, mean, high = (
            [factor * each for each in values] for values in (band.low, band.mean, band.high)
        )
        axes.step(times, mean, where="post", color=colour, linewidth=1.1, label=band.configuration)
        if low != high:
            axes.fill_between(times, low, high, step="post", color=colour, alpha=0.2, linewidth=0)
    axes.set_title(panel.title + (", %" if share else ""), loc="left", fontsize=9)
    axes.set_xlabel(name, fontsize=8)
    axes.tick_params(labelsize=8)
    axes.set_ylim(bottom=0)
    axes.grid(visible=True, color="#E5E5E5", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    if legend:
        axes.legend(fontsize=8, frameon=False)
