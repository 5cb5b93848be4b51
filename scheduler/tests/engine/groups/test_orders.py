"""Other orders of a group's members: which are tried, and what they find.

Not covered: the service's carrying out (scheduler/tests/service).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.engine.groups.cycle import GroupCycle
from moorage.engine.groups.decision import GroupDecision, GroupOutcome
from moorage.engine.groups.orders import OtherOrders
from moorage.snapshot.pod_info import PodInfo
from scheduler.tests.engine.groups.test_cycle import KEY, cluster, cycle_for, members


def found(rooms: Sequence[int], pods: Sequence[PodInfo], least: int, orders: int) -> GroupDecision:
    snapshot = cluster(rooms)
    cycle = cycle_for(snapshot, pods, least, orders=orders)
    decision = GroupCycle(cycle).decide_group(KEY, pods)
    assert snapshot.pod_count.tolist() == [0] * len(rooms)
    assert snapshot.groups.members(KEY).placed == 0
    return decision


def places(decision: GroupDecision) -> dict[str, str]:
    return {each.decision.pod.name: each.node_name for each in decision.members}


def orders_of(rooms: Sequence[int], pods: Sequence[PodInfo], count: int) -> list[str]:
    """Return the orders that are tried for a group that never fits, each as the pods' names."""
    snapshot = cluster(rooms)
    cycle = cycle_for(snapshot, pods, len(pods), orders=0)
    decision = GroupCycle(cycle).decide_group(KEY, pods)
    orders, tried = OtherOrders(snapshot, pods, count=count), list[str]()
    while (order := orders.after(decision)) is not None:
        tried.append(" ".join(each.name for each in order))
        decision = GroupCycle(cycle).decide_group(KEY, order)
    return tried


@pytest.mark.parametrize(
    ("rooms", "cpus", "count", "expected"),
    [
        pytest.param([2], [1, 1, 1], 4, [], id="like pods have no other order"),
        pytest.param([2], [1, 2, 3], 0, [], id="no other order is wanted"),
        pytest.param([2], [1, 2, 3], 1, ["p2 p1 p0"], id="the first other order is largest first"),
        pytest.param(
            [3],
            [1, 2, 3],
            4,
            ["p2 p1 p0", "p1 p0 p2"],
            id="members without a node come first in each later order",
        ),
    ],
)
def test_orders_that_are_tried(rooms, cpus, count, expected):
    assert orders_of(rooms, members(cpus), count) == expected


@pytest.mark.parametrize(
    ("most", "expected"), [(2, []), (3, ["p2 p1 p0"]), (6, ["p2 p1 p0", "p1 p0 p2"])]
)
def test_the_number_of_members_tried_is_bounded(monkeypatch, most, expected):
    monkeypatch.setattr("moorage.engine.groups.orders.MEMBERS_MAX", most)
    assert orders_of([3], members([1, 2, 3]), 100) == expected


def test_a_group_fits_when_its_largest_member_comes_first():
    pods = members([1, 1, 3])
    assert found([3, 2], pods, 3, 0).outcome is GroupOutcome.REJECTED
    decision = found([3, 2], pods, 3, 1)
    assert decision.outcome is GroupOutcome.PLACED
    assert places(decision) == {"p2": "n0", "p0": "n1", "p1": "n1"}
    outcomes = [(each.pod.name, each.decision) for each in decision.outcomes(pods)]
    assert [name for name, _ in outcomes] == ["p0", "p1", "p2"]
    assert [each.node_name for _, each in outcomes if each] == ["n1", "n1", "n0"]


def test_groups_of_kubernetes_are_tried_in_one_order_unless_told_otherwise():
    pods = members([1, 1, 3])
    cycle = cycle_for(cluster([3, 2]), pods, 3)
    assert GroupCycle(cycle).decide_group(KEY, pods).outcome is GroupOutcome.REJECTED


@settings(max_examples=60, deadline=None)
@given(
    rooms=st.lists(st.integers(1, 6), min_size=1, max_size=3),
    cpus=st.lists(st.integers(1, 4), min_size=2, max_size=4),
    data=st.data(),
)
def test_other_orders_find_more_and_never_a_wrong_yes(rooms, cpus, data):
    pods = members(cpus)
    least = data.draw(st.integers(1, len(pods)))
    first, more = found(rooms, pods, least, 0), found(rooms, pods, least, 4)
    if first.outcome is GroupOutcome.PLACED:
        assert places(more) == places(first)
    some = any(
        found(rooms, order, least, 0).outcome is GroupOutcome.PLACED for order in permutations(pods)
    )
    if more.outcome is not GroupOutcome.PLACED:
        assert (more.outcome, more.status, places(more)) == (
            first.outcome,
            first.status,
            places(first),
        )
        return
    assert some, "a yes that no order gives"
    used: Counter[str] = Counter()
    for each in more.members:
        if each.node_name:
            used[each.node_name] += cpus[int(each.decision.pod.name[1:])]
    assert sum(bool(each.node_name) for each in more.members) >= least
    assert all(amount <= rooms[int(name[1:])] for name, amount in used.items())
