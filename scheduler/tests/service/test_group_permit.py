"""``groupMode: permit`` in virtual time: members are placed one by one and wait for each other.

What is held, what lets go of it, and what else may happen, literally as scheduler-plugins has it.
"""

from __future__ import annotations

import pytest

from moorage.api.coscheduling import COSCHEDULING_POD_GROUPS
from moorage.api.resources import CORE_EVENTS, PODS
from moorage.base import aio
from moorage_sandbox.testing.builders import node_manifest, pod_manifest
from tests.scenarios.gangs import (
    Cluster,
    coscheduling,
    nodes,
    of_labels,
    of_object,
    play,
    pod_group,
)

WAIT = "{permitWaitingTimeSeconds: 10}"
SOURCES = [
    pytest.param(of_object, id="a PodGroup"),
    pytest.param(of_labels, id="labels"),
]


def names(count: int, prefix: str = "p") -> list[str]:
    return [f"{prefix}{i}" for i in range(count)]


@pytest.mark.parametrize("member", SOURCES)
def test_members_wait_until_enough_have_a_node_and_start_together(member):
    async def scenario(live: Cluster) -> None:
        if member is of_object:
            await live.create_objects(pod_group(least=3))
        core = live.scheduler.core
        # All are there, and one cannot be tried yet: it is made to fit by another node.
        await live.create_objects(*(member(name, least=3) for name in names(2)))
        await live.create_objects(member("p2", least=3, nodeSelector={"late": "yes"}))
        await live.until(lambda: len(core.waiting) == 2)
        assert live.bound(*names(3)) == 0
        assert core.cache.counts().assumed_pods == 2, "holding included"
        (late,) = nodes(1)
        late["metadata"] = {"name": "late", "labels": {"late": "yes"}}
        await live.play([late])
        await live.until(lambda: live.bound(*names(3)) == 3)

    # 100 percent may be missing: the group is kept when a member finds no node.
    args = "{permitWaitingTimeSeconds: 60, podGroupRejectPercentage: 100}"
    play(scenario, cluster=nodes(3), config=coscheduling("permit", args=args))


@pytest.mark.parametrize("member", SOURCES)
def test_a_permit_timeout_frees_all_nodes_of_the_group(member):
    async def scenario(live: Cluster) -> None:
        if member is of_object:
            await live.create_objects(pod_group(least=3))
        core = live.scheduler.core
        await live.create_objects(*(member(name, least=3) for name in names(2)))
        await live.create_objects(member("p2", least=3, nodeSelector={"no": "such"}))
        await live.until(lambda: len(core.waiting) == 2)
        began = live.seconds
        await live.until(lambda: len(core.waiting) == 0, seconds=15)
        assert 9 < live.seconds - began <= 10.5
        assert live.bound(*names(3)) == 0
        await aio.sleep(1)
        said = [
            event["message"]
            for name in names(2)
            for event in await live.events(name, reason="FailedScheduling")
        ]
        timeouts = ["timeout after waiting 10s at plugin Coscheduling" in text for text in said]
        assert sum(timeouts) == 2

    args = "{permitWaitingTimeSeconds: 10, podGroupRejectPercentage: 100}"
    play(scenario, cluster=nodes(2), config=coscheduling("permit", args=args))


def test_when_a_waiting_member_is_deleted_the_others_are_rejected():
    async def scenario(live: Cluster) -> None:
        await live.create_objects(pod_group(least=3))
        await live.create_objects(*(of_object(name) for name in names(2)))
        await live.create_objects(of_object("p2", nodeSelector={"no": "such"}))
        await live.until(lambda: len(live.scheduler.core.waiting) == 2)
        await live.delete("p0")
        await live.until(lambda: len(live.scheduler.core.waiting) == 0, seconds=5)
        await live.until(lambda: "rejection in Unreserve" in live.message_of("p1"))

    args = "{podGroupRejectPercentage: 100}"
    play(scenario, cluster=nodes(2), config=coscheduling("permit", args=args))


def test_the_wait_of_members_is_that_of_their_pod_group():
    async def scenario(live: Cluster) -> None:
        await live.create_objects(pod_group(least=2, scheduleTimeoutSeconds=3))
        await live.create_objects(of_object("p0"), of_object("p1", nodeSelector={"no": "such"}))
        await live.until(lambda: len(live.scheduler.core.waiting) == 1)
        began = live.seconds
        await live.until(lambda: len(live.scheduler.core.waiting) == 0, seconds=5)
        assert 2 < live.seconds - began <= 3.5

    args = "{permitWaitingTimeSeconds: 60, podGroupRejectPercentage: 100}"
    play(scenario, cluster=nodes(2), config=coscheduling("permit", args=args))


def test_members_are_rejected_together_when_one_of_too_many_finds_no_node():
    async def scenario(live: Cluster) -> None:
        await live.create_objects(pod_group(least=4))
        await live.create_objects(*(of_object(name) for name in names(4)))
        await live.until(
            lambda: any("gets rejected due to Pod" in live.message_of(name) for name in names(4)),
            seconds=5,
        )
        await live.until(lambda: live.scheduler.core.cache.counts().assumed_pods == 0)
        assert live.bound(*names(4)) == 0
        events = [e for n in names(3) for e in await live.events(n, reason="FailedScheduling")]
        assert any("optimistic rejection in PostFilter" in e["message"] for e in events)

    play(scenario, cluster=nodes(3), config=coscheduling("permit", args=WAIT))


