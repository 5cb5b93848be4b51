"""One connection of the server: time limits, and usual writes answered as they come.

Place in the flow: `http` answers calls through the library, one task for each. That costs more than
the work of a small write. So a write that needs no waiting is answered here, in the turn of the
loop in which it comes, and the answers to calls that came together are sent together.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from contextvars import copy_context
from functools import cache
from http import HTTPStatus
from http.client import responses
from typing import TYPE_CHECKING, Any, Final, Protocol

from moorage.api.bounds import BODY_LIMIT_BYTES
from moorage.base.aio import real_seconds
from moorage.base.authorities import read_when_used
from moorage_sandbox.apiserver.authentication.credentials import certificate_user
from moorage_sandbox.apiserver.rbac.impersonation import GROUP_HEADER, joined
from moorage_sandbox.apiserver.wire.requests import Reply, Request, User, readable

with read_when_used():
    from aiohttp import web
    from aiohttp.helpers import rfc822_formatted_time
    from aiohttp.http import SERVER_SOFTWARE, HttpVersion11, RawRequestMessage
    from aiohttp.streams import EmptyStreamReader

if TYPE_CHECKING:
    from multidict import CIMultiDictProxy

# Time limit for the first headers of a connection: kube-apiserver's ReadHeaderTimeout.
_HEADERS_SECONDS = 32.0
# Answers are sent in pieces of this size (a guess: a quarter of a millisecond to encrypt).
PIECE_BYTES: Final = 512 * 1024
# Prefixes of headers that identify the caller: two different values must stay different.
_IDENTITIES: Final = ("authorization", "impersonate-")
_AT_ONCE: Final = ("POST", "PUT", "PATCH")
# Plain numbers: a member of an enumeration is looked up by a function each time.
_OK: Final = int(HTTPStatus.OK)
_WITHOUT_BODY: Final = (int(HTTPStatus.NO_CONTENT), int(HTTPStatus.NOT_MODIFIED))
# Paths that are the same before and after decoding and normalizing.
_PLAIN_PATH: Final = re.compile(r"(?:/[A-Za-z0-9_~:-][A-Za-z0-9_~:.-]*)+", re.ASCII)


class Answers(Protocol):
    """Answers calls; `moorage_sandbox.apiserver.wire.http.HttpServer` does."""

    def user_of(self, headers: Mapping[str, str]) -> User | None:
        """Return the user that the headers of a call tell; None without valid credentials."""
        ...

    def turn_at_once(self, call: Request) -> asyncio.Future[None] | None:
        """Return the turn that a call has to wait for; None for a call that has its turn now."""
        ...

    def at_once(self, call: Request) -> Reply | None:
        """Answer a call that needs no waiting; None for a call that may have to wait."""
        ...


class TimeLimit:
    """The time limit of the calls of one connection, which come one after the other.

    One timer serves many calls. `asyncio.timeout` starts and cancels a timer for each call, which
    costs more than all the rest of this class.
    """

    __slots__ = ("_call", "_ends_at", "_loop", "_timer", "passed")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        # Asking for the running loop takes a system call.
        self._loop = loop
        self._call: asyncio.Task[Any] | None = None
        self._ends_at = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self.passed = False

    def start_time(self, seconds: float) -> None:
        """Start the time of a call: the current task."""
        loop = self._loop
        self._call, self.passed = asyncio.current_task(loop), False
        self._ends_at = loop.time() + real_seconds(seconds)
        if self._timer is not None and self._timer.when() > self._ends_at:
            self._timer.cancel()
            self._timer = None
        if self._timer is None:
            self._timer = loop.call_at(self._ends_at, self._look)

    def stop_time(self) -> None:
        """Stop the time of the call; the timer finds that out when it fires."""
        self._call = None

    def close(self) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()

    def _look(self) -> None:
        self._timer = None
        if self._call is None:
            return
        loop = self._loop
        if loop.time() < self._ends_at:
            # A later call than the one that started the timer.
            self._timer = loop.call_at(self._ends_at, self._look)
            return
        self.passed = True
        self._call.cancel()


class Connection(web.RequestHandler):
    """A connection that is closed when its first headers do not arrive.

    Parameters
    ----------
    answers
        Answers the calls.
    """

    __slots__ = ("_answers", "_begun", "_sleeper", "_turn", "_waiting", "certified", "limit")

    def __init__(self, answers: Answers, manager: web.Server, **options: Any) -> None:
        super().__init__(manager, **options)
        self._answers = answers
        # The oldest call, if it was read here, and its reply if it was answered here, too.
        self._begun: tuple[Request, Reply | None] | None = None
        # What the library's task waits for while calls are answered here.
        self._sleeper: asyncio.Future[None] | None = None
        # The turn that the oldest call waits for.
        self._turn: asyncio.Future[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the time limit of the headers; read the certificate, which stays the same."""
        super().connection_made(transport)
        loop = asyncio.get_running_loop()
        self._waiting = loop.call_later(real_seconds(_HEADERS_SECONDS), self._end)
        self.limit = TimeLimit(loop)
        self.certified = certificate_user(transport.get_extra_info("peercert"))

    def connection_lost(self, exc: BaseException | None) -> None:
        """Stop the time limits."""
        self._waiting.cancel()
        self.limit.close()
        if self._turn is not None:
            self._turn.cancel()
        super().connection_lost(exc)

    def headers_have_come(self) -> None:
        """Note the begin of a call; from then on the library limits idle times."""
        self._waiting.cancel()

    def take_begun(self) -> tuple[Request, Reply | None] | None:
        """Return the call that was read here, and its reply if it was answered here, too."""
        begun, self._begun = self._begun, None
        return begun

    def data_received(self, data: bytes) -> None:
        """Take in a part of the calls; answer at once what needs no waiting."""
        waiter = self._waiter
        if waiter is None or waiter.done() or self._messages or self.writing_paused:
            super().data_received(data)  # calls are under way, and answers come in order
            return
        # The library's task sleeps. It is woken for what is not answered here.
        self._sleeper, self._waiter = waiter, None
        super().data_received(data)
        self._answer_at_once()
        if self._turn is None:
            self._leave_the_rest()

    def _leave_the_rest(self) -> None:
        """Leave the calls that are not answered here to the library."""
        waiter, self._sleeper = self._sleeper, None
        self._waiter = waiter
        if self._messages and waiter is not None and not waiter.done():
            waiter.set_result(None)

    def _answer_at_once(self) -> None:
        """Answer the oldest calls that have come, as many as need no waiting."""
        answers = []
        # The library knows how to go on with a client that sends too much, or reads too little.
        while self._messages and not (self._buffer_paused or self.writing_paused):
            if self._begun is None and not self._begin(*self._messages[0]):
                break
            reply = self._reply_at_once()
            if reply is None or not is_usual(reply):
                break
            self._messages.popleft()
            self._begun = None
            if self._parser is not None:
                self._parser.message_consumed()
            answers.append(whole_answer(reply))
        if answers and self.transport is not None:
            self.headers_have_come()
            self._next_keepalive_close_time = self._loop.time() + self._keepalive_timeout
            self.transport.write(b"".join(answers))

    def _begin(self, message: Any, payload: Any) -> bool:
        """Read a call, if it is a usual write and has its turn now."""
        if not (isinstance(message, RawRequestMessage) and _is_plain(message, payload)):
            return False
        headers = headers_of(message.headers)
        user = self.certified or self._answers.user_of(headers)
        if user is None:
            return False  # the body of an unknown caller is not read
        call = Request(
            method=message.method,
            path=message.path,
            headers=headers,
            body=b"" if isinstance(payload, EmptyStreamReader) else payload.read_nowait(),
            user=user,
        )
        self._begun = call, None
        turn = self._answers.turn_at_once(call)
        if turn is not None:
            self._turn = turn
            turn.add_done_callback(self._go_on)
        return turn is None

    def _go_on(self, turn: asyncio.Future[None]) -> None:
        """Answer the calls that have come, now that the oldest has its turn."""
        self._turn = None
        if not turn.cancelled() and self.transport is not None and not self._force_close:
            self._answer_at_once()
        if self._turn is None:
            self._leave_the_rest()

    def _reply_at_once(self) -> Reply | None:
        """Answer the call that has been read; None for a call that may have to wait."""
        assert self._begun is not None, "a call has been read"
        call, _ = self._begun
        # The user of a call is told by the context, which this connection's next call must not see.
        reply = copy_context().run(self._answers.at_once, call)
        self._begun = call, reply
        return reply

    def _end(self) -> None:
        if self.transport is not None:
            self.transport.abort()


