"""Lets only those in who came with a login link, and only by the page's own address.

Every answer carries headers that keep a browser from loading or running anything from elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from moorage.dashboard.doors import Door
from moorage.dashboard.sessions import Session, Sessions

LOGIN: Final = "/login"
CSRF_HEADER: Final = "X-Moorage-Csrf"

_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "font-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types lit-html"
)
HEADERS: Final = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Guard:
    """Checks every call before it is answered.

    Parameters
    ----------
    sessions
        The sessions.
    hosts
        The names by which the page may be called, without a port; empty for any, where the page is
        not served on loopback.
    door
        What somebody sees who has not logged in.
    """

    def __init__(self, sessions: Sessions, hosts: Sequence[str], door: Door) -> None:
        self._sessions = sessions
        self._door = door
        self._hosts = frozenset(hosts)

    def middleware(self) -> Middleware:
        """Return the check as aiohttp wants it."""

        @web.middleware
        async def checked(request: web.Request, handler: Handler) -> web.StreamResponse:
            refusal = self._refusal(request)
            if refusal is not None:
                refusal.headers.update(HEADERS)
                return refusal
            try:
                answer = await handler(request)
            except web.HTTPException as error:
                answer = web.Response(status=error.status, text=f"{error.reason}\n")
            if not answer.prepared:
                answer.headers.update(HEADERS)
            return answer

        return checked

    def session(self, request: web.Request) -> Session | None:
        """Return the session that a call belongs to; None where it has no valid cookie."""
        return self._sessions.find(request.cookies.get(cookie_name(request), ""))

    def _refusal(self, request: web.Request) -> web.Response | None:
        """Return why a call is not answered; None where it is."""
        host = _host_of(request)
        if host is None:
            return _refused(400, "The header Host names no host.\n")
        if self._hosts and host[0] not in self._hosts:
            return _refused(421, "This page is not served under that name.\n")
        origin = request.headers.get("Origin")
        if origin is not None and _authority_of(origin) != request.host:
            return _refused(403, "Calls from other pages are not answered.\n")
        if request.path == LOGIN:
            # A form of another page may not log a browser in: it would see another user's view.
            return None if request.method == "GET" or origin is not None else _not_from_page()
        session = self.session(request)
        if (
            session is None
            and self._door.has_form
            and request.method == "GET"
            and _is_view(request)
        ):
            return web.Response(status=303, headers={"Location": LOGIN})
        if session is None:
            return _refused(401, self._door.closed_text)
        if request.method != "GET":
            given = request.headers.get(CSRF_HEADER, "")
            if origin is None or given != session.csrf:
                return _not_from_page()
        return None


def _not_from_page() -> web.Response:
    return _refused(403, "The call does not come from the page.\n")


def _is_view(request: web.Request) -> bool:
    """Whether a call is for the page itself, and not for what the page loads."""
    return not request.path.startswith(("/static/", "/page/", "/moorage/"))


def cookie_name(request: web.Request) -> str:
    """Return the name of the cookie; browsers do not keep the cookies of two ports apart."""
    _, port = _host_of(request) or ("", 0)
    return f"moorage-page-{port}"


def _host_of(request: web.Request) -> tuple[str, int] | None:
    """Return name and port in a Host header; None for a header that is malformed."""
    try:
        parts = urlsplit(f"//{request.host}")
        return (parts.hostname or "").lower(), parts.port or 0
    except ValueError:
        return None


def _authority_of(origin: str) -> str | None:
    """Return host and port in an Origin header; None for a header that is malformed."""
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return None


def _refused(status: int, text: str) -> web.Response:
    return web.Response(status=status, text=text)
