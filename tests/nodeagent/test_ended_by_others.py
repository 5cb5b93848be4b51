"""Pods to which another client gave a terminal phase: they stay ended."""

from __future__ import annotations

import pytest

from moorage.base import aio
from moorage.client.transport import Answer, Call
from tests.nodeagent.memory_api import MemoryApi
from tests.nodeagent.test_agents import phases, play, pod

FAILED = {"status": {"phase": "Failed", "reason": "ByUser"}}


class Overtaken(MemoryApi):
    """A server that gets the status of another client just before that of an agent."""

    def __init__(self, phase: str) -> None:
        super().__init__()
        self.phase = phase

    async def request(self, call: Call) -> Answer:
        if call.path.endswith("/pods/web/status") and self.phase.encode() in (call.body or b""):
            self.phase = "none"
            self.change("pods", "default", "web", FAILED)
        return await super().request(call)


@pytest.mark.parametrize("seconds", [0.0, 0.5, 5.0], ids=["bound", "starting", "running"])
def test_a_pod_that_another_client_failed_stays_failed(seconds):
    async def scene(api: MemoryApi) -> None:
        api.put("pods", pod())
        if seconds:
            await aio.sleep(seconds)
        api.change("pods", "default", "web", FAILED)
        await aio.sleep(40)

    api = play(scene)
    assert phases(api)[-1] == "Failed ByUser"
    assert not [each for each in phases(api) if each.startswith(("Running B", "Pending B"))]
    (main,) = api.get("pods", "web")["status"]["containerStatuses"]
    assert "running" not in main["state"]


@pytest.mark.parametrize("phase", ["Pending", "Running"])
def test_a_pod_that_was_failed_during_a_report_is_failed_again(phase):
    async def scene(api: MemoryApi) -> None:
        api.put("pods", pod())
        await aio.sleep(40)

    api = play(scene, api=Overtaken(phase))
    assert phases(api)[-3:] == ["Failed ByUser", f"{phase} ByUser", "Failed ByUser"]
