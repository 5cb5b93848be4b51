"""Groups with a topology on a live scheduler in virtual time, from each group source."""

from __future__ import annotations

import pytest

from moorage.api.coscheduling import COSCHEDULING_POD_GROUPS
from moorage.api.resources import NODES
from moorage.service.groups import group_turns
from moorage_sandbox.testing.builders import Manifest, node_manifest
from scheduler.tests.service import test_group_attempt as of_kubernetes
from tests.scenarios.gangs import Cluster, coscheduling, of_labels, of_object, play, pod_group

REQUIRED, PREFERRED = "moorage.dev/required-topology", "moorage.dev/preferred-topology"
WHY = (
    "no domain of rack takes 3 pods (a takes {0}2, b takes {1}1); in a default/p2 has no node: 0/1 "
    "nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: not "
    "eligible due to placement-based pod group scheduling limitation"
)


def racks(**cpus: int) -> list[Manifest]:
    return [
        node_manifest(f"n-{rack}", cpu=str(cpu), labels={"rack": rack})
        for rack, cpu in cpus.items()
    ]


def members(how: str, *, labelled: bool) -> list[Manifest]:
    """Return three pods of 1 cpu, and their PodGroup where they have one."""
    make = of_labels if labelled else of_object
    pods = [make(f"p{index}", least=3) for index in range(3)]
    group = pod_group(least=3)
    for each in pods if labelled else [group]:
        each["metadata"]["annotations"] = {how: "rack"}
    return pods if labelled else [group, *pods]


@pytest.fixture(params=["at once", "in turns"])
def _in_turns(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Decide at once, or with a turn for the other tasks after each rack that was tried."""
    if request.param == "in turns":
        for limit in ("_TURN_NS", "_TURN_WITHOUT_ARRIVALS_NS", "_TURN_BETWEEN_MEMBERS_NS"):
            monkeypatch.setattr(group_turns, limit, 0)
        monkeypatch.setattr(group_turns, "_WORK_PER_COST", 0)


@pytest.mark.usefixtures("_in_turns")
@pytest.mark.parametrize("labelled", [False, True], ids=["a PodGroup", "labels"])
def test_a_group_waits_for_a_rack_and_starts_when_there_is_one(labelled):
    async def scenario(live: Cluster) -> None:
        await live.create_objects(*members(REQUIRED, labelled=labelled))
        text = "pod group is unschedulable: " + WHY.format("", "at most ")
        await live.until(lambda: live.message_of("p0") == text, seconds=3)
        await live.until(lambda: live.message_of("p2") == text, seconds=1)
        if not labelled:
            notes = await live.events("g", reason="FailedScheduling")
            assert [each["message"] for each in notes][-1] == text
        assert live.bound("p0", "p1", "p2") == 0
        await live.patch_object(NODES, "n-b", {"metadata": {"labels": {"rack": "a"}}})
        await live.until(lambda: live.bound("p0", "p1", "p2") == 3, seconds=3)
        live.settled()

    play(scenario, cluster=racks(a=2, b=1), config=coscheduling())


@pytest.mark.usefixtures("_in_turns")
@pytest.mark.parametrize("labelled", [False, True], ids=["a PodGroup", "labels"])
@pytest.mark.parametrize(
    ("cpus", "expected"),
    [
        pytest.param({"a": 2, "b": 3, "c": 9}, {"n-b"}, id="a rack that takes all is taken"),
        pytest.param({"a": 2, "b": 1}, {"n-a", "n-b"}, id="else the group goes anywhere"),
    ],
)
def test_a_group_prefers_one_rack_and_falls_back_to_several(labelled, cpus, expected):
    async def scenario(live: Cluster) -> None:
        await live.create_objects(*members(PREFERRED, labelled=labelled))
        await live.until(lambda: live.bound("p0", "p1", "p2") == 3, seconds=3)
        assert {live.node_of(f"p{index}") for index in range(3)} == expected
        live.settled()

    play(scenario, cluster=racks(**cpus), config=coscheduling())


def test_a_group_starts_once_a_node_gets_its_topology_label():
    async def scenario(live: Cluster) -> None:
        group, *pods = members(REQUIRED, labelled=False)
        group["metadata"]["annotations"] = {REQUIRED: "row"}
        await live.create_objects(group, *pods)
        text = "no feasible placements found: no node has the label row"
        await live.until(lambda: live.message_of("p0") == text, seconds=3)
        await live.patch_object(NODES, "n-a", {"metadata": {"labels": {"row": "1"}}})
        await live.until(lambda: live.bound("p0", "p1", "p2") == 3, seconds=3)

    play(scenario, cluster=racks(a=9), config=coscheduling())


def test_a_bad_label_key_is_told_and_the_group_starts_once_it_is_mended():
    async def scenario(live: Cluster) -> None:
        group, *pods = members(REQUIRED, labelled=False)
        group["metadata"]["annotations"] = {REQUIRED: "no key"}
        await live.create_objects(group, *pods)
        text = f'annotation {REQUIRED} of PodGroup default/g is "no key", not a label key'
        await live.until(lambda: text in live.message_of("p0"), seconds=3)
        changes = {"metadata": {"annotations": {REQUIRED: "rack"}}}
        await live.patch_object(COSCHEDULING_POD_GROUPS, "g", changes, namespace="default")
        await live.until(lambda: live.bound("p0", "p1", "p2") == 3, seconds=3)

    play(scenario, cluster=racks(a=9), config=coscheduling())


def test_a_group_of_kubernetes_says_which_rack_is_best_and_starts_with_a_label():
    async def scenario(live: of_kubernetes.Cluster) -> None:
        group = of_kubernetes.group(least=3)
        group["spec"]["schedulingConstraints"] = {"topology": [{"key": "rack"}]}
        pods = [of_kubernetes.member(f"p{index}") for index in range(3)]
        await live.create_objects(group, *pods)
        await live.until(lambda: live.condition()[0] == "False", seconds=3)
        begin = "0/2 placements are available, first placement status: pod group is unschedulable: "
        assert live.condition() == ("False", "Unschedulable", begin + WHY.format("", ""))
        await live.patch_object(NODES, "n-b", {"metadata": {"labels": {"rack": "a"}}})
        names = [f"p{index}" for index in range(3)]
        await live.until(lambda: all(map(live.node_of, names)), seconds=3)

    gates = (*of_kubernetes.GANGS, "TopologyAwareWorkloadScheduling")
    of_kubernetes.play(scenario, cluster=racks(a=2, b=1), gates=gates)
