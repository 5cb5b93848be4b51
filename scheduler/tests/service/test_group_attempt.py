"""Pod groups on a live scheduler in virtual time: all or none, the group's condition, preemption.

Not covered: which nodes are chosen (the recordings), the other group sources.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from moorage.api.resources import POD_GROUPS, PODS
from moorage.base import aio
from moorage.base.clock import ManualClock
from moorage.config.feature_gates import feature_gates
from moorage.config.own import LoadedConfiguration
from moorage_sandbox.testing.builders import Manifest, node_manifest, pod_manifest
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from moorage_sandbox.testing.virtual_loop import run_virtual

GANGS = ("GenericWorkload", "GangScheduling")


def group(name: str = "g", *, least: int | None = 2, **spec: Any) -> Manifest:
    policy: Manifest = {"basic": {}} if least is None else {"gang": {"minCount": least}}
    return {
        "apiVersion": POD_GROUPS.api_version,
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedulingPolicy": policy, **spec},
    }


def member(name: str, *, of: str = "g", cpu: str = "1", **fields: Any) -> Manifest:
    return pod_manifest(name, cpu=cpu, schedulingGroup={"podGroupName": of}, **fields)


def nodes(count: int, *, cpu: str = "1") -> list[Manifest]:
    return [node_manifest(f"n{index}", cpu=cpu, memory="8Gi") for index in range(count)]


class Cluster(VirtualCluster):
    def group(self, name: str = "g") -> Manifest:
        record = self.server.store.shelf("podgroups.scheduling.k8s.io").get(("default", name))
        assert record is not None
        return record.decode()

    def condition(self, name: str = "g") -> tuple[str, str, str]:
        for each in self.group(name).get("status", {}).get("conditions") or []:
            if each["type"] == "PodGroupScheduled":
                return each["status"], each["reason"], each["message"]
        return "", "", ""

    def bound(self, *names: str) -> bool:
        return all(self.node_of(name) for name in names)

    def members(self) -> None:
        self.scheduler.core.snapshot.groups.validate()


def play(
    scenario: Callable[[Cluster], Any], *, cluster: list[Manifest], gates: tuple[str, ...] = GANGS
) -> None:
    clock = ManualClock()
    config = LoadedConfiguration(gates=feature_gates(dict.fromkeys(gates, True)))

    async def main() -> None:
        async with Cluster(clock, nodes=cluster, config=config) as live:
            await scenario(live)
            live.members()

    run_virtual(main(), clock)


def test_members_that_fit_are_bound_together_and_the_group_says_so():
    async def scenario(live: Cluster) -> None:
        await live.create_objects(group(least=3), *(member(f"p{i}") for i in range(3)))
        await live.until(lambda: live.bound("p0", "p1", "p2"))
        await live.until(lambda: live.condition() == ("True", "Scheduled", ""))
        found = live.scheduler.core.snapshot.groups.all_groups()
        ((_, members),) = found.items()
        await live.until(lambda: len(members.assigned) == 3)
        told = live.scheduler.facts.group_attempts
        assert told.results == {("scheduled", "default-scheduler"): 1}
        assert told.algorithm.count == told.durations["scheduled", "default-scheduler"].count == 1

    play(scenario, cluster=nodes(3))


def test_a_gang_of_four_with_room_for_three_holds_nothing_and_others_run():
    async def scenario(live: Cluster) -> None:
        await live.create_objects(group(least=4), *(member(f"p{i}") for i in range(4)))
        await live.until(lambda: live.condition()[0] == "False")
        assert live.condition()[1] == "Unschedulable"
        results = live.scheduler.facts.group_attempts.results
        assert set(results) == {("unschedulable", "default-scheduler")}
        await live.create_objects(pod_manifest("single", cpu="1"))
        await live.until(lambda: live.bound("single"))
        assert not any(live.node_of(f"p{i}") for i in range(4))
        assert live.scheduler.core.cache.counts().assumed_pods == 0
        (event, *_) = await live.events("g", reason="FailedScheduling")
        assert event["message"] == live.condition()[2]
        assert event["message"] == (
            "pod group is unschedulable: 3 of 4 pods tried have a place, default/p3 has none: "
            "0/3 nodes are available: 3 Insufficient cpu. no new claims to deallocate, "
            "preemption: 0/3 nodes are available: 3 No preemption victims found for incoming pod."
        )

    play(scenario, cluster=nodes(3))


def test_two_gangs_that_fit_alone_run_one_after_the_other():
    async def scenario(live: Cluster) -> None:
        for name in ("a", "b"):
            await live.create_objects(group(name, least=4))
            await live.create_objects(*(member(f"{name}{i}", of=name) for i in range(4)))
        first, second = [f"a{i}" for i in range(4)], [f"b{i}" for i in range(4)]
        await live.until(lambda: live.bound(*first) or live.bound(*second))
        done, other = (first, second) if live.bound(*first) else (second, first)
        assert not any(live.node_of(name) for name in other)
        for name in done:
            await live.client.delete(PODS, name, namespace="default")
        await live.until(lambda: live.bound(*other), seconds=120)

    play(scenario, cluster=nodes(6))


@pytest.mark.parametrize(
    ("least", "created", "expected"),
    [
        pytest.param(3, 2, 0, id="a gang with too few members waits"),
        pytest.param(2, 3, 3, id="members beyond the minimum are placed too"),
        pytest.param(None, 1, 1, id="members of a basic group do not wait"),
    ],
)
def test_all_created_members_start_once_the_minimum_exists(least, created, expected):
    async def scenario(live: Cluster) -> None:
        await live.create_objects(group(least=least), *(member(f"p{i}") for i in range(created)))
        await aio.sleep(20)
        assert sum(bool(live.node_of(f"p{i}")) for i in range(created)) == expected

    play(scenario, cluster=nodes(4))


def test_members_wait_for_their_group_and_for_other_members():
    async def scenario(live: Cluster) -> None:
        await live.create_objects(member("p0"))
        await aio.sleep(5)
        await live.create_objects(group(least=2))
        await aio.sleep(5)
        assert not live.node_of("p0")
        await live.create_objects(member("p1"))
        await live.until(lambda: live.bound("p0", "p1"), seconds=5)

    play(scenario, cluster=nodes(2))


def test_a_late_member_joins_its_running_group_and_the_condition_stays():
    async def scenario(live: Cluster) -> None:
        await live.create_objects(group(least=2), member("p0"), member("p1"))
        await live.until(lambda: live.condition()[0] == "True")
        await live.create_objects(member("p2", cpu="5"))
        await live.until(lambda: live.condition_of("p2")[1] == "Unschedulable")
        await live.create_objects(member("p3"))
        await live.until(lambda: live.bound("p3"))
        assert live.condition() == ("True", "Scheduled", "")

    play(scenario, cluster=nodes(3))


def test_a_member_deleted_while_the_group_waits_leaves_it_waiting():
    async def scenario(live: Cluster) -> None:
        await live.create_objects(group(least=2), member("p0", cpu="5"), member("p1"))
        await live.until(lambda: live.condition()[0] == "False")
        await live.client.delete(PODS, "p0", namespace="default")
        await aio.sleep(20)
        assert not live.node_of("p1")
        await live.create_objects(member("p2"))
        await live.until(lambda: live.bound("p1", "p2"))

    play(scenario, cluster=nodes(2))


def test_members_that_name_different_schedulers_fail_with_both_names():
    async def scenario(live: Cluster) -> None:
        await live.create_objects(group(least=2), member("p0"), member("p1", schedulerName="other"))
        await live.create_objects(member("p2"))
        await aio.sleep(5)
        # The pod of a scheduler that is not ours is not ours to count either.
        assert live.bound("p0", "p2")

    play(scenario, cluster=nodes(3))


def test_a_gang_preempts_pods_of_lower_priority_only_if_that_makes_room_for_it():
    async def scenario(live: Cluster) -> None:
        await live.create_objects(
            {
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": "high"},
                "value": 100,
            }
        )
        await live.create_objects(*(pod_manifest(f"low{i}", cpu="1") for i in range(2)))
        await live.until(lambda: live.bound("low0", "low1"))
        high = {"priorityClassName": "high"}
        await live.create_objects(group(least=3), *(member(f"p{i}", **high) for i in range(3)))
        await aio.sleep(30)
        assert live.bound("low0", "low1"), "evicted for a gang that does not fit anyway"
        await live.create_objects(
            group("h", least=2), *(member(f"h{i}", of="h", **high) for i in range(2))
        )
        await live.until(lambda: live.bound("h0", "h1"), seconds=90)
        await live.until(lambda: live.condition("h")[0] == "True")

    play(scenario, cluster=nodes(2))


def test_with_workload_aware_preemption_the_group_preempts_as_a_whole():
    async def scenario(live: Cluster) -> None:
        await live.create_objects(*(pod_manifest(f"low{i}", cpu="1") for i in range(2)))
        await live.until(lambda: live.bound("low0", "low1"))
        await live.create_objects(group(least=2, priority=100), member("p0"), member("p1"))
        await live.until(lambda: live.bound("p0", "p1"), seconds=90)
        (event, *_) = await live.events("low0", reason="Preempted")
        uid = live.group()["metadata"]["uid"]
        assert event["message"] == f"Preempted by podgroup {uid} on node cluster"

    play(scenario, cluster=nodes(2), gates=(*GANGS, "WorkloadAwarePreemption"))


def test_a_topology_constraint_keeps_a_group_in_one_domain():
    zoned = nodes(4)
    for index, each in enumerate(zoned):
        each["metadata"]["labels"] = {"zone": "a" if index == 0 else "b"}

    async def scenario(live: Cluster) -> None:
        zoned_group = group(least=3, schedulingConstraints={"topology": [{"key": "zone"}]})
        await live.create_objects(zoned_group, *(member(f"p{i}") for i in range(3)))
        await live.until(lambda: live.bound("p0", "p1", "p2"))
        assert sorted(live.node_of(f"p{i}") for i in range(3)) == ["n1", "n2", "n3"]

    play(scenario, cluster=zoned, gates=(*GANGS, "TopologyAwareWorkloadScheduling"))


def test_without_the_gates_a_group_means_nothing():
    async def scenario(live: Cluster) -> None:
        await live.create_objects(group(least=4), member("p0"))
        await live.until(lambda: live.bound("p0"))
        assert live.condition() == ("", "", "")

    play(scenario, cluster=nodes(1), gates=())


def test_room_for_too_few_members_wakes_a_group_without_an_attempt():
    """Four pods end one after another; the group needs the room of all of them."""

    async def scenario(live: Cluster) -> None:
        await live.create_objects(*(pod_manifest(f"s{i}", cpu="1") for i in range(4)))
        await live.until(lambda: live.bound(*(f"s{i}" for i in range(4))))
        await live.create_objects(group(least=4), *(member(f"p{i}") for i in range(4)))
        await live.until(lambda: live.condition()[0] == "False")
        results = live.scheduler.facts.group_attempts.results
        rejected = ("unschedulable", "default-scheduler")
        assert results == {rejected: 1}
        for i in range(3):
            await live.client.delete(PODS, f"s{i}", namespace="default")
            await aio.sleep(3)
        assert results == {rejected: 1}
        await live.client.delete(PODS, "s3", namespace="default")
        await live.until(lambda: live.bound("p0", "p1", "p2", "p3"), seconds=3)
        assert results == {rejected: 1, ("scheduled", "default-scheduler"): 1}

    play(scenario, cluster=nodes(4))
