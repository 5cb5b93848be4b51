"""Node groups of the autoscaler: one for each shape and zone, the smallest first. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from moorage.api.node import Node
from moorage.api.quantity import parse_quantity
from moorage.api.schedules.durations import parse_seconds
from moorage.base.errors import UsageError
from moorage.nodeshapes.new_nodes import DEFAULT_SHAPE, PREFIX, played
from moorage.nodeshapes.shapes import Shape, parse_shape, shaped_nodes
from moorage.nodeshapes.templates import ZONES, NodeTemplate

ZONE: Final = "topology.kubernetes.io/zone"
_BOUNDS: Final = re.compile(r"(\d{1,5}):(\d{1,5})")
_MOST: Final = 20_000


class Bounds(msgspec.Struct, frozen=True):
    """The least and the greatest number of nodes of a cluster."""

    least: int
    most: int


def parse_bounds(text: str) -> Bounds:
    """Read ``MIN:MAX``.

    Raises
    ------
    UsageError
        The text is something else.
    """
    match = _BOUNDS.fullmatch(text)
    if not match or not int(match[1]) <= int(match[2]) <= _MOST or match[2] == "0":
        raise UsageError(f"{text}: write MIN:MAX, such as 3:20, MAX at most {_MOST}")
    return Bounds(int(match[1]), int(match[2]))


def idle_seconds_of(text: str) -> float:
    """Read how long a node has to be empty, such as ``60s`` or ``10m``.

    Raises
    ------
    UsageError
        The text is no such time.
    """
    try:
        seconds = parse_seconds(text)
    except ValueError as error:
        raise UsageError(f"{text}: {error}; write a time such as 60s or 10m") from error
    if seconds < 0:
        raise UsageError(f"{text}: a time is not negative")
    return seconds


class NodeGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Nodes of one shape in one zone.

    Parameters
    ----------
    name
        The shape as it was written, and the zone.
    """

    name: str
    shape: Shape
    zone: str

    def template(self, number: int) -> NodeTemplate:
        """Return the template of a new node."""
        (template,) = shaped_nodes([self.shape], 1, prefix=PREFIX, first=number)
        metadata: Any = template["metadata"]
        labels = metadata["labels"] | {ZONE: self.zone}
        return played({**template, "metadata": {**metadata, "labels": labels}})

    def fits_node(self, node: Node) -> bool:
        """Whether a node has the shape and the zone of the group."""
        labels = self.shape.labels | {ZONE: self.zone}
        taints = {(each["key"], each["effect"]) for each in self.shape.taints}
        return (
            dict(node.status.capacity) == self.shape.resources
            and labels.items() <= node.metadata.labels.items()
            and taints <= {(each.key, each.effect) for each in node.spec.taints}
        )


def groups_of(texts: Sequence[str]) -> list[NodeGroup]:
    """Return the groups of some shapes, smallest shape first; without shapes, of default nodes.

    A shape with fewer extended resources is smaller; then cpu counts, then memory.

    Raises
    ------
    UsageError
        A text is no shape.
    """
    named = [
        (_without_count(text), msgspec.structs.replace(parse_shape(text), count=None))
        for text in texts
    ]
    shapes = sorted(named or [("default", DEFAULT_SHAPE)], key=lambda each: _size(each[1]))
    return [
        NodeGroup(name=f"{name}/{zone}", shape=shape, zone=zone)
        for name, shape in shapes
        for zone in ([shape.labels[ZONE]] if ZONE in shape.labels else ZONES)
    ]


def _without_count(text: str) -> str:
    return ",".join(part for part in text.split(",") if not part.strip().startswith("count="))


def _size(shape: Shape) -> tuple[int, int, int]:
    amounts = {name: parse_quantity(amount) for name, amount in shape.resources.items()}
    extended = sum(amount for name, amount in amounts.items() if "/" in name)
    return extended, amounts["cpu"], amounts["memory"]
