"""Pictures of the series of results: what was in use, fragmented, waiting and evicted, over time.

`panels` collects the lines without drawing. `picture` imports matplotlib, from the extra ``plot``.
"""

from __future__ import annotations

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
_UNITS: Final = ((172_800.0, 86_400.0, "days"), (7_200.0, 3_600.0, "hours"), (0.0, 1.0, "seconds"))


class Line(msgspec.Struct, frozen=True):
    """The points of one run: its configuration, seconds and values."""

    configuration: str
    seconds: list[float]
    values: list[float]


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
    """Draw the lines of a panel; runs of one configuration have one colour."""
    longest = max((line.seconds[-1] for line in panel.lines), default=0.0)
    _, unit, name = next(each for each in _UNITS if longest >= each[0])
    colours: dict[str, str] = {}
    share = panel.metric in ("utilisation", "fragmentation")
    for line in panel.lines:
        known = line.configuration in colours
        colour = colours.setdefault(line.configuration, _COLOURS[len(colours) % len(_COLOURS)])
        axes.step(
            [each / unit for each in line.seconds],
            [100 * each if share else each for each in line.values],
            where="post",
            color=colour,
            alpha=0.8,
            linewidth=1.1,
            label=None if known else line.configuration,
        )
    axes.set_title(panel.title + (", %" if share else ""), loc="left", fontsize=9)
    axes.set_xlabel(name, fontsize=8)
    axes.tick_params(labelsize=8)
    axes.set_ylim(bottom=0)
    axes.grid(visible=True, color="#E5E5E5", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    if legend:
        axes.legend(fontsize=8, frameon=False)
