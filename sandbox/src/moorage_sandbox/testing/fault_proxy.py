"""A wire that misbehaves, with real sockets: it stands between a program and its API server.

The proxy ends TLS and reads HTTP, so that it can answer in the server's place, lose an answer after
the server has acted, or send a stream byte by byte. It hands on the server's other bytes as they
come.
`moorage_sandbox.testing.faults` does the same without sockets, for tests in virtual time.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from http import HTTPStatus

import msgspec

from moorage.base import aio
from moorage.base.aio import TaskOwner
from moorage.client.transport import Answer
from moorage_sandbox.testing.faults import Faults

_HEAD_END = b"\r\n\r\n"
_PIECE_BYTES = 64 * 1024
_HEAD_BYTES_MAX = 1 << 20  # a guess, far above what a client or a server sends


class ByteFaults(Faults, kw_only=True):
    """The faults of a wire that carries bytes.

    Parameters
    ----------
    bytes_per_second
        How fast each connection brings the server's bytes; None for as fast as it can.
    bytes_most
        Streams break after this many bytes; None for never.
    """

    bytes_per_second: int | None = None
    bytes_most: int | None = None


class ProxiedCall(msgspec.Struct, frozen=True):
    """A call that came to the proxy.

    Parameters
    ----------
    seconds
        When, in the time of the loop.
    kind
        Its method; ``WATCH`` for one that opens a stream.
    path
        Its path.
    """

    seconds: float
    kind: str
    path: str


class Head(msgspec.Struct, frozen=True):
    """The head of a call or of an answer.

    Parameters
    ----------
    raw
        Its bytes, the empty line included.
    first
        The three words of its first line.
    headers
        Values by name in lower case.
    """

    raw: bytes
    first: tuple[str, str, str]
    headers: dict[str, str]

    @property
    def length(self) -> int:
        """Bytes of the body that follows, 0 where no length is told."""
        return int(self.headers.get("content-length", "0"))

    @property
    def is_chunked(self) -> bool:
        """Whether the body comes in chunks."""
        return self.headers.get("transfer-encoding", "").lower() == "chunked"

    @property
    def path(self) -> str:
        """The path of a call, without its query."""
        return self.first[1].partition("?")[0]

    @property
    def kind(self) -> str:
        """The method of a call; ``WATCH`` for one that opens a stream."""
        return "WATCH" if "watch=true" in self.first[1] else self.first[0]


class FaultProxy:
    """Listens with TLS, and carries calls to a local server that speaks plain HTTP.

    Parameters
    ----------
    tls
        The certificate to show.
    server_port
        Port of the server.

    Attributes
    ----------
    faults
        The present faults; a test changes it.
    server_port
        Port of the server; a test may replace it by the port of another server.
    calls
        The calls that came, oldest first.
    port
        Port to connect to, once started.
    """

    def __init__(self, tls: ssl.SSLContext, server_port: int) -> None:
        self._tls = tls
        self.server_port = server_port
        self.faults = ByteFaults()
        self.calls: list[ProxiedCall] = []
        self.port = 0
        self._listener: asyncio.Server | None = None
        self._clients: set[asyncio.StreamWriter] = set()

    async def start(self) -> None:
        """Listen, on the same port as before where there was one."""
        self._listener = await asyncio.start_server(
            self._serve, "127.0.0.1", self.port, ssl=self._tls, limit=_HEAD_BYTES_MAX
        )
        self.port = self._listener.sockets[0].getsockname()[1]

    async def fail(self) -> None:
        """Take the server away: connections break, and new ones are refused until `end_faults`."""
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        self.cut()

    async def end_faults(self) -> None:
        """Let the wire work again; connections that were silent break."""
        was_silent, self.faults = self.faults.half_open, ByteFaults()
        if was_silent:
            self.cut()
        if self._listener is None:
            await self.start()

    def cut(self) -> None:
        """Break every connection, as a server that restarts does."""
        for client in self._clients:
            client.transport.abort()

    async def show(self, tls: ssl.SSLContext) -> None:
        """Show another certificate from now on; every connection is made anew."""
        self._tls = tls
        await self.fail()
        await self.start()

    async def stop(self) -> None:
        """Stop listening, and break every connection."""
        await self.fail()
        while self._clients:
            await aio.sleep(0.001)

    def record_call(self, call: Head) -> None:
        """Write down a call that came."""
        seconds = asyncio.get_running_loop().time()
        self.calls.append(ProxiedCall(seconds, call.kind, call.path))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry the calls of one connection, one after the other."""
        self._clients.add(writer)
        tasks = TaskOwner()
        carrying = tasks.spawn(_Carrier(self, reader, writer).carry(), name="carry calls")
        gone = tasks.spawn(_until_closed(writer), name="wait for the client's end")
        try:
            await asyncio.wait((carrying, gone), return_when=asyncio.FIRST_COMPLETED)
        finally:
            await tasks.cancel_all()
            writer.transport.abort()
            self._clients.discard(writer)


