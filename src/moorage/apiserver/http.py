"""HTTPS for the server: turns connections into `Request`s and `Reply`s into bytes.

The only module of the room that imports an HTTP library. The server itself ends watch streams on
shutdown, because clients would keep them open.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from functools import cache
from http import HTTPStatus
from http.client import responses
from typing import Any

import msgspec

from moorage.apiserver.auth import Authenticator, certificate_user
from moorage.apiserver.bodies import BODY_LIMIT_BYTES
from moorage.apiserver.fairness import Fairness
from moorage.apiserver.rbac.impersonation import GROUP_HEADER, joined
from moorage.apiserver.replies import status_reply
from moorage.apiserver.requests import Reply, Request, readable
from moorage.apiserver.server import ApiServer
from moorage.apiserver.status import StatusError, timed_out, unsupported_encoding
from moorage.base.aio import real_seconds, sleep
from moorage.base.authorities import read_when_used
from moorage.base.errors import UsageError
from moorage.base.malformed_calls import log_malformed_calls_shortly

with read_when_used():
    from aiohttp import web
    from aiohttp.helpers import rfc822_formatted_time
    from aiohttp.http import SERVER_SOFTWARE, HttpVersion11

# How long calls under way may take to finish on shutdown. Streams have ended by then, except where
# the client does not read. The library waits this long twice, before and after cancelling.
_SHUTDOWN_SECONDS = 0.3


# How long a connection without a call is kept: the library's default for a server without a proxy.
_IDLE_SECONDS = 75.0
# Time limit for the first headers of a connection, and for a whole call; kube-apiserver's
# ReadHeaderTimeout and --request-timeout. Streams are exempt.
_HEADERS_SECONDS = 32.0
_CALL_SECONDS = 60.0
# How long the rest of a body is read and discarded, so that the client sees the answer.
_LINGERING_SECONDS = 2.0
# Answers are sent in pieces of this size (a guess: a quarter of a millisecond to encrypt).
_PIECE_BYTES = 512 * 1024
# Prefixes of headers that identify the caller: two different values must stay different.
_IDENTITIES = ("authorization", "impersonate-")


class _TimeLimit:
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

    def begin(self) -> None:
        """Start the time of a call: the current task."""
        loop = self._loop
        self._call, self.passed = asyncio.current_task(loop), False
        self._ends_at = loop.time() + real_seconds(_CALL_SECONDS)
        if self._timer is None:
            self._timer = loop.call_at(self._ends_at, self._look)

    def end(self) -> None:
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


class _Connection(web.RequestHandler):
    """A connection that is closed when its first headers do not arrive."""

    __slots__ = ("_waiting", "certified", "limit")

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the time limit of the headers; read the certificate, which stays the same."""
        super().connection_made(transport)
        loop = asyncio.get_running_loop()
        self._waiting = loop.call_later(real_seconds(_HEADERS_SECONDS), self._end)
        self.limit = _TimeLimit(loop)
        self.certified = certificate_user(transport.get_extra_info("peercert"))

    def connection_lost(self, exc: BaseException | None) -> None:
        """Stop the time limits."""
        self._waiting.cancel()
        self.limit.close()
        super().connection_lost(exc)

    def headers_have_come(self) -> None:
        """Note the begin of a call; from then on the library limits idle times."""
        self._waiting.cancel()

    def _end(self) -> None:
        if self.transport is not None:
            self.transport.abort()


class _Listener(web.Server):
    """Makes the protocol object of each new connection."""

    def __call__(self) -> web.RequestHandler:
        return _Connection(self, loop=self._loop, **self._kwargs)


