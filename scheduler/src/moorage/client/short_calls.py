"""Short calls: writes over connections of our own, with the HTTP library's parser.

A binding, an Event and a status patch are sent for each pod. The library's session takes four times
as long for one of these calls as this module does: it prepares for redirects, cookies, proxies,
compression and bodies of any length. Reads, and calls through a proxy, stay with the session.

Used by `http_transport`, which owns timeouts, retries and credentials.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections import deque
from collections.abc import Callable, Sequence
from math import inf
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from moorage.base.authorities import read_when_used
from moorage.base.errors import AnswerTooLargeError
from moorage.client.auth import Credential, ServerAccess, basic, without_user
from moorage.client.guard import WriteGuard
from moorage.client.transport import Answer, Call

with read_when_used():
    import aiohappyeyeballs
    import aiohttp
    from aiohttp.base_protocol import BaseProtocol
    from aiohttp.http import HttpProcessingError, HttpResponseParser

_IDLE_SECONDS_MAX: Final = 15.0  # as the library's session keeps connections
_NEXT_ADDRESS_SECONDS: Final = 0.25  # as the library's session (RFC 8305, section 8)
_BUFFER_BYTES: Final = 1 << 16
_BODYLESS: Final = b"Content-Length: 0\r\n\r\n"

# Pipelined calls that share a connection at most: as many as the pump decides in one turn.
_TOGETHER_MAX: Final = 16
# Calls share connections while the last of those that shared one is answered this fast: Kubernetes'
# objective for a call that changes an object.
_QUICK_SECONDS: Final = 1.0
# While they do, calls wait for one of so many connections instead of opening another: each costs
# milliseconds on both sides. A guess: a server that needs 10 ms for a call is kept busy.
_CONNECTIONS_FEW: Final = 32


class NoConnectionError(Exception):
    """No connection could be made; nothing was sent."""


class ShortCalls:
    """Connections to one server, each for one call at a time, or for pipelined calls of one turn.

    Pipelined calls that tasks make in the same turn of the loop are sent in one piece. That saves
    most of their cost, which is encrypting, and system calls.

    Parameters
    ----------
    access
        The server.
    tls
        The TLS context; None for plain HTTP.
    user_agent
        Sent with every call.
    connections_max
        Most connections at once; further calls wait.
    guard
        Asked when a call has its connection, right before it is sent; None lets every call through.
    """

    def __init__(
        self,
        access: ServerAccess,
        tls: ssl.SSLContext | None,
        *,
        user_agent: str,
        connections_max: int,
        guard: WriteGuard | None,
    ) -> None:
        parts = urlsplit(access.server)
        self._host = parts.hostname or ""
        self._port = parts.port or (443 if tls else 80)
        self._shown = without_user(access.server)  # in messages
        self._prefix = parts.path
        self._tls = tls
        self._tls_name = access.tls_server_name or None
        self._user: tuple[str, str] | None = None  # the header of a user in the address
        if parts.username:
            self._user = basic(unquote(parts.username), unquote(parts.password or ""))
        self._fixed = f"Host: {urlsplit(self._shown).netloc}\r\nUser-Agent: {user_agent}\r\n"
        self._max = connections_max
        self._guard = guard
        self._filling: _Connection | None = None  # sent at the end of this turn
        self._is_quick = True  # whether the last answers came soon; nothing else is known at first
        self._open: dict[_Connection | asyncio.Future[None], None] = {}
        """Connections, and places of connections that are being made."""
        self._idle: list[_Connection] = []
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._closed = False
        self._heads: tuple[Credential, str] | None = None

    async def request(self, call: Call, credential: Credential, seconds: float | None) -> Answer:
        """Send a call and read the whole answer.

        Parameters
        ----------
        seconds
            Time limit for the whole call, seconds of the loop; None for no limit.

        Raises
        ------
        NoConnectionError
            No connection could be made.
        AnswerTooLargeError
            The answer is longer than the call allows.
        NotLeadingError
            The guard refused the call.
        aiohttp.ClientError, OSError, TimeoutError
            The connection broke, the answer is no HTTP, or no answer came in time.
        """
        message = self._message(call, credential)
        connection = self._shared(call) or self._at_hand()
        if connection is None:
            loop = asyncio.get_running_loop()
            began = loop.time()
            async with asyncio.timeout(seconds):
                connection = await self._connection(call)
            if seconds is not None:
                seconds = max(0.0, seconds - (loop.time() - began))
        sent = connection.add(message, call, seconds)
        if connection is not self._filling:
            if call.pipelined and self._is_quick:
                self._filling = connection
                connection.soon(self._send_filled)
            else:
                self._send_waiting(connection)
        try:
            return await sent.answer
        except asyncio.CancelledError:
            connection.give_up(sent)
            raise

    def _send_filled(self, connection: _Connection) -> None:
        if self._filling is connection:
            self._filling = None
        self._send_waiting(connection)

    def _send_waiting(self, connection: _Connection) -> None:
        """Send the calls of a connection, if they still may go out."""
        try:
            if self._guard is not None:
                self._guard.check_write()
        except Exception as problem:
            connection.end_unsent(problem)
        else:
            connection.send()

    def close(self) -> None:
        """Close every connection; calls in flight end with an error."""
        self._closed = True
        for connection in self._open:
            if isinstance(connection, _Connection):
                connection.abort()
        self._idle.clear()

    # -- connections ---------------------------------------------------------------------------

    def _shared(self, call: Call) -> _Connection | None:
        """Return the connection that a call may share with others of this turn; None without."""
        filling = self._filling
        return filling if call.pipelined and filling is not None and filling.takes_more else None

    def _at_hand(self) -> _Connection | None:
        """Return an idle connection; None without one."""
        while self._idle:
            connection = self._idle.pop()
            if connection.is_usable(connection.now() - _IDLE_SECONDS_MAX):
                return connection
            connection.abort()
            del self._open[connection]
        return None

    async def _connection(self, call: Call) -> _Connection:
        """Return a connection to share, an idle or a new one; wait while too many are in use."""
        loop = asyncio.get_running_loop()
        while True:
            connection = self._shared(call) or self._at_hand()
            if connection is not None:
                return connection
            few = call.pipelined and self._is_quick
            if len(self._open) < (min(_CONNECTIONS_FEW, self._max) if few else self._max):
                break
            turn = loop.create_future()
            self._waiting.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self._wake()  # the turn came too late; it is the next one's
                raise
        place: asyncio.Future[None] = loop.create_future()
        self._open[place] = None
        try:
            connection = await self._connected(loop)
        except OSError as error:
            raise NoConnectionError from error
        else:
            self._open[connection] = None
            return connection
        finally:
            del self._open[place]
            if len(self._open) < self._max:
                self._wake()

    async def _connected(self, loop: asyncio.AbstractEventLoop) -> _Connection:
        """Connect to the first address that answers, as the session does."""
        found = await loop.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM)
        plain = await aiohappyeyeballs.start_connection(
            found, happy_eyeballs_delay=_NEXT_ADDRESS_SECONDS, interleave=1, loop=loop
        )
        try:
            _, connection = await loop.create_connection(
                lambda: _Connection(loop, self._shown, self._release),
                sock=plain,
                ssl=self._tls,
                server_hostname=(self._tls_name or self._host) if self._tls else None,
            )
        except BaseException:
            plain.close()
            raise
        return connection

    def _release(self, connection: _Connection) -> None:
        """Take back a connection whose calls have all ended."""
        self._is_quick = connection.was_quick
        if self._closed or not connection.is_reusable:
            connection.abort()
            del self._open[connection]
            self._wake()
            return
        now = connection.idle_since = connection.now()
        while self._idle and not self._idle[0].is_usable(now - _IDLE_SECONDS_MAX):
            oldest = self._idle.pop(0)
            oldest.abort()
            del self._open[oldest]
        self._idle.append(connection)
        self._wake()

    def _wake(self) -> None:
        """Give as many waiting calls a turn as may share a connection."""
        count = _TOGETHER_MAX if self._is_quick else 1
        while self._waiting and count:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                count -= 1

    # -- messages ------------------------------------------------------------------------------

    def _message(self, call: Call, credential: Credential) -> bytes:
        """Return a call as it is sent."""
        heads = self._heads
        if heads is None or heads[0] is not credential:
            headers = list(credential.headers)
            if self._user is not None and not any(name == self._user[0] for name, _ in headers):
                headers.append(self._user)
            heads = self._heads = credential, self._fixed + _lines(headers)
        body = call.whole_body
        head = f"{call.method} {self._prefix}{call.target} HTTP/1.1\r\nAccept: {call.accept}\r\n"
        if call.headers:
            head += _lines(call.headers)
        if call.body is None:
            return (head + heads[1]).encode() + _BODYLESS
        about = f"Content-Type: {call.content_type}\r\nContent-Length: {len(body)}\r\n\r\n"
        return (head + heads[1] + about).encode() + body


def _lines(headers: Sequence[tuple[str, str]]) -> str:
    """Return headers as they are sent.

    Raises
    ------
    ValueError
        A header has the end of a line in it, so that it would be two.
    """
    for name, value in headers:
        if any(end in name + value for end in "\r\n\0"):
            raise ValueError(f"the header {name!r} has more than one line")
    return "".join(f"{name}: {value}\r\n" for name, value in headers)


class _Sent:
    """A call, and the answer to come."""

    __slots__ = ("answer", "call", "ends_at", "message")

    def __init__(
        self, message: bytes, call: Call, answer: asyncio.Future[Answer], ends_at: float
    ) -> None:
        self.message = message
        self.call = call
        self.answer = answer
        self.ends_at = ends_at  # time of the loop; infinite without a limit


class _Connection(BaseProtocol):
    """One connection; it is reusable after whole answers to all of its calls.

    Parameters
    ----------
    server
        For messages.
    release
        Called when all calls have ended.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        server: str,
        release: Callable[[_Connection], None],
    ) -> None:
        super().__init__(loop)
        self._parser: Any = HttpResponseParser(self, loop, _BUFFER_BYTES, read_until_eof=True)
        self._server = server
        self._release = release
        # Calls without an answer, oldest first.
        self._calls: deque[_Sent] = deque()
        self._is_lent = False
        self._is_sent = False
        # Answers that have begun, in the order of their calls; only the last may be incomplete.
        self._arriving: deque[tuple[aiohttp.http.RawResponseMessage, aiohttp.StreamReader]] = (
            deque()
        )
        self._limit: asyncio.TimerHandle | None = None
        self._sent_at = 0.0
        self.was_quick = False
        self.is_reusable = False
        self.idle_since = 0.0

    def is_usable(self, idle_since_min: float) -> bool:
        """Whether an idle connection is still there, and not idle for too long."""
        return self.is_reusable and self.connected and self.idle_since >= idle_since_min

    @property
    def takes_more(self) -> bool:
        """Whether another call may share the connection, which is filled now."""
        return self._is_lent and not self._is_sent and len(self._calls) < _TOGETHER_MAX

    def now(self) -> float:
        """Return the loop's time, seconds."""
        return self._loop.time()

    def soon(self, act: Callable[[_Connection], None]) -> None:
        """Do something with this connection at the end of this turn of the loop."""
        self._loop.call_soon(act, self)

    def add(self, message: bytes, call: Call, seconds: float | None) -> _Sent:
        """Take in a call to be sent, with the time limit for its answer."""
        ends_at = inf if seconds is None else self._loop.time() + seconds
        if not self._is_lent:
            self._is_lent, self._is_sent = True, False
        sent = _Sent(message, call, self._loop.create_future(), ends_at)
        self._calls.append(sent)
        return sent

    def give_up(self, sent: _Sent) -> None:
        """Take in that nobody waits for the answer to a call any more."""
        if sent.answer.cancelled() and all(each.answer.done() for each in self._calls):
            self._end()  # nobody waits for what is under way

    def send(self) -> None:
        """Send the calls, without those that have been given up meanwhile."""
        wanted = deque(each for each in self._calls if not each.answer.done())
        if len(wanted) < len(self._calls):
            self._calls = wanted
        if not wanted:
            return
        transport = self.transport
        if transport is None:
            self._broke(ConnectionResetError("Server disconnected"))
            return
        self.is_reusable, self._is_sent = False, True
        self._sent_at = self._loop.time()
        transport.write(b"".join([each.message for each in wanted]))
        self._limit_time(min(each.ends_at for each in wanted))

    def end_unsent(self, problem: Exception) -> None:
        """End the calls unsent."""
        calls, self._calls = self._calls, deque()
        for each in calls:
            if not each.answer.done():
                each.answer.set_exception(problem)
        self._give_back()

    def _give_back(self) -> None:
        if self._is_lent:
            self._is_lent = False
            self._release(self)

    def _limit_time(self, ends_at: float) -> None:
        """See to it that a look at the time limits comes soon enough."""
        if ends_at == inf or (self._limit is not None and self._limit.when() <= ends_at):
            return
        if self._limit is not None:
            self._limit.cancel()
        self._limit = self._loop.call_at(ends_at, self._look)

    def _look(self) -> None:
        """Give up what is too late. One timer serves many calls: each would cost more than that."""
        self._limit = None
        ends_at = min((each.ends_at for each in self._calls), default=inf)
        if ends_at <= self._loop.time():
            self._broke(TimeoutError())
        else:
            self._limit_time(ends_at)

    def abort(self) -> None:
        """Drop the connection."""
        self.is_reusable = False
        if self.transport is not None:
            self.transport.abort()

    # -- called by the library -----------------------------------------------------------------

    # An answer is taken in whole and has a limit of its own, so reading never pauses.

    def pause_reading(self) -> None:
        """Go on reading."""

    def resume_reading(self, resume_parser: bool = True) -> None:
        """Go on reading."""

    # -- called by the loop --------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        """Take in a part of the answers."""
        if not self._is_lent or not self._is_sent:
            # A message that answers no call: 408 of a server that ends, for example.
            self._broke(ConnectionResetError("Server disconnected"))
            return
        try:
            messages, _, _ = self._parser.feed_data(data)
        except HttpProcessingError as error:
            self._broke(aiohttp.ClientError(f"the answer is no HTTP: {error.message}"))
            return
        for found, payload in messages:
            if 100 <= found.code < 200:
                continue  # an interim answer
            self._arriving.append((found, payload))
        self._take_in()

    def eof_received(self) -> None:
        """Take in the end of an answer that ends with its connection."""
        if self._is_lent and self._is_sent:
            try:
                self._parser.feed_eof()
            except (HttpProcessingError, aiohttp.ClientError) as error:
                self._broke(aiohttp.ClientPayloadError(str(error)))
                return
            self._take_in()

    def connection_lost(self, exc: BaseException | None) -> None:
        """End the calls under way."""
        super().connection_lost(exc)
        self.is_reusable = False
        self._broke(
            exc if isinstance(exc, OSError) else ConnectionResetError("Server disconnected")
        )
        if self._limit is not None:
            self._limit.cancel()

    def _take_in(self) -> None:
        """Hand out the answers that are there; release the connection after the last one."""
        while self._arriving:
            message, payload = self._arriving[0]
            sent = self._calls[0]
            call = sent.call
            if payload.total_bytes > call.answer_bytes_max:
                self._broke(
                    AnswerTooLargeError(
                        f"{call.method} {self._server}{call.path}: the answer is longer "
                        f"than {call.answer_bytes_max} bytes"
                    )
                )
                return
            if not payload.is_eof():
                return
            self._arriving.popleft()
            self._calls.popleft()
            answer = Answer(message.code, message.headers, payload.read_nowait())
            self.was_quick = self._loop.time() - self._sent_at < _QUICK_SECONDS
            if not sent.answer.done():
                sent.answer.set_result(answer)
            if message.should_close or (self._arriving and not self._calls):
                self._broke(ConnectionResetError("Server disconnected"))
                return
            if not self._calls:
                self.is_reusable = True
                self._give_back()

    def _broke(self, error: Exception) -> None:
        """End the calls under way with an error."""
        self.was_quick = False
        for each in self._calls:
            if not each.answer.done():
                each.answer.set_exception(error)
        self._end()

    def _end(self) -> None:
        """Drop the connection with all that is under way."""
        self._calls.clear()
        self._arriving.clear()
        self.abort()
        self._give_back()
