"""Group cycles: all or none on trial, nothing left behind, the same with and without reuse.

Not covered: decisions of whole groups against kube-scheduler (the recordings).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.api.codec import from_dict
from moorage.api.pod_group import PodGroup
from moorage.base.clock import ManualClock
from moorage.base.rng import Streams
from moorage.config.defaults import default_config
from moorage.config.feature_gates import feature_gates
from moorage.config.gate_table import V1_36, V1_37
from moorage.config.merge import expand_profiles
from moorage.engine.cycle import Cycle
from moorage.engine.groups.cycle import GroupCycle
from moorage.engine.groups.decision import GroupDecision, GroupOutcome
from moorage.engine.select_node import smallest_name
from moorage.framework.handle import Handle
from moorage.framework.profile import Profile
from moorage.framework.status import ReasonTable, Status, error, unschedulable
from moorage.plugins.in_tree import in_tree_registry
from moorage.plugins.volumes.volume_binding import VolumeBinding
from moorage.snapshot.group_sources import ApiGroups
from moorage.snapshot.pod_groups import GroupKey, PodGroups
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot
from moorage_sandbox.testing.builders import node, pod

KEY = GroupKey("default", "g")
GATES = ("GenericWorkload", "GangScheduling", "TopologyAwareWorkloadScheduling")


def cluster(cpus: Sequence[int]) -> Snapshot:
    snapshot = Snapshot()
    for index, cpu in enumerate(cpus):
        labels = {"zone": f"z{index % 2}", "kubernetes.io/hostname": f"n{index}"}
        snapshot.table.add_node(node(f"n{index}", cpu=str(cpu), memory="8Gi", labels=labels))
    return snapshot


def group(least: int, **spec: object) -> PodGroup:
    policy = {"schedulingPolicy": {"gang": {"minCount": least}}}
    metadata = {"namespace": "default", "name": "g", "uid": "u"}
    return from_dict(PodGroup, {"metadata": metadata, "spec": {**policy, **spec}})


def members(cpus: Sequence[int], *, spread: bool = False) -> list[PodInfo]:
    apart = {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {
                    "topologyKey": "kubernetes.io/hostname",
                    "labelSelector": {"matchLabels": {"of": "g"}},
                }
            ]
        }
    }
    extra = {"affinity": apart} if spread else {}
    return [
        PodInfo(
            pod(
                f"p{index}",
                cpu=str(cpu),
                labels={"of": "g"},
                schedulingGroup={"podGroupName": "g"},
                **extra,
            )
        )
        for index, cpu in enumerate(cpus)
    ]


def cycle_for(
    snapshot: Snapshot,
    pods: Sequence[PodInfo],
    least: int,
    *,
    reuse: bool = True,
    gates: Sequence[str] = GATES[:2],
    kind: type[Cycle] = Cycle,
    orders: int | None = None,
    version: str = V1_36,
    **spec: Any,
) -> Cycle:
    """Return the cycle of the default profile on a cluster that knows the group."""
    snapshot.listers.pod_groups.put(group(least, **spec))
    snapshot.groups = PodGroups(ApiGroups(snapshot.listers.pod_groups))
    for info in pods:
        snapshot.groups.put_pod(info.pod)
    on = feature_gates(dict.fromkeys(gates, True), version)
    (made,) = expand_profiles(default_config(), in_tree_registry(), gates=on)
    handle = Handle(
        profile_name="default-scheduler",
        snapshot=snapshot,
        reasons=ReasonTable(),
        clock=ManualClock(),
        streams=Streams(1),
        gates=on,
        group_orders=orders,
    )
    return kind(Profile(made, in_tree_registry(), handle), snapshot, smallest_name, reuse=reuse)


def decide(
    snapshot: Snapshot, pods: Sequence[PodInfo], least: int, **settings: Any
) -> GroupDecision:
    return GroupCycle(cycle_for(snapshot, pods, least, **settings)).decide_group(KEY, pods)


def said(found: GroupDecision, pods: Sequence[PodInfo]) -> list[tuple[str, str, str]]:
    return [
        (each.pod.name, each.decision.node_name if each.decision else "", each.message)
        for each in found.outcomes(pods)
    ]


@settings(max_examples=60, deadline=None)
@given(
    rooms=st.lists(st.integers(1, 4), min_size=1, max_size=6),
    asked=st.lists(st.integers(1, 3), min_size=1, max_size=6),
    least=st.integers(1, 6),
    spread=st.booleans(),
    zoned=st.booleans(),
)
def test_reuse_changes_nothing_and_nothing_is_left_behind(rooms, asked, least, spread, zoned):
    pods = members(asked, spread=spread)
    topology = {"schedulingConstraints": {"topology": [{"key": "zone"}]}} if zoned else {}
    answers = []
    for reuse in (True, False):
        snapshot = cluster(rooms)
        found = decide(snapshot, pods, least, reuse=reuse, gates=GATES, **topology)
        answers.append((found.outcome, found.status, found.placement, said(found, pods)))
        assert snapshot.requested("cpu").tolist() == [0] * len(rooms)
        assert snapshot.pod_count.tolist() == [0] * len(rooms)
        counted = snapshot.groups.members(KEY)
        assert (counted.placed, len(counted.waiting)) == (0, len(pods))
        snapshot.groups.validate()
    assert answers[0] == answers[1]
    outcome, _, placement, rows = answers[0]
    placed = [name for name, node_name, _ in rows if node_name]
    assert (outcome is GroupOutcome.PLACED) == bool(placed)
    assert not placed or len(placed) >= least, "a part of a gang"
    if zoned and placed:
        zones = {f"z{int(node_name[1:]) % 2}" for _, node_name, _ in rows if node_name}
        assert zones == {placement}


@pytest.mark.parametrize(
    ("rooms", "asked", "least", "expected"),
    [
        pytest.param(
            [1, 1],
            [1, 1],
            2,
            [("p0", "n0", ""), ("p1", "n1", "")],
            id="both have a place beside the other",
        ),
        pytest.param(
            [1],
            [1, 1],
            1,
            [
                ("p0", "n0", ""),
                (
                    "p1",
                    "",
                    "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, "
                    "preemption: 0/1 nodes are available: 1 No preemption victims found for "
                    "incoming pod.",
                ),
            ],
            id="enough have a place, the other waits for itself",
        ),
    ],
)
def test_places_of_the_members(rooms, asked, least, expected):
    pods = members(asked)
    assert said(decide(cluster(rooms), pods, least), pods) == expected


def test_members_with_a_place_say_what_the_group_waits_for():
    pods = members([1, 2])
    found = decide(cluster([1]), pods, 2)
    assert found.outcome is GroupOutcome.REJECTED
    assert said(found, pods)[0] == (
        "p0",
        "",
        "pod group is unschedulable, waiting for minCount pods from a gang to be scheduled, "
        "one or more plugins asked to wait and no plugin rejected pod",
    )
    assert found.explanation(pods).startswith(
        "pod group is unschedulable: 1 of 2 pods tried have a place, default/p1 has none: 0/1 nodes"
    )


@pytest.mark.parametrize(
    ("rooms", "asked", "least", "tried", "message"),
    [
        pytest.param(
            [1],
            [2, 2, 1],
            2,
            2,
            "minCount (2) cannot be satisfied: 0 scheduled, 1 remaining",
            id="the members left are too few",
        ),
        pytest.param([1, 1], [1, 2, 1], 2, 3, "", id="a later member completes the minimum"),
        pytest.param(
            [1],
            [1],
            2,
            0,
            "minCount (2) cannot be satisfied: 0 scheduled, 1 remaining",
            id="too few members from the start",
        ),
    ],
)
def test_1_37_stops_once_the_members_left_cannot_complete_the_minimum(
    rooms, asked, least, tried, message
):
    pods = members(asked)
    found = decide(cluster(rooms), pods, least, gates=GATES[:1], version=V1_37)
    assert len(found.members) == tried
    no_victims = "; pod group preemption: No preemption victims found for incoming preemptor"
    assert found.status.message == (f"{message}{no_victims}" if message else "")
    assert found.outcome is (GroupOutcome.REJECTED if message else GroupOutcome.PLACED)


@pytest.mark.parametrize(
    ("answer", "outcome", "message"),
    [
        pytest.param(
            unschedulable("no disk"),
            GroupOutcome.REJECTED,
            "0/1 nodes are available: 1 no disk.",
            id="a rejection is the member's own",
        ),
        pytest.param(
            error("broken"),
            GroupOutcome.BROKEN,
            'running Reserve plugin "VolumeBinding": broken',
            id="an error ends the attempt of the group",
        ),
    ],
)
def test_reserve_is_tried_and_taken_back(monkeypatch, answer: Status, outcome, message):
    pods, undone = members([1, 1]), list[str]()
    monkeypatch.setattr(
        VolumeBinding,
        "reserve",
        lambda self, state, pod, node_name: answer if pod.name == "p1" else Status(),
    )
    monkeypatch.setattr(
        VolumeBinding, "unreserve", lambda self, state, pod, node_name: undone.append(pod.name)
    )
    snapshot = cluster([1, 1])
    found = decide(snapshot, pods, 2)
    assert found.outcome is outcome
    assert said(found, pods)[1] == ("p1", "", message)
    assert undone == ["p1", "p0"]
    assert snapshot.pod_count.tolist() == [0, 0]
    assert snapshot.groups.members(KEY).placed == 0


def test_the_domain_that_takes_more_pods_is_the_better_one():
    rooms = [1, 1, 1, 1, 0, 1]  # zone z0: n0 n2 (n4), zone z1: n1 n3 n5
    pods = members([1, 1, 1])
    topology = {"topology": [{"key": "zone"}]}
    found = decide(cluster(rooms), pods, 2, gates=GATES, schedulingConstraints=topology)
    assert found.placement == "z1"
    assert [each.node_name for each in found.members] == ["n1", "n3", "n5"]


def in_turns(cycle: GroupCycle, pods: Sequence[PodInfo]) -> tuple[GroupDecision, int]:
    """Decide with a turn for others after every step; return the decision, and their turns."""
    steps, turns = cycle.deciding(KEY, pods), 0
    while True:
        try:
            stopped = next(steps)
        except StopIteration as end:
            found: GroupDecision = end.value
            return found, turns
        turns += 1
        if stopped is not None:
            stopped.suspend()
            assert not any(cycle.cycle.snapshot.table.pod_info(each.pod.uid) for each in pods)
            stopped.resume()


@settings(max_examples=40, deadline=None)
@given(
    cpus=st.lists(st.integers(1, 4), min_size=1, max_size=4),
    wanted=st.lists(st.integers(1, 3), min_size=1, max_size=5),
    spread=st.booleans(),
    racks=st.booleans(),
)
def test_a_group_goes_to_the_same_nodes_when_others_have_turns_between_its_members(
    cpus: list[int], wanted: list[int], spread: bool, racks: bool
):
    constraints: dict[str, Any] = (
        {"schedulingConstraints": {"topology": [{"key": "zone"}]}} if racks else {}
    )

    def made() -> tuple[GroupCycle, list[PodInfo]]:
        snapshot, pods = cluster(cpus), members(wanted, spread=spread)
        for index in range(len(cpus)):
            low = pod(f"low{index}", cpu="1", priority=-5, node_name=f"n{index}")
            snapshot.table.add_pod(PodInfo(low), f"n{index}")
        cycle = cycle_for(snapshot, pods, len(wanted), gates=GATES, **constraints)
        return GroupCycle(cycle), pods

    cycle, pods = made()
    at_once = cycle.decide_group(KEY, pods)
    cycle, pods = made()
    found, turns = in_turns(cycle, pods)
    assert said(found, pods) == said(at_once, pods)
    assert found.outcome is at_once.outcome
    assert turns
