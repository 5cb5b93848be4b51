"""Shortages that need no search: a sum or a count says that a group cannot be placed.

Each bound is a relaxation: it leaves rules out, so a shortage is one of the whole problem too.
"""

from __future__ import annotations

from collections.abc import Iterator

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
    for at, name in enumerate(problem.dimensions):
        yield from _too_many(problem, at, name)
        yield from _too_much(problem, at, name)


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
            if admitting and most < demand[dimension]:
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


def _too_much(problem: Problem, at: int, name: str) -> Iterator[Shortage]:
    """More is needed in all than is free on the nodes that admit the members."""
    groups = {frozenset(range(len(problem.members)))}
    groups |= {
        frozenset(
            k for k in range(len(problem.members)) if not _reach(problem, k) - _reach(problem, j)
        )
        for j in range(len(problem.members))
    }
    for group in sorted(groups, key=lambda group: (-len(group), sorted(group))):
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
            yield Shortage(
                classes=tuple(sorted(group)), dimension=name, needed=needed, available=available
            )


def _reach(problem: Problem, member: int) -> set[int]:
    """Return the indices of the classes of nodes that admit a class of members."""
    return {at for at, node in enumerate(problem.nodes) if member in node.admits}
