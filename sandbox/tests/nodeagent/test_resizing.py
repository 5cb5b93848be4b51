"""Scope: resizes of running pods on fake nodes, against an API server in memory."""

from __future__ import annotations

import copy

import pytest

from moorage.base import aio
from sandbox.tests.nodeagent.memory_api import MemoryApi
from sandbox.tests.nodeagent.test_agents import phases, play, pod


def test_a_resized_pod_leaves_room_for_others():
    async def scene(api: MemoryApi) -> None:
        first = pod("first", requests={"cpu": "8"})
        first["metadata"]["generation"] = 1
        api.put("pods", first)
        await aio.sleep(5)
        smaller = copy.deepcopy(api.get("pods", "first"))
        smaller["metadata"]["generation"] = 2
        smaller["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "1"}
        api.put("pods", smaller)
        await aio.sleep(5)
        api.put("pods", pod("second", requests={"cpu": "7"}))
        await aio.sleep(5)

    assert play(scene).get("pods", "second")["status"]["phase"] == "Running"


def resize(api: MemoryApi, name: str, cpu: str) -> None:
    """Ask for other requests of a pod, as its subresource does."""
    found = copy.deepcopy(api.get("pods", name))
    found["metadata"]["generation"] += 1
    found["spec"]["containers"][0]["resources"] = {"requests": {"cpu": cpu}}
    api.put("pods", found)


def in_force(api: MemoryApi, name: str) -> tuple[str, str | None]:
    """The cpu that a pod has, and why a resize of it waits."""
    status = api.get("pods", name)["status"]
    (told,) = status["containerStatuses"]
    cpu = told["allocatedResources"]["cpu"]
    assert told["resources"]["requests"]["cpu"] == cpu
    assert status["observedGeneration"] == api.get("pods", name)["metadata"]["generation"]
    waits = [each for each in status["conditions"] if each["type"] == "PodResizePending"]
    return cpu, waits[0]["reason"] if waits else None


def first_pods(api: MemoryApi, **cpu: str) -> None:
    """Put pods of the first generation on a node of 8 cores."""
    for name, each in cpu.items():
        made = pod(name, requests={"cpu": each})
        made["metadata"]["generation"] = 1
        api.put("pods", made)


def test_a_resize_is_followed_put_off_or_refused():
    seen: list[tuple[str, str | None]] = []

    async def scene(api: MemoryApi) -> None:
        first_pods(api, one="2", two="4")
        await aio.sleep(5)
        seen.append(in_force(api, "one"))
        for cpu in ("3", "5", "9", "2", "5"):
            resize(api, "one", cpu)
            await aio.sleep(2)
            seen.append(in_force(api, "one"))

    api = play(scene)
    assert seen == [
        ("2", None),
        ("3", None),
        ("3", "Deferred"),
        ("3", "Infeasible"),
        ("2", None),
        ("2", "Deferred"),
    ]
    told = {each["reason"]: each["note"] for _, what, _, each in api.log if what == "events"}
    assert told == {
        "ResizeDeferred": (
            "Node didn't have enough resource: cpu, requested: 5000, used: 4000, capacity: 8000"
        ),
        "ResizeInfeasible": (
            "Node didn't have enough capacity: cpu, requested: 9000, capacity: 8000"
        ),
    }


@pytest.mark.parametrize("how", ["ended", "deleted", "resized"])
def test_a_resize_that_waits_comes_when_a_pod_has(how):
    async def scene(api: MemoryApi) -> None:
        first_pods(api, one="2", two="4")
        await aio.sleep(5)
        resize(api, "one", "6")
        await aio.sleep(2)
        assert in_force(api, "one") == ("2", "Deferred")
        if how == "ended":
            api.change("pods", "default", "two", {"status": {"phase": "Failed"}})
        elif how == "deleted":
            api._delete(("pods", "default", "two"))
        else:
            resize(api, "two", "1")
        await aio.sleep(2)
        assert in_force(api, "one") == ("6", None)
        api.put("pods", pod("late", requests={"cpu": "3"}))
        await aio.sleep(2)

    assert phases(play(scene), "late")[-1] == "Failed OutOfcpu"


def test_agents_that_come_back_know_the_resources_in_force():
    async def scene(api: MemoryApi) -> None:
        first_pods(api, one="2", two="4")
        await aio.sleep(5)
        resize(api, "one", "5")
        await aio.sleep(2)

    async def later(api: MemoryApi) -> None:
        assert in_force(api, "one") == ("2", "Deferred")
        api.put("pods", pod("more", requests={"cpu": "2"}))
        await aio.sleep(5)
        assert phases(api, "more")[-1] == "Running"
        for name in ("more", "two"):
            api._delete(("pods", "default", name))
        await aio.sleep(2)

    assert in_force(play(later, api=play(scene)), "one") == ("5", None)
