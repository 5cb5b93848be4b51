"""Small random problems, and their answer by trying every node for every member."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations_with_replacement

from moorage.base.rng import Random, Streams
from moorage.engine.packing.problem import (
    Counts,
    MemberClass,
    NodeClass,
    Pair,
    Problem,
    fits,
)

Refused = Sequence[tuple[NodeClass, Counts]]
"""Sets of members that one node of a class may not have, with every larger set."""


def problem_of(seed: int) -> tuple[Problem, Refused]:
    """Return a problem of at most 6 members, 5 nodes and 3 dimensions, and refused sets."""
    rng = Streams(seed).stream("packing")
    count, most = rng.randint(1, 3), rng.choice([4, 8, 16])
    members: list[MemberClass] = []
    while (left := 6 - sum(each.count for each in members)) > 0 and len(members) < 4:
        demand = tuple(rng.randint(0, most // 2 + 1) for _ in range(count))
        members.append(MemberClass(demand, rng.randint(1, min(3, left))))
        if rng.random() < 0.25:
            break
    nodes: list[NodeClass] = []
    row = 0
    while row < 5 and rng.random() < 0.85:
        rows = tuple(range(row, min(5, row + rng.randint(1, 2))))
        admits = frozenset(at for at in range(len(members)) if rng.random() < 0.8)
        nodes.append(NodeClass(tuple(rng.randint(-1, most) for _ in range(count)), admits, rows))
        row = rows[-1] + 1
    total = sum(each.count for each in members)
    refused = [
        (rng.choice(nodes), tuple(rng.choice([0, 0, 1, 2]) for _ in members))
        for _ in range(rng.choice([0, 0, 1, 3]))
        if nodes
    ]
    problem = Problem(
        dimensions=("cpu", "memory", "gpu")[:count],
        members=tuple(members),
        nodes=tuple(nodes),
        least=total if rng.random() < 0.6 else rng.randint(0, total),
        apart=_apart(rng, len(members)),
    )
    return problem, [each for each in refused if any(each[1])]


def _apart(rng: Random, classes: int) -> frozenset[Pair]:
    """Return pairs of classes that exclude each other, in half of the problems."""
    share = rng.choice([0, 0, 0.2, 0.7])
    pairs = combinations_with_replacement(range(classes), 2)
    return frozenset(pair for pair in pairs if rng.random() < share)


def has_places(problem: Problem, refused: Refused) -> bool:
    """Whether the least number of members have places at once."""
    nodes = [each for each in problem.nodes for _ in each.nodes]
    members = [at for at, each in enumerate(problem.members) for _ in range(each.count)]
    free = [[*each.free] for each in nodes]
    counts = [[0] * len(problem.members) for _ in nodes]

    def place(at: int, placed: int) -> bool:
        if placed + len(members) - at < problem.least:
            return False
        if at == len(members):
            return True
        member = members[at]
        demand = problem.members[member].demand
        for number, node in enumerate(nodes):
            if member not in node.admits or not fits(demand, free[number]):
                continue
            counts[number][member] += 1
            if not (
                _is_refused(node, counts[number], refused)
                or shares_a_node_apart(problem, counts[number])
            ):
                free[number] = [
                    one - other for one, other in zip(free[number], demand, strict=True)
                ]
                if place(at + 1, placed + 1):
                    return True
                free[number] = [
                    one + other for one, other in zip(free[number], demand, strict=True)
                ]
            counts[number][member] -= 1
        return place(at + 1, placed)

    return place(0, 0)


def shares_a_node_apart(problem: Problem, counts: Sequence[int]) -> bool:
    """Whether members that exclude each other are on one node."""
    return any(
        counts[one] > 1 if one == other else counts[one] and counts[other]
        for one, other in problem.apart
    )


def _is_refused(node: NodeClass, counts: Sequence[int], refused: Refused) -> bool:
    return any(
        each is node and all(some <= most for some, most in zip(part, counts, strict=True))
        for each, part in refused
    )
