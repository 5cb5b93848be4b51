"""Scope: ephemeral containers of pods on fake nodes, against an API server in memory."""

from __future__ import annotations

import copy
from typing import Any

from moorage.base import aio
from sandbox.tests.nodeagent.memory_api import MemoryApi
from sandbox.tests.nodeagent.test_agents import phases, play, pod


def ephemeral(api: MemoryApi) -> dict[str, str]:
    """The state of each ephemeral container: running, or its exit code."""
    told = api.get("pods", "web")["status"].get("ephemeralContainerStatuses", [])
    for each in told:
        assert each["ready"] is False
        assert each["restartCount"] == 0
    return {
        each["name"]: str(each["state"].get("terminated", {}).get("exitCode", "running"))
        for each in told
    }


def add_ephemeral(api: MemoryApi, *containers: dict[str, Any]) -> None:
    """Add ephemeral containers to the pod, as its subresource does."""
    found = copy.deepcopy(api.get("pods", "web"))
    found["metadata"]["generation"] = found["metadata"].get("generation", 0) + 1
    found["spec"].setdefault("ephemeralContainers", []).extend(containers)
    api.put("pods", found)


def test_ephemeral_containers_run_once_and_leave_the_pod_as_it_is():
    seen: list[dict[str, str]] = []

    async def scene(api: MemoryApi) -> None:
        api.put("pods", pod())
        await aio.sleep(5)
        add_ephemeral(api, {"name": "shell"})
        await aio.sleep(1)
        seen.append(ephemeral(api))
        add_ephemeral(api, {"name": "look", "command": ["sh", "-c", "sleep 4; exit 3"]})
        for seconds in (1, 9):
            await aio.sleep(seconds)
            seen.append(ephemeral(api))

    api = play(scene)
    assert seen == [
        {"shell": "running"},
        {"shell": "running", "look": "running"},
        {"shell": "running", "look": "3"},
    ]
    assert phases(api) == ["Pending", "Running"]


def test_agents_that_come_back_know_the_ephemeral_containers():
    async def scene(api: MemoryApi) -> None:
        api.put("pods", pod())
        await aio.sleep(5)
        add_ephemeral(api, {"name": "look", "command": ["sh", "-c", "exit 3"]})
        await aio.sleep(1)

    async def later(api: MemoryApi) -> None:
        add_ephemeral(api, {"name": "shell"})
        await aio.sleep(5)

    api = play(later, api=play(scene))
    assert ephemeral(api) == {"look": "3", "shell": "running"}


def test_an_ephemeral_container_ends_with_its_pod():
    async def scene(api: MemoryApi) -> None:
        api.put("pods", pod(say={"run-seconds": "5"}))
        await aio.sleep(3)
        add_ephemeral(api, {"name": "shell"})
        await aio.sleep(9)

    api = play(scene)
    assert (phases(api)[-1], ephemeral(api)) == ("Succeeded", {"shell": "143"})
