"""Scope: composite groups of 1.37 in a cluster: when they start, what is written, what is refused.

The engine's tries of parts: `scheduler/tests/engine/groups/test_sub_groups.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from moorage.api.reasons.codes import ReasonCode, code_of_message
from moorage.api.resources import COMPOSITE_POD_GROUPS
from moorage.base import aio
from moorage.base.clock import ManualClock
from moorage.config.feature_gates import feature_gates
from moorage.config.own import LoadedConfiguration
from moorage.kinds.built_in import resource_type
from moorage_sandbox.testing.builders import node_manifest, pod_manifest
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from moorage_sandbox.testing.virtual_loop import run_virtual

BETA = "scheduling.k8s.io/v1beta1"
PODS, GROUPS = resource_type("v1", "pods"), resource_type(BETA, "podgroups")
GATES = {
    "GenericWorkload": True,
    "TopologyAwareWorkloadScheduling": True,
    "CompositePodGroup": True,
}
FLUSH_SECONDS = 600  # longer than the flush of pods that wait
REFUSED = (
    'pod group default/part is a part of CompositePodGroup "whole": composite groups are not '
    "scheduled without the feature gate CompositePodGroup"
)


def ref() -> dict[str, str]:
    return {"workloadName": "w", "templateName": "t"}


class Live:
    """A virtual cluster with short words for the objects of composite groups."""

    def __init__(self, cluster: VirtualCluster) -> None:
        self.cluster = cluster

    @property
    def bound(self) -> int:
        return self.cluster.scheduler.facts.bound

    async def composite(self, name: str, minimum: int = 0, parent: str = "", **spec: Any) -> None:
        """Create a composite group: a gang of so many groups, or a basic one for 0."""
        gang = {"gang": {"minGroupCount": minimum}}
        await self.cluster.client.create(
            COMPOSITE_POD_GROUPS,
            {
                "apiVersion": COMPOSITE_POD_GROUPS.api_version,
                "kind": "CompositePodGroup",
                "metadata": {"name": name, "namespace": "default"},
                "spec": {
                    "schedulingPolicy": gang if minimum else {"basic": {}},
                    "workloadRef": ref(),
                    **({"parentCompositePodGroupName": parent} if parent else {}),
                    **spec,
                },
            },
            namespace="default",
        )

    async def group(self, name: str, minimum: int = 0, parent: str = "", **spec: Any) -> None:
        """Create a PodGroup: a gang of so many pods, or a basic one for 0."""
        gang = {"gang": {"minCount": minimum}}
        await self.cluster.client.create(
            GROUPS,
            {
                "apiVersion": BETA,
                "kind": "PodGroup",
                "metadata": {"name": name, "namespace": "default"},
                "spec": {
                    "schedulingPolicy": gang if minimum else {"basic": {}},
                    **({"parentCompositePodGroupName": parent} if parent else {}),
                    **({"workloadRef": ref()} if parent else {}),
                    **spec,
                },
            },
            namespace="default",
        )

    async def pods(self, group: str, number: int, *, cpu: str = "1", **spec: Any) -> None:
        member: Any = {"schedulingGroup": {"podGroupName": group}, **spec}
        for each in range(number):
            await self.cluster.create_objects(pod_manifest(f"{group}-{each}", cpu=cpu, **member))

    async def until_bound(self, number: int) -> None:
        await self.cluster.until(lambda: self.bound == number)

    async def stays_at(self, number: int) -> None:
        await aio.sleep(FLUSH_SECONDS)
        assert self.bound == number

    async def condition(self, name: str, *, composite: bool = False) -> tuple[str, str, str]:
        """Return type without its kind, status and reason of a group's only condition."""
        found: Any = await self.cluster.client.get(
            COMPOSITE_POD_GROUPS if composite else GROUPS, name, namespace="default"
        )
        (condition,) = found["status"]["conditions"]
        kind = "CompositePodGroup" if composite else "PodGroup"
        assert condition["type"] == f"{kind}InitiallyScheduled"
        return condition["status"], condition["reason"], condition["message"]

    async def node_of(self, name: str) -> str:
        found: Any = await self.cluster.client.get(PODS, name, namespace="default")
        return str(found["spec"].get("nodeName", ""))


