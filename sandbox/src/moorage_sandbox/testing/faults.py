"""A wire that misbehaves: a transport that stands between a program and its API server.

A test hands it to the program in the place of the transport (`VirtualCluster` takes it as
``around``), and changes its `Faults` while the program runs. In virtual time an outage of half a
minute costs nothing, and every run happens the same way.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Literal

import msgspec

from moorage.base import aio
from moorage.base.aio import TaskOwner
from moorage.base.errors import RefusedError, TransportError
from moorage.client.transport import Answer, Call, LineStream, Transport

_TIMES = {"told": 1, "twice": 2, "lost": 0}
_EXPIRED = msgspec.json.encode(
    {
        "type": "ERROR",
        "object": {
            "kind": "Status",
            "apiVersion": "v1",
            "status": "Failure",
            "message": "a fault of the wire",
            "reason": "Expired",
            "code": 410,
        },
    }
)
_SILENT_SECONDS = 3600.0  # for a call without a limit of its own


Fate = Literal["told", "twice", "lost", "cut", "expired"]
"""The fate of a line of a stream: told once, twice or not at all; or the stream breaks before the
line, or ends with 410 in its place."""


class Faults(msgspec.Struct, kw_only=True):
    """The present faults of any wire; the defaults are a wire that works.

    Parameters
    ----------
    half_open
        Connections stay open and nothing comes through: calls end by their own limits.
    answers
        Answers in the place of the server's, by method; the server does not see the call.
    lost
        How many further answers are lost after the server has acted, by the end of the path.
    """

    half_open: bool = False
    answers: dict[str, Answer] = msgspec.field(default_factory=dict)
    lost: Counter[str] = msgspec.field(default_factory=Counter)

    def loses(self, method: str, path: str) -> bool:
        """Whether the answer to this call is lost, which is counted."""
        if method == "GET":
            return False
        for end in self.lost:
            if self.lost[end] and path.endswith(end):
                self.lost[end] -= 1
                return True
        return False


class LineFaults(Faults, kw_only=True):
    """The faults of a wire that carries whole calls and lines.

    Parameters
    ----------
    down
        No connection can be made, and open streams break.
    line_seconds
        How long each line of a stream takes.
    lines_most
        Streams break after this many lines, in the middle of one; None for never.
    fate
        Decides about each line of a stream.
    """

    down: bool = False
    line_seconds: float = 0.0
    lines_most: int | None = None
    fate: Callable[[bytes], Fate] = lambda _line: "told"


class FaultyTransport:
    """Carries calls as its faults let it.

    Parameters
    ----------
    inner
        The way to the server.

    Attributes
    ----------
    faults
        The present faults; a test changes it.
    inner
        The way to the server; a test may replace it by the way to another server.
    calls
        Numbers of calls that the program made, by method; ``WATCH`` for streams.
    """

    def __init__(self, inner: Transport) -> None:
        self.inner = inner
        self.faults = LineFaults()
        self.calls: Counter[str] = Counter()
        self._broken = asyncio.Event()

    def end_faults(self) -> None:
        """Let the wire work again; streams that were silent stay silent."""
        self.faults = LineFaults()

    def cut(self) -> None:
        """Break every open stream, as a server that restarts does."""
        self._broken.set()
        self._broken = asyncio.Event()

    def fail(self) -> None:
        """Take the server away until `end_faults`."""
        self.faults = msgspec.structs.replace(self.faults, down=True)
        self.cut()

    async def request(self, call: Call) -> Answer:
        """Send a call and return the whole answer."""
        self.calls[call.method] += 1
        await self._pass(call)
        instead = self.faults.answers.get(call.method)
        if instead is not None:
            await aio.sleep(0)
            return instead
        answer = await self.inner.request(call)
        if self.faults.loses(call.method, call.path):
            raise TransportError(f"{call.method} {call.path}: the answer is lost")
        return answer

    @asynccontextmanager
    async def stream(self, call: Call) -> AsyncIterator[LineStream]:
        """Send a call and read its answer line by line inside the context."""
        self.calls["WATCH"] += 1
        await self._pass(call)
        instead = self.faults.answers.get("WATCH")
        if instead is not None:
            await aio.sleep(0)
            yield _Whole(instead)
            return
        async with self.inner.stream(call) as lines:
            yield _Lines(self, lines, call, self._broken)

    async def close(self) -> None:
        """Close the way to the server."""
        await self.inner.close()

    async def _pass(self, call: Call) -> None:
        if self.faults.down:
            await aio.sleep(0.001)
            raise RefusedError(f"{call.method} {call.path}: no connection")
        if self.faults.half_open:
            await aio.sleep(call.timeout_seconds or _SILENT_SECONDS)
            raise TransportError(f"{call.method} {call.path}: silent")


class _Whole:
    """A short answer in the place of a stream."""

    def __init__(self, answer: Answer) -> None:
        self.status = answer.status
        self.headers: Mapping[str, str] = answer.headers
        self._body = answer.body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._body


class _Lines:
    """The lines of a stream, as the wire lets them through."""

    def __init__(
        self, wire: FaultyTransport, inner: LineStream, call: Call, broken: asyncio.Event
    ) -> None:
        self._wire = wire
        self._inner = inner
        self._call = call
        self._broken = broken
        self.status = inner.status
        self.headers = inner.headers

    async def __aiter__(self) -> AsyncIterator[bytes]:
        lines, count = aiter(self._inner), 0
        while True:
            line = await self._next(lines)
            if line is None:
                return
            faults = self._wire.faults
            if faults.lines_most is not None and count >= faults.lines_most:
                raise TransportError(f"{self._call.path}: cut in the middle of a line")
            await aio.sleep(faults.line_seconds)
            count += 1
            fate = faults.fate(line)
            if fate == "cut":
                raise TransportError(f"{self._call.path}: connection reset")
            if fate == "expired":
                yield _EXPIRED
                return
            for _ in range(_TIMES[fate]):
                yield line

    async def _next(self, lines: AsyncIterator[bytes]) -> bytes | None:
        """Return the next line, or None at the end of the stream.

        Raises
        ------
        TransportError
            The connection broke, or was silent for longer than the call allows.
        """
        tasks = TaskOwner(on_failure=lambda _name, _error: None)  # told by the result below
        reading = tasks.spawn(_next_of(lines), name="read a line")
        breaking = tasks.spawn(self._broken.wait(), name="wait for the break")
        try:
            await asyncio.wait(
                (reading, breaking),
                timeout=self._call.idle_seconds,
                return_when=asyncio.FIRST_COMPLETED,
            )
            if self._wire.faults.half_open:
                await asyncio.wait((breaking,), timeout=self._call.idle_seconds)
                raise TransportError(f"{self._call.path}: silent for {self._call.idle_seconds} s")
            if breaking.done() or not reading.done():
                raise TransportError(f"{self._call.path}: the connection broke")
            line: bytes | None = reading.result()
            return line
        finally:
            await tasks.cancel_all()


async def _next_of(lines: AsyncIterator[bytes]) -> bytes | None:
    return await anext(lines, None)
