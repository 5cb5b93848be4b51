"""Why a group waits with ``groupMode: permit``: conditions and Events of group and members.

For groups that are tried as a whole see ``scheduler/tests/service/test_group_reasons.py``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from moorage.api.meta import Condition
from moorage.api.resources import POD_GROUPS
from moorage.base import aio
from moorage.config.feature_gates import feature_gates
from moorage.config.own import LoadedConfiguration
from moorage.service.questions.queue import queue_answer
from moorage_sandbox.testing.builders import Manifest, pod_manifest
from tests.scenarios.gangs import (
    Cluster,
    Play,
    coscheduling,
    nodes,
    of_labels,
    of_object,
    play,
    pod_group,
)

Member = Callable[..., Manifest]
NAMES = ["p0", "p1", "p2"]
NO_NODE = (
    "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector. no new claims "
    "to deallocate, preemption: 0/2 nodes are available: 2 Preemption is not helpful for "
    "scheduling., "
)


def of_api(name: str, *, least: int, **fields: Any) -> Manifest:
    """Return a pod that names a PodGroup of Kubernetes."""
    del least
    return pod_manifest(name, schedulingGroup={"podGroupName": "g"}, **{"cpu": "1", **fields})


def group_object(member: Member, least: int = 3) -> list[Manifest]:
    """Return the object of the group, if its source has one."""
    in_kubernetes: Manifest = {
        "apiVersion": POD_GROUPS.api_version,
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": least}}},
    }
    return {of_api: [in_kubernetes], of_object: [pod_group(least=least)], of_labels: []}[member]


def config(args: str = "{}") -> LoadedConfiguration:
    gates = feature_gates({"GenericWorkload": True, "GangScheduling": True}, "1.36")
    return msgspec.structs.replace(coscheduling("permit", args=args), gates=gates)


def condition(live: Cluster) -> tuple[str, str, str]:
    """Return status, reason and message of the condition of a group of Kubernetes."""
    group = live.scheduler.core.snapshot.listers.pod_groups.get("g", "default")
    found: list[Condition] = [] if group is None else group.status.conditions
    return next(((each.status, each.reason, each.message) for each in found), ("", "", ""))


async def messages(live: Cluster, name: str) -> list[str]:
    return [each["message"] for each in await live.events(name, reason="FailedScheduling")]


SOURCES = [
    pytest.param(of_api, "can not find pod group", id="PodGroup of Kubernetes"),
    pytest.param(
        of_object,
        "PodGroup default/g gets rejected due to Pod p2 is unschedulable even after PostFilter",
        id="PodGroup of coscheduling",
    ),
    pytest.param(
        of_labels,
        "PodGroup default/g gets rejected due to Pod p2 is unschedulable even after PostFilter",
        id="labels",
    ),
]


@pytest.mark.parametrize(("member", "end"), SOURCES)
def test_a_group_and_its_members_say_how_many_have_a_node_and_which_has_none(
    member: Member, end: str, anywhere: Play
):
    own = f"{NO_NODE}{end}"
    places = "pod group default/g: 2 of 3 pods needed have a node"
    reason = f"{places}, default/p2 has none: {own}"

    async def scenario(live: Cluster) -> None:
        await live.create_objects(
            *group_object(member), *(member(name, least=3) for name in NAMES[:2])
        )
        await live.create_objects(member("p2", least=3, nodeSelector={"no": "such"}))
        await live.until(lambda: live.message_of("p2") == f"{own}. {places}", seconds=9)
        if member is of_api:
            await live.until(lambda: condition(live) == ("False", "Unschedulable", reason))
        else:
            turned_away = "0/1 nodes are available: 1 optimistic rejection in PostFilter."
            await live.until(lambda: live.message_of("p0") == f"{turned_away} {reason}", seconds=9)
        await aio.sleep(1)
        # A series of Events keeps its first text, which may have the number of an earlier attempt.
        for name in ["p2"] if member is of_labels else ["p2", "g"]:
            told = await messages(live, name)
            assert any("of 3 pods needed have a node" in text for text in told), told

    anywhere(scenario, cluster=nodes(2), config=config())


@pytest.mark.parametrize(
    "args",
    [
        pytest.param("{podGroupBackoffSeconds: 30}", id="with a backoff"),
        pytest.param("{}", id="without a backoff"),
    ],
)
@pytest.mark.parametrize(("member", "end"), SOURCES)
def test_the_queue_names_the_cause_of_the_group(member: Member, end: str, args: str):
    """The queue said "failed recently", whoever of the members had no node."""
    del end

    async def scenario(live: Cluster) -> None:
        await live.create_objects(
            *group_object(member), *(member(name, least=3) for name in NAMES[:2])
        )
        await live.create_objects(member("p2", least=3, nodeSelector={"no": "such"}))
        for _ in range(10):
            await aio.sleep(3)
            core, now_ns = live.scheduler.core, live.clock.now_ns()
            answer = queue_answer(core, now_ns=now_ns, limit=100, scheduling=True)
            waiting = [each for each in answer.pods if each.queue in ("unschedulable", "backoff")]
            reasons = [(each.reason, each.message) for each in answer.groups]
            for reason, message in reasons + [(each.reason, each.message) for each in waiting]:
                assert reason == "NoMatchingNode", message
                assert "didn't match Pod's node affinity/selector" in message

    play(scenario, cluster=nodes(2), config=config(args))


LACKS = [
    pytest.param(of_api, "minCount", id="PodGroup of Kubernetes"),
    pytest.param(of_object, "minMember", id="PodGroup of coscheduling"),
    pytest.param(of_labels, "min-available", id="labels"),
]


@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize(("member", "minimum"), LACKS)
def test_a_group_that_lacks_pods_and_a_member_say_so_within_seconds(
    member: Member, minimum: str, gated: bool
):
    held = "3 exist, 1 of them with scheduling gates" if gated else "2 exist"
    lack = f"pod group default/g lacks pods: {held}, {minimum} is 3"

    async def scenario(live: Cluster) -> None:
        await live.create_objects(
            *group_object(member), *(member(name, least=3) for name in NAMES[:2])
        )
        if gated:
            await live.create_objects(
                member("p2", least=3, schedulingGates=[{"name": "example.com/no"}])
            )
        await aio.sleep(4)
        told = [text for name in NAMES for text in await messages(live, name)]
        assert any(text.endswith(lack) for text in told), told
        if member is not of_labels:
            assert lack in await messages(live, "g")
        if member is of_api:
            assert condition(live) == ("False", "Unschedulable", lack)

    play(scenario, cluster=nodes(2), config=config())


def test_a_timeout_at_permit_names_the_member_without_a_node():
    async def scenario(live: Cluster) -> None:
        await live.create_objects(*(of_labels(name, least=3) for name in NAMES[:2]))
        await live.create_objects(of_labels("p2", least=3, nodeSelector={"no": "such"}))
        await live.until(lambda: "timeout" in live.message_of("p0"), seconds=12)
        assert live.message_of("p0").startswith(
            "0/1 nodes are available: 1 rejected due to timeout after waiting 10s at plugin "
            "Coscheduling. pod group default/g: 2 of 3 pods needed have a node, default/p2 has "
            f"none: {NO_NODE[:40]}"
        )

    args = "{permitWaitingTimeSeconds: 10, podGroupRejectPercentage: 100}"
    play(scenario, cluster=nodes(2), config=config(args))


def test_a_group_of_kubernetes_that_is_placed_at_permit_says_so():
    async def scenario(live: Cluster) -> None:
        await live.create_objects(*group_object(of_api), *(of_api(name, least=3) for name in NAMES))
        await live.until(lambda: condition(live)[0] == "False", seconds=3)
        await live.play([each for each in nodes(3) if each["metadata"]["name"] == "n2"])
        await live.until(lambda: live.bound(*NAMES) == 3, seconds=5)
        await live.until(lambda: condition(live) == ("True", "Scheduled", ""), seconds=3)

    play(scenario, cluster=nodes(2), config=config())


def test_a_pod_that_is_more_than_its_group_needs_says_nothing_of_the_group():
    async def scenario(live: Cluster) -> None:
        await live.create_objects(*(of_labels(name, least=2) for name in NAMES))
        await live.until(lambda: live.bound(*NAMES) == 2, seconds=5)
        await aio.sleep(2)
        (last,) = [name for name in NAMES if not live.node_of(name)]
        assert live.message_of(last).startswith("0/2 nodes are available: 2 Insufficient cpu.")
        assert "pod group" not in live.message_of(last)

    play(scenario, cluster=nodes(2), config=config())


def counts(live: Cluster, *names: str) -> set[str]:
    """Return the numbers of existing members that the conditions of pods name."""
    texts = " ".join(live.message_of(name) for name in names)
    return set(re.findall(r"(?:lacks pods: |current pods number: )(\d+)", texts))


@pytest.mark.parametrize("mode", ["trial", "permit"])
@pytest.mark.parametrize("member", [of_api, of_object, of_labels])
def test_no_condition_keeps_an_old_number_of_members(member: Member, mode: str):
    names = [*NAMES, "p3"]

    async def scenario(live: Cluster) -> None:
        await live.create_objects(*group_object(member, 4), member("p0", least=4))
        await aio.sleep(70)
        assert counts(live, "p0") == {"1"}
        await live.create_objects(member("p1", least=4))
        await aio.sleep(70)
        assert counts(live, "p0", "p1") == {"2"}
        await live.create_objects(*(member(name, least=4) for name in names[2:]))
        await aio.sleep(70)
        assert counts(live, *names) == set(), "all members exist, and two have room"
        await live.delete("p3")
        await aio.sleep(70)
        assert counts(live, *NAMES) == {"3"}
        unnumbered = [name for name in NAMES if not counts(live, name)]
        at_permit = [
            each.pod.metadata.name for each in live.scheduler.core.waiting.undecided_pods()
        ]
        assert sorted(unnumbered) == sorted(at_permit)
        if member is of_api:
            assert condition(live)[2] == "pod group default/g lacks pods: 3 exist, minCount is 4"

    settings = msgspec.structs.replace(coscheduling(mode), gates=config().gates)
    play(scenario, cluster=nodes(2), config=settings)
