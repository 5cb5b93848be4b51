"""The transport that speaks HTTP: pooled connections, TLS, credentials, the server's Retry-After.

``sandbox``, ``service`` and ``cli`` make one for each server; everything above sees only the
`Transport` protocol. Responses of any status are answers here; verbs decide what is an error.

Notes
-----
Retries follow kubernetes v1.36 client-go rest/with_retry.go: 429 and 5xx that carry
``Retry-After`` up to ten times whatever the verb, a connection reset only for GET.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import os
import ssl
import tempfile
from collections.abc import AsyncIterator, Awaitable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import getproxies_environment, proxy_bypass_environment  # type: ignore[attr-defined]

from moorage.base import aio
from moorage.base.authorities import client_context, read_when_used
from moorage.base.clock import Clock
from moorage.base.errors import (
    AnswerTooLargeError,
    KubeconfigError,
    RefusedError,
    TransportError,
)
from moorage.client.auth import Credential, ServerAccess, without_user
from moorage.client.guard import READS, WriteGuard
from moorage.client.rate_limit import RateLimitedTransport
from moorage.client.short_calls import NoConnectionError, ShortCalls
from moorage.client.status import error_from_answer, retry_after_seconds
from moorage.client.transport import (
    Answer,
    Call,
    CallListener,
    LineSplitter,
    LineStream,
    Transport,
)

with read_when_used():
    import aiohttp
    import yarl

_log = logging.getLogger(__name__)

_RETRIES_MAX = 10
_BURST = 100  # kube-scheduler's clientConnection.burst
_RESET_PAUSE_SECONDS = 1.0
_CONNECT_SECONDS_MAX = 30.0  # client-go's dialer
_STREAM_BUFFER_BYTES = 2**16  # aiohttp's own: a stream may be endless, and its reader slow
_CONNECTIONS_MAX = 256  # guess: above what the scheduler has in flight, below a server's patience


def open_transport(
    access: ServerAccess,
    *,
    clock: Clock,
    qps: float | None = None,
    burst: int | None = None,
    user_agent: str = "moorage",
    guard: WriteGuard | None = None,
    listener: CallListener | None = None,
) -> Transport:
    """Return a transport to a server, limited as ``clientConnection`` of a configuration asks.

    Parameters
    ----------
    qps
        Calls per second; None, 0 or less means no limit.
    burst
        Calls at once above `qps`; None means 100, kube-scheduler's default.
    guard
        Asked right before each write is sent; None lets every write through.
    listener
        Takes reports of calls sent again, and of calls held back.
    """
    transport = HttpTransport(access, user_agent=user_agent, guard=guard, listener=listener)
    if qps is None or qps <= 0:
        return transport
    return RateLimitedTransport(
        transport, qps=qps, burst=_BURST if burst is None else burst, clock=clock, listener=listener
    )


class HttpTransport:
    """Carries calls over HTTP/1.1 to one server.

    Parameters
    ----------
    access
        Server, trust and credentials.
    user_agent
        Sent with every call.
    connections_max
        Most connections open at once for reads, streams included, and as many for writes; further
        calls wait.
    guard
        Asked right before each write is sent, repeated ones too; None lets every write through.
    listener
        Takes reports of calls sent again.
    """

    def __init__(
        self,
        access: ServerAccess,
        *,
        user_agent: str = "moorage",
        connections_max: int = _CONNECTIONS_MAX,
        guard: WriteGuard | None = None,
        listener: CallListener | None = None,
    ) -> None:
        self._guard = guard
        self._listener = listener
        self._access = access
        self._shown = without_user(access.server)
        self._user_agent = user_agent
        self._connections_max = connections_max
        self._proxy = access.proxy_url or _environment_proxy(access.server)
        self._lane: _Lane | None = None
        self._retired: list[_Lane] = []
        self._closed = False

    async def request(self, call: Call) -> Answer:
        """Send a call and read the whole answer, obeying ``Retry-After``."""
        renewed = False
        for retry in range(_RETRIES_MAX + 1):
            last = retry == _RETRIES_MAX
            try:
                answer = await self._request_once(call)
            except _ResetError:
                if call.method != "GET" or last:
                    raise
                await self._before_retry(call, None, _RESET_PAUSE_SECONDS)
                continue
            if answer.status == 401 and not renewed:
                renewed = True
                if self._access.credentials.reject():
                    continue
            retriable = answer.status == 429 or answer.status >= 500
            pause = retry_after_seconds(answer.headers) if retriable else None
            if last or pause is None:
                return answer
            await self._before_retry(call, answer.status, pause)
        raise AssertionError("the last try returned or raised")

    def stream(self, call: Call) -> AbstractAsyncContextManager[LineStream]:
        """Send a call and read its answer line by line inside the context."""
        return self._stream(call)

    @asynccontextmanager
    async def websocket(
        self, call: Call, protocol: str
    ) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
        """Open a WebSocket inside the context.

        Parameters
        ----------
        protocol
            The subprotocol that both sides speak.

        Raises
        ------
        ApiError
            The server refuses.
        TransportError
            It cannot be reached.
        """
        async with self._lane_for_call() as lane:
            try:
                socket = await lane.session.ws_connect(
                    yarl.URL(self._access.server + call.target, encoded=True),
                    protocols=(protocol,),
                    headers=[("User-Agent", self._user_agent), *lane.credential.headers],
                    proxy=self._proxy or None,
                    server_hostname=self._access.tls_server_name or None,
                )
            except aiohttp.WSServerHandshakeError as error:
                raise error_from_answer(Answer(error.status, error.headers or {}, b"")) from error
            except _FAILURES as error:
                raise self.failure(call, error, seconds=None) from error
            try:
                yield socket
            finally:
                await socket.close()

    async def close(self) -> None:
        """Close every connection; calls in flight end with `TransportError`."""
        self._closed = True
        lanes = [*self._retired, *([self._lane] if self._lane else [])]
        self._retired, self._lane = [], None
        for lane in lanes:
            await lane.close()

    async def _before_retry(self, call: Call, code: int | None, pause_seconds: float) -> None:
        if self._listener is not None:
            self._listener.retried(call.method, code)
        await aio.sleep(pause_seconds)

    def _request_once(self, call: Call) -> Awaitable[Answer]:
        # Refused early, no connection need be made; the guard is asked once more before sending.
        if self._guard is not None:
            self._guard.before(call)
        if call.method in READS or self._proxy:
            return self._by_session(call)
        return self._write_once(call)

    async def _by_session(self, call: Call) -> Answer:
        async with self._lane_for_call() as lane:
            timeout = aiohttp.ClientTimeout(
                total=_real(call.timeout_seconds),
                sock_connect=_real(_CONNECT_SECONDS_MAX),
            )
            try:
                whole = call.answer_bytes_max
                async with self._open(lane, call, timeout, buffer_bytes=whole) as response:
                    body = await self._whole_body(call, response)
                    return Answer(response.status, response.headers, body)
            except _FAILURES as error:
                raise self.failure(call, error, seconds=call.timeout_seconds) from error

    async def _write_once(self, call: Call) -> Answer:
        lane = await self._present_lane()
        lane.users += 1
        try:
            return await lane.short.request(call, lane.credential, _real(call.timeout_seconds))
        except NoConnectionError:
            return await self._by_session(call)  # it says why, or finds that the server is back
        except _FAILURES as error:
            raise self.failure(call, error, seconds=call.timeout_seconds) from error
        finally:
            lane.users -= 1
            if self._retired:
                await self._close_retired()

    async def _whole_body(self, call: Call, response: aiohttp.ClientResponse) -> bytes:
        return b"".join([piece async for piece in self._pieces(call, response)])

    async def _pieces(self, call: Call, response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
        """Yield an answer's body as it arrives; an endless one cannot fill the memory.

        Raises
        ------
        AnswerTooLargeError
            The body is longer than the call allows.
        """
        size = 0
        async for piece in response.content.iter_any():
            size += len(piece)
            if size > call.answer_bytes_max:
                response.close()
                raise AnswerTooLargeError(
                    f"{call.method} {self._shown}{call.path}: the answer is longer than "
                    f"{call.answer_bytes_max} bytes"
                )
            yield piece

    @asynccontextmanager
    async def _stream(self, call: Call) -> AsyncIterator[LineStream]:
        async with self._lane_for_call() as lane:
            timeout = aiohttp.ClientTimeout(
                total=None,
                sock_connect=_real(_CONNECT_SECONDS_MAX),
                sock_read=_real(call.idle_seconds),
            )
            opening = self._open(lane, call, timeout, buffer_bytes=_STREAM_BUFFER_BYTES)
            try:
                async with asyncio.timeout(_real(call.timeout_seconds)):
                    response = await opening
            except _FAILURES as error:
                raise self.failure(call, error, seconds=call.timeout_seconds) from error
            if response.status == 401:
                self._access.credentials.reject()
            try:
                yield _HttpLines(self, call, response)
            finally:
                # A watch never ends by itself: the connection cannot be reused, drop it. Aborted,
                # for a farewell of TLS would outlast the loop of a process that ends.
                connection = response.connection
                if connection is not None and connection.transport is not None:
                    connection.transport.abort()
                response.close()

    def _open(
        self, lane: _Lane, call: Call, timeout: aiohttp.ClientTimeout, *, buffer_bytes: int
    ) -> aiohttp.client._RequestContextManager:
        """Send a call; reading pauses where more than twice the buffer waits to be read.

        A connection whose reading pauses may lose the end of an answer where the server closes it
        (uvloop over TLS). So reading of a whole answer never pauses.
        """
        headers = [("Accept", call.accept), ("User-Agent", self._user_agent)]
        if call.body is not None:
            headers.append(("Content-Type", call.content_type))
        headers.extend(call.headers)
        headers.extend(lane.credential.headers)
        return lane.session.request(
            call.method,
            yarl.URL(self._access.server + call.target, encoded=True),
            data=_Pieces(call.body) if isinstance(call.body, tuple) else call.body,
            headers=headers,
            timeout=timeout,
            allow_redirects=False,
            proxy=self._proxy or None,
            server_hostname=self._access.tls_server_name or None,
            read_bufsize=buffer_bytes,
        )

    @asynccontextmanager
    async def _lane_for_call(self) -> AsyncIterator[_Lane]:
        """Lend the present credential's connections."""
        lane = await self._present_lane()
        lane.users += 1
        try:
            yield lane
        finally:
            lane.users -= 1
            await self._close_retired()

    async def _present_lane(self) -> _Lane:
        """Return the present credential's connections.

        A renewed certificate, or a renewed authority, needs new connections. The old ones are kept
        for the calls that are using them: ending a bind in flight would leave its outcome unknown.
        """
        if self._closed:
            raise TransportError(f"{self._shown}: the transport is closed")
        credential, trusted = (
            await self._access.credentials.credential(),
            self._access.trusted_pem(),
        )
        lane = self._lane
        if lane is None or not lane.serves(credential, trusted):
            if lane is not None:
                self._retired.append(lane)
            lane = self._lane = self._make_lane(credential, trusted)
        lane.credential = credential
        return lane

    async def _close_retired(self) -> None:
        """Close old connections that no call uses."""
        for old in [old for old in self._retired if not old.users]:
            self._retired.remove(old)
            await old.close()

    def _make_lane(self, credential: Credential, trusted: bytes | None) -> _Lane:
        tls = tls_context(self._access, credential)
        connector = aiohttp.TCPConnector(limit=self._connections_max, ssl=tls)
        session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=True,
            trace_configs=[] if self._guard is None else [_asking(self._guard)],
        )
        short = ShortCalls(
            self._access,
            None if isinstance(tls, bool) else tls,
            user_agent=self._user_agent,
            connections_max=self._connections_max,
            guard=self._guard,
        )
        return _Lane(session, credential, trusted, short)

    def failure(self, call: Call, error: BaseException, *, seconds: float | None) -> TransportError:
        """Build the exception for an error that the HTTP library raised.

        A certificate that is not trusted may be one of a new authority, so its file is read again.

        Parameters
        ----------
        seconds
            The limit that was in force, for the message of a timeout.
        """
        kind = TransportError
        if isinstance(error, aiohttp.ClientConnectorCertificateError) and self._access.ca_file:
            self._access.ca_file.expire()
        if isinstance(error, TimeoutError):
            text = f"silent for {seconds} s" if seconds else "no connection in time"
        elif isinstance(error, aiohttp.ClientConnectorError) and type(error) in _NO_CONNECTION:
            # The library's own words name host and port once more, and TLS where there is none.
            text = f"no connection: {_why(error.os_error)}"
        else:
            text = str(error) or type(error).__name__
        reset = isinstance(error, aiohttp.ServerDisconnectedError | ConnectionResetError)
        if isinstance(error, aiohttp.ClientConnectorError):
            kind = RefusedError
        elif reset:
            kind = _ResetError
        return kind(f"{call.method} {self._shown}{call.path}: {text}")


