"""The options of ``moorage up`` that say which nodes there are, and whether they come and go."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypedDict

import click

from moorage.cli.options import shape_option

_NODES = 20


class NodeOptions(TypedDict):
    """The values that `node_options` passes to the command."""

    node_count: int | None
    nodes_from: Path | None
    shapes: tuple[str, ...]
    autoscale: str
    autoscale_idle: str


_OPTIONS = (
    click.option(
        "--nodes",
        "node_count",
        type=click.IntRange(0, 20_000),
        default=None,
        metavar="N",
        help="How many fake nodes, of 8 cpu and 32Gi each, in three zones. Default: 20.",
    ),
    click.option(
        "--nodes-from",
        type=click.Path(path_type=Path),
        default=None,
        metavar="FILE",
        help="Fake nodes as written in FILE: Nodes, YAML or JSON, one, several or a List.",
    ),
    shape_option,
    click.option(
        "--autoscale",
        default="",
        metavar="MIN:MAX",
        help="Add nodes of the given shapes while pods are pending that would fit there, and "
        "remove empty ones. The cluster starts with MIN nodes, unless --nodes says how many.",
    ),
    click.option(
        "--autoscale-idle",
        default="60s",
        show_default=True,
        metavar="TIME",
        help="How long a node has to be empty before it is removed, in the cluster's time.",
    ),
)


def node_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options to a command."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def are_default(options: NodeOptions) -> bool:
    """Whether nothing was said about the nodes; then a stored cluster keeps its own nodes."""
    return not (options["node_count"] is not None or options["nodes_from"] or options["shapes"])


def templates_of(options: NodeOptions) -> list[dict[str, object]]:
    """Return the templates of the first nodes.

    Raises
    ------
    UsageError
        Options exclude each other, or a value is none.
    """
    count, file = options["node_count"], options["nodes_from"]
    from moorage.nodeshapes.templates import default_nodes, load_nodes

    if count is not None and file is not None:
        raise click.UsageError("--nodes and --nodes-from exclude each other; keep one")
    if options["shapes"] and file is not None:
        raise click.UsageError("--shape and --nodes-from exclude each other; keep one")
    first = _first_count(options)
    if file is not None:
        return load_nodes(file)
    if options["shapes"]:
        from moorage.nodeshapes.shapes import parse_shape, shaped_nodes

        shapes = [parse_shape(text) for text in options["shapes"]]
        if count is None and any(shape.count is None for shape in shapes):
            own = sum(shape.count or 0 for shape in shapes)
            count = max(first, own) if options["autoscale"] else first
        return shaped_nodes(shapes, count)
    return default_nodes(first if count is None else count)


def _first_count(options: NodeOptions) -> int:
    """Return how many nodes there are at the start, unless the options say so."""
    if not options["autoscale"]:
        return _NODES
    from moorage_sandbox.sandbox.scaling.groups import groups_of, idle_seconds_of, parse_bounds

    bounds, count = parse_bounds(options["autoscale"]), options["node_count"]
    groups_of(options["shapes"])
    idle_seconds_of(options["autoscale_idle"])
    if count is not None and count > bounds.most:
        raise click.UsageError(
            f"--nodes {count} is more than --autoscale {options['autoscale']} allows"
        )
    return bounds.least
