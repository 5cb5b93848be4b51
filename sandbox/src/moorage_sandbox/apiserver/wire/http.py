"""HTTPS for the server: turns connections into `Request`s and `Reply`s into bytes.

Only this module and `connection` import an HTTP library. The server itself ends watch streams on
shutdown, because clients would keep them open.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Mapping

import msgspec

from moorage.api.bounds import BODY_LIMIT_BYTES
from moorage.base.aio import real_seconds, sleep
from moorage.base.authorities import read_when_used
from moorage.base.errors import UsageError
from moorage.base.malformed_calls import log_malformed_calls_shortly
from moorage.kinds.status import StatusError, timed_out, unsupported_encoding
from moorage_sandbox.apiserver.authentication.credentials import Authenticator
from moorage_sandbox.apiserver.server import ApiServer
from moorage_sandbox.apiserver.wire.connection import (
    PIECE_BYTES,
    Connection,
    Listener,
    TimeLimit,
    headers_of,
    is_usual,
    whole_answer,
)
from moorage_sandbox.apiserver.wire.fairness import Fairness
from moorage_sandbox.apiserver.wire.render import status_reply
from moorage_sandbox.apiserver.wire.requests import (
    Reply,
    Request,
    User,
    readable,
    time_limit_seconds,
)

with read_when_used():
    from aiohttp import web
    from aiohttp.http import HttpVersion11

# How long calls under way may take to finish on shutdown. Streams have ended by then, except where
# the client does not read. The library waits this long twice, before and after cancelling.
_SHUTDOWN_SECONDS = 0.3
# How long a connection without a call is kept: the library's default for a server without a proxy.
_IDLE_SECONDS = 75.0
# How long the rest of a body is read and discarded, so that the client sees the answer.
_LINGERING_SECONDS = 2.0


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
        listener = Listener(
            self,
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
        assert isinstance(connection, Connection), "made by Listener"
        connection.headers_have_come()
        call, reply = connection.take_begun() or (
            self._call_without_body(connection, request),
            None,
        )
        if reply is None:
            try:
                reply = await self._in_time(connection.limit, request, call)
            except StatusError as error:
                reply = status_reply(error)
        if isinstance(reply.body, bytes):
            return await _whole(request, reply, reply.body)
        return await _stream(request, reply, reply.body)

    def _call_without_body(self, connection: Connection, request: web.BaseRequest) -> Request:
        """Return a call without its body."""
        headers = headers_of(request.headers)
        return Request(
            method=request.method,
            path=readable(request.path),
            query=_query(request),
            headers=headers,
            user=connection.certified or self.user_of(headers),
        )

    def user_of(self, headers: Mapping[str, str]) -> User | None:
        """Return the user that the headers of a call tell; None without valid credentials."""
        return self._authenticator.user(headers, None)

    def turn_at_once(self, call: Request) -> asyncio.Future[None] | None:
        """Return the turn that a call has to wait for; None for a call that has its turn now."""
        return self._fairness.turn_at_once(call)

    def at_once(self, call: Request) -> Reply | None:
        """Answer a call that needs no waiting; None for a call that may have to wait."""
        if not self._server.answers_at_once(call):
            return None
        try:
            with self._fairness.under_way(call):
                return self._server.answer_at_once(call)
        except StatusError as error:
            return status_reply(error)

    async def _in_time(self, limit: TimeLimit, request: web.BaseRequest, call: Request) -> Reply:
        """Have a call answered within the time limit.

        Raises
        ------
        StatusError
            429: too many calls are under way. 504: the time limit has passed.
        """
        limit.start_time(time_limit_seconds(call.query))
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
            limit.stop_time()

    async def _reply(self, request: web.BaseRequest, call: Request) -> Reply:
        """Read the body of an authenticated caller, and have the call answered.

        The body of an unknown caller is not read: neither its length nor its encoding.
        """
        if call.user is not None and request.body_exists and not call.body:
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


def _query(request: web.BaseRequest) -> tuple[tuple[str, str], ...]:
    if not request.rel_url.raw_query_string:
        return ()
    return tuple((readable(name), readable(text)) for name, text in request.query.items())


class _Answer(web.StreamResponse):
    """A usual answer, sent at once."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(status=reply.status)
        self._reply = reply

    @property
    def keep_alive(self) -> bool:
        """Whether the connection stays open."""
        return True

    async def prepare(self, request: web.BaseRequest) -> None:
        """Send the answer."""
        transport = request.transport
        if transport is None or transport.is_closing():
            raise ConnectionResetError("the client has disconnected")
        transport.write(whole_answer(self._reply))
        await request.writer.drain()

    async def write_eof(self, data: bytes = b"") -> None:
        """Do nothing: the answer has been sent."""

    @staticmethod
    def is_for(request: web.BaseRequest, reply: Reply) -> bool:
        """Whether an answer is a usual one to a usual call."""
        return (
            is_usual(reply)
            and request.keep_alive
            and request.version == HttpVersion11
            and request.method != "HEAD"
        )


async def _whole(request: web.BaseRequest, reply: Reply, body: bytes) -> web.StreamResponse:
    if _Answer.is_for(request, reply):
        return _Answer(reply)
    # Given as a header: the argument of this name does not accept a charset.
    headers = {"Content-Type": reply.content_type}
    if len(body) <= PIECE_BYTES:
        response: web.StreamResponse = web.Response(status=reply.status, body=body, headers=headers)
        _add_headers(response, reply)
        return response
    # Encrypting a long list at once would keep all other calls waiting.
    response = web.StreamResponse(status=reply.status, headers=headers)
    _add_headers(response, reply)
    response.content_length = len(body)
    with contextlib.suppress(ConnectionError):
        await response.prepare(request)
        for start in range(0, len(body), PIECE_BYTES):
            await response.write(body[start : start + PIECE_BYTES])
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
