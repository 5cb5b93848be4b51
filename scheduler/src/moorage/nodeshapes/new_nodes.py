"""Builds the nodes that join a running sandbox. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

from moorage.nodeshapes.annotations import PLAYED
from moorage.nodeshapes.shapes import Shape, shaped_nodes
from moorage.nodeshapes.templates import DEFAULT_RESOURCES, NodeTemplate

PREFIX: Final = "node"
DEFAULT_SHAPE: Final = Shape(resources=DEFAULT_RESOURCES)
_NUMBERED: Final = re.compile(rf"{PREFIX}-(\d{{1,9}})")


def highest_number(names: Iterable[str]) -> int:
    """Return the highest number of nodes named ``node-NUMBER``; 0 for none."""
    found = (_NUMBERED.fullmatch(name) for name in names)
    return max((int(match[1]) for match in found if match), default=0)


def new_nodes(shapes: Sequence[Shape], count: int, *, first: int) -> list[NodeTemplate]:
    """Return nodes to create, with the annotation that asks the sandbox's agents to play them.

    Parameters
    ----------
    shapes
        Their shapes, as for `shaped_nodes`; empty for default nodes.
    first
        Number of the first node.

    Raises
    ------
    UsageError
        The counts of the shapes do not agree with `count`.
    """
    templates = shaped_nodes(shapes or (DEFAULT_SHAPE,), count, prefix=PREFIX, first=first)
    return [played(template) for template in templates]


def played(template: NodeTemplate) -> NodeTemplate:
    """Return a template with the annotation that asks agents to play the node."""
    metadata: Any = template["metadata"]
    annotations = {**metadata.get("annotations", {}), PLAYED: "true"}
    return {**template, "metadata": {**metadata, "annotations": annotations}}
