"""Why a group waits: the condition and the Events of a group of Kubernetes, and of its members."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from moorage.api.resources import CORE_EVENTS, POD_GROUPS, PODS
from moorage.base import aio
from moorage_sandbox.testing.builders import Manifest, node_manifest
from scheduler.tests.service.test_group_attempt import Cluster, group, member, nodes, play

NO_PLACE = (
    "pod group is unschedulable: 2 of 3 pods tried have a place, default/p2 has none: 0/2 nodes "
    "are available: 2 Insufficient cpu. no new claims to deallocate, preemption: 0/2 nodes are "
    "available: 2 No preemption victims found for incoming pod."
)


async def messages(live: Cluster, name: str) -> list[str]:
    return [each["message"] for each in await live.events(name, reason="FailedScheduling")]


def test_conditions_of_a_group_without_room_name_the_unplaced_members_and_reasons():
    async def scenario(live: Cluster) -> None:
        await live.create_objects(group(least=3), *(member(f"p{i}") for i in range(3)))
        await live.until(lambda: live.condition()[0] == "False", seconds=3)
        assert live.condition() == ("False", "Unschedulable", NO_PLACE)
        await live.until(lambda: live.condition_of("p0")[2] == NO_PLACE, seconds=1)
        await aio.sleep(1)
        assert (await messages(live, "g"))[0] == NO_PLACE
        assert (await messages(live, "p0"))[0] == NO_PLACE
        assert live.condition_of("p2")[2].startswith("0/2 nodes are available: 2 Insufficient cpu")

    play(scenario, cluster=nodes(2))


LACKS: list[object] = [
    pytest.param(
        [group(least=3), member("p0")],
        "pod group default/g lacks pods: 1 exists, minCount is 3",
        id="one of three pods exists",
    ),
    pytest.param(
        [group(least=3), member("p0"), member("p1")],
        "pod group default/g lacks pods: 2 exist, minCount is 3",
        id="two of three pods exist",
    ),
    pytest.param([member("p0")], "PodGroup default/g not found", id="the PodGroup is missing"),
]


@pytest.mark.parametrize(("created", "text"), LACKS)
def test_conditions_of_an_incomplete_group_name_the_missing_members_within_seconds(
    created: Sequence[Manifest], text: str
):
    async def scenario(live: Cluster) -> None:
        await live.create_objects(*created)
        await aio.sleep(4)
        assert live.condition_of("p0") == ("False", "Unschedulable", text)
        assert await messages(live, "p0") == [text]
        if created[0]["kind"] == "PodGroup":
            assert live.condition() == ("False", "Unschedulable", text)
            assert await messages(live, "g") == [text]

    play(scenario, cluster=nodes(2))


def test_a_missing_members_message_is_repeated_when_it_changes_and_not_while_pods_arrive():
    async def scenario(live: Cluster) -> None:
        await live.create_objects(group(least=4))
        for i in range(3):
            await live.create_objects(member(f"p{i}"))
            await aio.sleep(0.4)
        await aio.sleep(10)
        assert await messages(live, "p0") == [
            "pod group default/g lacks pods: 3 exist, minCount is 4"
        ]
        await live.client.delete(PODS, "p2", namespace="default")
        await aio.sleep(4)
        assert live.condition()[2] == "pod group default/g lacks pods: 2 exist, minCount is 4"
        await live.create_objects(member("p3"), member("p4"))
        await live.until(lambda: live.bound("p0", "p1", "p3", "p4"), seconds=3)
        await live.until(lambda: live.condition() == ("True", "Scheduled", ""), seconds=1)
        await live.client.delete(POD_GROUPS, "g", namespace="default")
        await aio.sleep(4)
        assert live.condition_of("p0")[0] == "True"

    play(scenario, cluster=nodes(4))


def in_two_zones() -> list[Manifest]:
    """Three nodes for one pod each; members that stay in one zone have one or two places."""
    return [
        node_manifest(name, cpu="1", memory="8Gi", labels={"zone": zone})
        for name, zone in (("n1", "a"), ("n2", "a"), ("n3", "b"))
    ]


def in_one_zone(name: str) -> Manifest:
    term = {"labelSelector": {"matchLabels": {"app": "g"}}, "topologyKey": "zone"}
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return member(name, labels={"app": "g"}, affinity=affinity)


def written(live: Cluster) -> list[tuple[str, str]]:
    """Return the version of everything about the group that the scheduler writes."""
    shelves = live.server.store.shelves()
    return sorted(
        (record.key[1], record.decode()["metadata"]["resourceVersion"])
        for name in (CORE_EVENTS.qualified, PODS.qualified, POD_GROUPS.qualified)
        for record in shelves[name].records()
    )


def test_a_group_whose_reason_depends_on_ties_writes_nothing_while_only_time_passes():
    async def scenario(live: Cluster) -> None:
        await live.create_objects(group(least=4), *(in_one_zone(f"p{i}") for i in range(5)))
        await aio.sleep(20)
        before, results = written(live), live.scheduler.facts.group_attempts.results
        attempts = results.total()
        await aio.sleep(120)
        assert results.total() >= attempts + 10, "the group is not tried again"
        assert written(live) == before

    play(scenario, cluster=in_two_zones())


def test_what_happens_to_a_group_that_waits_is_in_its_condition():
    async def scenario(live: Cluster) -> None:
        await live.create_objects(group(least=4), *(in_one_zone(f"p{i}") for i in range(5)))
        await aio.sleep(60)
        assert " of 5 pods tried have a place" in live.condition()[2]
        await live.client.delete(PODS, "p4", namespace="default")
        await aio.sleep(12)
        assert " of 4 pods tried have a place" in live.condition()[2]
        assert "0/3 nodes" in live.condition()[2]
        await live.join(node_manifest("n4", cpu="1", memory="8Gi", labels={"zone": "b"}))
        await aio.sleep(12)
        assert "0/4 nodes" in live.condition()[2]

    play(scenario, cluster=in_two_zones())
