"""The HTTPS port: health checks, metrics, the configuration in force; reading only.

Started by the composition root before the scheduler, so that a replica that waits answers as well.

Notes
-----
Paths, checks and texts of kubernetes v1.36 cmd/kube-scheduler/app/server.go and
apiserver/pkg/server/healthz. Callers are not told apart: a path is open to every caller that
reaches the port, or forbidden.
"""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from moorage.api.codec import encode
from moorage.base.authorities import read_when_used
from moorage.base.errors import UsageError
from moorage.observe.slis import HealthFacts

with read_when_used():
    from aiohttp import web

Check = Callable[[], bool]
"""A health check: whether one part of the process works."""

PORT: Final = 10259
ADDRESS: Final = "127.0.0.1"
"""kube-scheduler listens on all addresses; here that has to be configured."""
ALWAYS_ALLOWED: Final = ("/healthz", "/readyz", "/livez")

_TEXT: Final = "text/plain; charset=utf-8"
_STOP_SECONDS: Final = 1.0


class Serving(msgspec.Struct, frozen=True, kw_only=True):
    """The address of the port, and its certificate.

    Parameters
    ----------
    address, port
        Address to listen on; port 0: do not listen.
    free_port
        Listen on any free port instead.
    certificate_file, key_file
        PEM; both or neither. Without them a certificate is made in memory.
    tls_version_min
        The oldest version of TLS spoken.
    open_paths
        Paths that every caller may read; ``*`` at the end stands for any rest.
    """

    address: str = ADDRESS
    port: int = PORT
    free_port: bool = False
    certificate_file: str = ""
    key_file: str = ""
    tls_version_min: ssl.TLSVersion = ssl.TLSVersion.TLSv1_2
    open_paths: tuple[str, ...] = ALWAYS_ALLOWED

    def is_open(self, path: str) -> bool:
        """Whether every caller may read a path; a check below an open path is open as well."""
        for allowed in self.open_paths:
            if allowed.endswith("*"):
                if path.startswith(allowed[:-1]):
                    return True
            elif path == allowed or (allowed in ALWAYS_ALLOWED and path.startswith(f"{allowed}/")):
                return True
        return False


class Page(msgspec.Struct, frozen=True):
    """The answer of a path."""

    body: bytes
    content_type: str = _TEXT
    status: int = 200
    headers: Mapping[str, str] = {}


QueryPage = Callable[[Mapping[str, str]], Awaitable[Page]]
"""Makes the answer of a path, given the query; the first of several values counts."""
PageMaker = Callable[[str], Awaitable[Page]]
"""Makes the answer of a path, given the media types accepted."""


class HealthServer:
    """Answers on the port.

    Parameters
    ----------
    serving
        Address and certificate.
    certificate
        Makes the certificate and key, PEM, that are presented where no files are named.
    checks
        The named checks of ``/healthz``, ``/livez`` and ``/readyz``, by path, in order.
    pages
        Makers of the answers of all other paths.
    told
        Counts the results of the checks; None where they are not counted.
    queries
        Makers of the answers that depend on the query.
    """

    def __init__(
        self,
        serving: Serving,
        certificate: Callable[[], tuple[bytes, bytes]],
        *,
        checks: Mapping[str, Sequence[tuple[str, Check]]],
        pages: Mapping[str, PageMaker],
        told: HealthFacts | None = None,
        queries: Mapping[str, QueryPage] | None = None,
    ) -> None:
        self._serving = serving
        self._certificate = certificate
        self._checks = checks
        self.pages = pages
        self._told = told
        self._queries = {} if queries is None else queries
        self._runner: web.AppRunner | None = None
        self.port = 0
        """The port listened on, once started."""

    async def start(self) -> None:
        """Listen.

        Raises
        ------
        UsageError
            The port is taken, or the certificate cannot be used.
        """
        app = web.Application()
        app.router.add_get("/{path:.*}", self._answer)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=_STOP_SECONDS)
        await runner.setup()
        serving = self._serving
        port = 0 if serving.free_port else serving.port
        site = web.TCPSite(runner, serving.address, port, ssl_context=self._tls())
        try:
            await site.start()
        except OSError as error:
            await runner.cleanup()
            raise UsageError(
                f"cannot serve on {serving.address}:{serving.port}: {error.strerror}; "
                "choose another --secure-port, or 0 not to serve"
            ) from error
        self._runner = runner
        self.port = runner.addresses[0][1]

    @property
    def url(self) -> str:
        """The address listened on, once started."""
        return f"https://{self._serving.address}:{self.port}"

    async def close(self) -> None:
        """Stop listening; idempotent."""
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()

    async def _answer(self, request: web.Request) -> web.Response:
        path = request.path
        if not self._serving.is_open(path):
            return _forbidden(path)
        head, _, name = path.removeprefix("/").partition("/")
        if head in self._checks:
            return health(head, self._checked(head), name, request.query)
        page, query = self.pages.get(path), self._queries.get(path)
        if query is not None:
            made = await query(dict(request.query))
        elif page is not None:
            made = await page(request.headers.get("Accept", ""))
        else:
            return web.Response(status=404, text="404 page not found\n")
        headers = {"Content-Type": made.content_type, **made.headers}
        return web.Response(status=made.status, body=made.body, headers=headers)

    def _checked(self, path: str) -> Sequence[tuple[str, Check]]:
        """Return the checks of a path, wrapped so that their results are counted."""
        told = self._told
        if told is None:
            return self._checks[path]

        def telling(name: str, check: Check) -> Check:
            def check_and_tell() -> bool:
                passed = check()
                told.checked(name, path, passed=passed)
                return passed

            return check_and_tell

        return [(name, telling(name, check)) for name, check in self._checks[path]]

    def _tls(self) -> ssl.SSLContext:
        serving = self._serving
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = serving.tls_version_min
        if serving.certificate_file or serving.key_file:
            try:
                context.load_cert_chain(serving.certificate_file, serving.key_file or None)
            except (OSError, ssl.SSLError) as error:
                raise UsageError(
                    f"--tls-cert-file {serving.certificate_file}, --tls-private-key-file "
                    f"{serving.key_file}: {error.strerror or error}"
                ) from error
            return context
        certificate, key = self._certificate()
        load_pair(context, certificate, key)
        return context


def load_pair(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """Load a certificate from memory by way of a temporary file: the library reads only files."""
    import tempfile

    with tempfile.TemporaryDirectory(prefix="moorage-") as folder:
        path = Path(folder) / "server.pem"
        path.touch(mode=0o600)
        path.write_bytes(key + b"\n" + certificate)
        context.load_cert_chain(path)


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


def _forbidden(path: str) -> web.Response:
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": f'forbidden: User "system:anonymous" cannot get path "{path}"',
        "reason": "Forbidden",
        "details": {},
        "code": 403,
    }
    return web.Response(status=403, body=encode(status), content_type="application/json")
