"""The sessions of viewers: the cookies that a login is exchanged for."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Final

import msgspec

from moorage.base.clock import NS_PER_SECOND, Clock
from moorage.dashboard.view import View

_KEY_BYTES: Final = 32
_SESSIONS_MAX: Final = 64
"""The oldest session ends where there would be more; a guess."""
_LIFE_NS: Final = 12 * 3600 * NS_PER_SECOND


class Session(msgspec.Struct, frozen=True, eq=False):
    """A browser that has logged in.

    Parameters
    ----------
    view
        What it sees.
    key
        The value of its cookie.
    csrf
        What its acts have to bring besides the cookie.
    until_ns
        When it ends, monotonic nanoseconds.
    """

    view: View
    key: str
    csrf: str
    until_ns: int


class Sessions:
    """The sessions that have not ended.

    Parameters
    ----------
    clock
        Ends sessions after twelve hours.
    on_end
        Called with each session that ends.
    """

    def __init__(self, clock: Clock, on_end: Callable[[Session], None]) -> None:
        self._clock = clock
        self._on_end = on_end
        self._sessions: dict[str, Session] = {}

    def begin(self, view: View) -> Session:
        """Return a new session of a view."""
        for key in list(self._sessions):
            self.find(key)
        while len(self._sessions) >= _SESSIONS_MAX:
            self.end(next(iter(self._sessions)))
        # Not from a stream of `base.rng`: a seed that is printed must not open the page.
        session = Session(
            view,
            secrets.token_urlsafe(_KEY_BYTES),
            secrets.token_urlsafe(_KEY_BYTES),
            self._clock.monotonic_ns() + _LIFE_NS,
        )
        self._sessions[session.key] = session
        return session

    def find(self, key: str) -> Session | None:
        """Return the session of a cookie's value; None where there is none, or it has ended."""
        session = self._sessions.get(key)
        if session is not None and self._clock.monotonic_ns() >= session.until_ns:
            self.end(key)
            return None
        return session

    def end(self, key: str) -> None:
        """End the session of a cookie's value; one that has ended is no error."""
        session = self._sessions.pop(key, None)
        if session is not None:
            self._on_end(session)
