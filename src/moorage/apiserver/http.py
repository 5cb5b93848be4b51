"""HTTPS for the server: turns connections into `Request`s and `Reply`s into bytes.

The only module of the room that knows an HTTP library. Watch streams are ended by the server
itself on shutdown; waiting for clients to hang up would take forever.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator

from moorage.apiserver.auth import Authenticator
from moorage.apiserver.bodies import BODY_LIMIT_BYTES
from moorage.apiserver.rbac.impersonation import GROUP_HEADER, joined
from moorage.apiserver.requests import Reply, Request, User
from moorage.apiserver.server import ApiServer
from moorage.base.aio import real_seconds
from moorage.base.authorities import read_when_used
from moorage.base.errors import UsageError

with read_when_used():
    from aiohttp import web

# How long calls under way may take to finish on shutdown; streams have ended by then, but for
# those whose clients do not read. The library waits this long twice, before and after cancelling.
_SHUTDOWN_SECONDS = 0.3


# How long a connection without a call is kept, the library's default for servers behind none.
_IDLE_SECONDS = 75.0


class HttpServer:
    """Serves an `ApiServer` over HTTPS.

    Parameters
    ----------
    server
        Answers the calls.
    authenticator
        Tells who calls.
    tls
        Context of the listening socket; None serves plain HTTP (tests only).
    """

    def __init__(
        self, server: ApiServer, authenticator: Authenticator, tls: ssl.SSLContext | None
    ) -> None:
        self._server = server
        self._authenticator = authenticator
        self._tls = tls
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
        # Cancelled when the client hangs up, or a quiet watch would outlive its reader by an hour.
        listener = web.Server(
            self._answer,
            handler_cancellation=True,
            access_log=None,
            keepalive_timeout=real_seconds(_IDLE_SECONDS),
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
        self.port = int(runner.addresses[0][1])
        return self.port

    async def stop(self) -> None:
        """End all streams, let other calls finish for a moment, close every connection."""
        self._server.close()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        headers = {name.lower(): value for name, value in request.headers.items()}
        if GROUP_HEADER in headers:
            headers[GROUP_HEADER] = joined(request.headers.getall(GROUP_HEADER))
        call = Request(
            method=request.method,
            path=request.path,
            query=tuple(request.query.items()),
            headers=headers,
            body=await _read_body(request),
            user=self._user(request, headers),
        )
        reply = await self._server.handle(call)
        if isinstance(reply.body, bytes):
            return _whole(reply, reply.body)
        return await _stream(request, reply, reply.body)

    def _user(self, request: web.BaseRequest, headers: dict[str, str]) -> User | None:
        transport = request.transport
        certificate = transport.get_extra_info("peercert") if transport is not None else None
        return self._authenticator.user(headers, certificate)


async def _read_body(request: web.BaseRequest) -> bytes:
    """Read a body, up to a little more than is allowed: the server says what is too large."""
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


def _whole(reply: Reply, body: bytes) -> web.Response:
    # Given as a header: the argument of this name does not take a charset.
    headers = {"Content-Type": reply.content_type}
    response = web.Response(status=reply.status, body=body, headers=headers)
    for name, value in reply.headers:
        response.headers.add(name, value)
    return response


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
        # The client has gone; nobody is left to tell.
        pass
    finally:
        close = getattr(chunks, "aclose", None)
        if close is not None:
            await close()
    return response