def test_a_rejected_group_waits_for_its_backoff():
    async def scenario(live: Cluster) -> None:
        await live.create_objects(pod_group(least=4))
        await live.create_objects(*(of_object(name) for name in names(4)))
        await live.until(
            lambda: any("gets rejected due to Pod" in live.message_of(name) for name in names(4)),
            seconds=5,
        )
        await aio.sleep(3)
        messages = [live.message_of(name) for name in names(4)]
        assert "failed recently" not in "".join(messages), "the reason stays while nothing happens"
        (late,) = nodes(1)
        late["metadata"] = {"name": "late"}
        await live.play([late])
        await live.until(
            lambda: "podGroup default/g failed recently" in "".join(map(live.message_of, names(4)))
        )
        assert live.bound(*names(4)) == 0

    config = coscheduling("permit", args="{podGroupBackoffSeconds: 30}")
    play(scenario, cluster=nodes(3), config=config)


def test_a_rejected_group_is_tried_at_the_end_of_its_backoff():
    async def scenario(live: Cluster) -> None:
        await live.create_objects(pod_group(least=4))
        await live.create_objects(*(of_object(name) for name in names(4)))
        await live.until(
            lambda: any("gets rejected due to Pod" in live.message_of(name) for name in names(4)),
            seconds=5,
        )
        await aio.sleep(5)
        began = live.seconds
        (late,) = nodes(1)
        late["metadata"] = {"name": "late"}
        await live.play([late])
        await live.until(lambda: live.bound(*names(4)) == 4, seconds=60)
        assert 15 < live.seconds - began <= 31

    config = coscheduling("permit", args="{podGroupBackoffSeconds: 30}")
    play(scenario, cluster=nodes(3), config=config)


def test_with_three_places_six_replicas_of_a_minimum_of_three_run_three():
    async def scenario(live: Cluster) -> None:
        await live.create_objects(*(of_labels(name, least=3) for name in names(6)))
        await live.until(lambda: live.bound(*names(6)) == 3)
        await aio.sleep(30)
        assert live.bound(*names(6)) == 3

    play(scenario, cluster=nodes(3), config=coscheduling("permit", args=WAIT))


@pytest.mark.parametrize("member", SOURCES)
def test_with_three_places_a_minimum_of_four_runs_none_and_other_pods_get_the_room(member):
    """By default: the members placed do not keep their nodes until the timeout."""

    async def scenario(live: Cluster) -> None:
        if member is of_object:
            await live.create_objects(pod_group(least=4))
        await live.create_objects(*(member(name, least=4) for name in names(6)))
        await aio.sleep(2)
        assert live.bound(*names(6)) == 0
        await live.create_objects(*(pod_manifest(name, cpu="1") for name in names(3, "single")))
        await live.until(lambda: live.bound(*names(3, "single")) == 3, seconds=5)

    play(scenario, cluster=nodes(3), config=coscheduling("permit"))


@pytest.mark.parametrize("member", SOURCES)
def test_a_group_that_misses_few_enough_members_keeps_its_room_until_the_timeout(member):
    async def scenario(live: Cluster) -> None:
        if member is of_object:
            await live.create_objects(pod_group(least=4))
        await live.create_objects(*(member(name, least=4) for name in names(4)))
        await live.until(lambda: len(live.scheduler.core.waiting) == 3)
        await live.create_objects(pod_manifest("single", cpu="1"))
        await aio.sleep(8)
        assert live.bound("single") == 0
        await live.until(lambda: live.bound("single") == 1, seconds=5)

    args = "{permitWaitingTimeSeconds: 10, podGroupRejectPercentage: 25}"
    play(scenario, cluster=nodes(3), config=coscheduling("permit", args=args))


def test_two_groups_that_fit_one_at_a_time_both_run_in_the_end():
    """The default scheduler would leave three of each running for ever."""

    async def scenario(live: Cluster) -> None:
        await live.create_objects(pod_group("a", least=4), pod_group("b", least=4))
        for i in range(4):
            await live.create_objects(of_object(f"a{i}", of="a"), of_object(f"b{i}", of="b"))
        a, b = names(4, "a"), names(4, "b")
        await live.until(lambda: 4 in (live.bound(*a), live.bound(*b)), seconds=300)
        done, other = (a, b) if live.bound(*a) == 4 else (b, a)
        assert live.bound(*other) == 0
        await live.delete(*done)
        await live.until(lambda: live.bound(*other) == 4, seconds=300)

    play(scenario, cluster=nodes(6), config=coscheduling("permit", args=WAIT))


def test_a_pod_of_a_missing_group_says_so_and_starts_once_the_group_exists():
    async def scenario(live: Cluster) -> None:
        await live.create_objects(of_object("p0"))
        await live.until(lambda: "PodGroup not found" in live.message_of("p0"))
        await live.create_objects(pod_group(least=1))
        await live.until(lambda: live.bound("p0") == 1)

    play(scenario, cluster=nodes(1), config=coscheduling("permit"))


