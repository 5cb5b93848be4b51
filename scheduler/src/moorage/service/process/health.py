"""The HTTPS port: health checks, metrics, the configuration in force; reading only.

Started by the composition root before the scheduler, so that a replica that waits answers as well.
`moorage.service.serving` decides who may read what.

Notes
-----
Paths, checks and texts of kubernetes v1.36 cmd/kube-scheduler/app/server.go and
apiserver/pkg/server/healthz.
"""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any, Final, Protocol

import msgspec

from moorage.base.authorities import read_when_used
from moorage.base.errors import UsageError
from moorage.base.malformed_calls import log_malformed_calls_shortly
from moorage.base.served_calls import TimedRunner, while_connected, whole_body
from moorage.observe.slis import HealthFacts
from moorage.service.questions.answering import WAITING_MOST
from moorage.service.serving.access import Access
from moorage.service.serving.callers import Credentials
from moorage.service.serving.chain import peer_certificate
from moorage.service.serving.gate import Refused
from moorage.service.serving.rights import Rights

with read_when_used():
    from aiohttp import web

Check = Callable[[], bool]
"""A health check: whether one part of the process works."""

PORT: Final = 10259
ADDRESS: Final = "0.0.0.0"

_TEXT: Final = "text/plain; charset=utf-8"
_CACHE: Final = "no-cache, private"
_READING: Final = ("GET", "HEAD")
_ASKING: Final = ("POST",)
_STOP_SECONDS: Final = 1.0
# Owners of pods may come with a question; ten thousand of them take about so much.
_BODY_BYTES_MOST: Final = 64 * 1024 * 1024
_BODIES_BYTES_MOST: Final = 2 * _BODY_BYTES_MOST
"""All bodies together, from their first byte to their answer."""
_RETRY_SECONDS: Final = "2"
_BACKLOG: Final = 128


class Listening(msgspec.Struct, frozen=True, kw_only=True):
    """The address on which the port listens.

    Parameters
    ----------
    address, port
        Address to listen on; port 0: do not listen.
    free_port
        Listen on any free port instead.
    share_port
        Whether several processes may listen on the port (``SO_REUSEPORT``).
    """

    address: str = ADDRESS
    port: int = PORT
    free_port: bool = False
    share_port: bool = False


class Page(msgspec.Struct, frozen=True):
    """The answer of a path."""

    body: bytes
    content_type: str = _TEXT
    status: int = 200
    headers: Mapping[str, str] = {}


class QueryPage(Protocol):
    """Makes the answer of a path, given the query; the first of several values counts."""

    def __call__(
        self, query: Mapping[str, str], rights: Rights | None = None, /
    ) -> Awaitable[Page]:
        """Answer with what somebody with these rights may read; None: with everything."""
        ...


class BodyPage(Protocol):
    """Makes the answer of a path that is asked with POST, given the body."""

    def __call__(self, body: bytes, rights: Rights | None = None, /) -> Coroutine[Any, Any, Page]:
        """Answer with what somebody with these rights may read; None: with everything."""
        ...


PageMaker = Callable[[str], Awaitable[Page]]
"""Makes the answer of a path, given the media types accepted."""


