"""``moorage mcp`` as an agent uses it: the client of the protocol's SDK, and its inspector."""

from __future__ import annotations

import asyncio
import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from moorage.cli.main import main
from moorage.cli.mcp.serving import server_over
from moorage.cli.mcp.tools import TOOLS
from sandbox.tests.sandbox.process import Up
from tests.cli.conftest import Type

mcp = pytest.importorskip("mcp", reason="the extra mcp is not installed")

COMMAND = [sys.executable, "-m", "moorage", "mcp"]
INSPECTOR = "@modelcontextprotocol/inspector@2.12.0"


def as_agent(work: Callable[[Any], Awaitable[None]], *target: str) -> None:
    async def go() -> None:
        async with mcp.Client(server_over(main, target)) as client:
            await work(client)

    asyncio.run(go())


def test_every_tool_is_listed_as_one_that_only_reads() -> None:
    async def work(agent: Any) -> None:
        tools = (await agent.list_tools()).tools
        assert [each.name for each in tools] == [each.name for each in TOOLS]
        assert all(each.annotations.read_only_hint for each in tools)

    as_agent(work)


def test_a_tool_answers_and_errors_are_the_agents_to_read() -> None:
    async def work(agent: Any) -> None:
        good = await agent.call_tool("reason", {"code": "InsufficientCPU"})
        assert (good.is_error, good.content[0].text[:15]) == (False, "InsufficientCPU")
        for name, fields, words in [
            ("reason", {"code": "nothing"}, "error: nothing is no code"),
            ("reason", {"codes": "x"}, "reason: there is no field codes; known: code, json"),
            ("delete", {}, "there is no tool delete; known: queue, "),
        ]:
            bad = await agent.call_tool(name, fields)
            assert bad.is_error
            assert bad.content[0].text.startswith(words)

    as_agent(work)


def test_what_is_no_pipe_is_refused() -> None:
    ended = subprocess.run(
        COMMAND, check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    assert ended.returncode == 2
    assert "an agent starts this command" in ended.stderr


def test_without_the_extra_it_says_what_to_install(
    bare: Type, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "mcp.server.stdio", None)
    result = bare("mcp")
    assert result.exit_code == 2
    assert "pip install 'moorage[mcp]'" in result.stderr


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, None])
def test_it_ends_with_its_input_and_by_signals(number: signal.Signals | None) -> None:
    with subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"nonsense\n" + json.dumps(HELLO).encode() + b"\n")
        process.stdin.flush()
        while b"moorage" not in process.stdout.readline():
            pass
        if number is None:
            process.stdin.close()
        else:
            process.send_signal(number)
        assert process.wait(60) == 0


HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}

POD = """
apiVersion: v1
kind: Pod
metadata: {name: big-agent, namespace: default, labels: {app: agent}}
spec:
  containers: [{name: c, image: x, resources: {requests: {cpu: "64"}}}]
"""


@pytest.mark.slow
def test_a_sandbox_is_asked_with_its_kubeconfig(typed: Type, sandbox: Up) -> None:
    assert typed("apply", "-f", "-", stdin=POD).exit_code == 0
    typed("wait", "--for=settled", "--timeout", "60")

    async def work(agent: Any) -> None:
        async def text(tool: str, /, **fields: Any) -> str:
            answer = await agent.call_tool(tool, fields)
            assert not answer.is_error, answer.content
            return str(answer.content[0].text)

        assert "default/pod/big-agent" in await text("queue")
        assert json.loads(await text("queue", json=True))["kind"] == "SchedulingQueue"
        assert "never fits here" in await text("explain_pod", name="big-agent")
        assert "0 of 1 pods are ready" in await text("explain_object", selector="app=agent")
        found = await text("what_if", add=["cpu=128,memory=64Gi"])
        assert "Start (" in found
        assert "big-agent" in found, "other tests have pods there, too"
        worse = await text("what_if", manifests=POD.replace("big-agent", "second"))
        assert "second" in worse
        one = POD.replace('"64"', '"1"')
        assert "more pods like standard input fit" in await text("capacity", manifests=one)

    as_agent(work, f"--kubeconfig={sandbox.kubeconfig}")


@pytest.mark.install
@pytest.mark.skipif(
    shutil.which("npx") is None, reason="Node.js, which runs the inspector, is absent"
)
def test_the_protocols_inspector_lists_and_calls(tmp_path: Path) -> None:
    def inspect(*words: str) -> Any:
        ended = subprocess.run(
            ["npx", "-y", INSPECTOR, "--cli", *COMMAND, *words],
            check=False,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
        )
        if "ENOTFOUND" in ended.stderr or "npm error network" in ended.stderr:
            pytest.skip("the registry of npm, which has the inspector, cannot be reached")
        assert ended.returncode == 0, ended.stderr
        return json.loads(ended.stdout)

    listed = inspect("--method", "tools/list")["tools"]
    assert [each["name"] for each in listed] == [each.name for each in TOOLS]
    answer = inspect(
        "--method", "tools/call", "--tool-name", "reason", "--tool-arg", "code=NoMatchingNode"
    )
    assert answer["content"][0]["text"].startswith("NoMatchingNode")
