"""Members and nodes in classes, as numbers; a problem without what cannot matter.

Amounts of every dimension are whole numbers of one unit: cpu, memory, devices, the number of pods.
A rule between members on one node is a dimension too: "at most one of these on a node" is an amount
of 1 of each, and a node that has 1.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import TypeAlias

import msgspec

Amounts: TypeAlias = tuple[int, ...]
"""An amount of each dimension, in the order of `Problem.dimensions`."""
Counts: TypeAlias = tuple[int, ...]
"""A number of members of each class."""
Pair: TypeAlias = tuple[int, int]
"""Indices of two classes of members, the lower one first."""


class MemberClass(msgspec.Struct, frozen=True):
    """Members that any order may swap.

    Parameters
    ----------
    demand
        What one member takes.
    count
        Number of members.
    """

    demand: Amounts
    count: int


class NodeClass(msgspec.Struct, frozen=True):
    """Nodes with the same free amounts that admit the same members.

    Parameters
    ----------
    free
        What is free on each node; a negative amount counts as 0.
    admits
        Indices of the classes of members that the nodes admit.
    nodes
        The nodes, by any number of the caller: rows.
    """

    free: Amounts
    admits: frozenset[int]
    nodes: tuple[int, ...]


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """A group to be placed as a whole.

    Parameters
    ----------
    dimensions
        Name of each dimension, for people.
    members
        The classes of members.
    nodes
        The classes of nodes.
    least
        Number of members that must have a place; the rest may go without.
    apart
        Pairs of classes that exclude each other: no node takes members of both. A class with itself
        means that no node takes two members of it.
    """

    dimensions: tuple[str, ...]
    members: tuple[MemberClass, ...]
    nodes: tuple[NodeClass, ...]
    least: int
    apart: frozenset[Pair] = frozenset()

    @property
    def total(self) -> int:
        """Number of members."""
        return sum(each.count for each in self.members)

    @property
    def spare(self) -> int:
        """Number of members that may go without a place."""
        return max(0, self.total - self.least)


def reduced(problem: Problem) -> Problem:
    """Return a problem with the same answer and fewer classes of nodes.

    A free amount is rounded down to what members can use up at all: no set of members adds up to
    more. So nodes that differ only in room that nobody can use become one class, and a node that
    admits nobody is left out.

    Parameters
    ----------
    problem
        At most some hundred members; time grows with members and with the unequal amounts.
    """
    sums = [_reachable(problem, at) for at in range(len(problem.dimensions))]
    merged: dict[tuple[Amounts, frozenset[int]], list[int]] = {}
    for each in problem.nodes:
        free = tuple(
            _floor(reachable, amount) for reachable, amount in zip(sums, each.free, strict=True)
        )
        admits = frozenset(at for at in each.admits if fits(problem.members[at].demand, free))
        if admits:
            merged.setdefault((free, admits), []).extend(each.nodes)
    nodes = [
        # More nodes than members are never used.
        NodeClass(free, admits, tuple(sorted(rows)[: problem.total]))
        for (free, admits), rows in merged.items()
    ]
    nodes.sort(key=lambda each: (each.free, sorted(each.admits), each.nodes))
    return msgspec.structs.replace(problem, nodes=tuple(nodes))


def fits(demand: Amounts, free: Sequence[int]) -> bool:
    """Whether an amount of every dimension is free; nothing fits where too much is used already."""
    return all(some <= most or not some for some, most in zip(demand, free, strict=True))


# Sums of more unequal amounts are not listed: the list could double with each member.
_SUMS_MOST = 4096


def _reachable(problem: Problem, at: int) -> Sequence[int] | None:
    """Return the sums of one dimension that some members have, ascending; None for too many."""
    sums = {0}
    for each in problem.members:
        amount = each.demand[at]
        if not amount:
            continue
        for _ in range(each.count):
            more = {value + amount for value in sums} - sums
            if not more:
                break
            sums |= more
            if len(sums) > _SUMS_MOST:
                return None
    return sorted(sums)


def _floor(sums: Sequence[int] | None, amount: int) -> int:
    if sums is None:
        return max(0, amount)
    return sums[max(0, bisect_right(sums, amount) - 1)]