class HealthServer:
    """Answers on the port.

    Parameters
    ----------
    listening
        Where.
    access
        The certificate, and who may read what.
    checks
        The named checks of ``/healthz``, ``/livez`` and ``/readyz``, by path, in order.
    pages
        Makers of the answers of all other paths.
    facts
        Counts the results of the checks; None where they are not counted.
    queries
        Makers of the answers that depend on the query.
    bodies
        Makers of the answers that depend on a body. These paths are asked with POST, since the
        question does not fit into a query; they write as little as the others.
    on_close
        Called after the last answer; None for nothing.
    """

    def __init__(
        self,
        listening: Listening,
        access: Access,
        *,
        checks: Mapping[str, Sequence[tuple[str, Check]]],
        pages: Mapping[str, PageMaker],
        facts: HealthFacts | None = None,
        queries: Mapping[str, QueryPage] | None = None,
        bodies: Mapping[str, BodyPage] | None = None,
        on_close: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._listening = listening
        self._access = access
        self._checks = checks
        self.pages = pages
        self._answer_listener = facts
        self._queries = {} if queries is None else queries
        self.bodies = {} if bodies is None else bodies
        self._on_close = on_close
        self._asking = 0
        self._body_bytes = 0
        self._runner: web.AppRunner | None = None
        self.port = 0
        """The port listened on, once started."""

    async def start(self) -> None:
        """Listen.

        Raises
        ------
        UsageError
            The port is taken, or the authorities of callers cannot be looked up.
        """
        try:
            await self._access.start()
            await self._listen()
        except BaseException:
            await self.close()
            raise

    async def _listen(self) -> None:
        log_malformed_calls_shortly()
        app = web.Application(client_max_size=_BODY_BYTES_MOST)
        app.router.add_route("*", "/{path:.*}", self._answer)
        runner = self._runner = TimedRunner(app, shutdown_seconds=_STOP_SECONDS)
        await runner.setup()
        try:
            opened = _opened(self._listening)
        except OSError as error:
            where = f"{self._listening.address}:{self._listening.port}"
            raise UsageError(
                f"cannot serve on {where}: {error.strerror}; "
                "choose another --secure-port, or 0 not to serve"
            ) from error
        site = web.SockSite(runner, opened, ssl_context=self._access.tls.context)
        await site.start()
        self.port = opened.getsockname()[1]

    @property
    def url(self) -> str:
        """The address listened on, once started."""
        return f"https://{self._listening.address}:{self.port}"

    async def close(self) -> None:
        """Stop listening; idempotent."""
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()
        if self._on_close is not None:
            await self._on_close()
        await self._access.close()

    async def _answer(self, request: web.Request) -> web.Response:
        answer = await self._judged(request)
        answer.headers["Cache-Control"] = _CACHE
        return answer

    async def _judged(self, request: web.Request) -> web.Response:
        credentials = _credentials(request)
        rights = await self._access.gate.admitted(credentials, request.method, request.path)
        if isinstance(rights, Refused):
            headers = {"Content-Type": rights.content_type}
            return web.Response(status=rights.status, body=rights.body, headers=headers)
        body = self.bodies.get(request.path)
        allowed = _READING if body is None else _ASKING
        if request.method not in allowed:
            return web.Response(
                status=405, text="405 method not allowed\n", headers={"Allow": ", ".join(allowed)}
            )
        if body is None:
            return await self._answer_path(request, rights)
        return await self._answer_with_body(request, body, rights)

    async def _answer_with_body(
        self, request: web.Request, body: BodyPage, rights: Rights
    ) -> web.Response:
        """Answer a question with a body, unless others wait, or fill the memory for bodies."""
        length = request.content_length
        taken = _BODY_BYTES_MOST if length is None else min(length, _BODY_BYTES_MOST)
        if self._asking > WAITING_MOST or self._body_bytes + taken > _BODIES_BYTES_MOST:
            return web.Response(
                status=429,
                text="429 too many questions at once, ask again later\n",
                headers={"Retry-After": _RETRY_SECONDS},
            )
        self._asking += 1
        self._body_bytes += taken
        try:
            text = await whole_body(request)
            return _response(await while_connected(request, body(text, rights)))
        finally:
            self._asking -= 1
            self._body_bytes -= taken

    async def _answer_path(self, request: web.Request, rights: Rights) -> web.Response:
        path = request.path
        head, _, name = path.removeprefix("/").partition("/")
        if head in self._checks:
            return health(head, self._checked(head), name, request.query)
        page, query = self.pages.get(path), self._queries.get(path)
        if query is not None:
            answer = await query(dict(request.query), rights)
        elif page is not None:
            answer = await page(request.headers.get("Accept", ""))
        else:
            return web.Response(status=404, text="404 page not found\n")
        return _response(answer)

    def _checked(self, path: str) -> Sequence[tuple[str, Check]]:
        """Return the checks of a path, wrapped so that their results are counted."""
        facts = self._answer_listener
        if facts is None:
            return self._checks[path]

        def telling(name: str, check: Check) -> Check:
            def check_and_tell() -> bool:
                passed = check()
                facts.checked(name, path, passed=passed)
                return passed

            return check_and_tell

        return [(name, telling(name, check)) for name, check in self._checks[path]]


def _response(page: Page) -> web.Response:
    headers = {"Content-Type": page.content_type, **page.headers}
    return web.Response(status=page.status, body=page.body, headers=headers)


def _opened(listening: Listening) -> socket.socket:
    """Return a socket that is bound.

    Raises
    ------
    OSError
        The address cannot be used.
    """
    family = socket.AF_INET6 if ":" in listening.address else socket.AF_INET
    opened = socket.socket(family, socket.SOCK_STREAM)
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if listening.share_port:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if family == socket.AF_INET6:
            # As Go: all addresses of IPv6 include those of IPv4.
            opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        opened.bind((listening.address, 0 if listening.free_port else listening.port))
        opened.listen(_BACKLOG)
    except OSError:
        opened.close()
        raise
    opened.setblocking(False)
    return opened


def _credentials(request: web.Request) -> Credentials:
    connection = (
        None if request.transport is None else request.transport.get_extra_info("ssl_object")
    )
    headers = tuple((name.lower(), value) for name, value in request.headers.items())
    return Credentials(headers, peer_certificate(connection))


def health(
    path: str, checks: Sequence[tuple[str, Check]], name: str, query: Mapping[str, str]
) -> web.Response:
    """Return the answer of a health path.

    Parameters
    ----------
    path
        ``healthz``, ``livez`` or ``readyz``.
    checks
        Named checks, in order.
    name
        The one check that is asked for, "" for all.
    query
        ``verbose`` lists the checks, ``exclude`` leaves some out.
    """
    excluded = set(query.getall("exclude", [])) if hasattr(query, "getall") else set()
    if name:
        checks = [each for each in checks if each[0] == name]
        if not checks:
            return web.Response(status=404, text="404 page not found\n")
    lines, failed = [], False
    for each, check in checks:
        if each in excluded:
            excluded.discard(each)
            lines.append(f"[+]{each} excluded: ok")
        elif check():
            lines.append(f"[+]{each} ok")
        else:
            failed = True
            lines.append(f"[-]{each} failed: reason withheld")
    if excluded:
        names = ", ".join(f'"{each}"' for each in sorted(excluded))
        lines.append(f"warn: some health checks cannot be excluded: no matches for {names}")
    if failed:
        return web.Response(status=500, text="\n".join([*lines, f"{path} check failed\n"]))
    if "verbose" in query:
        return web.Response(text="\n".join([*lines, f"{path} check passed\n"]))
    return web.Response(text="ok")
