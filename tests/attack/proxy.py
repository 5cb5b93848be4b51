"""A TCP proxy before an API server that does harm to the calls that bind pods.

`LossyProxy` passes every byte on, except where it is told to harm a binding. Each harm in `HARMS`
is a thing that networks, load balancers and dying servers do.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from moorage.base import aio
from moorage.base.aio import TaskOwner

HARMS = {
    "swallowed": "the binding happens, and the answer never comes",
    "cut": "the binding happens, and the connection ends before the answer",
    "delayed": "the binding happens, and the answer comes when nobody waits any more",
    "never sent": "the connection ends before the call has reached the server",
    "only answered": "the answer is success, and the server never hears of the call",
    "sent late": "the call reaches the server when nobody waits for its answer any more",
}
_BINDING = re.compile(rb"POST /api/v1/namespaces/[^/]+/pods/([^/]+)/binding")
_LENGTH = re.compile(rb"(?i)\r\ncontent-length: *(\d+)")
_CREATED = b"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"

Choose = Callable[[str], str]
"""Returns a key of `HARMS` for a binding of a pod, "" to let it pass."""


class LossyProxy:
    """Passes calls on to a server on loopback.

    Parameters
    ----------
    port
        Of the server.
    late_seconds
        How long what is late is late: longer than the client waits for an answer.

    Attributes
    ----------
    choose
        Asked for each binding.
    done
        (pod, harm) of every binding that came by, in order; the harm is "" for one that passed.
    """

    def __init__(self, port: int, *, late_seconds: float) -> None:
        self.choose: Choose = lambda _name: ""
        self.done: list[tuple[str, str]] = []
        self._port = port
        self._late_seconds = late_seconds
        self._tasks = TaskOwner()

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[int]:
        """Listen within the context; yields the port."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        try:
            yield server.sockets[0].getsockname()[1]
        finally:
            server.close()
            await self._tasks.cancel_all()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        link = _Link(writer, self._late_seconds)
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            from_server, to_server = await asyncio.open_connection("127.0.0.1", self._port)
            self._tasks.spawn(link.answers(from_server), name="answers")
            try:
                while True:
                    await self._call(await _read_call(reader), reader, link, to_server)
            finally:
                to_server.close()
                writer.close()

    async def _call(
        self,
        call: bytes,
        reader: asyncio.StreamReader,
        link: _Link,
        to_server: asyncio.StreamWriter,
    ) -> None:
        found = _BINDING.match(call)
        name = found[1].decode() if found else ""
        link.harm = self.choose(name) if name else ""
        if name:
            self.done.append((name, link.harm))
        if link.harm == "never sent":
            raise ConnectionResetError
        if link.harm == "only answered":
            link.writer.write(_CREATED)
            return
        if link.harm == "sent late":
            await reader.read()  # until the client goes
            self._tasks.spawn(self._send_late(call), name="late")
            raise ConnectionResetError
        to_server.write(call)

    async def _send_late(self, call: bytes) -> None:
        await aio.sleep(self._late_seconds)
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        try:
            writer.write(call)
            await reader.read(1)  # the answer, which nobody gets
        finally:
            writer.close()


class _Link:
    """The way back of one connection."""

    def __init__(self, writer: asyncio.StreamWriter, late_seconds: float) -> None:
        self.harm = ""
        self.writer = writer
        self._late_seconds = late_seconds

    async def answers(self, reader: asyncio.StreamReader) -> None:
        with contextlib.suppress(OSError):
            while piece := await reader.read(65_536):
                if self.harm == "swallowed":
                    continue
                if self.harm == "cut":
                    break
                if self.harm == "delayed":
                    await aio.sleep(self._late_seconds)
                self.writer.write(piece)
        self.writer.close()


async def _read_call(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    length = _LENGTH.search(head)
    return head + (await reader.readexactly(int(length[1])) if length else b"")