class HttpServer:
    """Serves an `ApiServer` over HTTPS.

    Parameters
    ----------
    server
        Answers the calls.
    authenticator
        Authenticates the caller.
    tls
        Context of the listening socket; None serves plain HTTP (tests only).
    """

    def __init__(
        self, server: ApiServer, authenticator: Authenticator, tls: ssl.SSLContext | None
    ) -> None:
        self._server = server
        self._authenticator = authenticator
        self._tls = tls
        self._fairness = Fairness()
        self._runner: web.ServerRunner | None = None
        self.port = 0

    async def start(self, host: str = "127.0.0.1", port: int = 0) -> int:
        """Listen; return the port.

        Parameters
        ----------
        host
            Address to listen on. The default is reachable from this machine only.
        port
            0 takes any free one.

        Raises
        ------
        UsageError
            The address cannot be listened on.
        """
        log_malformed_calls_shortly()
        # Cancelled when the client disconnects, or a quiet watch would outlive its client by an
        # hour.
        listener = _Listener(
            self._answer,
            handler_cancellation=True,
            access_log=None,
            keepalive_timeout=real_seconds(_IDLE_SECONDS),
            lingering_time=real_seconds(_LINGERING_SECONDS),
            auto_decompress=False,  # an encoding is refused before anything is inflated
        )
        runner = web.ServerRunner(listener, shutdown_timeout=_SHUTDOWN_SECONDS)
        await runner.setup()
        site = web.TCPSite(runner, host, port, ssl_context=self._tls)
        try:
            await site.start()
        except OSError as error:
            await runner.cleanup()
            raise UsageError(
                f"cannot listen on {host}:{port}: {error.strerror or error}; "
                "choose another port, or 0 for any free one"
            ) from error
        self._runner = runner
        self._server.use_thread()
        self.port = int(runner.addresses[0][1])
        return self.port

    async def stop(self) -> None:
        """End all streams, let other calls finish for a moment, close every connection."""
        self._server.close()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        connection = request.protocol
        assert isinstance(connection, _Connection), "made by _Listener"
        connection.headers_have_come()
        headers = _headers(request)
        call = Request(
            method=request.method,
            path=readable(request.path),
            query=_query(request),
            headers=headers,
            user=connection.certified or self._authenticator.user(headers, None),
        )
        try:
            reply = await self._in_time(connection.limit, request, call)
        except StatusError as error:
            reply = status_reply(error)
        if isinstance(reply.body, bytes):
            return await _whole(request, reply, reply.body)
        return await _stream(request, reply, reply.body)

    async def _in_time(self, limit: _TimeLimit, request: web.BaseRequest, call: Request) -> Reply:
        """Have a call answered within the time limit.

        Raises
        ------
        StatusError
            429: too many calls are under way. 504: the time limit has passed.
        """
        limit.begin()
        try:
            with self._fairness.under_way(call):
                return await self._reply(request, call)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            # The client may have disconnected at the same moment.
            if not limit.passed or task is None or task.uncancel():
                raise
            raise timed_out() from None
        except TimeoutError:
            raise timed_out() from None
        finally:
            limit.end()

    async def _reply(self, request: web.BaseRequest, call: Request) -> Reply:
        """Read the body of an authenticated caller, and have the call answered.

        The body of an unknown caller is not read: neither its length nor its encoding.
        """
        if call.user is not None and request.body_exists:
            encoding = call.headers.get("content-encoding", "")
            if encoding.lower() not in ("", "identity"):
                call = msgspec.structs.replace(call, fault=unsupported_encoding(encoding))
            else:
                call = msgspec.structs.replace(call, body=await _read_body(request))
        await self._fairness.turn(call)
        return await self._server.handle(call)


async def _read_body(request: web.BaseRequest) -> bytes:
    """Read a body up to slightly more than the limit, so the server can refuse it as too large."""
    if not request.body_exists:
        return b""
    content = request.content
    if content.is_eof() and content.total_bytes <= BODY_LIMIT_BYTES:
        # Small bodies have arrived with their headers.
        return content.read_nowait()
    body = bytearray()
    async for chunk in content.iter_any():
        body += chunk
        if len(body) > BODY_LIMIT_BYTES:
            break
    return bytes(body)