# Not those about certificates, whose words say what is wrong with one.
_NO_CONNECTION = frozenset({aiohttp.ClientConnectorError, aiohttp.ClientConnectorDNSError})


def _why(error: OSError) -> str:
    """Return the system's words; the loops of asyncio and uvloop have words of their own."""
    return os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)


class _Pieces(aiohttp.Payload):
    """A body in pieces, sent one after the other."""

    def __init__(self, pieces: tuple[bytes, ...]) -> None:
        super().__init__(pieces)
        self._pieces = pieces
        self._size = sum(map(len, pieces))

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        """Return the whole body as a text."""
        return b"".join(self._pieces).decode(encoding, errors)

    async def write(self, writer: aiohttp.abc.AbstractStreamWriter) -> None:
        """Send the pieces."""
        for piece in self._pieces:
            await writer.write(piece)


class _ResetError(TransportError):
    """The connection broke before the answer was complete."""


def _asking(guard: WriteGuard) -> aiohttp.TraceConfig:
    """Return hooks that ask the guard when a connection is there, and nothing has been sent yet.

    A call may wait for its connection: for a free one, or for a TLS handshake. The lease may have
    ended since.
    """

    async def before_sending(session: object, context: object, sending: _Sending) -> None:
        del session, context
        guard.before_method(sending.method)

    hooks = aiohttp.TraceConfig()
    hooks.on_request_headers_sent.append(before_sending)
    return hooks