def run(
    story: Callable[[Live], Coroutine[Any, Any, None]], *nodes: dict[str, Any], **gates: bool
) -> None:
    """Run a story on some nodes."""
    clock = ManualClock()
    config = LoadedConfiguration(gates=feature_gates(gates or GATES, "1.37"))

    async def main() -> None:
        async with VirtualCluster(clock, nodes=list(nodes), config=config) as cluster:
            await story(Live(cluster))

    run_virtual(main(), clock)


def node(name: str, cpu: int, **labels: str) -> dict[str, Any]:
    return node_manifest(name, cpu=str(cpu), labels=labels)


# -- all or nothing -------------------------------------------------------------------------------


async def two_groups(live: Live) -> None:
    """Create a composite group that needs two gangs of two pods."""
    await live.composite("whole", 2)
    for name in ("a", "b"):
        await live.group(name, 2, "whole")


def test_the_groups_of_a_composite_group_start_together() -> None:
    async def story(live: Live) -> None:
        await two_groups(live)
        await live.pods("a", 2)
        await live.stays_at(0)
        await live.pods("b", 2)
        await live.until_bound(4)
        assert await live.condition("whole", composite=True) == ("True", "Scheduled", "")
        assert await live.condition("a") == await live.condition("b") == ("True", "Scheduled", "")

    run(story, node("n", 4))


def test_no_group_starts_where_one_has_no_room_and_all_start_once_there_is_room() -> None:
    async def story(live: Live) -> None:
        await two_groups(live)
        await live.pods("a", 2)
        await live.pods("b", 2)
        await live.stays_at(0)
        status, reason, message = await live.condition("whole", composite=True)
        assert (status, reason) == ("False", "Unschedulable")
        assert "minCount (2) cannot be satisfied: 1 scheduled, 0 remaining" in message
        assert "sub-group b: 1 of 2 pods needed have a place" in message
        assert (await live.condition("a"))[:2] == ("False", "Unschedulable")
        status, reason, message = await live.condition("b")
        assert message == "minCount (2) cannot be satisfied: 1 scheduled, 0 remaining"
        await live.cluster.create_objects(node("m", 1))
        await live.until_bound(4)
        assert await live.condition("whole", composite=True) == ("True", "Scheduled", "")

    run(story, node("n", 3))


def test_a_group_beyond_the_minimum_may_fail() -> None:
    """As upstream's TestCPGMinGroupCount: two of three groups are enough."""

    async def story(live: Live) -> None:
        await live.composite("whole", 2)
        for name, cpu in (("a", "1"), ("b", "1"), ("c", "100")):
            await live.group(name, 3, "whole")
            await live.pods(name, 3, cpu=cpu)
        await live.until_bound(6)
        await live.stays_at(6)
        assert await live.condition("whole", composite=True) == ("True", "Scheduled", "")
        assert (await live.condition("c"))[:2] == ("False", "Unschedulable")

    run(story, node("n", 20))


def test_the_groups_of_a_basic_composite_group_start_each_by_itself() -> None:
    """As upstream's TestCPGBasicWithGangChildren."""

    async def story(live: Live) -> None:
        await live.composite("whole")
        for name, cpu in (("a", "1"), ("b", "100")):
            await live.group(name, 3, "whole")
            await live.pods(name, 3, cpu=cpu)
        await live.until_bound(3)
        await live.stays_at(3)

    run(story, node("n", 20))


def test_trees_of_three_levels_are_placed_by_their_minima() -> None:
    """As upstream's TestCPGHierarchicalScheduling."""

    async def story(live: Live) -> None:
        await live.composite("root", 2)
        await live.composite("sub1", 2, "root")
        await live.composite("sub2", 0, "root")
        await live.composite("sub3", 2, "root")
        for name, parent, cpu in (
            ("pg1", "sub1", "1"),
            ("pg2", "sub1", "1"),
            ("pg3", "sub1", "100"),
            ("pg4", "sub2", "1"),
            ("pg5", "sub2", "1"),
            ("pg6", "sub3", "1"),
            ("pg7", "sub3", "100"),
        ):
            await live.group(name, 0 if name == "pg4" else 3, parent)
            await live.pods(name, 3, cpu=cpu)
        await live.until_bound(12)
        await live.stays_at(12)
        for name in ("root", "sub1", "sub2"):
            assert await live.condition(name, composite=True) == ("True", "Scheduled", "")
        assert (await live.condition("sub3", composite=True))[:2] == ("False", "Unschedulable")
        for name in ("pg1", "pg2", "pg4", "pg5"):
            assert await live.condition(name) == ("True", "Scheduled", "")
        for name in ("pg3", "pg6", "pg7"):
            assert (await live.condition(name))[:2] == ("False", "Unschedulable")

    run(story, node("n", 20))


