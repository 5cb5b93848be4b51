"""The complete search for a group's places, with the plugins of the default profile.

Not covered: the search over numbers (scheduler/tests/engine/packing).
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.engine.cycle import Cycle
from moorage.engine.groups import complete
from moorage.engine.groups import cycle as group_cycle
from moorage.engine.groups.complete import CompleteSearch, Impossible, Limit
from moorage.engine.groups.cycle import GroupCycle
from moorage.engine.groups.decision import GroupDecision, GroupOutcome
from moorage.engine.groups.numbers import GroupNumbers
from moorage.engine.groups.orders import OtherOrders
from moorage.engine.packing import search
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot
from moorage_sandbox.testing.builders import node, pod
from scheduler.tests.engine.groups.test_cycle import GATES, KEY, cluster, cycle_for, members
from scheduler.tests.engine.packing.test_search import exact_group

GROUP = {"podGroupName": "g"}


def decide(
    snapshot: Snapshot, pods: Sequence[PodInfo], least: int, **settings: Any
) -> GroupDecision:
    cycle = cycle_for(snapshot, pods, least, orders=1, **settings)
    found = GroupCycle(cycle).decide_group(KEY, pods)
    assert snapshot.groups.members(KEY).placed == 0
    return found


@pytest.mark.parametrize("slack", [0, 0.1, 0.2])
@pytest.mark.parametrize("dimensions", [1, 2])
def test_groups_that_fit_exactly_are_placed(dimensions: int, slack: float) -> None:
    for seed in range(10):
        problem, snapshot = exact_group(seed, dimensions, slack), Snapshot()
        for row in range(6):
            snapshot.table.add_node(node(f"n{row}", cpu="32", memory="64Gi"))
        pods = [
            PodInfo(
                pod(
                    f"p{at}-{number}",
                    schedulingGroup=GROUP,
                    **dict(zip(("cpu", "memory"), amounts(each.demand), strict=False)),
                )
            )
            for at, each in enumerate(problem.members)
            for number in range(each.count)
        ]
        assert decide(snapshot, pods, len(pods)).outcome is GroupOutcome.PLACED, seed


def search_for(cycle: Cycle, pods: Sequence[PodInfo]) -> CompleteSearch:
    return CompleteSearch(cycle, GroupNumbers(cycle, pods), least=len(pods), within=None)


def amounts(demand: Sequence[int]) -> list[str]:
    return [f"{amount}{unit}" for amount, unit in zip(demand, ("", "Gi"), strict=False)]


@settings(max_examples=50, deadline=None)
@given(
    rooms=st.lists(st.integers(1, 6), min_size=1, max_size=3),
    cpus=st.lists(st.integers(1, 4), min_size=2, max_size=4),
    spread=st.booleans(),
    data=st.data(),
)
def test_a_group_is_placed_if_and_only_if_some_places_fit(rooms, cpus, spread, data):
    """The reference tries every node for every member."""
    pods = members(cpus, spread=spread)
    least = data.draw(st.integers(1, len(pods)))
    some = any(
        sum(at is not None for at in places) >= least
        and all(
            sum(cpu for cpu, at in zip(cpus, places, strict=True) if at == row) <= room
            and (not spread or places.count(row) < 2)
            for row, room in enumerate(rooms)
        )
        for places in product([None, *range(len(rooms))], repeat=len(pods))
    )
    found = decide(cluster(rooms), pods, least)
    assert (found.outcome is GroupOutcome.PLACED) is some


def test_a_group_is_searched_within_each_rack() -> None:
    snapshot = Snapshot()
    for row, cpu in enumerate([5, 5, 4, 6]):
        labels = {"rack": f"r{row // 2}", "kubernetes.io/hostname": f"n{row}"}
        snapshot.table.add_node(node(f"n{row}", cpu=str(cpu), memory="8Gi", labels=labels))
    pods = members([2, 2, 3, 3])
    found = decide(
        snapshot,
        pods,
        4,
        gates=GATES,
        schedulingConstraints={"topology": [{"key": "rack"}]},
    )
    assert (found.outcome, found.placement) == (GroupOutcome.PLACED, "r0")


def test_a_member_beyond_the_minimum_stays_in_the_rack_too() -> None:
    """Rack r0 takes the two small members, rack r1 would take the large one."""
    snapshot = Snapshot()
    for row in range(2):
        labels = {"rack": f"r{row}", "kubernetes.io/hostname": f"n{row}"}
        snapshot.table.add_node(node(f"n{row}", cpu="2", memory="8Gi", labels=labels))
    constraint = {"topology": [{"key": "rack"}]}
    found = decide(snapshot, members([2, 1, 1]), 2, gates=GATES, schedulingConstraints=constraint)
    assert found.outcome is GroupOutcome.PLACED
    assert {each.node_name for each in found.members if each.node_name} == {"n0"}


def test_a_problem_that_was_searched_in_vain_is_not_searched_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    searched = []

    def searching(*arguments: Any) -> Any:
        searched.append(arguments)
        return search.searching(*arguments)

    monkeypatch.setattr(complete, "searching", searching)
    snapshot, pods = cluster([4, 4, 4]), members([3, 3, 2, 2, 2])
    cycle = GroupCycle(cycle_for(snapshot, pods, 5, orders=1))
    for _ in range(3):
        assert cycle.decide_group(KEY, pods).outcome is GroupOutcome.REJECTED
    assert len(searched) == 1
    snapshot.table.add_node(node("n3", cpu="2", memory="8Gi"))
    assert cycle.decide_group(KEY, pods).outcome is GroupOutcome.PLACED


def end_of(steps: Generator[None, None, object]) -> object:
    """Take all steps; return their result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: object = end.value
            return result


