"""Serves the page: its files, the answers, the changes as server-sent events, a sandbox's acts."""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import Sequence
from html import escape
from typing import Final

import msgspec
from aiohttp import web

from moorage.api.manifest_text import parse_manifests
from moorage.base.aio import TaskOwner
from moorage.base.clock import Clock
from moorage.base.errors import MoorageError, UsageError
from moorage.base.malformed_calls import log_malformed_calls_shortly
from moorage.base.served_calls import TimedRunner, whole_body
from moorage.base.version import __version__
from moorage.dashboard.acts import Acts
from moorage.dashboard.doors import Door, LoginError
from moorage.dashboard.files import INDEX, page_files
from moorage.dashboard.guard import HEADERS, LOGIN, Guard, cookie_name
from moorage.dashboard.sessions import Session, Sessions
from moorage.dashboard.source import Answered
from moorage.dashboard.view import View

LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")
_VIEWS: Final = (
    *("cluster", "overview", "workloads", "queue", "pod", "decisions", "groups", "what-if"),
    *("plugins", "time"),
)
_JSON: Final = "application/json"
_STOP_SECONDS: Final = 0.3
_BODY_BYTES_MAX: Final = 64 * 1024
# Longer numbers are none of ours, and Python refuses to read very long ones.
_DIGITS_MAX: Final = 20


class PagePlan(msgspec.Struct, frozen=True, kw_only=True):
    """The subject of the page, and the address where it is served.

    Parameters
    ----------
    title
        The cluster, for the head of the page.
    rights
        Whose rights the page has, in words; empty in a sandbox.
    watches
        Whether the cluster is only watched: another scheduler decides.
    address, port
        Address to listen on; port 0 takes any free one.
    tls
        Where the page is not served on loopback.
    """

    title: str
    rights: str = ""
    watches: bool = False
    address: str = LOOPBACK[0]
    port: int = 0
    tls: ssl.SSLContext | None = None

    @property
    def is_local(self) -> bool:
        """Whether only programs of this machine reach the page."""
        return self.address in LOOPBACK


