"""Kubernetes' own Go code reads what the server writes in protobuf: objects, lists and watches.

kubectl prefers protobuf in the commands that use typed clients; the server notes what it answered.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from moorage.apiserver.bootstrap import bootstrap
from moorage.apiserver.http import HttpServer
from moorage.apiserver.kinds import all_kinds
from moorage.apiserver.negotiate import PROTOBUF
from moorage.apiserver.requests import Reply, Request, User
from moorage.apiserver.server import ApiServer
from moorage.base.clock import SystemClock
from moorage.base.rng import Streams

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


async def test_go_reads_objects_lists_and_watches(any_kubectl: Path, tmp_path: Path):
    server = Noting(all_kinds(), clock=SystemClock(), streams=Streams(1))
    server.answered = []
    bootstrap(server)
    http = HttpServer(server, Everybody(), None)  # type: ignore[arg-type]
    port = await http.start()
    options = ("--kubeconfig=/dev/null", "--cache-dir", str(tmp_path))

    async def start(*words: str) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *(str(any_kubectl), "--server", f"http://127.0.0.1:{port}", *options, *words),
            stdout=asyncio.subprocess.PIPE,
        )

    try:
        created = await start("create", "deployment", "web", "--image=nginx:1", "--replicas=2")
        assert await created.wait() == 0
        described = await start("describe", "deployment", "web")
        text = (await described.communicate())[0].decode()
        assert "Replicas:               2 desired" in text
        assert "Image:         nginx:1" in text
        assert ("GET", "web", PROTOBUF) in server.answered
        assert ("GET", "replicasets", PROTOBUF) in server.answered

        await server.make(EVENTS, event("first", "was there before"))
        watching = await start("events", "--watch")
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
    finally:
        await http.stop()
