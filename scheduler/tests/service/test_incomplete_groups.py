"""Conditions of waiting members when the number of members changes, in each form of a group.

That a group of Kubernetes reports the pods that it lacks is ``test_group_reasons``'s.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from moorage.api.resources import CORE_EVENTS, PODS
from moorage.base import aio
from moorage_sandbox.testing.builders import Manifest
from scheduler.tests.service import test_group_attempt as gang
from tests.scenarios.gangs import (
    Cluster,
    coscheduling,
    nodes,
    of_labels,
    of_object,
    play,
    pod_group,
)

FORMS: list[Any] = [
    pytest.param(form, mode, id=f"{text}, in mode {mode}")
    for form, text in (
        (of_object, "a PodGroup of coscheduling"),
        (of_labels, "name and minimum as labels"),
    )
    for mode in ("trial", "permit")
]
NAMES = ("p0", "p1", "p2")


def counts(live: Cluster, *names: str) -> dict[str, set[str]]:
    """Return the numbers of members that each pod's condition names."""
    pattern = re.compile(r"current pods number: (\d+)|lacks pods: (\d+) exist")
    return {
        name: {one or other for one, other in pattern.findall(live.message_of(name))}
        for name in names
    }


async def warnings(live: Cluster, *names: str) -> int:
    """Return how often a failed attempt of some pods was reported."""
    events = [await live.events(name, reason="FailedScheduling") for name in names]
    return sum(len(each) for each in events)


def versions(live: Cluster, prefix: str = "") -> dict[tuple[str, str], str]:
    """Return the versions of the pods whose names have a prefix, and of all Events without one."""
    shelves = live.server.store.shelves()
    kinds = (PODS,) if prefix else (PODS, CORE_EVENTS)
    return {
        record.key: record.decode()["metadata"]["resourceVersion"]
        for kind in kinds
        for record in shelves[kind.qualified].records()
        if record.key[1].startswith(prefix)
    }


@pytest.mark.parametrize(("member", "mode"), FORMS)
def test_conditions_of_all_members_name_the_present_number_of_members(
    member: Callable[..., Manifest], mode: str
):
    async def scenario(live: Cluster) -> None:
        await live.create_objects(pod_group(least=4))
        for number, name in enumerate(NAMES, start=1):
            await live.create_objects(member(name, least=4))
            await aio.sleep(5)
            here = NAMES[:number]
            assert counts(live, *here) == {each: {str(number)} for each in here}
            assert await warnings(live, *NAMES) == number  # one for each state of the group
        await live.delete("p1")
        await aio.sleep(5)
        assert counts(live, "p0", "p2") == {"p0": {"2"}, "p2": {"2"}}
        assert await warnings(live, *NAMES) == 4
        await live.create_objects(member("p3", least=4), member("p4", least=4))
        await live.until(lambda: live.bound("p0", "p2", "p3", "p4") == 4, seconds=5)

    play(scenario, cluster=nodes(4), config=coscheduling(mode))


@pytest.mark.parametrize(("member", "mode"), FORMS)
def test_members_that_found_no_room_report_the_missing_member_after_one_was_deleted(
    member: Callable[..., Manifest], mode: str
):
    async def scenario(live: Cluster) -> None:
        await live.create_objects(pod_group(least=3), *(member(name, least=3) for name in NAMES))
        await live.until(lambda: all(live.condition_of(name)[2] for name in NAMES))
        await aio.sleep(5)
        await live.delete("p1")
        await aio.sleep(5)
        assert counts(live, "p0", "p2") == {"p0": {"2"}, "p2": {"2"}}
        written = versions(live)
        await aio.sleep(30)
        assert versions(live) == written

    play(scenario, cluster=nodes(2), config=coscheduling(mode))


def test_every_tried_member_of_a_gang_reports_the_missing_member_after_one_was_deleted():
    async def scenario(live: gang.Cluster) -> None:
        await live.create_objects(gang.group(least=3), *(gang.member(name) for name in NAMES))
        await live.until(lambda: all(live.condition_of(name)[2] for name in NAMES))
        await live.client.delete(PODS, "p1", namespace="default")
        await aio.sleep(5)
        lack = "pod group default/g lacks pods: 2 exist, minCount is 3"
        assert [live.condition_of(name)[2] for name in ("p0", "p2")] == [lack, lack]

    gang.play(scenario, cluster=gang.nodes(2))


def test_a_large_group_that_arrives_slowly_is_not_written_again_for_each_pod():
    async def scenario(live: Cluster) -> None:
        await live.create_objects(pod_group(least=200))
        await live.create_objects(*(of_object(f"first{i}") for i in range(150)))
        await aio.sleep(20)
        written = versions(live, "first")
        for i in range(20):
            await live.create_objects(of_object(f"then{i}"))
            await aio.sleep(2.5)
        assert versions(live, "first") == written
        await aio.sleep(20)
        assert counts(live, "first0", "first149") == {"first0": {"170"}, "first149": {"170"}}

    play(scenario, cluster=nodes(2), config=coscheduling())


@pytest.mark.parametrize("mode", ["trial", "permit"])
def test_a_group_whose_pods_arrive_one_after_another_has_no_warning_for_each_of_them(mode: str):
    async def scenario(live: Cluster) -> None:
        await live.create_objects(pod_group(least=60))
        for number in range(59):
            await live.create_objects(of_object(f"p{number}", cpu="10m", least=60))
            await aio.sleep(0.1)
        await aio.sleep(5)
        found = [each["message"] for each in await live.events("g", reason="FailedScheduling")]
        assert found[-1] == "pod group default/g lacks pods: 59 exist, minMember is 60"
        assert len(found) == 1
        await live.create_objects(of_object("last", cpu="10m", least=60))
        await live.until(lambda: live.bound("p0", "p58", "last") == 3, seconds=5)

    play(scenario, cluster=nodes(4), config=coscheduling(mode))
