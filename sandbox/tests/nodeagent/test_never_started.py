"""Pods that are deleted before their containers started: they end as Failed, as with a kubelet."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.base import aio
from sandbox.tests.nodeagent.memory_api import MemoryApi
from sandbox.tests.nodeagent.test_agents import deletion, phases, play, pod

UNKNOWN = {
    "terminated": {
        "exitCode": 137,
        "reason": "ContainerStatusUnknown",
        "message": "The container could not be located when the pod was terminated",
    }
}
NOT_YET = {"waiting": {"reason": "PodInitializing"}}


def last_states(api: MemoryApi) -> dict[str, Any]:
    """Return the states of the containers in the last version of the pod."""
    found = [obj for _, plural, _, obj in api.log if plural == "pods"][-1]["status"]
    return {
        each["name"]: each["state"]
        for key in ("initContainerStatuses", "containerStatuses")
        for each in found.get(key) or []
    }


@pytest.mark.parametrize(
    "seconds",
    [pytest.param(0.0, id="before its agent saw it"), pytest.param(0.5, id="while it starts")],
)
def test_a_pod_deleted_before_it_started_fails_and_goes(seconds):
    async def scene(api: MemoryApi) -> None:
        api.put("pods", pod())
        if seconds:
            await aio.sleep(seconds)
        api.change("pods", "default", "web", deletion(seconds=seconds, grace=30))
        await aio.sleep(1)

    api = play(scene)
    assert phases(api) == ["Pending", "Failed", "gone"]
    assert last_states(api) == {"main": UNKNOWN}


def test_the_containers_behind_an_unfinished_init_container_are_still_waiting():
    async def scene(api: MemoryApi) -> None:
        body = pod()
        body["spec"]["initContainers"] = [{"name": "first", "image": "x"}]
        api.put("pods", body)
        await aio.sleep(0.5)
        api.change("pods", "default", "web", deletion(seconds=0.5, grace=30))
        await aio.sleep(1)

    api = play(scene)
    assert phases(api) == ["Pending", "Failed", "gone"]
    assert last_states(api) == {"first": NOT_YET, "main": NOT_YET}