def _headers(request: web.BaseRequest) -> dict[str, str]:
    """Return the headers by lower-case name; headers that identify the caller stay as sent."""
    headers = {}
    for name, value in request.headers.items():
        key = name.lower()
        kept = value.isascii() or key.startswith(_IDENTITIES)
        headers[key] = value if kept else readable(value)
    if GROUP_HEADER in headers:
        headers[GROUP_HEADER] = joined(request.headers.getall(GROUP_HEADER))
    return headers


def _query(request: web.BaseRequest) -> tuple[tuple[str, str], ...]:
    if not request.rel_url.raw_query_string:
        return ()
    return tuple((readable(name), readable(text)) for name, text in request.query.items())


class _Answer(web.StreamResponse):
    """A whole answer to a usual call, sent at once; the same bytes as `web.Response` sends.

    `web.Response` prepares for compression, cookies and bodies that come in pieces, which takes
    longer than everything here.
    """

    def __init__(self, reply: Reply, body: bytes) -> None:
        super().__init__(status=reply.status)
        self._head = f"{_first_lines(reply.status, reply.content_type)}{len(body)}\r\n"
        self._whole = body

    @property
    def keep_alive(self) -> bool:
        """Whether the connection stays open."""
        return True

    async def prepare(self, request: web.BaseRequest) -> None:
        """Send the answer."""
        transport = request.transport
        if transport is None or transport.is_closing():
            raise ConnectionResetError("the client has disconnected")
        transport.write((self._head + _last_lines(rfc822_formatted_time())).encode() + self._whole)
        await request.writer.drain()

    async def write_eof(self, data: bytes = b"") -> None:
        """Do nothing: the answer has been sent."""

    @staticmethod
    def is_for(request: web.BaseRequest, reply: Reply) -> bool:
        """Whether an answer is a usual one: other answers have other headers, or no body."""
        return (
            not reply.headers
            and reply.status >= HTTPStatus.OK
            and reply.status not in (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED)
            and request.keep_alive
            and request.version == HttpVersion11
            and request.method != "HEAD"
        )


@cache
def _first_lines(status: int, content_type: str) -> str:
    reason = responses.get(status, "")
    return f"HTTP/1.1 {status} {reason}\r\nContent-Type: {content_type}\r\nContent-Length: "


def _last_lines(date: str) -> str:
    return f"Date: {date}\r\nServer: {SERVER_SOFTWARE}\r\n\r\n"


async def _whole(request: web.BaseRequest, reply: Reply, body: bytes) -> web.StreamResponse:
    if len(body) <= _PIECE_BYTES and _Answer.is_for(request, reply):
        return _Answer(reply, body)
    # Given as a header: the argument of this name does not accept a charset.
    headers = {"Content-Type": reply.content_type}
    if len(body) <= _PIECE_BYTES:
        response: web.StreamResponse = web.Response(status=reply.status, body=body, headers=headers)
        _add_headers(response, reply)
        return response
    # Encrypting a long list at once would keep all other calls waiting.
    response = web.StreamResponse(status=reply.status, headers=headers)
    _add_headers(response, reply)
    response.content_length = len(body)
    with contextlib.suppress(ConnectionError):
        await response.prepare(request)
        for start in range(0, len(body), _PIECE_BYTES):
            await response.write(body[start : start + _PIECE_BYTES])
            await sleep(0)
        await response.write_eof()
    return response


def _add_headers(response: web.StreamResponse, reply: Reply) -> None:
    for name, value in reply.headers:
        response.headers.add(name, value)


async def _stream(
    request: web.BaseRequest, reply: Reply, chunks: AsyncIterator[bytes]
) -> web.StreamResponse:
    response = web.StreamResponse(status=reply.status)
    response.headers["Content-Type"] = reply.content_type
    response.enable_chunked_encoding()
    try:
        await response.prepare(request)
        async for chunk in chunks:
            await response.write(chunk)
        await response.write_eof()
    except ConnectionError:
        # The client has disconnected; the error has no receiver.
        pass
    finally:
        close = getattr(chunks, "aclose", None)
        if close is not None:
            await close()
    return response
