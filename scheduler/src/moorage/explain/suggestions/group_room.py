"""Suggestions that make room for a whole group: a node changed, or further nodes of a shape.

Each is tried: the group is decided with the change, as in an attempt.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Final

from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.engine.inquiry import Inquiry
from moorage.explain.answer import Suggestion
from moorage.explain.groups import MEMBERS_MOST, Together
from moorage.explain.patches import patched
from moorage.explain.suggestions.node_changes import node_changed, node_changes
from moorage.explain.suggestions.nodes import (
    SHAPES_MOST,
    free_node_name,
    node_added,
    node_like,
    node_shapes,
    node_to_create,
    shape_text,
)
from moorage.explain.suggestions.ranked import NODE, RankedSuggestion

_NODES_MOST: Final = 8
"""Further nodes of one shape, at most; a guess."""


def fits_with_group(group: Together, pod: Pod, ranked: RankedSuggestion) -> bool:
    """Whether the group is placed after a change of its pod; other objects may not change.

    Those are tried by `room_for_group`, for the whole group.
    """
    patch = ranked.suggestion.patch
    if not patch or ranked.suggestion.evicted:
        return False
    return group.fits(changed=patched(pod, patch))


def room_for_group(group: Together, inquiry: Inquiry) -> Iterator[RankedSuggestion]:
    """Yield changes of nodes with which the pod gets a place together with its group.

    Parameters
    ----------
    group
        The pod's group, to which no member is missing.
    inquiry
        What the plugins say about the pod.
    """
    if group.is_short or group.terms.minimum > MEMBERS_MOST:
        return
    snapshot = inquiry.snapshot
    kinds: set[str] = set()
    for change in node_changes(inquiry):
        if change.kind in kinds:
            continue
        with node_changed(snapshot, change.node, change.patch):
            node = group.place()
        if node:
            kinds.add(change.kind)
            yield change.suggestion(nodes=1, node=node)
    least: RankedSuggestion | None = None
    for row, count in node_shapes(snapshot)[:SHAPES_MOST]:
        most = _NODES_MOST if least is None else len(least.suggestion.create) - 1
        more = _more_nodes(group, row, most)
        if more:
            nodes, node = more
            number = "one more node" if len(nodes) == 1 else f"{len(nodes)} more nodes"
            suggestion = Suggestion(
                kind="node",
                text=f"{number} {shape_text(snapshot.node(row), group.pod, count)}",
                nodes=1,
                node=node,
                create=tuple(map(node_to_create, nodes)),
            )
            least = RankedSuggestion(NODE, suggestion)
    if least is not None:
        yield least


def _more_nodes(group: Together, row: int, most: int) -> tuple[list[Node], str] | None:
    """Return the fewest nodes like one that make room for a group, and the pod's node then.

    Parameters
    ----------
    group
        The group.
    row
        The row of the example.
    most
        The number of further nodes, at most.
    """
    low, least = 1, None
    high = most
    while low <= high:
        # All at first: most shapes are of no help at all.
        number = high if least is None else (low + high) // 2
        tried = _with_nodes(group, row, number)
        if tried[1]:
            least, high = tried, number - 1
        elif least is None:
            return None
        else:
            low = number + 1
    return least


def _with_nodes(group: Together, row: int, number: int) -> tuple[list[Node], str]:
    """Return further nodes like one, and the pod's node with them; "" where the group has none."""
    snapshot, nodes = group.snapshot, list[Node]()
    example = snapshot.node(row)
    with ExitStack() as added:
        for _ in range(number):
            nodes.append(node_like(example, free_node_name(snapshot)))
            added.enter_context(node_added(snapshot, nodes[-1], row))
        return nodes, group.place()
