"""Compares the sizes of an axis: a table, how often the time grew, and a picture."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from moorage_lab.bench.growth.axes import AXES
from moorage_lab.bench.growth.run import Point
from moorage_sandbox.pictures.files import check_picture, write_picture

# The largest size may take so many times as long as the smallest, and still counts as flat.
_FLAT: Final = 1.5
_BLUE, _ORANGE = "#0072B2", "#E69F00"


class Growth(msgspec.Struct, frozen=True):
    """The sizes of one axis.

    Parameters
    ----------
    axis
        What grew.
    times, size_times
        How many times as long a pod takes at the largest size as at the smallest, and how many
        times as large that is.
    points
        The measurements by size.
    """

    axis: str
    times: float
    size_times: float
    points: tuple[Point, ...]

    @property
    def judgement(self) -> str:
        """Whether the time is flat, grows at most as much as the size, or more."""
        if self.times <= _FLAT:
            return "flat"
        return "at most linear" if self.times <= self.size_times else "more than linear"

    @property
    def bytes_each(self) -> float:
        """The growth of the peak memory for each one more, in bytes; 0 for a single size."""
        first, last = self.points[0], self.points[-1]
        grown = last.memory_mib - first.memory_mib
        return grown * 2**20 / (last.size - first.size) if last.size > first.size else 0.0

    def as_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            **msgspec.to_builtins(self),
            "judgement": self.judgement,
            "bytes_each": self.bytes_each,
        }

    def as_lines(self) -> list[str]:
        """Return a table for people."""
        return [
            f"{self.axis}: {AXES[self.axis].about}",
            "      size   decision       pod     memory   placements",
            *(
                f"{each.size:10,}  {each.decision_us:6.0f} us  {each.pod_us:6.0f} us"
                f"  {each.memory_mib:6.0f} MiB   {each.digest[:12]}"
                for each in self.points
            ),
            f"  {self.judgement}: {self.times:.2f}x the time for {self.size_times:,.0f}x the size; "
            f"{self.bytes_each:,.0f} bytes for each more",
        ]


def growths(points: Sequence[Point]) -> list[Growth]:
    """Return the growth along each axis, in the order of the points."""
    by_axis: dict[str, list[Point]] = {}
    for point in points:
        by_axis.setdefault(point.axis, []).append(point)
    return [_growth(axis, there) for axis, there in by_axis.items()]


def _growth(axis: str, points: Sequence[Point]) -> Growth:
    first, last = points[0], points[-1]
    return Growth(axis, last.pod_us / first.pod_us, last.size / first.size, tuple(points))


def draw(growths: Sequence[Growth], file: Path) -> None:
    """Draw each axis with both scales logarithmic; the suffix of the file says the format.

    Raises
    ------
    UsageError
        matplotlib is not installed, or the file cannot be written.
    """
    check_picture(file)
    from matplotlib.figure import Figure

    rows = math.ceil(len(growths) / 2)
    figure = Figure(figsize=(8, 2.6 * rows), layout="constrained")
    for number, each in enumerate(growths, start=1):
        axes = figure.add_subplot(rows, min(2, len(growths)), number)
        sizes = [point.size for point in each.points]
        axes.plot(sizes, [point.pod_us for point in each.points], "o-", color=_BLUE, label="pod")
        decisions = [point.decision_us for point in each.points]
        axes.plot(sizes, decisions, "s--", color=_ORANGE, label="decision")
        axes.set(xscale="log", yscale="log", xlabel=each.axis, ylabel="us")
        axes.set_title(f"{each.axis}: {each.judgement}", loc="left", fontsize=9)
        axes.grid(visible=True, color="#E5E5E5", linewidth=0.6)
        axes.legend(fontsize=8, frameon=False)
    write_picture(figure, file)
