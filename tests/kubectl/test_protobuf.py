"""Kubernetes' own Go code reads what the server writes in protobuf: objects, lists and watches.

kubectl prefers protobuf in the commands that use typed clients; the server notes what it answered.
"""

from __future__ import annotations

import asyncio
import json
import shlex
from pathlib import Path
from typing import Any, Self

import pytest

from moorage.base.clock import SystemClock
from moorage.base.rng import Streams
from moorage_sandbox.apiserver.bootstrap import bootstrap
from moorage_sandbox.apiserver.served_kinds import served_kinds
from moorage_sandbox.apiserver.server import ApiServer
from moorage_sandbox.apiserver.wire.http import HttpServer
from moorage_sandbox.apiserver.wire.negotiate import PROTOBUF
from moorage_sandbox.apiserver.wire.requests import Reply, Request, User
from sandbox.tests.apiserver.protobuf.recorded import RECORDED, told

ADMIN = User("kubernetes-admin", ("system:masters",))
EVENTS = "/api/v1/namespaces/default/events"
SECONDS_MAX = 30.0


class Noting(ApiServer):
    """Notes (method, last part of the path, media type) of each answer."""

    answered: list[tuple[str, str, str]]

    async def handle(self, request: Request) -> Reply:
        reply = await super().handle(request)
        part = request.path.rpartition("/")[2]
        self.answered.append((request.method, part, reply.content_type))
        return reply

    async def make(self, path: str, obj: dict[str, Any]) -> None:
        """Create an object."""
        body = json.dumps(obj).encode()
        headers = {"content-type": "application/json"}
        call = Request(method="POST", path=path, headers=headers, body=body, user=ADMIN)
        assert (await super().handle(call)).status == 201


class Everybody:
    """Takes every caller for an administrator."""

    def user(self, headers: dict[str, str], certificate: object) -> User:
        """Return the administrator."""
        return ADMIN


def event(name: str, message: str) -> dict[str, Any]:
    time = "2026-11-22T00:00:00Z"
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": "default"},
        "involvedObject": {"kind": "Pod", "name": "x", "namespace": "default"},
        "reason": "Tested",
        "message": message,
        "type": "Normal",
        "firstTimestamp": time,
        "lastTimestamp": time,
        "count": 3,
    }


class Served:
    """A server on loopback, and kubectl to call it with."""

    def __init__(self, kubectl: Path, folder: Path) -> None:
        self._kubectl = kubectl
        self._folder = folder
        self.server = Noting(served_kinds(), clock=SystemClock(), streams=Streams(1))
        self.server.answered = []
        bootstrap(self.server)
        self._http = HttpServer(self.server, Everybody(), None)  # type: ignore[arg-type]

    async def __aenter__(self) -> Self:
        await self._http.start()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._http.stop()

    async def start(self, *words: str) -> asyncio.subprocess.Process:
        """Start a command."""
        where = f"http://127.0.0.1:{self._http.port}"
        return await asyncio.create_subprocess_exec(
            *(str(self._kubectl), "--server", where, "--kubeconfig=/dev/null"),
            *("--cache-dir", str(self._folder), *words),
            stdout=asyncio.subprocess.PIPE,
        )

    async def said(self, *words: str) -> str:
        """Run a command that must succeed, and return what it printed."""
        process = await self.start(*words)
        out, _ = await process.communicate()
        assert process.returncode == 0, words
        return out.decode()

    async def stored(self, path: str) -> Any:
        """Return an object as a client in JSON sees it."""
        call = Request(method="GET", path=path, user=ADMIN)
        reply = await ApiServer.handle(self.server, call)
        assert isinstance(reply.body, bytes)
        return json.loads(reply.body)


async def test_go_reads_objects_lists_and_watches(any_kubectl: Path, tmp_path: Path):
    async with Served(any_kubectl, tmp_path) as served:
        server = served.server
        await served.said("create", "deployment", "web", "--image=nginx:1", "--replicas=2")
        text = await served.said("describe", "deployment", "web")
        assert "Replicas:               2 desired" in text
        assert "Image:         nginx:1" in text
        assert ("GET", "web", PROTOBUF) in server.answered
        assert ("GET", "replicasets", PROTOBUF) in server.answered

        await server.make(EVENTS, event("first", "was there before"))
        watching = await served.start("events", "--watch")
        assert watching.stdout is not None
        async with asyncio.timeout(SECONDS_MAX):
            while "was there before" not in (await watching.stdout.readline()).decode():
                pass
            await server.make(EVENTS, event("second", "came meanwhile"))
            while "came meanwhile" not in (await watching.stdout.readline()).decode():
                pass
        watching.kill()
        await watching.communicate()
        assert ("GET", "events", f"{PROTOBUF};stream=watch") in server.answered


@pytest.mark.slow
async def test_go_prints_the_same_object_that_a_client_in_json_sees(kubectl: Path, tmp_path: Path):
    """With ``-o json`` kubectl prints the answer as Go understood it."""
    async with Served(kubectl, tmp_path) as served:
        compared = 0
        for recorded in RECORDED:
            words = shlex.split(recorded.command)
            # A quota is counted as soon as it is there, and a token is not stored.
            if words[0] != "create" or words[1] in ("quota", "token"):
                continue
            found = json.loads(await served.said(*words[:2], "-o", "json", *words[2:]))
            path = f"{recorded.path}/{found['metadata']['name']}"
            assert told(found) == told(await served.stored(path)), recorded.command
            compared += 1
        assert compared == 19
        answered = [each for each in served.server.answered if each[0] == "POST"]
        assert {media_type for _, _, media_type in answered} == {PROTOBUF}