_Sending = aiohttp.TraceRequestHeadersSentParams


class _Lane:
    """Connections made with one client certificate, to servers that one authority signed."""

    __slots__ = ("credential", "session", "short", "trusted", "users")

    def __init__(
        self,
        session: aiohttp.ClientSession,
        credential: Credential,
        trusted: bytes | None,
        short: ShortCalls,
    ) -> None:
        self.session = session
        self.credential = credential
        self.trusted = trusted
        self.short = short
        self.users = 0

    async def close(self) -> None:
        self.short.close()
        await self.session.close()
        await aio.sleep(0)  # the loop closes aborted connections in its next turn

    def serves(self, credential: Credential, trusted: bytes | None) -> bool:
        mine = self.credential
        return (
            mine.certificate_pem == credential.certificate_pem
            and mine.key_pem == credential.key_pem
            and self.trusted == trusted
        )


class _HttpLines:
    """The lines of one HTTP answer."""

    __slots__ = ("_call", "_response", "_transport", "headers", "status")

    def __init__(
        self, transport: HttpTransport, call: Call, response: aiohttp.ClientResponse
    ) -> None:
        self._transport = transport
        self._call = call
        self._response = response
        self.status = response.status
        self.headers: Mapping[str, str] = response.headers

    async def __aiter__(self) -> AsyncIterator[bytes]:
        splitter = LineSplitter()
        try:
            async for piece in self._response.content.iter_any():
                for line in splitter.feed(piece):
                    yield line
        except _FAILURES as error:
            limit = self._call.idle_seconds
            raise self._transport.failure(self._call, error, seconds=limit) from error
        if rest := splitter.rest():
            yield rest


