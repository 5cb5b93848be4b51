"""Classes of members that exclude each other on a node, as further dimensions of a problem.

Where each of some classes excludes all the others, a node takes members of one class only. So a
member takes a share of the node: all of it where its class excludes itself, a third where three
such members fit. Sums of these shares end a search early that amounts alone would not end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from moorage.engine.packing.problem import Amounts, MemberClass, NodeClass, Problem

SHARES: Final = "shares of a node"
"""Name of the dimensions that are added."""

WHOLE: Final = 2520
"""The whole of a node in these dimensions: a number that the first ten whole numbers divide."""


def with_shares(problem: Problem) -> Problem:
    """Return a problem with the same answer and one more dimension for each exclusive set.

    A class that excludes itself is in at least one of these sets.

    Parameters
    ----------
    problem
        The problem, as `reduced` returns it.
    """
    sets = exclusive_sets(problem)
    if not sets:
        return problem
    fitting = [[_fitting(problem, at, node) for at in _every(problem)] for node in problem.nodes]
    most = [max((each[at] for each in fitting), default=0) for at in _every(problem)]
    shares = [
        [WHOLE // max(1, most[at]) if at in exclusive else 0 for at in _every(problem)]
        for exclusive in sets
    ]
    return msgspec.structs.replace(
        problem,
        dimensions=(*problem.dimensions, *([SHARES] * len(sets))),
        members=tuple(
            MemberClass((*each.demand, *(by_class[at] for by_class in shares)), each.count)
            for at, each in enumerate(problem.members)
        ),
        nodes=tuple(
            NodeClass((*node.free, *_free(shares, numbers)), node.admits, node.nodes)
            for node, numbers in zip(problem.nodes, fitting, strict=True)
        ),
    )


def _free(shares: Sequence[Sequence[int]], numbers: Sequence[int]) -> Amounts:
    """Return what one class of each set can take of a node at most."""
    return tuple(
        max(share * number for share, number in zip(by_class, numbers, strict=True))
        for by_class in shares
    )


def _fitting(problem: Problem, at: int, node: NodeClass) -> int:
    """Return how many members of one class fit on a node of a class."""
    if at not in node.admits:
        return 0
    each = problem.members[at]
    most = 1 if (at, at) in problem.apart else each.count
    amounts = zip(each.demand, node.free, strict=True)
    return min([most, *(max(0, free) // some for some, free in amounts if some)])


def exclusive_sets(problem: Problem) -> list[tuple[int, ...]]:
    """Return sets of classes of which each excludes all the others; ascending, none twice.

    Each pair that excludes itself is in a set, and so is each class that excludes itself.
    """
    neighbours = [excluded_by(problem, at) for at in _every(problem)]
    sets: dict[tuple[int, ...], None] = {}
    for first in _every(problem):
        exclusive = [first]
        # Classes with many neighbours make large sets, and large sets make good bounds.
        others = sorted(neighbours[first] - {first}, key=lambda at: (-len(neighbours[at]), at))
        for other in others:
            if all(each in neighbours[other] for each in exclusive):
                exclusive.append(other)
        if len(exclusive) > 1 or first in neighbours[first]:
            sets[tuple(sorted(exclusive))] = None
    return [*sets]


def excluded_by(problem: Problem, at: int) -> set[int]:
    """Return the classes that a class excludes, perhaps itself among them."""
    return {one if other == at else other for one, other in problem.apart if at in (one, other)}


def _every(problem: Problem) -> range:
    return range(len(problem.members))
