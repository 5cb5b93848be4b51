"""A tunnel to a port of a pod, through the API server: ``pods/portforward`` over a WebSocket.

A program of this machine connects to a local port; each connection gets a WebSocket of its own.

Notes
-----
Kubernetes v1.36 ``kubelet/pkg/cri/streaming/portforward/websocket.go``, the protocol
``v4.channel.k8s.io``: a message begins with the number of its channel, 0 for data and 1 for errors.
The first message of each channel has the port, two bytes, instead.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from moorage.base.aio import TaskOwner
from moorage.base.authorities import read_when_used
from moorage.base.errors import MoorageError, TransportError
from moorage.client.http_transport import HttpTransport
from moorage.client.transport import Call

with read_when_used():
    import aiohttp

PROTOCOL: Final = "v4.channel.k8s.io"
_DATA: Final = b"\0"
_ERRORS: Final = 1
_PORT_BYTES: Final = 2
_PIECE_BYTES: Final = 64 * 1024
_TEXT_BYTES_MOST: Final = 1000


class Tunnel:
    """The local end of a tunnel.

    Parameters
    ----------
    transport
        The way to the API server, with the caller's credentials.
    pod
        ``NAMESPACE/NAME``.
    port
        The port of the pod.
    """

    def __init__(self, transport: HttpTransport, pod: str, port: int) -> None:
        namespace, _, name = pod.partition("/")
        path = f"/api/v1/namespaces/{namespace}/pods/{name}/portforward"
        self._call = Call("GET", path, (("ports", str(port)),))
        self._transport = transport
        self._tasks = TaskOwner()
        self.failure: MoorageError | None = None
        """Why the last connection did not come about, or broke."""

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry a connection of this machine from now on."""
        self._tasks.spawn(self._carry(reader, writer), name="connection to a pod")

    async def close(self) -> None:
        """End what is under way."""
        await self._tasks.cancel_all()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry one connection until either side ends it."""
        try:
            async with self._transport.websocket(self._call, PROTOCOL) as socket:
                sending = self._tasks.spawn(_send(reader, socket), name="bytes to the pod")
                try:
                    await self._receive(socket, writer)
                finally:
                    sending.cancel()
        except MoorageError as error:
            self.failure = error
        finally:
            with contextlib.suppress(OSError):
                writer.close()

    async def _receive(
        self, socket: aiohttp.ClientWebSocketResponse, writer: asyncio.StreamWriter
    ) -> None:
        begun: set[int] = set()
        async for message in socket:
            if message.type is not aiohttp.WSMsgType.BINARY or not message.data:
                continue
            channel, data = message.data[0], message.data[1:]
            if channel not in begun:
                begun.add(channel)
                data = data[_PORT_BYTES:]
            if channel == _ERRORS and data:
                text = data[:_TEXT_BYTES_MOST].decode(errors="replace")
                raise TransportError(f"{self._call.path}: {text}")
            if data:
                writer.write(data)
                await writer.drain()


async def _send(reader: asyncio.StreamReader, socket: aiohttp.ClientWebSocketResponse) -> None:
    """Send what the local program writes, until it ends."""
    while data := await reader.read(_PIECE_BYTES):
        await socket.send_bytes(_DATA + data)
    await socket.close()


@asynccontextmanager
async def forwarded(
    transport: HttpTransport, pod: str, port: int
) -> AsyncIterator[tuple[int, Tunnel]]:
    """Listen on a local port that leads to a port of a pod; yield it, and the tunnel.

    Parameters
    ----------
    transport
        The way to the API server, with the caller's credentials.
    pod
        ``NAMESPACE/NAME``.
    port
        The port of the pod.
    """
    tunnel = Tunnel(transport, pod, port)
    server = await asyncio.start_server(tunnel.accept, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1], tunnel
    finally:
        server.close()
        await tunnel.close()
