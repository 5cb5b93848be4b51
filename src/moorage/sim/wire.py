"""The connection of one process to the API server: messages take time, are lost, break off.

The server's half of a call runs in the server's process. So a client that is stopped or killed in
the middle of a call leaves the server as a client of a real network would.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from moorage.base import aio
from moorage.base.aio import TaskOwner
from moorage.base.clock import NS_PER_SECOND, Clock
from moorage.base.errors import RefusedError, TransportError
from moorage.client.transport import Answer, Call, LineStream, Transport
from moorage.sim.faults import Weather
from moorage.sim.loop import Process

READS = frozenset({"GET", "HEAD"})

Sent = Callable[[Call], None]
Done = Callable[[Call, Answer | None], None]


class Server:
    """The end that a wire leads to.

    Parameters
    ----------
    process
        The process in which the server's half of each call runs.
    """

    def __init__(self, process: Process) -> None:
        self.process = process
        self.down = False
        """Whether no connection is accepted."""
        self._tasks = TaskOwner()
        self._streams: dict[asyncio.Task[None], None] = {}

    def spawn(self, work: Any, *, name: str) -> asyncio.Task[None]:
        """Start a task of the server."""
        return self.process.run(lambda: self._tasks.spawn(work, name=name))

    def follow(self, work: Any) -> asyncio.Task[None]:
        """Start the server's half of a stream, which `cut` ends."""
        task = self.spawn(work, name="stream")
        self._streams[task] = None
        task.add_done_callback(lambda ended: self._streams.pop(ended, None))
        return task

    def cut(self) -> None:
        """Break every open stream."""
        for task in list(self._streams):
            task.cancel()

    async def close(self) -> None:
        """End every task."""
        await self._tasks.cancel_all()


class Wire:
    """A transport with faults.

    Parameters
    ----------
    inner
        Carries a call at once and without faults.
    server
        The other end.
    weather
        The faults at work.
    clock
        Time of the loop.
    sent, done
        Told of each write when it is sent, and when the server has acted (with None where it never
        saw the call).
    """

    def __init__(
        self,
        inner: Transport,
        server: Server,
        weather: Weather,
        *,
        clock: Clock,
        sent: Sent = lambda call: None,
        done: Done = lambda call, answer: None,
    ) -> None:
        self._inner = inner
        self._server = server
        self._weather = weather
        self._clock = clock
        self._sent = sent
        self._done = done

    async def request(self, call: Call) -> Answer:
        """Send a call and return the whole answer.

        Raises
        ------
        TransportError
            A fault struck.
        """
        if call.method not in READS:
            self._sent(call)
        try:
            async with asyncio.timeout(call.timeout_seconds):
                return await self._carried(call)
        except TimeoutError as problem:
            raise TransportError(f"no answer within {call.timeout_seconds} s") from problem

    def stream(self, call: Call) -> Any:
        """Send a call and read its answer line by line inside the context."""
        return self._stream(call)

    async def close(self) -> None:
        """Do nothing: the wire ends with its process."""

    # --- one call ---------------------------------------------------------------------------------

    async def _carried(self, call: Call) -> Answer:
        await self._reach("request")
        if self._strikes("lost"):
            raise TransportError("the connection broke while the call was sent")
        for fault, status in (("error-500", 500), ("busy-429", 429)):
            if self._strikes(fault):
                return _refusal(status)
        asked: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._server.spawn(self._answered(call, asked), name="call")
        answer = await asked
        await aio.sleep(self._weather.seconds(self._clock.monotonic_ns()))
        if self._strikes("answer-lost"):
            raise TransportError("the connection broke before the answer came")
        return answer

    async def _answered(self, call: Call, asked: asyncio.Future[Answer]) -> None:
        answer: Answer | None = None
        try:
            answer = await self._inner.request(call)
        except TransportError as problem:
            if not asked.done():
                asked.set_exception(problem)
        else:
            if call.method not in READS:
                self._done(call, answer)
            if not asked.done():
                asked.set_result(answer)

    async def _reach(self, what: str) -> None:
        await aio.sleep(self._weather.seconds(self._clock.monotonic_ns()))
        if self._server.down or self._strikes("refused"):
            raise RefusedError(f"connection refused ({what})")

    def _strikes(self, fault: Any) -> bool:
        return self._weather.strikes(fault, self._clock.monotonic_ns())

    # --- a stream ---------------------------------------------------------------------------------

    @asynccontextmanager
    async def _stream(self, call: Call) -> AsyncIterator[LineStream]:
        await self._reach("watch")
        lines: asyncio.Queue[_Piece] = asyncio.Queue()
        pump = self._server.follow(self._pumped(call, lines))
        try:
            head = await lines.get()
            if head.error is not None:
                raise head.error
            yield _Lines(head, lines, self._weather, clock=self._clock, idle=call.idle_seconds)
        finally:
            pump.cancel()

    async def _pumped(self, call: Call, lines: asyncio.Queue[_Piece]) -> None:
        """Run the server's half of a stream: note each line with the time at which it arrives."""
        due = 0.0
        try:
            async with self._inner.stream(call) as source:
                lines.put_nowait(_Piece(status=source.status, headers=dict(source.headers)))
                async for line in source:
                    now_ns = self._clock.monotonic_ns()
                    late = self._weather.seconds(now_ns, slow="watch-slow")
                    due = max(due, now_ns / NS_PER_SECOND + late)
                    lines.put_nowait(_Piece(line=line, due=due))
            lines.put_nowait(_Piece(ended=True))
        except asyncio.CancelledError:
            lines.put_nowait(_Piece(error=TransportError("the connection was reset")))
            raise
        except TransportError as problem:
            lines.put_nowait(_Piece(error=problem))


