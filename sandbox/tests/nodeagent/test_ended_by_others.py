"""Pods to which another client gave a terminal phase, or a time to end: they stay ended."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.base import aio
from moorage.client.transport import Answer, Call
from sandbox.tests.nodeagent.memory_api import MemoryApi
from sandbox.tests.nodeagent.test_agents import phases, play, pod

FAILED = {"status": {"phase": "Failed", "reason": "ByUser"}}


class Overtaken(MemoryApi):
    """A server that gets the change of another client just before an agent reports a phase."""

    def __init__(self, phase: str, change: dict[str, Any] = FAILED) -> None:
        super().__init__()
        self.phase = phase
        self.by_other = change

    async def request(self, call: Call) -> Answer:
        if call.path.endswith("/pods/web/status") and self.phase.encode() in (call.body or b""):
            self.phase = "none"
            self.change("pods", "default", "web", self.by_other)
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
def test_a_report_never_replaces_a_terminal_phase_that_its_agent_has_not_seen(phase):
    async def scene(api: MemoryApi) -> None:
        api.put("pods", pod())
        await aio.sleep(40)

    api = play(scene, api=Overtaken(phase))
    assert phases(api)[-1] == "Failed ByUser"
    assert f"{phase} ByUser" not in phases(api)
    (main,) = api.get("pods", "web")["status"]["containerStatuses"]
    assert "running" not in main["state"]


def test_an_agent_that_ends_a_pod_keeps_the_terminal_phase_that_it_has_not_seen():
    async def scene(api: MemoryApi) -> None:
        api.put("pods", pod(say={"run-seconds": "5"}))
        await aio.sleep(40)

    api = play(scene, api=Overtaken("Succeeded"))
    assert phases(api)[-1] == "Failed ByUser"
    (main,) = api.get("pods", "web")["status"]["containerStatuses"]
    assert main["state"]["terminated"]["exitCode"] == 0


def test_a_change_that_the_agent_has_not_seen_does_not_hold_up_a_report():
    async def scene(api: MemoryApi) -> None:
        api.put("pods", pod())
        await aio.sleep(40)

    relabelled = {"metadata": {"labels": {"app": "web"}}}
    api = play(scene, api=Overtaken("Running", relabelled))
    assert phases(api) == ["Pending", "Running"]
    assert api.get("pods", "web")["metadata"]["labels"] == {"app": "web"}


def test_a_pod_that_goes_while_its_agent_reads_it_is_forgotten():
    class Gone(Overtaken):
        """A server whose pod goes after it was read, and before the answer is there."""

        async def request(self, call: Call) -> Answer:
            answer = await super().request(call)
            if (call.method, call.path[-9:]) == ("GET", "/pods/web"):
                self._delete(("pods", "default", "web"))
                await aio.sleep(5)
            return answer

    async def scene(api: MemoryApi) -> None:
        api.put("pods", pod())
        await aio.sleep(40)
        api._delete(("nodes", "", "node-01"))
        await aio.sleep(1)
        before = len(api.calls)
        # A deleted node is played until its last pod is gone.
        api.put("pods", pod("other"))
        await aio.sleep(5)
        assert not [
            each for each in api.calls[before:] if each.startswith("PATCH") and "other" in each
        ]

    api = play(scene, api=Gone("Running"))
    assert phases(api)[-1] == "gone"


LATER = [
    ({"metadata": {"annotations": {"moorage.dev/run-seconds": "20"}}}, "Succeeded"),
    (
        {"metadata": {"generation": 2}, "spec": {"activeDeadlineSeconds": 20}},
        "Failed DeadlineExceeded",
    ),
]


@pytest.mark.parametrize(("told", "end"), LATER, ids=["an annotation", "a deadline"])
def test_a_running_pod_may_be_told_to_end(told: Any, end: str):
    async def scene(api: MemoryApi) -> None:
        api.put("pods", pod())
        await aio.sleep(10)
        api.change("pods", "default", "web", told)
        await aio.sleep(5)
        assert phases(api)[-1] == "Running"
        await aio.sleep(10)

    assert phases(play(scene)) == ["Pending", "Running", end]