class _BrokenError(Exception):
    """The connection breaks here."""


class _Carrier:
    """Carries the calls of one client's connection over one connection to the server."""

    def __init__(
        self, proxy: FaultProxy, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._proxy = proxy
        self._reader = reader
        self._writer = writer

    async def carry(self) -> None:
        """Carry calls until a side closes its connection, or a fault does."""
        with contextlib.suppress(_BrokenError, OSError, asyncio.IncompleteReadError):
            to_reader, to_writer = await asyncio.open_connection(
                "127.0.0.1", self._proxy.server_port, limit=_HEAD_BYTES_MAX
            )
            try:
                while True:
                    await self._one_call(to_reader, to_writer)
            finally:
                to_writer.close()

    async def _one_call(
        self, from_server: asyncio.StreamReader, to_server: asyncio.StreamWriter
    ) -> None:
        call = await _head(self._reader)
        body = await self._reader.readexactly(call.length)
        self._proxy.record_call(call)
        await self._silence()
        instead = self._proxy.faults.answers.get(call.kind)
        if instead is not None:
            await self._send_bytes(_written(instead))
            return
        to_server.write(call.raw + body)
        answer = await _head(from_server)
        if self._proxy.faults.loses(call.first[0], call.path):
            raise _BrokenError
        await self._send_bytes(answer.raw)
        sent = 0
        async for piece in _body(from_server, answer):
            most = self._proxy.faults.bytes_most if call.kind == "WATCH" else None
            if most is not None and sent + len(piece) > most:
                await self._send_bytes(piece[: most - sent])
                raise _BrokenError
            await self._send_bytes(piece)
            sent += len(piece)

    async def _send_bytes(self, data: bytes) -> None:
        """Send bytes to the client as the wire lets them through."""
        faults = self._proxy.faults
        step = len(data) if faults.bytes_per_second is None else 1 + faults.bytes_per_second // 10
        for start in range(0, len(data), max(step, 1)):
            await self._silence()
            self._writer.write(data[start : start + step])
            await self._writer.drain()
            if faults.bytes_per_second is not None:
                await aio.sleep(step / faults.bytes_per_second)

    async def _silence(self) -> None:
        """Wait for the end of the connection while it is half open."""
        if self._proxy.faults.half_open:
            await asyncio.get_running_loop().create_future()


async def _until_closed(writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        await writer.wait_closed()


async def _head(reader: asyncio.StreamReader) -> Head:
    raw = await reader.readuntil(_HEAD_END)
    first, *lines = raw[: -len(_HEAD_END)].decode("latin-1").split("\r\n")
    one, two, three = [*first.split(" ", 2), ""][:3]
    pairs = (line.partition(":") for line in lines)
    headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
    return Head(raw, (one, two, three), headers)


async def _body(reader: asyncio.StreamReader, head: Head) -> AsyncIterator[bytes]:
    """Yield the bytes of an answer's body as they come, the frames of chunks included."""
    if not head.is_chunked:
        left = head.length
        while left:
            piece = await reader.readexactly(min(left, _PIECE_BYTES))
            left -= len(piece)
            yield piece
        return
    while True:
        size = await reader.readuntil(b"\r\n")
        length = int(size.split(b";")[0], 16)
        yield size + await reader.readexactly(length + 2)
        if not length:
            return


def _written(answer: Answer) -> bytes:
    lines = [f"HTTP/1.1 {answer.status} {HTTPStatus(answer.status).phrase}"]
    lines += [f"{name}: {value}" for name, value in answer.headers.items()]
    lines += ["content-type: application/json", f"content-length: {len(answer.body)}", "", ""]
    return "\r\n".join(lines).encode() + answer.body
