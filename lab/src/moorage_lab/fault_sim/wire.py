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
from moorage_lab.fault_sim.loop import Process
from moorage_lab.fault_sim.network_faults import NetworkFaults
from moorage_lab.fault_sim.served import CALLER

READS = frozenset({"GET", "HEAD"})

OnSend = Callable[[Call], None]
OnAnswer = Callable[[Call, Answer | None], None]


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
        self.dead = False
        """Whether the process has died, and no other has taken its place yet."""
        self._open_calls: dict[asyncio.Future[Answer | TransportError], None] = {}
        self._lines: list[asyncio.Queue[_Piece]] = []
        self._tasks = TaskOwner()
        self._streams: dict[asyncio.Task[None], None] = {}

    def start_task(self, work: Any, *, name: str) -> asyncio.Task[None]:
        """Start a task of the server."""
        return self.process.run(lambda: self._tasks.spawn(work, name=name))

    def follow(self, work: Any) -> asyncio.Task[None]:
        """Start the server's half of a stream, which `cut` ends."""
        task = self.start_task(work, name="stream")
        self._streams[task] = None
        task.add_done_callback(lambda ended: self._streams.pop(ended, None))
        return task

    def cut(self) -> None:
        """Break every open stream."""
        for task in list(self._streams):
            task.cancel()

    def open_call(self) -> asyncio.Future[Answer | TransportError]:
        """Return the future answer to a call: a failure where the server dies meanwhile."""
        future: asyncio.Future[Answer | TransportError]
        future = asyncio.get_running_loop().create_future()
        self._open_calls[future] = None
        future.add_done_callback(lambda done: self._open_calls.pop(done, None))
        return future

    def lines(self) -> asyncio.Queue[_Piece]:
        """Return the lines of a new stream, until `forget_stream`."""
        queue: asyncio.Queue[_Piece] = asyncio.Queue()
        self._lines.append(queue)
        return queue

    def forget_stream(self, queue: asyncio.Queue[_Piece]) -> None:
        """Forget a stream that nobody reads any more."""
        self._lines = [each for each in self._lines if each is not queue]

    def die(self) -> None:
        """Kill the process; its operating system resets every connection."""
        self.dead = True
        self.process.kill()
        reset = TransportError("the connection was reset")
        for future in list(self._open_calls):
            if not future.done():
                future.set_result(reset)
        for queue in self._lines:
            queue.put_nowait(_Piece(error=reset))

    def begin_anew(self, process: Process) -> None:
        """Go on with another process."""
        self.process = process
        self.dead = False

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
    faults
        The faults at work.
    clock
        Time of the loop.
    name
        Name of the program that calls.
    version
        Gives the newest version that the server has told.
    on_send, on_answer
        Told of each write when it is sent, and when the server has acted (with None where it never
        saw the call).
    """

    def __init__(
        self,
        inner: Transport,
        server: Server,
        faults: NetworkFaults,
        *,
        clock: Clock,
        name: str = "",
        version: Callable[[], int] = lambda: 0,
        on_send: OnSend = lambda call: None,
        on_answer: OnAnswer = lambda call, answer: None,
    ) -> None:
        self._inner = inner
        self._server = server
        self._faults = faults
        self._clock = clock
        self._name = name
        self._version = version
        self._on_send = on_send
        self._on_answer = on_answer

    async def request(self, call: Call) -> Answer:
        """Send a call and return the whole answer.

        Raises
        ------
        TransportError
            A fault struck.
        """
        if call.method not in READS:
            self._on_send(call)
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
        if self._strikes("timeout"):
            await self._silence()
        for fault, status in (("error-500", 500), ("busy-429", 429)):
            if self._strikes(fault):
                return _refusal(status)
        if call.path.endswith("/binding") and self._strikes("feigned"):
            return _done_as_told()
        if _may_conflict(call) and self._strikes("conflict-409"):
            return _refusal(409)
        reply = self._server.open_call()
        self._server.start_task(self._answered(self._aged(call), reply), name="call")
        answer = await reply
        if isinstance(answer, TransportError):
            raise answer
        await aio.sleep(self._faults.answer_seconds(self._clock.monotonic_ns()))
        if self._strikes("answer-lost"):
            raise TransportError("the connection broke before the answer came")
        if self._strikes("answer-timeout"):
            await self._silence()
        return answer

    async def _silence(self) -> None:
        """Wait until the caller gives up, or until faults are over."""
        await self._faults.cleared.wait()
        raise TransportError("no answer came")

    async def _answered(
        self, calls: tuple[Call, ...], reply: asyncio.Future[Answer | TransportError]
    ) -> None:
        """Let the server answer the first of some calls that it does not refuse."""
        answer: Answer | TransportError
        try:
            for call in calls:
                CALLER.set((self._name, call.path))
                answer = await self._inner.request(call)
                if call.method not in READS:
                    self._on_answer(call, answer)
                if answer.status < 400:
                    break
        except TransportError as problem:
            answer = problem
        if not reply.done():
            reply.set_result(answer)

    def _aged(self, call: Call) -> tuple[Call, ...]:
        """Return a list that may be old in an older version, and then as it is; or one call.

        A list at "0" may be of any version, a list at another version of that or a newer one. So a
        server answers from a watch cache that has not caught up.
        """
        query = dict(call.query)
        oldest = query.get("resourceVersion", "")
        if call.method != "GET" or not oldest or "continue" in query or "watch" in query:
            return (call,)
        if not self._strikes("list-stale"):
            return (call,)
        version = max(int(oldest), self._version() - self._faults.versions_old())
        if version < 1:
            return (call,)
        query |= {"resourceVersion": str(version), "resourceVersionMatch": "Exact"}
        query.pop("limit", None)
        return (msgspec.structs.replace(call, query=tuple(query.items())), call)

    async def _reach(self, what: str) -> None:
        await aio.sleep(self._faults.seconds(self._clock.monotonic_ns()))
        if self._server.down or self._server.dead or self._strikes("refused"):
            raise RefusedError(f"connection refused ({what})")

    def _strikes(self, fault: Any) -> bool:
        return self._faults.strikes(fault, self._clock.monotonic_ns())

    # --- a stream ---------------------------------------------------------------------------------

    @asynccontextmanager
    async def _stream(self, call: Call) -> AsyncIterator[LineStream]:
        await self._reach("watch")
        if "sendInitialEvents" in dict(call.query) and self._strikes("list-stale"):
            yield _Refused()
            return
        lines = self._server.lines()
        pump = self._server.follow(self._pumped(call, lines))
        try:
            head = await lines.get()
            if head.error is not None:
                raise head.error
            yield _Lines(head, lines, self._faults, clock=self._clock, idle=call.idle_seconds)
        finally:
            pump.cancel()
            self._server.forget_stream(lines)

    async def _pumped(self, call: Call, lines: asyncio.Queue[_Piece]) -> None:
        """Run the server's half of a stream: note each line with the time at which it arrives."""
        due = 0.0
        try:
            async with self._inner.stream(call) as source:
                lines.put_nowait(_Piece(status=source.status, headers=dict(source.headers)))
                async for line in source:
                    now_ns = self._clock.monotonic_ns()
                    late = self._faults.seconds(now_ns, slow="watch-slow")
                    due = max(due, now_ns / NS_PER_SECOND + late, self._faults.batched(now_ns))
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