def written(live: Cluster) -> list[tuple[str, str]]:
    """Return the version of every pod, Event and group."""
    shelves = live.server.store.shelves()
    kinds = (CORE_EVENTS, PODS, COSCHEDULING_POD_GROUPS)
    return sorted(
        (record.key[1], record.decode()["metadata"]["resourceVersion"])
        for kind in kinds
        for record in (shelves[kind.qualified].records() if kind.qualified in shelves else ())
    )


def nominated(live: Cluster, name: str) -> str:
    """Return the nominated node in a pod's status."""
    stored = live.stored_pod(name) or {}
    return str(stored.get("status", {}).get("nominatedNodeName") or "")


@pytest.mark.parametrize("member", SOURCES)
def test_a_group_that_cannot_fit_writes_nothing_while_only_time_passes(member):
    """The room that its members give back is no news, and no error; neither is it to others."""

    async def scenario(live: Cluster) -> None:
        for group in ("a", "b"):
            if member is of_object:
                await live.create_objects(pod_group(group, least=5))
            await live.create_objects(
                *(member(name, of=group, least=5) for name in names(5, group))
            )
        await live.create_objects(pod_manifest("single", cpu="2"))
        await aio.sleep(30)
        members = [*names(5, "a"), *names(5, "b")]
        before, attempts = written(live), live.scheduler.facts.decisions
        assert {live.condition_of(name)[1] for name in members} == {"Unschedulable"}
        for name in members:
            assert "4 of 5 pods needed have a node" in live.message_of(name)
        await aio.sleep(120)
        assert written(live) == before
        assert live.scheduler.facts.decisions > attempts, "another order may fit, and is not tried"
        await live.join(node_manifest("late", cpu="1", memory="8Gi"))
        await live.until(lambda: 5 in (live.bound(*names(5, each)) for each in "ab"), seconds=5)

    play(scenario, cluster=nodes(4), config=coscheduling("permit"))


@pytest.mark.parametrize("member", SOURCES)
def test_every_member_says_the_reason_of_its_group_that_holds_now(member):
    async def scenario(live: Cluster) -> None:
        if member is of_object:
            await live.create_objects(pod_group(least=3))
        await live.create_objects(*(member(name, least=3) for name in names(2)))
        await live.create_objects(member("p2", least=3, nodeSelector={"kind": "large"}))
        await aio.sleep(20)
        for name in names(3):
            assert "node(s) didn't match Pod's node affinity/selector" in live.message_of(name)
        full = node_manifest("full", cpu="500m", memory="8Gi", labels={"kind": "large"})
        await live.join(full)
        await aio.sleep(20)
        for name in names(3):
            assert "1 Insufficient cpu" in live.message_of(name), name

    play(scenario, cluster=nodes(2), config=coscheduling("permit"))


def test_a_member_turned_away_does_not_wake_a_pod_that_was_tried_before():
    """The member's node in its status is a report, no nomination that kept others away."""

    async def scenario(live: Cluster) -> None:
        await live.create_objects(pod_manifest("filler", cpu="500m"))
        await live.until(lambda: live.bound("filler") == 1)
        await live.create_objects(pod_manifest("large", cpu="1"))
        await live.until(lambda: "1 Insufficient cpu" in live.message_of("large"))
        await live.create_objects(*(of_labels(name, least=2, cpu="500m") for name in names(2)))
        await live.until(lambda: nominated(live, "p1") == "n0")
        await live.until(lambda: "rejected due to timeout" in live.message_of("p1"), seconds=20)
        await live.until(lambda: not nominated(live, "p1"))
        await aio.sleep(5)
        counts = live.scheduler.core.queue.counts()
        (record,) = [
            each.pending
            for each in live.scheduler.core.queue.reader.first(9, counts=counts).unschedulable
            if each.pending.pod.name == "large"
        ]
        assert record.attempts == 1

    args = "{permitWaitingTimeSeconds: 10, podGroupRejectPercentage: 100}"
    play(scenario, cluster=nodes(1), config=coscheduling("permit", args=args))


def test_members_that_come_to_a_complete_group_are_tried_alone():
    """The group cannot fit. Each member says so once, however many members come."""

    async def scenario(live: Cluster) -> None:
        await live.create_objects(*(of_labels(name, least=3) for name in names(3)))
        await aio.sleep(20)
        before, attempts = written(live), live.scheduler.facts.decisions
        more = [of_labels(name, least=3) for name in names(30, "more")]
        for each in more:
            await live.create_objects(each)
            await aio.sleep(0.1)
        await aio.sleep(20)
        assert live.scheduler.facts.decisions > attempts
        former = set(before)
        assert former < set(written(live)), "the members from before have nothing to say"
        log = live.server.store.shelf(PODS.qualified).log
        later = [each.record.key[1] for each in log.since(0, len(log)) or ()]
        assert {later.count(name) for name in names(30, "more")} == {2}, "creation, condition"

    play(scenario, cluster=nodes(2), config=coscheduling("permit"))