_FAILURES = (aiohttp.ClientError, TimeoutError, OSError)


def tls_context(access: ServerAccess, credential: Credential) -> ssl.SSLContext | bool:
    """Return the TLS context for a server; True for one that speaks plain HTTP.

    Raises
    ------
    KubeconfigError
        A certificate or key cannot be used.
    """
    if not access.server.startswith("https:"):
        return True
    try:
        trusted = access.trusted_pem()
        authority = trusted.decode("ascii", "replace") if trusted else None
        context = client_context(authority)
    except ssl.SSLError as error:
        raise KubeconfigError(
            f"{access.server}: the certificate authority is no PEM certificate: {error}; "
            "check certificate-authority"
        ) from error
    if access.insecure_skip_tls_verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if credential.certificate_pem and credential.key_pem:
        _load_certificate(context, credential.certificate_pem, credential.key_pem, access.server)
    return context


def _load_certificate(context: ssl.SSLContext, chain: bytes, key: bytes, server: str) -> None:
    """Load a client certificate by way of a temporary file: the library reads only files."""
    with tempfile.TemporaryDirectory(prefix="moorage-") as directory:
        path = Path(directory) / "client.pem"
        path.touch(mode=0o600)
        path.write_bytes(key + b"\n" + chain)
        try:
            # Without a password callback an encrypted key would ask on the terminal.
            context.load_cert_chain(path, password=_no_password)
        except (ssl.SSLError, ValueError) as error:
            raise KubeconfigError(
                f"{server}: the client certificate and key cannot be used: {error}; "
                "check that both are PEM, unencrypted, and belong together"
            ) from error


def _no_password() -> str:
    return ""


def _environment_proxy(server: str) -> str:
    """Return the proxy the environment names for a server, "" for none.

    Notes
    -----
    As Go's net/http ``ProxyFromEnvironment``: loopback is never proxied.
    """
    parts = urlsplit(server)
    host = parts.hostname or ""
    proxies = getproxies_environment()
    if host == "localhost" or _is_loopback(host) or proxy_bypass_environment(host, proxies):
        return ""
    return proxies.get(parts.scheme, "")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _real(seconds: float | None) -> float | None:
    """Return a limit in the loop's time: the network does not run faster when the loop does."""
    return None if seconds is None else aio.real_seconds(seconds)