class _Refused:
    """The answer of a server that does not stream lists, so that it is asked for a plain one."""

    status = 422

    def __init__(self) -> None:
        self.headers: Mapping[str, str] = {"content-type": "application/json"}

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield msgspec.json.encode(_status(422))


class _Lines:
    """The lines of a stream as they arrive.

    No generator: a generator that is left is closed by a task of its own once the memory is looked
    through, and nothing of a run may depend on when that is.
    """

    def __init__(
        self,
        head: _Piece,
        lines: asyncio.Queue[_Piece],
        faults: NetworkFaults,
        *,
        clock: Clock,
        idle: float | None,
    ) -> None:
        self.status = head.status
        self.headers: Mapping[str, str] = head.headers
        self._lines = lines
        self._faults = faults
        self._clock = clock
        self._idle = idle
        self._over = False

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        if self._over:
            raise StopAsyncIteration
        try:
            line, self._over = await self._line()
        except BaseException:
            self._over = True
            raise
        return line

    async def _line(self) -> tuple[bytes, bool]:
        """Return the next line, and whether it is the last one."""
        piece = await self._next()
        if piece.error is not None:
            raise piece.error
        if piece.ended:
            raise StopAsyncIteration
        wait = piece.due - self._clock.monotonic_ns() / NS_PER_SECOND
        if wait > 0:
            await aio.sleep(wait)
        now_ns = self._clock.monotonic_ns()
        if self._faults.strikes("watch-cut", now_ns):
            raise TransportError("the connection was reset")
        if self._faults.strikes("watch-gone", now_ns):
            return msgspec.json.encode({"type": "ERROR", "object": _status(410)}), True
        if self._faults.strikes("watch-silent", now_ns):
            await self._silence()
        return piece.line, False

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
                await self._faults.cleared.wait()
        raise TransportError("nothing came on a half-open connection")


def _may_conflict(call: Call) -> bool:
    """Return whether a call changes an object that others may change at the same time."""
    return call.method in _CHANGES or call.path.endswith("/binding")


_CHANGES = frozenset({"PUT", "PATCH"})

_REASONS = {
    409: "Conflict",
    410: "Expired",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
}


def _status(code: int) -> dict[str, Any]:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "message": "a fault of the simulation",
        "reason": _REASONS[code],
        "code": code,
    }


def _done_as_told() -> Answer:
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    return Answer(201, {"content-type": "application/json"}, msgspec.json.encode(status))


def _refusal(code: int) -> Answer:
    headers = {"content-type": "application/json"}
    if code == 429:
        headers["retry-after"] = "1"
    return Answer(code, headers, msgspec.json.encode(_status(code)))
