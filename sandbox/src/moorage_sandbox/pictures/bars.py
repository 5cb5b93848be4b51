"""Draws each node as a bar that shows the requests of its pods.

`panel` counts without drawing. `draw` imports matplotlib, from the extra ``plot``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.quantity import parse_quantity
from moorage.plugins.gpu_share.asking import node_requests
from moorage_sandbox.pictures.files import check_picture, write_picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.patches import Patch

GroupOf = Callable[[Pod], str]
"""The name under which a pod is coloured."""

_BAR_WIDTH: Final = 0.86
# Up to this many bars have room for node names below them.
_NAMED_MAX: Final = 32
# With more bars, each is narrower than its outline, which would cover the colours.
_OUTLINED_MAX: Final = 150
_FINISHED: Final = frozenset({"Succeeded", "Failed"})
_NANO: Final = 1_000_000_000
_GIB: Final = (_NANO * 2**30, "GiB")
# Resource to the nano units in one drawn unit and the unit's name; other resources are counted.
_SCALES: Final = {"cpu": (_NANO, "cores"), "memory": _GIB, "ephemeral-storage": _GIB}
# Okabe and Ito's colours, which people with colour-blindness can tell apart, without the black.
_COLOURS: Final = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442")
_FREE: Final = "#F2F2F2"
_LINE: Final = "#9A9A9A"


class Part(msgspec.Struct, frozen=True):
    """The share of a node that one pod takes, and the name that gives its colour."""

    group: str
    amount: float


class Bar(msgspec.Struct, frozen=True):
    """One node: its allocatable amount, and the pods on it from the bottom up."""

    name: str
    capacity: float
    parts: tuple[Part, ...]

    @property
    def used(self) -> float:
        """Sum of the requests of the pods on the node."""
        return sum(part.amount for part in self.parts)


class Panel(msgspec.Struct, frozen=True):
    """The drawing of one resource over the nodes of a cluster.

    Parameters
    ----------
    title
        Heading; names the cluster.
    resource, unit
        The resource drawn and its unit; unit is "" where the resource is counted.
    bars
        Nodes, in the natural order of their names.
    """

    title: str
    resource: str
    unit: str
    bars: tuple[Bar, ...]

    @property
    def summary(self) -> str:
        """The amount requested, and the number of nodes without pods."""
        having = [bar for bar in self.bars if bar.capacity > 0]
        total = sum(bar.capacity for bar in having)
        used = sum(bar.used for bar in having)
        share = round(100 * used / total) if total else 0
        untouched = sum(bar.used == 0 for bar in having)
        return f"{share} % in use, {untouched} of {len(having)} nodes untouched"


def panel(
    nodes: Sequence[Node], pods: Sequence[Pod], resource: str, *, title: str, group_of: GroupOf
) -> Panel:
    """Sum what pods take of each node; finished and unbound pods do not count."""
    scale, unit = _SCALES.get(resource, (_NANO, ""))
    parts: dict[str, list[Part]] = {}
    by_name = {node.name: node for node in nodes}
    for pod in pods:
        amount = node_requests(pod, by_name.get(pod.spec.node_name)).get(resource, 0)
        if pod.spec.node_name and amount and pod.status.phase not in _FINISHED:
            parts.setdefault(pod.spec.node_name, []).append(Part(group_of(pod), amount / scale))
    bars = (
        Bar(node.name, _allocatable(node, resource) / scale, tuple(parts.get(node.name, ())))
        for node in sorted(nodes, key=lambda node: natural(node.name))
    )
    return Panel(title, resource, unit, tuple(bars))


def natural(name: str) -> tuple[tuple[str, int], ...]:
    """Return a key by which node-2 comes before node-10."""
    found = re.findall(r"(\D*)(\d*)", name)
    return tuple((text, int(digits) if digits else -1) for text, digits in found)


def resources_in_use(nodes: Sequence[Node], pods: Sequence[Pod]) -> list[str]:
    """Return cpu, memory and every extended resource that a bound pod takes of its node."""
    by_name = {node.name: node for node in nodes}
    bound = [pod for pod in pods if pod.spec.node_name]
    names = {name for pod in bound for name in node_requests(pod, by_name.get(pod.spec.node_name))}
    return ["cpu", "memory", *sorted(name for name in names if "/" in name)]


def draw(columns: Sequence[Sequence[Panel]], path: Path) -> None:
    """Draw clusters next to each other, resources below each other, and write the picture.

    Parameters
    ----------
    columns
        For each cluster its panels, the same resources in the same order.
    path
        The suffix selects the format; an existing file is overwritten.

    Raises
    ------
    UsageError
        The file cannot be written, or matplotlib is missing.
    """
    check_picture(path)
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    rows = len(columns[0])
    with rc_context({"font.size": 9}):
        figure = Figure(figsize=(6.0 * len(columns), 0.8 + 2.4 * rows), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.subplots(rows, len(columns), squeeze=False, sharey="row")
        colours = _colours(columns)
        for column, panels in enumerate(columns):
            for row, each in enumerate(panels):
                _draw_panel(axes[row][column], each, colours, first=row == 0)
        handles = [_swatch(name, colour) for name, colour in colours.items()]
        figure.legend(handles=handles, loc="outside lower center", ncols=6, frameon=False)
        write_picture(figure, path, dpi=100)


def _draw_panel(axes: Axes, each: Panel, colours: Mapping[str, str], *, first: bool) -> None:
    from matplotlib.collections import PolyCollection

    # One collection instead of an artist for each part: ten thousand artists take half a minute.
    # Bars first, and their parts on top.
    boxes = [_box(place, 0.0, bar.capacity) for place, bar in enumerate(each.bars)]
    fills = [_FREE] * len(boxes)
    for place, bar in enumerate(each.bars):
        bottom = 0.0
        for part in bar.parts:
            boxes.append(_box(place, bottom, part.amount))
            fills.append(colours[part.group])
            bottom += part.amount
    parts = len(boxes) - len(each.bars)
    outline = len(each.bars) <= _OUTLINED_MAX
    axes.add_collection(
        PolyCollection(
            boxes,
            facecolors=fills,
            edgecolors=[_LINE] * len(each.bars) + ["white"] * parts,
            linewidths=[0.5 * outline] * len(each.bars) + [0.6 * outline] * parts,
        )
    )
    heading = f"{each.title}\n" if first else ""
    axes.set_title(f"{heading}{each.resource}: {each.summary}", fontsize=9)
    axes.set_ylabel(each.unit or each.resource.rpartition("/")[2])
    named = len(each.bars) <= _NAMED_MAX
    axes.set_xticks(list(range(len(each.bars))) if named else [])
    axes.set_xticklabels([bar.name for bar in each.bars] if named else [], rotation=90, fontsize=7)
    axes.spines[["top", "right"]].set_visible(False)
    _set_limits(axes, each)


def _box(place: int, bottom: float, height: float) -> list[tuple[float, float]]:
    """Return the corners of a part of the bar at a place."""
    left, right, top = place - _BAR_WIDTH / 2, place + _BAR_WIDTH / 2, bottom + height
    return [(left, bottom), (left, top), (right, top), (right, bottom)]


def _set_limits(axes: Axes, each: Panel) -> None:
    """Show all bars from zero, with a little room; panels next to each other share the height."""
    count = max(1, len(each.bars))
    axes.set_xlim(-0.5 - 0.01 * count, count - 0.5 + 0.01 * count)
    top = 1.05 * max((max(bar.capacity, bar.used) for bar in each.bars), default=0.0)
    # The row's panels share one axis, so its limit is that of the tallest drawn so far.
    before = axes.get_ylim()[1] if axes.get_autoscaley_on() is False else 0.0
    axes.set_ylim(0.0, max(top, before) or 1.0)


def _colours(columns: Sequence[Sequence[Panel]]) -> dict[str, str]:
    groups = sorted(
        {
            part.group
            for panels in columns
            for each in panels
            for bar in each.bars
            for part in bar.parts
        },
        key=natural,
    )
    return {name: _COLOURS[index % len(_COLOURS)] for index, name in enumerate(groups)}


def _swatch(name: str, colour: str) -> Patch:
    from matplotlib.patches import Patch

    return Patch(facecolor=colour, label=name)


def _allocatable(node: Node, resource: str) -> int:
    amount = node.status.allocatable.get(resource)
    return 0 if amount is None else parse_quantity(amount)
