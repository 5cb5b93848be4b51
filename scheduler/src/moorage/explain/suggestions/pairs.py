"""Pairs of changes, for a pod that no single change helps.

The first change is one of a part of the pod, or of a node; with it made on trial, every
kind of change is tried as the second. Two evictions or two requests are no pairs: preemption and
the kind ``request`` look for several at once. A change of a node and a new node are no pair either:
the new one would have the change, and the other would not need it. The number of first changes is
bounded by their work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Final, NamedTuple

import msgspec

from moorage.api.patch_operations import Operation
from moorage.engine.attempt import CycleError
from moorage.engine.inquiry import inquire
from moorage.explain.answer import Suggestion
from moorage.explain.causes import find_causes
from moorage.explain.emptied import empty_nodes
from moorage.explain.patches import patched
from moorage.explain.suggestions.group_room import fits_with_group
from moorage.explain.suggestions.node_changes import NodeChange, node_changed, node_changes
from moorage.explain.suggestions.nodes import NEW_NODE
from moorage.explain.suggestions.parts import part_changes, taint_changes
from moorage.explain.suggestions.ranked import RankedSuggestion
from moorage.explain.trying import Trying
from moorage.snapshot.pod_info import PodInfo

Kind = Callable[[Trying], Iterator[RankedSuggestion]]

_TRIES: Final = 8
"""Second changes that are tried against every node, for each first change."""
_EMPTIED_MOST: Final = 8


class Pairs(NamedTuple):
    """The pairs that were found, and how many first changes were tried of how many."""

    suggestions: list[RankedSuggestion]
    tried: int
    of: int


class _First(NamedTuple):
    text: str
    size: float
    patch: tuple[Operation, ...] = ()
    change: NodeChange | None = None


def find_pairs(trying: Trying, kinds: Sequence[Kind], *, nodes_most: int) -> Pairs:
    """Return the smallest pair with each first change that helps.

    Parameters
    ----------
    trying
        The pod, which no single change helps.
    kinds
        The kinds of second changes.
    nodes_most
        How many nodes are asked about for all first changes, at most.
    """
    firsts = list(_firsts(trying))
    count = min(len(firsts), nodes_most // max(1, trying.inquiry.snapshot.num_nodes))
    pairs: list[RankedSuggestion] = []
    keys: set[frozenset[str]] = set()
    for first in firsts[:count]:
        second = min(_seconds(trying, first, kinds), key=lambda each: each.size, default=None)
        if second is None:
            continue
        key = frozenset({first.text, second.suggestion.text})
        if key not in keys:
            keys.add(key)
            pairs.append(_pair(first, second))
    return Pairs(pairs, count, len(firsts))


def _firsts(trying: Trying) -> Iterator[_First]:
    for change in (*taint_changes(trying), *part_changes(trying)):
        yield _First(change.text, change.size, change.patch)
    if trying.group is None:
        for each in node_changes(trying.inquiry):
            yield _First(each.text, each.size, change=each)


def _seconds(trying: Trying, first: _First, kinds: Sequence[Kind]) -> Iterator[RankedSuggestion]:
    """Yield the second changes that help after a first one."""
    at, before = trying.inquiry.attempt, trying.pod
    made: AbstractContextManager[object] = nullcontext()
    if first.change is not None:
        made = node_changed(at.snapshot, first.change.node, first.change.patch)
    with made:
        try:
            pod = patched(before, first.patch)
            inquiry = inquire(at.profile, at.snapshot, PodInfo(pod))
            if inquiry.fits_n.any():
                return
            emptied = empty_nodes(inquiry, rows_most=_EMPTIED_MOST)
            causes = find_causes(inquiry, emptied)
            after = Trying(inquiry, emptied, causes, tries=_TRIES, group=trying.group)
            for kind in kinds:
                for each in kind(after):
                    if first.change is not None and each.suggestion.node == NEW_NODE:
                        continue
                    group = after.group
                    if group is None or fits_with_group(group, after.pod, each):
                        yield each
        except CycleError:
            return


def _pair(first: _First, second: RankedSuggestion) -> RankedSuggestion:
    suggestion, before = second.suggestion, _suggestion_of(first)
    pair = Suggestion(
        kind="pair",
        text=f"{first.text}, and {suggestion.text}",
        nodes=suggestion.nodes,
        node=suggestion.node,
        patch=(*before.patch, *suggestion.patch),
        delete=suggestion.delete,
        also_delete=suggestion.also_delete,
        create=suggestion.create,
        evicted=suggestion.evicted,
        uncordon=before.uncordon or suggestion.uncordon,
        changes=(*before.changes, *suggestion.changes),
        command=" && ".join(filter(None, (before.command, suggestion.command))),
    )
    return msgspec.structs.replace(second, size=first.size + second.size, suggestion=pair)


def _suggestion_of(first: _First) -> Suggestion:
    if first.change is not None:
        return first.change.suggestion(nodes=0, node=first.change.node).suggestion
    return Suggestion(kind="", text=first.text, nodes=0, node="", patch=first.patch)
