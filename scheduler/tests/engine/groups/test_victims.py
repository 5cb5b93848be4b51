"""Members that need evictions: each is tried as if the victims of the earlier members were gone.

Not covered: who is evicted for one pod (`scheduler/tests/plugins/preemption`), and what happens to
the victims (`tests/scenarios/test_groups_preempt.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.api.codec import from_dict
from moorage.api.pod import Pod
from moorage.config.gate_table import V1_36, V1_37
from moorage.engine.groups import trying
from moorage.engine.groups.decision import GroupDecision, GroupOutcome
from moorage.framework.runner import PermitOutcome, run_permit
from moorage.framework.status import Code, Status
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot
from moorage_sandbox.testing.builders import pod, pod_manifest
from scheduler.tests.engine.groups.test_cycle import cluster, decide, members

WHOLE = ("GenericWorkload", "GangScheduling", "WorkloadAwarePreemption")


def put_low(snapshot: Snapshot, row: int, cpus: Sequence[int], *, port: bool = False) -> None:
    """Put pods of low priority on a node; the first one uses the port."""
    for index, cpu in enumerate(cpus):
        ports = [80] if port and index == 0 else []
        name = f"low-{row}-{index}"
        low = pod(name, cpu=str(cpu), priority=-5, node_name=f"n{row}", host_ports=ports)
        snapshot.table.add_pod(PodInfo(low), f"n{row}")


def places(found: GroupDecision) -> list[tuple[str, str, list[str]]]:
    """Return the place of each member, and its own victims."""
    return [
        (
            each.decision.pod.name,
            each.nominated_to,
            sorted(victim.name for victim in each.decision.victims),
        )
        for each in found.members
    ]


def test_the_room_that_one_victim_leaves_serves_several_members():
    snapshot, pods = cluster([3, 3]), members([1, 1, 1])
    put_low(snapshot, 0, [1, 1, 1])
    put_low(snapshot, 1, [3])
    found = decide(snapshot, pods, 3)
    assert found.outcome is GroupOutcome.PREEMPTING
    assert places(found) == [("p0", "n1", ["low-1-0"]), ("p1", "n1", []), ("p2", "n1", [])]


def test_a_port_that_a_member_will_use_is_not_free_for_the_next():
    snapshot = cluster([4, 4, 4])
    for row in range(3):
        put_low(snapshot, row, [1, 1], port=True)
    found = decide(snapshot, with_port(3), 3)
    assert sorted(each[1:] for each in places(found)) == [
        (f"n{row}", [f"low-{row}-0"]) for row in range(3)
    ]
    assert decide(snapshot, with_port(4), 4).outcome is GroupOutcome.REJECTED


def test_a_member_that_preempts_is_not_bound_though_permit_lets_it_wait(monkeypatch):
    def held(profile, state, pod, node_name):
        if pod.name == "p2":
            return PermitOutcome(Status(Code.WAIT))
        return run_permit(profile, state, pod, node_name)

    monkeypatch.setattr(trying, "run_permit", held)
    snapshot, pods = cluster([2, 3]), members([1, 1, 3])
    put_low(snapshot, 1, [3])
    found = decide(snapshot, pods, 2)
    assert found.outcome is GroupOutcome.PREEMPTING
    assert [each.decision for each in found.outcomes(pods)] == [None, None, None]


def with_port(count: int) -> list[PodInfo]:
    """Return members that use one port."""
    fields = {"schedulingGroup": {"podGroupName": "g"}, "host_ports": [80], "cpu": "1"}
    return [PodInfo(pod(f"p{index}", **fields)) for index in range(count)]


@pytest.mark.parametrize(
    "gates",
    [
        pytest.param(WHOLE[:2], id="each member preempts"),
        pytest.param(WHOLE, id="the group preempts as a whole"),
    ],
)
def test_nominations_of_a_group_know_all_its_victims(gates: Sequence[str]):
    snapshot, pods = cluster([1, 2]), members([2, 1])
    put_low(snapshot, 0, [1])
    put_low(snapshot, 1, [1, 1])
    found = decide(snapshot, pods, 2, gates=gates)
    victims = frozenset({"uid-default-low-0-0", "uid-default-low-1-0", "uid-default-low-1-1"})
    nominations = [each.nomination for each in found.outcomes(pods)]
    assert [(each.node_name, each.victims) for each in nominations if each is not None] == [
        ("n1", victims),
        ("n0", victims),
    ]


def test_1_37_nominates_members_that_were_not_tried_and_evicts_for_all():
    snapshot, pods = cluster([2, 2]), members([2, 2])
    put_low(snapshot, 0, [1, 1])
    put_low(snapshot, 1, [2])
    found = decide(snapshot, pods, 2, gates=WHOLE[:1], version=V1_37)
    assert len(found.members) == 2
    assert found.outcome is GroupOutcome.PREEMPTING
    assert sorted(pod.name for pod in found.victims) == ["low-0-0", "low-0-1", "low-1-0"]
    assert found.status.message == (
        "minCount (2) cannot be satisfied: 0 scheduled, 1 remaining; "
        "pod group preemption: found a placement for podgroup, preempting 3 victims"
    )
    nodes = {each.pod.name: each.nomination for each in found.outcomes(pods)}
    assert {name: each and each.node_name for name, each in nodes.items()} == {
        "p0": "n0",
        "p1": "n1",
    }


def test_1_37_puts_pods_back_next_to_members_that_keep_their_places():
    # Without any pods both members go to the larger node. In 1.36 the pods of the larger node may
    # stay, because the members then fit elsewhere; in 1.37 the members stay where they were.
    victims = {}
    for version, gates in ((V1_36, WHOLE), (V1_37, WHOLE[:1])):
        snapshot, pods = cluster([2, 4]), members([1, 1])
        put_low(snapshot, 0, [1, 1])
        put_low(snapshot, 1, [2, 2])
        found = decide(snapshot, pods, 2, gates=gates, version=version)
        victims[version] = sorted(pod.name for pod in found.victims)
    assert victims[V1_37] == ["low-1-1"]


def test_1_37_places_a_group_at_once_if_every_pod_may_stay():
    group = {"schedulingGroup": {"podGroupName": "g"}}
    here = {"nodeSelector": {"kubernetes.io/hostname": "n0"}}
    pods = [PodInfo(pod("p0", cpu="1", **group)), PodInfo(pod("p1", cpu="3", **group, **here))]
    snapshot = cluster([3, 8])
    put_low(snapshot, 1, [7])
    found = decide(snapshot, pods, 2, gates=WHOLE[:1], version=V1_37)
    assert (found.outcome, found.victims) == (GroupOutcome.PLACED, ())


def test_1_37_evicts_nothing_again_while_victims_leave_a_nominated_node():
    """As upstream; where nominations hold room, the group keeps them or is decided about anew."""
    snapshot, pods = cluster([1, 1]), members([1, 1])
    snapshot.nominated_everywhere = False
    condition = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    leaving = pod_manifest("leaving", cpu="1", priority=-5, node_name="n0")
    leaving["metadata"]["deletionTimestamp"] = "2100-01-01T00:00:00Z"
    leaving["status"] = {"conditions": [condition]}
    snapshot.table.add_pod(PodInfo(from_dict(Pod, leaving)), "n0")
    put_low(snapshot, 1, [1])
    snapshot.nominations = {"n0": [pods[0]]}
    found = decide(snapshot, pods, 2, gates=WHOLE[:1], version=V1_37)
    assert (found.outcome, found.all_victims) == (GroupOutcome.PREEMPTING, ())
    assert found.status.message.endswith(
        "; pod group preemption: ongoing preemption on nominated nodes"
    )
    assert [each.nomination for each in found.outcomes(pods)] == [None, None]


@pytest.mark.parametrize("version", [V1_36, V1_37])
def test_only_1_37_preempts_for_a_group_with_a_topology(version: str):
    snapshot, pods = cluster([1, 1, 1]), members([1, 1])
    for row in range(3):
        put_low(snapshot, row, [1])
    topology = {"schedulingConstraints": {"topology": [{"key": "zone"}]}}
    gates = ("TopologyAwareWorkloadScheduling", *(WHOLE if version == V1_36 else WHOLE[:1]))
    found = decide(snapshot, pods, 2, gates=gates, version=version, **topology)
    victims = sorted(pod.name for pod in found.victims)
    assert victims == ([] if version == V1_36 else ["low-0-0", "low-2-0"])


@settings(max_examples=60, deadline=None)
@given(
    rooms=st.lists(st.lists(st.integers(1, 3), max_size=4), min_size=1, max_size=4),
    asked=st.lists(st.integers(1, 3), min_size=1, max_size=5),
    spread=st.booleans(),
)
def test_without_the_victims_there_is_room_for_all_members(rooms, asked, spread):
    answers = []
    for reuse in (True, False):
        snapshot, pods = cluster([4] * len(rooms)), members(asked, spread=spread)
        for row, cpus in enumerate(rooms):
            put_low(snapshot, row, [cpu for at, cpu in enumerate(cpus) if sum(cpus[: at + 1]) < 5])
        before = snapshot.requested("cpu").tolist()
        found = decide(snapshot, pods, len(pods), reuse=reuse)
        answers.append((found.outcome, places(found)))
        assert snapshot.requested("cpu").tolist() == before
        if found.outcome is not GroupOutcome.PREEMPTING:
            continue
        for victim in found.all_victims:
            snapshot.table.remove_pod(victim.uid)
        for member in found.members:
            snapshot.table.add_pod(member.decision.pod, member.nominated_to)
        assert max(snapshot.requested("cpu").tolist()) <= 4000
        assert not spread or len({each.nominated_to for each in found.members}) == len(pods)
    assert answers[0] == answers[1]
