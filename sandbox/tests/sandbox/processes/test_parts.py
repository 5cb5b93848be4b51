"""What becomes of a sandbox when a part fails: the reason is told, and nothing waits for ever."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from moorage.base.clock import SystemClock
from moorage.base.errors import MoorageError, UsageError
from moorage_sandbox.sandbox.processes.child_process import ChildProgram
from moorage_sandbox.sandbox.processes.parts import ProcessParts
from moorage_sandbox.sandbox.settings import SANDBOX_CONTEXT, ServerReport, ServerSettings
from moorage_sandbox.sandbox.up import UpPlan, up
from sandbox.tests.sandbox.views import SilentView

SERVER = """
import sys
sys.stdin.readline()
for line in sys.argv[1:]:
    print(line, flush=True)
sys.exit(1)
"""

KUBECONFIG = f"""{{
  "clusters": [{{"name": "c", "cluster": {{"server": "http://127.0.0.1:1"}}}}],
  "users": [{{"name": "u", "user": {{}}}}],
  "contexts": [{{"name": "{SANDBOX_CONTEXT}", "context": {{"cluster": "c", "user": "u"}}}}],
  "current-context": "{SANDBOX_CONTEXT}"
}}"""


@pytest.mark.parametrize(
    ("reports", "kind", "message"),
    [
        pytest.param(
            ['{"ready":true}', '{"error":"node-01 was refused"}'],
            MoorageError,
            "node-01 was refused",
            id="the last line of the server is the reason",
        ),
        pytest.param(
            ['{"ready":true}', '{"error":"no such zone","bad_input":true}'],
            UsageError,
            "no such zone",
            id="bad input stays bad input",
        ),
        pytest.param(
            ['{"ready":true}'],
            MoorageError,
            "the API server ended by itself, with code 1",
            id="a server that says nothing",
        ),
    ],
)
async def test_a_server_that_ends_late_is_reported_with_its_reason(
    monkeypatch, reports, kind, message
):
    command = (sys.executable, "-c", SERVER, *reports)
    monkeypatch.setattr("moorage_sandbox.sandbox.processes.parts._SERVER_COMMAND", command)
    parts = ProcessParts(ServerSettings(), None, on_message=lambda _line: None)
    try:
        assert await parts.start_server() == ServerReport(ready=True)
        with pytest.raises(MoorageError) as caught:
            await parts.failed()
    finally:
        await parts.stop()
    assert (type(caught.value), str(caught.value)) == (kind, message)


class _DeadParts:
    """Parts whose server is gone as soon as it was there."""

    async def start_server(self) -> ServerReport:
        return ServerReport(url="http://127.0.0.1:1", kubeconfig=KUBECONFIG)

    async def nodes_ready(self) -> None:
        return

    async def start_scheduler(self) -> None:
        return

    async def scheduling(self) -> None:
        return

    async def page(self) -> str:
        return ""

    async def serving(self) -> str:
        return ""

    async def failed(self) -> None:
        raise MoorageError("the server is gone")

    async def stop(self) -> None:
        return

    def kill(self) -> None:
        return


async def test_a_server_gone_before_pods_are_watched_ends_the_sandbox(tmp_path: Path):
    plan = UpPlan(kubeconfig=tmp_path / "kubeconfig")
    with pytest.raises(MoorageError, match="the server is gone"):
        async with asyncio.timeout(30):
            await up(plan, _DeadParts(), SilentView(), clock=SystemClock())


async def test_a_scheduler_that_hangs_in_a_plugin_is_reported_as_such():
    hangs = "import signal; signal.raise_signal(signal.SIGALRM)"
    program = ChildProgram((sys.executable, "-c", hangs), ServerSettings())
    parts = ProcessParts(ServerSettings(), program, on_message=lambda _line: None)
    await parts._scheduler.start()
    await parts.start_scheduler()
    with pytest.raises(MoorageError, match="a plugin hangs where it cannot be interrupted"):
        await parts.failed()
    await parts.stop()