# -- the order in which objects come --------------------------------------------------------------


def test_objects_may_come_after_their_pods() -> None:
    async def story(live: Live) -> None:
        await live.pods("a", 2)
        await live.pods("b", 2)
        await live.group("a", 2, "mid")
        await live.stays_at(0)
        await live.group("b", 2, "mid")
        await live.composite("mid", 2, "root")
        await live.stays_at(0)
        await live.composite("root", 1)
        await live.until_bound(4)

    run(story, node("n", 4))


def test_a_missing_composite_group_is_reported() -> None:
    async def story(live: Live) -> None:
        await live.group("a", 2, "whole")
        await live.pods("a", 2)
        await live.stays_at(0)
        found: Any = await live.cluster.client.get(PODS, "a-0", namespace="default")
        (condition,) = found["status"]["conditions"]
        assert condition["message"] == "CompositePodGroup default/whole not found"

    run(story, node("n", 4))


def test_a_lower_minimum_starts_a_group() -> None:
    async def story(live: Live) -> None:
        await two_groups(live)
        await live.pods("a", 2)
        await live.stays_at(0)
        await live.cluster.client.patch(
            COMPOSITE_POD_GROUPS,
            "whole",
            b'{"spec": {"schedulingPolicy": {"gang": {"minGroupCount": 1}}}}',
            namespace="default",
        )
        await live.until_bound(2)

    run(story, node("n", 4))


# -- topology -------------------------------------------------------------------------------------


def topology(key: str) -> dict[str, Any]:
    return {"schedulingConstraints": {"topology": [{"key": key}]}}


def test_a_composite_group_stays_in_one_domain() -> None:
    async def story(live: Live) -> None:
        await live.composite("whole", 2, **topology("zone"))
        for name in ("a", "b"):
            await live.group(name, 2, "whole")
            await live.pods(name, 2)
        await live.until_bound(4)
        names = {await live.node_of(f"{name}-{each}") for name in "ab" for each in range(2)}
        assert names == {"y1", "y2"}

    run(
        story,
        node("x1", 3, zone="x"),
        node("y1", 2, zone="y"),
        node("y2", 2, zone="y"),
    )


def test_each_group_has_its_own_domain_in_that_of_the_composite_group() -> None:
    async def story(live: Live) -> None:
        await live.composite("whole", 2, **topology("zone"))
        for name in ("a", "b"):
            await live.group(name, 2, "whole", **topology("rack"))
            await live.pods(name, 2)
        await live.until_bound(4)
        for name in ("a", "b"):
            nodes = {await live.node_of(f"{name}-{each}") for each in range(2)}
            assert nodes in ({"y1"}, {"y2"})

    run(
        story,
        node("x1", 1, zone="x", rack="x1"),
        node("x2", 4, zone="x", rack="x2") | {"spec": {"unschedulable": True}},
        node("y1", 2, zone="y", rack="y1"),
        node("y2", 2, zone="y", rack="y2"),
    )


# -- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize("levels", [3, 4])
def test_a_tree_of_more_than_four_levels_is_refused(levels: int) -> None:
    async def story(live: Live) -> None:
        for level in range(levels):
            await live.composite(f"c{level}", 0, f"c{level - 1}" if level else "")
        await live.group("a", 1, f"c{levels - 1}")
        await live.pods("a", 1)
        if levels == 3:
            await live.until_bound(1)
            return
        await live.stays_at(0)
        assert await live.condition("c0", composite=True) == (
            "False",
            "Unschedulable",
            "composite pod group default/c0 has more than 4 levels of groups",
        )

    run(story, node("n", 4))


