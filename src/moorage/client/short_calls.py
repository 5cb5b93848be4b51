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
from collections.abc import Sequence
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


class NoConnectionError(Exception):
    """No connection could be made; nothing was sent."""


class ShortCalls:
    """Connections to one server, each for one call at a time.

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
        connection = self._at_hand()
        if connection is None:
            loop = asyncio.get_running_loop()
            began = loop.time()
            async with asyncio.timeout(seconds):
                connection = await self._connection()
            if seconds is not None:
                seconds = max(0.0, seconds - (loop.time() - began))
        try:
            if self._guard is not None:
                self._guard.before_method(call.method)
            return await connection.exchange(message, call, self._shown, seconds)
        finally:
            self._release(connection)

    def close(self) -> None:
        """Close every connection; calls in flight end with an error."""
        self._closed = True
        for connection in self._open:
            if isinstance(connection, _Connection):
                connection.abort()
        self._idle.clear()

    # -- connections ---------------------------------------------------------------------------

    def _at_hand(self) -> _Connection | None:
        """Return an idle connection; None without one."""
        while self._idle:
            connection = self._idle.pop()
            if connection.is_usable(connection.now() - _IDLE_SECONDS_MAX):
                return connection
            connection.abort()
            del self._open[connection]
        return None

    async def _connection(self) -> _Connection:
        """Return an idle connection, or a new one; wait while too many are in use."""
        loop = asyncio.get_running_loop()
        while True:
            connection = self._at_hand()
            if connection is not None:
                return connection
            if len(self._open) < self._max:
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
                lambda: _Connection(loop),
                sock=plain,
                ssl=self._tls,
                server_hostname=(self._tls_name or self._host) if self._tls else None,
            )
        except BaseException:
            plain.close()
            raise
        return connection

    def _release(self, connection: _Connection) -> None:
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
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return

    # -- messages ------------------------------------------------------------------------------

    def _message(self, call: Call, credential: Credential) -> bytes:
        """Return a call as it is sent."""
        kept = self._heads
        if kept is None or kept[0] is not credential:
            headers = list(credential.headers)
            if self._user is not None and not any(name == self._user[0] for name, _ in headers):
                headers.append(self._user)
            kept = self._heads = credential, self._fixed + _lines(headers)
        body = call.whole_body
        head = f"{call.method} {self._prefix}{call.target} HTTP/1.1\r\nAccept: {call.accept}\r\n"
        if call.headers:
            head += _lines(call.headers)
        if call.body is None:
            return (head + kept[1]).encode() + _BODYLESS
        about = f"Content-Type: {call.content_type}\r\nContent-Length: {len(body)}\r\n\r\n"
        return (head + kept[1] + about).encode() + body


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


class _Connection(BaseProtocol):
    """One connection; it is reusable after a whole answer."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self._parser: Any = HttpResponseParser(self, loop, _BUFFER_BYTES, read_until_eof=True)
        self._answer: asyncio.Future[Answer] | None = None
        self._call: Call | None = None
        self._server = ""
        self._message: aiohttp.http.RawResponseMessage | None = None
        self._payload: aiohttp.StreamReader | None = None
        self.is_reusable = False
        self.idle_since = 0.0

    def is_usable(self, idle_since_min: float) -> bool:
        """Whether an idle connection is still there, and not idle for too long."""
        return self.is_reusable and self.connected and self.idle_since >= idle_since_min

    def now(self) -> float:
        """Return the loop's time, seconds."""
        return self._loop.time()

    async def exchange(
        self, message: bytes, call: Call, server: str, seconds: float | None
    ) -> Answer:
        """Send a message and wait for its answer, at most so many seconds."""
        transport = self.transport
        if transport is None:
            raise ConnectionResetError("Server disconnected")
        self.is_reusable = False
        self._call, self._server = call, server
        self._answer = self._loop.create_future()
        transport.write(message)
        limit = (
            None if seconds is None else self._loop.call_later(seconds, self._broke, TimeoutError())
        )
        try:
            return await self._answer
        finally:
            self._answer = None
            if limit is not None:
                limit.cancel()

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
        """Take in a part of the answer."""
        if self._answer is None or self._answer.done():
            self.abort()  # a message that answers no call: 408 of a server that ends, for example
            return
        try:
            messages, _, _ = self._parser.feed_data(data)
        except HttpProcessingError as error:
            self._broke(aiohttp.ClientError(f"the answer is no HTTP: {error.message}"))
            return
        for found, payload in messages:
            if 100 <= found.code < 200:
                continue  # an interim answer
            self._message, self._payload = found, payload
        self._take_in()

    def eof_received(self) -> None:
        """Take in the end of an answer that ends with its connection."""
        if self._answer is not None and not self._answer.done():
            try:
                self._parser.feed_eof()
            except (HttpProcessingError, aiohttp.ClientError) as error:
                self._broke(aiohttp.ClientPayloadError(str(error)))
                return
            self._take_in()

    def connection_lost(self, exc: BaseException | None) -> None:
        """End the call under way."""
        super().connection_lost(exc)
        self.is_reusable = False
        self._broke(
            exc if isinstance(exc, OSError) else ConnectionResetError("Server disconnected")
        )

    def _take_in(self) -> None:
        message, payload = self._message, self._payload
        if message is None or payload is None:
            return
        assert self._call is not None, "an answer is for a call"
        if payload.total_bytes > self._call.answer_bytes_max:
            self._broke(
                AnswerTooLargeError(
                    f"{self._call.method} {self._server}{self._call.path}: the answer is longer "
                    f"than {self._call.answer_bytes_max} bytes"
                )
            )
            return
        if not payload.is_eof():
            return
        headers = {name.lower(): value for name, value in message.headers.items()}
        answer = Answer(message.code, headers, payload.read_nowait())
        self._message = self._payload = None
        self.is_reusable = not message.should_close
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(answer)

    def _broke(self, error: Exception) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(error)
        if self.transport is not None:
            self.transport.abort()
