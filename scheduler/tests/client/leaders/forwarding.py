"""``pods/portforward`` as an API server answers it: a WebSocket whose other end is a local port."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable

from aiohttp import WSMsgType, web

from moorage.base.aio import TaskOwner
from moorage.client.leaders.port_forward import PROTOCOL


async def port_forward(
    request: web.Request, port_of: Callable[[int], int | None]
) -> web.StreamResponse:
    """Carry the bytes of one connection.

    Parameters
    ----------
    port_of
        Returns the local port that stands for a port of the pod; None where nothing listens.
    """
    asked = int(request.query["ports"])
    socket = web.WebSocketResponse(protocols=(PROTOCOL,))
    await socket.prepare(request)
    for channel in (b"\0", b"\1"):
        await socket.send_bytes(channel + struct.pack("<H", asked))
    port = port_of(asked)
    if port is None:
        await socket.send_bytes(b"\1an error occurred forwarding: connection refused")
        await socket.close()
        return socket
    reader, writer = await asyncio.open_connection("127.0.0.1", port)

    async def back() -> None:
        while data := await reader.read(1000):
            await socket.send_bytes(b"\0" + data)
        await socket.close()

    tasks = TaskOwner()
    tasks.spawn(back(), name="bytes from the pod")
    async for message in socket:
        if message.type is WSMsgType.BINARY and message.data[:1] == b"\0":
            writer.write(message.data[1:])
            await writer.drain()
    writer.close()
    await tasks.cancel_all()
    return socket