def test_a_circle_of_composite_groups_is_refused() -> None:
    async def story(live: Live) -> None:
        await live.composite("c", 0, "d")
        await live.composite("d", 0, "c")
        await live.group("a", 1, "d")
        await live.pods("a", 1)
        await live.stays_at(0)
        assert (await live.condition("c", composite=True))[2] == (
            "composite pod group default/c is a part of itself: its parents form a circle"
        )

    run(story, node("n", 4))


@pytest.mark.parametrize("mode", ["single", "all"])
def test_a_group_that_is_evicted_whole_needs_a_composite_group_of_that_mode(mode: str) -> None:
    async def story(live: Live) -> None:
        await live.composite("c", 1, disruptionMode={mode: {}})
        await live.group("a", 1, "c", disruptionMode={"all": {}})
        await live.pods("a", 1)
        if mode == "all":
            await live.until_bound(1)
            return
        await live.stays_at(0)
        message = (await live.condition("c", composite=True))[2]
        assert message == (
            "composite pod group default/c has a group with disruptionMode all (a), and is not of "
            "that mode itself: groups below are not evicted as a whole"
        )
        assert code_of_message(message) == ReasonCode.GROUP_INVALID

    run(story, node("n", 4))


# -- preemption -----------------------------------------------------------------------------------


async def single(live: Live, name: str, **spec: Any) -> None:
    await live.cluster.create_objects(pod_manifest(name, cpu="1", **spec))


async def high_priority(live: Live) -> None:
    priority = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "high"},
        "value": 100,
    }
    await live.cluster.create_objects(priority)


async def names(live: Live) -> set[str]:
    found: Any = await live.cluster.client.list(PODS)
    return {each["metadata"]["name"] for each in found["items"]}


def test_a_composite_group_evicts_what_all_its_groups_need() -> None:
    async def story(live: Live) -> None:
        await high_priority(live)
        for number in range(3):
            await single(live, f"low-{number}")
        await live.until_bound(3)
        await live.composite("whole", 2, priorityClassName="high")
        for name in ("a", "b"):
            await live.group(name, 2, "whole", priorityClassName="high")
            await live.pods(name, 2, priorityClassName="high")
        await live.until_bound(7)
        left = await names(live)
        assert len(left) == 5
        assert left > {"a-0", "a-1", "b-0", "b-1"}

    run(story, node("n", 5))


def test_no_pod_is_evicted_for_a_composite_group_that_then_does_not_fit() -> None:
    async def story(live: Live) -> None:
        await high_priority(live)
        await single(live, "low")
        await live.until_bound(1)
        await live.composite("whole", 2, priorityClassName="high")
        for name in ("a", "b"):
            await live.group(name, 2, "whole", priorityClassName="high")
            await live.pods(name, 2, priorityClassName="high")
        await live.stays_at(1)
        assert "low" in await names(live)

    run(story, node("n", 3))


def test_a_composite_group_of_mode_all_is_evicted_as_a_whole() -> None:
    async def story(live: Live) -> None:
        await high_priority(live)
        await live.composite("whole", 2, disruptionMode={"all": {}})
        for name in ("a", "b"):
            await live.group(name, 1, "whole")
            await live.pods(name, 1)
        await live.until_bound(2)
        await single(live, "high", priorityClassName="high")
        await live.until_bound(3)
        assert await names(live) == {"high"}

    run(story, node("n", 2))


# -- what is refused without the gate -------------------------------------------------------------


def test_without_the_gate_a_part_of_a_composite_group_is_refused_by_name() -> None:
    async def story(live: Live) -> None:
        await live.composite("whole", 1)
        await live.group("part", 2, "whole")
        await live.pods("part", 2)
        await live.group("alone", 2)
        await live.pods("alone", 2)
        await live.until_bound(2)
        await live.stays_at(2)
        assert await live.condition("part") == ("False", "Unschedulable", REFUSED)
        found: Any = await live.cluster.client.get(PODS, "part-0", namespace="default")
        assert found["status"]["conditions"][0]["message"] == REFUSED

    run(story, node("n", 9), GenericWorkload=True)


def test_the_refusal_is_a_fault_of_the_group() -> None:
    assert code_of_message(REFUSED) == ReasonCode.GROUP_INVALID