class _Piece(msgspec.Struct, kw_only=True):
    """A part of a stream: its head, a line, its end, or its failure."""

    status: int = 0
    headers: dict[str, str] = {}
    line: bytes = b""
    due: float = 0.0
    ended: bool = False
    error: Exception | None = None


class _Lines:
    """The lines of a stream as they arrive."""

    def __init__(
        self,
        head: _Piece,
        lines: asyncio.Queue[_Piece],
        weather: Weather,
        *,
        clock: Clock,
        idle: float | None,
    ) -> None:
        self.status = head.status
        self.headers: Mapping[str, str] = head.headers
        self._lines = lines
        self._weather = weather
        self._clock = clock
        self._idle = idle

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while True:
            piece = await self._next()
            if piece.error is not None:
                raise piece.error
            if piece.ended:
                return
            wait = piece.due - self._clock.monotonic_ns() / NS_PER_SECOND
            if wait > 0:
                await aio.sleep(wait)
            now_ns = self._clock.monotonic_ns()
            if self._weather.strikes("watch-cut", now_ns):
                raise TransportError("the connection was reset")
            if self._weather.strikes("watch-gone", now_ns):
                yield msgspec.json.encode({"type": "ERROR", "object": _status(410)})
                return
            if self._weather.strikes("watch-silent", now_ns):
                await self._silence()
            yield piece.line

    async def _next(self) -> _Piece:
        try:
            async with asyncio.timeout(self._idle):
                return await self._lines.get()
        except TimeoutError as problem:
            raise TransportError(f"nothing came for {self._idle} s") from problem

    async def _silence(self) -> None:
        """Wait as on a half-open connection, which ends when the reader gives it up."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._idle):
                await self._weather.cleared.wait()
        raise TransportError("nothing came on a half-open connection")


_REASONS = {410: "Expired", 429: "TooManyRequests", 500: "InternalError"}


def _status(code: int) -> dict[str, Any]:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "message": "a fault of the simulation",
        "reason": _REASONS[code],
        "code": code,
    }


def _refusal(code: int) -> Answer:
    headers = {"content-type": "application/json"}
    if code == 429:
        headers["retry-after"] = "1"
    return Answer(code, headers, msgspec.json.encode(_status(code)))
