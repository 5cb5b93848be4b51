"""A server on loopback, and bytes sent to it as no library would send them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from moorage.base.clock import SystemClock
from moorage.base.rng import Streams
from moorage_sandbox.apiserver.audit import AuditLog
from moorage_sandbox.apiserver.authentication.credentials import Authenticator
from moorage_sandbox.apiserver.wire.http import HttpServer
from moorage_sandbox.apiserver.wire.requests import User
from moorage_sandbox.storage.record import Record
from sandbox.tests.apiserver.harness import ADMIN, Cluster

SECRET = b"Authorization: Bearer secret"
OTHER = b"Authorization: Bearer other"


class Answer(NamedTuple):
    """What came back: status, headers by lower-case name, and the body."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """Return the body decoded."""
        return json.loads(self.body)


class Wire:
    """A cluster that listens, with tokens ``secret`` and ``other``."""

    def __init__(self, cluster: Cluster, port: int, audit: Path) -> None:
        self.cluster, self.port, self._audit = cluster, port, audit

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Open a connection."""
        return await asyncio.open_connection("127.0.0.1", self.port, limit=2**26)

    async def send(self, head: bytes, *headers: bytes, body: bytes = b"") -> Answer:
        """Send one call on a connection of its own; a length is added where there is a body."""
        reader, writer = await self.connect()
        lines = [head + b" HTTP/1.1", b"Host: x", b"Connection: close", *headers]
        if body and not any(each.lower().startswith(b"content-length") for each in headers):
            lines.append(b"Content-Length: %d" % len(body))
        writer.write(b"\r\n".join(lines) + b"\r\n\r\n" + body)
        try:
            return await read_answer(reader)
        finally:
            writer.close()

    def audited(self) -> list[dict[str, Any]]:
        """Return the events of the audit log."""
        return [json.loads(line) for line in self._audit.read_bytes().splitlines()]


async def read_answer(reader: asyncio.StreamReader) -> Answer:
    """Read an answer to its end."""
    head = await reader.readuntil(b"\r\n\r\n")
    first, *lines = head.decode().strip().split("\r\n")
    headers = {}
    for line in lines:
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Answer(int(first.split()[1]), headers, body)


@asynccontextmanager
async def listening(
    folder: Path, *, rbac: bool = False, bootstrapped: bool = True
) -> AsyncIterator[Wire]:
    """Serve a new cluster over HTTP without TLS."""
    cluster = Cluster(clock=SystemClock(), rbac=rbac, bootstrapped=bootstrapped)
    path = folder / "audit.log"
    audit = AuditLog(path, clock=SystemClock(), rng=Streams(1).stream("audit"))
    cluster.server.audit_to(audit)
    users = {"secret": ADMIN, "other": User("other", ("system:masters",))}
    server = HttpServer(cluster.server, Authenticator(users), None)
    port = await server.start()
    try:
        yield Wire(cluster, port, path)
    finally:
        await server.stop()
        audit.close()


Prepare = Callable[[Wire], Awaitable[None]]
Prepared = Callable[[Path, Prepare], AbstractAsyncContextManager[Wire]]


def restoring() -> Prepared:
    """Serve clusters with objects: the first one makes them, and each later one restores them."""
    contents: dict[Prepare, tuple[list[tuple[str, Record]], int]] = {}

    @asynccontextmanager
    async def serve(folder: Path, prepare: Prepare) -> AsyncIterator[Wire]:
        content = contents.get(prepare)
        async with listening(folder, bootstrapped=content is None) as wire:
            server = wire.cluster.server
            if content is None:
                await prepare(wire)
                contents[prepare] = list(server.store.all_records()), server.store.version
            else:
                server.store.restore(*content)
                server.reload()
            yield wire

    return serve
