"""Groups whose members must be near one another.

Not covered: groups without such members (test_cycle), the complete search (test_complete).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.engine.groups.cycle import GroupCycle
from moorage.engine.groups.decision import GroupDecision, GroupOutcome
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot
from moorage_sandbox.testing.builders import node, pod
from scheduler.tests.engine.groups.test_cycle import KEY, cycle_for

PLACED, PREEMPTING, REJECTED = GroupOutcome.PLACED, GroupOutcome.PREEMPTING, GroupOutcome.REJECTED


def near(key: str, app: str = "g") -> dict[str, Any]:
    """Return the affinity to pods of an app."""
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def member(name: str, cpu: str = "1", app: str = "g", **spec: Any) -> PodInfo:
    fields = {"schedulingGroup": {"podGroupName": "g"}, "priority": 10} | spec
    return PodInfo(pod(name, cpu=cpu, labels={"app": app}, **fields))


def zones(rooms: Mapping[str, Sequence[int]], *others: tuple[str, PodInfo]) -> Snapshot:
    """Return a cluster with nodes of these cpus in each zone, and pods on nodes."""
    snapshot = Snapshot()
    for zone, cpus in rooms.items():
        for at, cpu in enumerate(cpus):
            name = f"{zone}{at}"
            labels = {"zone": zone, "kubernetes.io/hostname": name} if zone != "none" else {}
            snapshot.table.add_node(node(name, cpu=str(cpu), memory="64Gi", labels=labels))
    for name, other in others:
        snapshot.table.add_pod(other, name)
    return snapshot


def decide(
    snapshot: Snapshot, pods: Sequence[PodInfo], least: int, orders: int = 1
) -> GroupDecision:
    found = GroupCycle(cycle_for(snapshot, pods, least, orders=orders)).decide_group(KEY, pods)
    assert snapshot.groups.members(KEY).placed == 0
    return found


def places(found: GroupDecision) -> dict[str, str]:
    return {each.decision.pod.name: each.node_name for each in found.members if each.node_name}


LIKE = [member(f"p{at}", affinity=near("zone")) for at in range(2)]
LOW = PodInfo(pod("low", cpu="1", priority=0))
WORKERS = [member(f"w{at}", app="worker", affinity=near("zone", "leader")) for at in range(2)]
LEADER = member("leader", app="leader")


@pytest.mark.parametrize(
    ("rooms", "pods", "zone"),
    [
        pytest.param({"a": [1], "b": [1, 1]}, LIKE, {"b"}, id="the first node's zone is too small"),
        pytest.param({"none": [4], "b": [1, 1]}, LIKE, {"b"}, id="a node without the label"),
        pytest.param(
            {"a": [2], "b": [1, 2]}, [*WORKERS, LEADER], {"b"}, id="the leader comes last"
        ),
        pytest.param(
            {"a": [1], "b": [1, 2]}, [LEADER, *WORKERS], {"b"}, id="workers need a leader"
        ),
        pytest.param(
            {"a": [2], "b": [1, 1]},
            [member("x", "2", app="x"), *LIKE],
            {"a", "b"},
            id="a member that needs nobody goes where it fits",
        ),
        pytest.param(
            {"a": [2, 2], "b": [1, 3]},
            [
                member("p0", "3", affinity=near("zone")),
                member("p1", affinity=near("kubernetes.io/hostname") | near("zone")),
            ],
            {"b"},
            id="unlike members",
        ),
    ],
)
def test_members_that_must_be_near_one_another_share_a_domain_with_room(
    rooms: dict[str, list[int]], pods: list[PodInfo], zone: set[str]
) -> None:
    found = decide(zones(rooms), pods, len(pods))
    assert found.outcome is PLACED
    assert {name[0] for name in places(found).values()} == zone


def test_a_domain_with_room_comes_before_evictions() -> None:
    """The first member fits zone a; for the second one a pod would have to go there."""
    snapshot = zones({"a": [2], "b": [1, 1]}, ("a0", LOW))
    assert places(decide(snapshot, LIKE, 2)).keys() == {"p0", "p1"}
    assert {name[0] for name in places(decide(snapshot, LIKE, 2)).values()} == {"b"}


def test_pods_are_evicted_in_a_domain_that_is_large_enough() -> None:
    snapshot = zones({"a": [1], "b": [1, 1]}, ("b0", LOW))
    found = decide(snapshot, LIKE, 2)
    victims = [victim.name for each in found.members for victim in each.decision.victims]
    assert (found.outcome, victims) == (PREEMPTING, ["low"])


def test_one_order_is_tried_where_the_profile_says_so() -> None:
    """As kube-scheduler."""
    assert decide(zones({"a": [1], "b": [1, 1]}), LIKE, 2, orders=0).outcome is REJECTED


def test_members_go_to_the_domain_of_a_pod_that_they_must_be_near() -> None:
    """One pod that the term selects has a node: no other domain is allowed."""
    other = PodInfo(pod("other", cpu="1", labels={"app": "g"}, priority=10))
    found = decide(zones({"a": [2], "b": [4]}, ("a0", other)), LIKE, 2)
    assert found.outcome is REJECTED
    found = decide(zones({"a": [3], "b": [4]}, ("a0", other)), LIKE, 2)
    assert set(places(found).values()) == {"a0"}


@settings(max_examples=80, deadline=None, derandomize=True)
@given(
    rooms=st.dictionaries(
        st.sampled_from("abc"), st.lists(st.integers(1, 3), min_size=1, max_size=2), min_size=1
    ),
    count=st.integers(2, 4),
    others=st.integers(0, 1),
)
def test_a_group_of_like_members_is_placed_if_and_only_if_a_zone_has_room(
    rooms: dict[str, list[int]], count: int, others: int
) -> None:
    """The reference tries every node for every member. Others need nobody near them."""
    pods = [member(f"o{at}", "2", app="o") for at in range(others)]
    pods += [member(f"p{at}", affinity=near("zone")) for at in range(count)]
    nodes = [(zone, at) for zone, cpus in rooms.items() for at in range(len(cpus))]

    def fits(chosen: Sequence[tuple[str, int]]) -> bool:
        used = dict.fromkeys(nodes, 0)
        for info, place in zip(pods, chosen, strict=True):
            used[place] += 2 if info.pod.name.startswith("o") else 1
        together = {zone for zone, _ in chosen[others:]}
        return len(together) == 1 and all(used[each] <= rooms[each[0]][each[1]] for each in nodes)

    some = any(fits(chosen) for chosen in product(nodes, repeat=len(pods)))
    assert (decide(zones(rooms), pods, len(pods)).outcome is PLACED) is some
