"""The complete search: what it finds holds, and what it calls impossible is impossible.

The reference tries every node for every member (`brute_force`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from operator import sub

import msgspec
import pytest

from moorage.base.rng import Random, Streams
from moorage.engine.packing.apart import SHARES, exclusive_sets, with_shares
from moorage.engine.packing.bounds import Shortage, shortage_of
from moorage.engine.packing.problem import (
    Amounts,
    Counts,
    MemberClass,
    NodeClass,
    Problem,
    fits,
    reduced,
)
from moorage.engine.packing.search import Fillings, ForbiddenSets, Search
from scheduler.tests.engine.packing.brute_force import (
    Refused,
    has_places,
    problem_of,
    shares_a_node_apart,
)


def search(
    problem: Problem, forbidden: ForbiddenSets | None = None, *, by_node: bool = False
) -> tuple[Fillings | None, int]:
    """Return what the search finds, and the number of sets that it looked at."""
    made = Search(with_shares(problem), forbidden, by_node=by_node)
    steps = made.run()
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value, made.sets


def check(problem: Problem, fillings: Fillings) -> None:
    """Every node has room for its members and admits them; enough members have a place."""
    used: Counter[tuple[int, ...]] = Counter()
    placed = [0] * len(problem.members)
    for each in fillings:
        used[each.node.nodes] += 1
        room = list(each.node.free[: len(problem.dimensions)])
        for at, count in enumerate(each.counts):
            assert not count or at in each.node.admits
            assert not shares_a_node_apart(problem, each.counts)
            for _ in range(count):
                assert fits(problem.members[at].demand, room)
                room = [*map(sub, room, problem.members[at].demand)]
            placed[at] += count
    assert all(count <= len(nodes) for nodes, count in used.items())
    assert all(some <= each.count for some, each in zip(placed, problem.members, strict=True))
    assert sum(placed) >= problem.least


def forbidden_sets(refused: Refused) -> ForbiddenSets:
    """Return sets of which each is refused on its own class of nodes."""
    pairs = {(node.nodes, counts) for node, counts in refused}

    def is_refused(node: NodeClass, counts: Counts) -> bool:
        return (node.nodes, counts) in pairs

    forbidden = ForbiddenSets(is_refused)
    for _, counts in refused:
        forbidden.add(counts)
    return forbidden


@pytest.mark.parametrize("by_node", [False, True], ids=["by member", "by node"])
@pytest.mark.parametrize(
    "block", [*range(8), *(pytest.param(each, marks=pytest.mark.slow) for each in range(8, 80))]
)
def test_the_answer_is_that_of_brute_force(block: int, by_node: bool) -> None:
    for seed in range(block * 250, block * 250 + 250):
        problem, refused = problem_of(seed)
        expected = has_places(problem, refused)
        shortage = shortage_of(problem) or shortage_of(with_shares(reduced(problem)))
        assert not (shortage is not None and has_places(problem, [])), seed
        if refused:
            forbidden = forbidden_sets(refused)
            found, _ = search(problem, forbidden, by_node=by_node)
        else:
            found, _ = search(reduced(problem), by_node=by_node)
        assert (found is not None) is expected, seed
        if found is not None:
            check(problem, found)


def _cut(rng: Random, total: int, parts: int) -> list[int]:
    points = sorted(rng.sample(range(1, total), parts - 1))
    return [high - low for low, high in zip([0, *points], [*points, total], strict=True)]


def exact_group(seed: int, dimensions: int, slack: float) -> Problem:
    """Return a group that fits six equal nodes by construction, cut at random (spec, gang)."""
    rng, room = Streams(seed).stream("group"), (32, 64)[:dimensions]
    members: list[Amounts] = []
    for _ in range(6):
        parts = rng.randint(2, 7)
        members += zip(*(_cut(rng, most, parts) for most in room), strict=True)
    rng.shuffle(members)
    while any(
        sum(each[at] for each in members) > 6 * most * (1 - slack) for at, most in enumerate(room)
    ):
        members.pop()
    classes = Counter(members)
    return Problem(
        dimensions=("cpu", "memory")[:dimensions],
        members=tuple(MemberClass(*each) for each in sorted(classes.items())),
        nodes=(NodeClass(room, frozenset(range(len(classes))), tuple(range(6))),),
        least=len(members),
    )


@pytest.mark.parametrize("slack", [0, 0.1, 0.2])
@pytest.mark.parametrize("dimensions", [1, 2])
def test_a_group_that_fits_exactly_has_places(dimensions: int, slack: float) -> None:
    for seed in range(40):
        problem = exact_group(seed, dimensions, slack)
        found, sets = search(reduced(problem))
        assert found is not None, seed
        assert sets < 60_000, seed
        check(problem, found)


def _nodes(*free: Amounts) -> tuple[NodeClass, ...]:
    return tuple(NodeClass(each, frozenset({0, 1}), (row,)) for row, each in enumerate(free))


@pytest.mark.parametrize(
    ("members", "nodes", "expected"),
    [
        pytest.param(
            [MemberClass((9,), 7)],
            _nodes(*[(16,)] * 6),
            Shortage(classes=(0,), dimension="cpu", needed=7, available=6, each=9),
            id="seven members of 9 on six nodes of 16",
        ),
        pytest.param(
            [MemberClass((9,), 2), MemberClass((3,), 5)],
            _nodes((16,), (16,)),
            Shortage(classes=(0, 1), dimension="cpu", needed=33, available=32),
            id="more in all than is free",
        ),
        pytest.param(
            [MemberClass((4,), 1)],
            _nodes((3,), (2,)),
            Shortage(classes=(0,), dimension="cpu", needed=1, available=0, each=4),
            id="no node has so much free",
        ),
        pytest.param(
            [MemberClass((4,), 1)],
            (),
            Shortage(classes=(0,)),
            id="no node admits the member",
        ),
        pytest.param([MemberClass((8,), 2)], _nodes((8,), (9,)), None, id="places for all"),
    ],
)
def test_a_shortage_is_named(members, nodes, expected):
    problem = Problem(
        dimensions=("cpu",),
        members=tuple(members),
        nodes=nodes,
        least=sum(each.count for each in members),
    )
    assert shortage_of(problem) == expected


def test_nodes_that_differ_in_room_that_nobody_can_use_are_one_class() -> None:
    problem = Problem(
        dimensions=("cpu",),
        members=(MemberClass((4,), 3),),
        nodes=tuple(NodeClass((free,), frozenset({0}), (free,)) for free in (3, 5, 7, 8, 100)),
        least=3,
    )
    assert reduced(problem).nodes == (
        NodeClass((4,), frozenset({0}), (5, 7)),
        NodeClass((8,), frozenset({0}), (8,)),
        NodeClass((12,), frozenset({0}), (100,)),
    )


def test_members_that_may_go_without_a_place_do_so_last() -> None:
    problem = Problem(
        dimensions=("cpu",),
        members=(MemberClass((5,), 1), MemberClass((2,), 3)),
        nodes=(NodeClass((6,), frozenset({0, 1}), (0,)),),
        least=3,
    )
    assert [each.counts for each in search(reduced(problem))[0] or ()] == [(0, 3)]
    assert search(reduced(msgspec.structs.replace(problem, least=4)))[0] is None


def _apart(*pairs: tuple[int, int], counts: Sequence[int], nodes: int) -> Problem:
    """Return members of 1 on nodes of 4, of which some pairs of classes exclude each other."""
    return Problem(
        dimensions=("cpu",),
        members=tuple(MemberClass((1,), each) for each in counts),
        nodes=(NodeClass((4,), frozenset(range(len(counts))), tuple(range(nodes))),),
        least=sum(counts),
        apart=frozenset(pairs),
    )


@pytest.mark.parametrize(
    ("problem", "expected"),
    [
        pytest.param(_apart((0, 1), counts=[1, 1], nodes=2), [(0, 1)], id="a pair"),
        pytest.param(_apart((1, 1), counts=[1, 2], nodes=2), [(1,)], id="a class with itself"),
        pytest.param(
            _apart((0, 1), (0, 2), (1, 2), counts=[1, 1, 1], nodes=3), [(0, 1, 2)], id="three"
        ),
        pytest.param(
            _apart((0, 1), (0, 2), counts=[1, 1, 1], nodes=3), [(0, 1), (0, 2)], id="two pairs"
        ),
        pytest.param(_apart(counts=[1, 1], nodes=1), [], id="none"),
    ],
)
def test_classes_that_exclude_one_another_are_a_set(problem, expected):
    assert exclusive_sets(problem) == expected


@pytest.mark.parametrize(
    ("problem", "expected"),
    [
        pytest.param(
            _apart((0, 0), counts=[3], nodes=2),
            Shortage(classes=(0,), dimension=SHARES, needed=3, available=2, each=2520),
            id="three members that need a node each",
        ),
        pytest.param(
            _apart((0, 0), (0, 1), counts=[1, 5], nodes=2),
            Shortage(classes=(0, 1), dimension=SHARES, needed=5670, available=5040),
            id="a member alone on its node, and five of which four share one",
        ),
        pytest.param(_apart((0, 1), counts=[4, 4], nodes=2), None, id="places for all"),
    ],
)
def test_shares_of_nodes_prove_that_members_apart_have_no_places(problem, expected):
    assert shortage_of(with_shares(reduced(problem))) == expected


def test_members_apart_that_go_without_a_place_do_so_together() -> None:
    problem = msgspec.structs.replace(_apart((0, 0), (0, 1), counts=[2, 2], nodes=1), least=1)
    found, _ = search(reduced(problem))
    assert found is not None
    check(problem, found)