@pytest.mark.parametrize(
    ("rooms", "selector", "proves"),
    [
        pytest.param([2, 2], {}, True, id="no room"),
        pytest.param([8, 8], {"zone": "z9"}, True, id="no node has the label"),
    ],
)
def test_what_is_proved(rooms, selector, proves):
    pods = [
        PodInfo(
            pod(
                f"p{at}", cpu=str(cpu), nodeSelector=selector, schedulingGroup={"podGroupName": "g"}
            )
        )
        for at, cpu in enumerate([1, 3])
    ]
    made = search_for(cycle_for(cluster(rooms), pods, 2), pods)
    assert isinstance(end_of(made.find(Limit(60_000))), Impossible) is proves


def test_an_affinity_that_other_members_may_satisfy_proves_nothing() -> None:
    near = {
        "podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": "zone", "labelSelector": {"matchLabels": {"of": "first"}}}
            ]
        }
    }
    pods = [
        PodInfo(
            pod(
                f"p{at}",
                cpu=str(at + 1),
                schedulingGroup={"podGroupName": "g"},
                labels=labels,
                **extra,
            )
        )
        for at, (labels, extra) in enumerate([({"of": "first"}, {}), ({}, {"affinity": near})])
    ]
    made = search_for(cycle_for(cluster([4, 4]), pods, 2), pods)
    assert end_of(made.find(Limit(60_000))) is None


def test_a_proof_counts_only_while_no_rejection_could_be_cured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ordered = []

    def orders(*arguments: Any, **fields: Any) -> OtherOrders:
        ordered.append(arguments)
        return OtherOrders(*arguments, **fields)

    monkeypatch.setattr(group_cycle, "OtherOrders", orders)
    apart = {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "other"}}}
            ]
        }
    }
    pods = [
        PodInfo(pod(f"p{cpu}", cpu=str(cpu), affinity=apart, schedulingGroup=GROUP))
        for cpu in (2, 3)
    ]
    snapshot = cluster([4])
    labels = {"zone": "z1"}
    snapshot.table.add_node(node("n1", cpu="8", memory="8Gi", labels=labels, unschedulable=True))
    cycle = GroupCycle(cycle_for(snapshot, pods, 2, orders=1))
    assert cycle.decide_group(KEY, pods).outcome is GroupOutcome.REJECTED
    assert ordered == []  # cordoned: the search proves that there are no places
    snapshot.table.update_node(node("n1", cpu="8", memory="8Gi", labels=labels))
    snapshot.table.add_pod(pod("other", labels={"app": "other"}), "n1")
    assert cycle.decide_group(KEY, pods).outcome is GroupOutcome.REJECTED
    assert len(ordered) == 1  # the same numbers, but n1 is rejected for a pod


def away_from(app: str, key: str = "kubernetes.io/hostname") -> dict[str, Any]:
    """Return an affinity that keeps a pod off the domains of an app."""
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def apps(*members: tuple[str, str, str]) -> list[PodInfo]:
    """Return members of an app that ask for cpu and keep away from another app ("" for none)."""
    return [
        PodInfo(
            pod(
                f"p{number}",
                cpu=cpu,
                labels={"app": app},
                schedulingGroup=GROUP,
                **({"affinity": away_from(other)} if other else {}),
            )
        )
        for number, (app, cpu, other) in enumerate(members)
    ]


def places_of(snapshot: Snapshot, pods: Sequence[PodInfo]) -> tuple[object, CompleteSearch]:
    made = search_for(cycle_for(snapshot, pods, len(pods)), pods)
    steps = made.find(Limit(60_000))
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value, made


def test_members_apart_have_places_apart_before_any_plugin_rejects_them() -> None:
    pods = apps(("a", "1", "a"), ("a", "1", "a"), ("b", "1", ""), ("b", "3", "a"), ("b", "1", ""))
    places, _ = places_of(cluster([4, 4, 4]), pods)
    assert isinstance(places, dict)
    assert len({places[uid] for uid in ("uid-default-p0", "uid-default-p1", "uid-default-p3")}) == 3


def test_members_apart_that_are_more_than_nodes_have_no_places() -> None:
    pods = apps(("a", "1", "a"), ("a", "1", "a"), ("b", "1", "a"))
    found, made = places_of(cluster([4, 4]), pods)
    assert isinstance(found, Impossible)
    assert made.rejections == 0


def test_like_members_of_which_another_is_apart_from_some_are_not_swapped() -> None:
    """Pods of equal specs and other labels: the anti-affinity of a member selects one of them."""
    pods = apps(("a", "1", ""), ("b", "1", ""), ("c", "2", "a"))
    snapshot = cluster([3, 1])
    places, _ = places_of(snapshot, pods)
    assert places == {"uid-default-p0": 1, "uid-default-p1": 0, "uid-default-p2": 0}
    assert decide(snapshot, pods, 3).outcome is GroupOutcome.PLACED


def test_members_apart_over_a_label_share_a_node_without_it() -> None:
    affinity = away_from("a", "rack")
    pods = [
        PodInfo(
            pod(f"p{cpu}", cpu=cpu, labels={"app": "a"}, schedulingGroup=GROUP, affinity=affinity)
        )
        for cpu in ("1", "2")
    ]
    snapshot = cluster([3])
    places, _ = places_of(snapshot, pods)
    assert places == {"uid-default-p1": 0, "uid-default-p2": 0}
    assert decide(snapshot, pods, 2).outcome is GroupOutcome.PLACED