class PageServer:
    """The page of one scheduler.

    Parameters
    ----------
    plan
        What it is about, and where.
    door
        Lets viewers in.
    acts
        The changes that the page of a sandbox offers; None for any other cluster.
    clock
        Real time.
    """

    def __init__(
        self, plan: PagePlan, door: Door, *, clock: Clock, acts: Acts | None = None
    ) -> None:
        self._plan = plan
        self._door = door
        self._acts = acts
        self._files = page_files()
        self._tasks = TaskOwner()
        self._runner: web.AppRunner | None = None
        self._sessions = Sessions(clock, self._end_view)
        self._guard = Guard(self._sessions, LOOPBACK if plan.is_local else (), door)
        self.url = ""
        """The address, once started; it answers nothing to whoever has not logged in."""

    async def start(self) -> None:
        """Listen.

        Raises
        ------
        UsageError
            The port is taken.
        """
        log_malformed_calls_shortly()
        plan = self._plan
        app = web.Application(
            middlewares=[self._guard.middleware()], client_max_size=_BODY_BYTES_MAX
        )
        app.add_routes(self._routes())
        runner = TimedRunner(app, shutdown_seconds=_STOP_SECONDS)
        await runner.setup()
        site = web.TCPSite(runner, plan.address, plan.port, ssl_context=plan.tls)
        try:
            await site.start()
        except OSError as error:
            await runner.cleanup()
            raise UsageError(
                f"cannot serve the page on {plan.address}:{plan.port}: {error.strerror}"
            ) from error
        self._runner = runner
        scheme, port = "http" if plan.tls is None else "https", runner.addresses[0][1]
        host = f"[{plan.address}]" if ":" in plan.address else plan.address
        self.url = f"{scheme}://{host}:{port}"
        self._door.start()

    async def close(self) -> None:
        """Stop listening; idempotent."""
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()
        await self._tasks.cancel_all()
        await self._door.close()

    def _routes(self) -> Sequence[web.RouteDef]:
        shown = [web.get(f"/{view}{{rest:(/.*)?}}", self._index) for view in _VIEWS]
        return [
            web.get("/", self._index),
            *shown,
            web.get(LOGIN, self._login_page),
            web.post(LOGIN, self._login_form),
            web.get("/static/{path:.+}", self._file),
            web.get("/page/v1/about", self._about),
            web.get("/page/v1/state", self._state),
            web.get("/page/v1/changes", self._changes),
            web.get("/moorage/v1/{question:[a-z-]+}", self._answer_question),
            web.post("/moorage/v1/{question:[a-z-]+}", self._answer_question),
            web.post("/page/v1/manifests", self._manifests),
            web.post("/page/v1/acts/{name:[a-z-]+}", self._act),
            web.get("/{view:[^/]*}", self._elsewhere),
        ]

    # --- opening the page -----------------------------------------------------------------------

    async def _login_page(self, request: web.Request) -> web.Response:
        if self._door.has_form:
            return _form()
        return await self._login_answer(request, request.query.get("token", ""))

    async def _login_form(self, request: web.Request) -> web.Response:
        if not self._door.has_form:
            return web.Response(status=405, text="This page opens with a login link.\n")
        fields = await request.post()
        return await self._login_answer(request, str(fields.get("token", "")).strip())

    async def _login_answer(self, request: web.Request, token: str) -> web.Response:
        """Begin a session for whoever has a token that opens something."""
        try:
            view = await self._door.view(token)
        except LoginError as error:
            return self._refused_login(401, str(error))
        except MoorageError as error:
            return self._refused_login(502, str(error))
        session = self._sessions.begin(view)
        # A page and not a redirect: the cookie is not sent along a redirect from another site.
        body = (
            '<!doctype html><html lang="en"><meta charset="utf-8"><title>moorage</title>'
            '<meta http-equiv="refresh" content="0;url=/cluster">'
            '<p><a href="/cluster">To the page</a></p></html>'
        )
        answer = web.Response(text=body, content_type="text/html")
        answer.set_cookie(
            cookie_name(request),
            session.key,
            httponly=True,
            samesite="Strict",
            secure=self._plan.tls is not None,
        )
        return answer

    def _refused_login(self, status: int, reason: str) -> web.Response:
        if self._door.has_form:
            return _form(status, reason)
        return web.Response(status=status, text=f"{reason}\n")

    def _end_view(self, session: Session) -> None:
        self._tasks.spawn(self._door.leave(session.view), name="end what a viewer saw")

    def _view(self, request: web.Request) -> View:
        session = self._guard.session(request)
        assert session is not None, "the guard lets nobody else in"
        return session.view

    async def _index(self, request: web.Request) -> web.Response:
        del request
        return self._sent(INDEX)

    async def _elsewhere(self, request: web.Request) -> web.Response:
        """Serve the page for an address that is no view: it says so, and lists the views."""
        answer = await self._index(request)
        answer.set_status(404)
        return answer

    async def _file(self, request: web.Request) -> web.Response:
        return self._sent(request.match_info["path"])

    def _sent(self, path: str) -> web.Response:
        found = self._files.get(path)
        if found is None:
            return web.Response(status=404, text="404 page not found\n")
        return web.Response(body=found.body, headers={"Content-Type": found.content_type})

    # --- what it shows --------------------------------------------------------------------------

    async def _about(self, request: web.Request) -> web.Response:
        session = self._guard.session(request)
        assert session is not None, "the guard lets nobody else in"
        plan = self._plan
        about = {
            "title": plan.title,
            "rights": plan.rights,
            "watches": plan.watches,
            "version": __version__,
            "csrf": session.csrf,
            "acts": [] if self._acts is None else list(self._acts.names),
        }
        return web.Response(body=msgspec.json.encode(about), content_type=_JSON)

    async def _state(self, request: web.Request) -> web.Response:
        return web.Response(body=await self._view(request).feed.whole(), content_type=_JSON)

    async def _changes(self, request: web.Request) -> web.StreamResponse:
        """Send each change as it comes, until the viewer goes."""
        given = request.headers.get("Last-Event-ID") or request.query.get("since", "")
        is_version = given.isascii() and given.isdigit() and len(given) < _DIGITS_MAX
        version = int(given) if is_version else -1
        stream = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        # The middleware sees the stream when it is over, which is too late for its headers.
        stream.headers.update(HEADERS)
        await stream.prepare(request)
        feed = self._view(request).feed
        with feed.viewer(), contextlib.suppress(ConnectionError):
            while True:
                changes = await feed.after(version)
                if changes is None:
                    await stream.write(b"event: anew\ndata: {}\n\n")
                    return stream
                if not changes:
                    await stream.write(b"event: time\ndata: %s\n\n" % feed.time.encode())
                for change in changes:
                    version += 1
                    await stream.write(b"id: %d\ndata: %s\n\n" % (version, change))
        return stream

    async def _answer_question(self, request: web.Request) -> web.Response:
        path = f"/{request.match_info['question']}"
        try:
            source = self._view(request).source
            answered = await source.ask(path, dict(request.query), await whole_body(request))
        except MoorageError as error:
            answered = _status(502, str(error))
        return _response(answered)

    async def _manifests(self, request: web.Request) -> web.Response:
        """Read the objects of a text, in every form in which the commands read them."""
        try:
            manifests = parse_manifests(await whole_body(request), "text")
        except UsageError as error:
            return _response(_status(400, str(error)))
        return web.Response(body=msgspec.json.encode({"manifests": manifests}), content_type=_JSON)

    async def _act(self, request: web.Request) -> web.Response:
        acts, name = self._acts, request.match_info["name"]
        if acts is None or name not in acts.names:
            return _response(_status(404, f"{name}: this page cannot do that"))
        try:
            return _response(await acts.perform(name, await whole_body(request)))
        except UsageError as error:
            return _response(_status(400, str(error)))
        except MoorageError as error:
            return _response(_status(502, str(error)))


def login_link(page: PageServer, token: str) -> str:
    """Return the link by which a token of `LinkDoor` opens a page that has started."""
    return f"{page.url}{LOGIN}?token={token}"


def _form(status: int = 200, reason: str = "") -> web.Response:
    """Return the page with the form for a token, and the reason why the last one opened nothing."""
    refusal = f'<p role="alert">{escape(reason)}</p>' if reason else ""
    body = (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>moorage</title>'
        '<meta name="viewport" content="width=device-width">'
        f"<h1>moorage</h1>{refusal}"
        f'<form method="post" action="{LOGIN}"><p><label>Token of the cluster '
        '<input name="token" type="password" autocomplete="off" required autofocus></label> '
        "<button>Log in</button></p></form>"
        "<p><code>kubectl create token SERVICEACCOUNT</code> prints one. The page shows what its "
        "user may see, for twelve hours at most.</p></html>"
    )
    return web.Response(status=status, text=body, content_type="text/html")


def _response(answered: Answered) -> web.Response:
    return web.Response(status=answered.status, body=answered.body, content_type=_JSON)


def _status(code: int, message: str) -> Answered:
    status = {"kind": "Status", "status": "Failure", "message": message, "code": code}
    return Answered(msgspec.json.encode(status), code)