class Listener(web.Server):
    """Makes the protocol object of each new connection.

    Parameters
    ----------
    answers
        Answers the calls of all connections.
    """

    def __init__(self, answers: Answers, handler: Any, **options: Any) -> None:
        super().__init__(handler, **options)
        self._answers = answers

    def __call__(self) -> web.RequestHandler:
        """Return the protocol object of a new connection."""
        return Connection(self._answers, self, loop=self._loop, **self._kwargs)


def _is_plain(message: RawRequestMessage, payload: Any) -> bool:
    """Whether a call is a usual write that has come whole."""
    return (
        message.method in _AT_ONCE
        and message.version == HttpVersion11
        and not (message.should_close or message.upgrade or message.chunked)
        and payload.is_eof()
        and payload.total_bytes <= BODY_LIMIT_BYTES
        and "Content-Encoding" not in message.headers
        and "Expect" not in message.headers
        and _PLAIN_PATH.fullmatch(message.path) is not None
    )


def headers_of(sent: CIMultiDictProxy[str]) -> dict[str, str]:
    """Return the headers by lower-case name; headers that identify the caller stay as sent."""
    headers = {}
    for name, value in sent.items():
        key = name.lower()
        kept = value.isascii() or key.startswith(_IDENTITIES)
        headers[key] = value if kept else readable(value)
    if GROUP_HEADER in headers:
        headers[GROUP_HEADER] = joined(sent.getall(GROUP_HEADER))
    return headers


def is_usual(reply: Reply) -> bool:
    """Whether an answer is a usual one: other answers have other headers, or no whole body."""
    return (
        not reply.headers
        and isinstance(reply.body, bytes)
        and len(reply.body) <= PIECE_BYTES
        and reply.status >= _OK
        and reply.status not in _WITHOUT_BODY
    )


def whole_answer(reply: Reply) -> bytes:
    """Return a usual answer as it is sent; the same bytes as the library's response sends.

    The library's response prepares for compression, cookies and bodies that come in pieces, which
    takes longer than everything here.
    """
    assert isinstance(reply.body, bytes), "usual answers are whole"
    head = f"{_first_lines(reply.status, reply.content_type)}{len(reply.body)}\r\n"
    return (head + _last_lines(rfc822_formatted_time())).encode() + reply.body


@cache
def _first_lines(status: int, content_type: str) -> str:
    reason = responses.get(status, "")
    return f"HTTP/1.1 {status} {reason}\r\nContent-Type: {content_type}\r\nContent-Length: "


def _last_lines(date: str) -> str:
    return f"Date: {date}\r\nServer: {SERVER_SOFTWARE}\r\n\r\n"
