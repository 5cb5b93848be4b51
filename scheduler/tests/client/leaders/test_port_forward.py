"""The tunnel to a pod: bytes go both ways, connections are apart, and failures have a reason."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from moorage.base.errors import ApiError, TransportError
from moorage.client.auth import Credential, FixedCredentials, ServerAccess
from moorage.client.http_transport import HttpTransport
from moorage.client.leaders.port_forward import forwarded
from scheduler.tests.client.leaders.forwarding import port_forward
from scheduler.tests.client.test_http_transport import serving

POD = "acme/moorage-0"


@asynccontextmanager
async def echoing() -> AsyncIterator[int]:
    """Run a program that says everything in capitals; yield its port."""

    async def shout(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1000):
            writer.write(data.upper())
        writer.close()

    server = await asyncio.start_server(shout, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


@asynccontextmanager
async def api_server(
    port: int | None, token: str = "t"
) -> AsyncIterator[tuple[HttpTransport, list[web.Request]]]:
    """Serve the tunnel as an API server does, to callers with the token ``t``."""

    async def answer(request: web.Request) -> web.StreamResponse:
        if request.headers.get("Authorization") != "Bearer t":
            return web.Response(status=403)
        return await port_forward(request, lambda asked: port if asked == 10259 else None)

    async with serving(answer) as (url, seen):
        credentials = FixedCredentials(Credential((("Authorization", f"Bearer {token}"),)))
        transport = HttpTransport(ServerAccess(url, credentials))
        try:
            yield transport, seen
        finally:
            await transport.close()


async def said(port: int, text: bytes) -> bytes:
    """Return what comes back from a local port."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(text)
    answer = await reader.read(1000)
    writer.close()
    return answer


async def test_bytes_arrive_both_ways_and_connections_are_apart() -> None:
    async with (
        echoing() as target,
        api_server(target) as (transport, seen),
        forwarded(transport, POD, 10259) as (port, tunnel),
    ):
        answers = await asyncio.gather(*(said(port, b"ab%d" % number) for number in range(5)))
        assert answers == [b"AB%d" % number for number in range(5)]
        assert tunnel.failure is None
        path = "/api/v1/namespaces/acme/pods/moorage-0/portforward?ports=10259"
        assert [str(request.rel_url) for request in seen] == [path] * 5


async def test_the_error_of_the_kubelet_is_the_reason() -> None:
    async with (
        api_server(None) as (transport, _),
        forwarded(transport, POD, 10259) as (port, tunnel),
    ):
        assert await said(port, b"x") == b""
        assert isinstance(tunnel.failure, TransportError)
        assert "an error occurred forwarding: connection refused" in str(tunnel.failure)


async def test_a_refusal_of_the_server_is_the_reason() -> None:
    async with (
        api_server(None, "stranger") as (transport, _),
        forwarded(transport, POD, 10259) as (port, tunnel),
    ):
        assert await said(port, b"x") == b""
        assert isinstance(tunnel.failure, ApiError)
        assert tunnel.failure.code == 403


@pytest.mark.parametrize("size", [1, 64 * 1024, 500_000])
async def test_nothing_is_lost_or_out_of_order(size: int) -> None:
    text = bytes(ord("a") + at % 26 for at in range(size))
    async with (
        echoing() as target,
        api_server(target) as (transport, _),
        forwarded(transport, POD, 10259) as (port, _tunnel),
    ):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(text)
        assert await reader.readexactly(size) == text.upper()
        writer.close()
