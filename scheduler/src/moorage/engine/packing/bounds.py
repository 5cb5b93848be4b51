"""Shortages that need no search: a sum or a count says that a group cannot be placed.

Each bound is a relaxation: it leaves rules out, so a shortage is one of the whole problem too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from moorage.engine.packing.problem import Problem, fits


class Shortage(msgspec.Struct, frozen=True, kw_only=True):
    """Why the members of some classes have no places at once.

    Parameters
    ----------
    classes
        Indices of the classes of members that are too many, ascending.
    dimension
        Name of what is short; "" where no dimension alone is.
    needed, available
        Amounts of the dimension, or numbers of members where `each` is given; 0 where no dimension
        alone is short.
    each
        Every one of the members needs so much of the dimension; None for a bound by the sum.
    """

    classes: tuple[int, ...]
    dimension: str = ""
    needed: int = 0
    available: int = 0
    each: int | None = None


def shortage_of(problem: Problem) -> Shortage | None:
    """Return a shortage that a bound proves, the plainest one first; None where none does.

    Parameters
    ----------
    problem
        A problem, reduced or not.
    """
    return next(_shortages(problem), None)


def _shortages(problem: Problem) -> Iterator[Shortage]:
    yield from _without_node(problem)
    groups = _groups(problem)
    for at, name in enumerate(problem.dimensions):
        yield from _too_many(problem, at, name)
        for group in groups:
            yield from _too_much(problem, at, name, group)


def _without_node(problem: Problem) -> Iterator[Shortage]:
    """Classes that no node admits with its room as it is, where too few others are left."""
    lost = tuple(
        at
        for at, each in enumerate(problem.members)
        if not any(at in node.admits and fits(each.demand, node.free) for node in problem.nodes)
    )
    count = sum(problem.members[at].count for at in lost)
    if count <= problem.spare:
        return
    for at in lost:
        demand = problem.members[at].demand
        admitting = [node for node in problem.nodes if at in node.admits]
        for dimension, name in enumerate(problem.dimensions):
            most = max((node.free[dimension] for node in admitting), default=0)
            if admitting and max(0, most) < demand[dimension]:
                yield Shortage(
                    classes=(at,), dimension=name, needed=1, available=0, each=demand[dimension]
                )
                return
    yield Shortage(classes=lost)


def _too_many(problem: Problem, at: int, name: str) -> Iterator[Shortage]:
    """More members need a certain amount each than the nodes have room for."""
    for least in sorted({each.demand[at] for each in problem.members} - {0}, reverse=True):
        classes = tuple(k for k, each in enumerate(problem.members) if each.demand[at] >= least)
        needed = sum(problem.members[k].count for k in classes) - problem.spare
        available = sum(
            max(0, node.free[at]) // least * len(node.nodes)
            for node in problem.nodes
            if not node.admits.isdisjoint(classes)
        )
        if needed > available:
            yield Shortage(
                classes=classes, dimension=name, needed=needed, available=available, each=least
            )


def _too_much(problem: Problem, at: int, name: str, group: Sequence[int]) -> Iterator[Shortage]:
    """More is needed in all than is free on the nodes that admit the members of some classes."""
    demands = sorted(
        problem.members[k].demand[at] for k in group for _ in range(problem.members[k].count)
    )
    needed = sum(demands[: max(0, len(demands) - problem.spare)])
    available = sum(
        max(0, node.free[at]) * len(node.nodes)
        for node in problem.nodes
        if not node.admits.isdisjoint(group)
    )
    if needed > available:
        yield Shortage(classes=tuple(group), dimension=name, needed=needed, available=available)


def _groups(problem: Problem) -> list[tuple[int, ...]]:
    """Return the classes that share nodes, the largest group first.

    A group is all classes, or those that no other nodes admit than the nodes of one of them.
    """
    every = range(len(problem.members))
    reach = [
        frozenset(at for at, node in enumerate(problem.nodes) if k in node.admits) for k in every
    ]
    groups = {tuple(every)}
    groups |= {tuple(k for k in every if reach[k] <= nodes) for nodes in frozenset(reach)}
    return sorted(groups, key=lambda group: (-len(group), group))
