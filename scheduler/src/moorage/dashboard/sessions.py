"""The sessions of viewers: login links that work once, and the cookies they are exchanged for."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable
from typing import Final

import msgspec

from moorage.base.clock import NS_PER_SECOND, Clock

_TOKEN_BYTES: Final = 32
_SESSIONS_MAX: Final = 64
"""The oldest session ends where there would be more; a guess."""
_LIFE_NS: Final = 12 * 3600 * NS_PER_SECOND


class Session(msgspec.Struct, frozen=True):
    """A browser that came with a login link.

    Parameters
    ----------
    key
        The value of its cookie.
    csrf
        What its acts have to bring besides the cookie.
    until_ns
        When it ends, monotonic nanoseconds.
    """

    key: str
    csrf: str
    until_ns: int


class Sessions:
    """The login link that is open, and the sessions.

    Parameters
    ----------
    clock
        Ends sessions after twelve hours.
    on_token
        Told each new login token: the first at once, another whenever one was used.
    """

    def __init__(self, clock: Clock, on_token: Callable[[str], None]) -> None:
        self._clock = clock
        self._on_token = on_token
        self._sessions: dict[str, Session] = {}
        self._token = ""

    def renew_token(self) -> None:
        """Make the login token that is valid from now on, in place of the one before."""
        # Not from a stream of `base.rng`: a seed that is printed must not open the page.
        self._token = secrets.token_urlsafe(_TOKEN_BYTES)
        self._on_token(self._token)

    def login(self, token: str) -> Session | None:
        """Exchange a login token for a session; None for any other text. A token works once."""
        if not self._token or not _equal(token, self._token):
            return None
        session = Session(
            secrets.token_urlsafe(_TOKEN_BYTES),
            secrets.token_urlsafe(_TOKEN_BYTES),
            self._clock.monotonic_ns() + _LIFE_NS,
        )
        while len(self._sessions) >= _SESSIONS_MAX:
            del self._sessions[next(iter(self._sessions))]
        self._sessions[session.key] = session
        self.renew_token()
        return session

    def find(self, key: str) -> Session | None:
        """Return the session of a cookie's value; None where there is none, or it has ended."""
        found = self._sessions.get(key)
        if found is not None and self._clock.monotonic_ns() >= found.until_ns:
            del self._sessions[key]
            return None
        return found


def _equal(token: str, wanted: str) -> bool:
    return hmac.compare_digest(token.encode(), wanted.encode())
