"""Asks, right before a write is sent, whether it may still go out.

A leader that lost its lease must not write any more. The check comes as late as possible: after the
rate limit, and after the pauses that the server asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from moorage.client.transport import Answer, Call, LineStream, Transport

READS = frozenset({"GET", "HEAD", "OPTIONS"})


def _anything_goes() -> None:
    pass


class WriteGuard:
    """Asks before each write of a process.

    Parameters
    ----------
    check
        Called before each write; raises `NotLeadingError` to refuse it. Every write passes when
        not given.
    """

    __slots__ = ("_check",)

    def __init__(self, check: Callable[[], None] = _anything_goes) -> None:
        self._check = check

    def before(self, call: Call) -> None:
        """Pass if a call may be sent now.

        Raises
        ------
        NotLeadingError
            The call is a write, and another process may hold the lease by now.
        """
        self.before_method(call.method)

    def before_method(self, method: str) -> None:
        """Pass if a call with this HTTP method may be sent now.

        Raises
        ------
        NotLeadingError
            The call is a write, and another process may hold the lease by now.
        """
        if method not in READS:
            self.check_write()

    def check_write(self) -> None:
        """Pass if a write may be sent now.

        Raises
        ------
        NotLeadingError
            Another process may hold the lease by now.
        """
        self._check()


class GuardedTransport:
    """A transport that asks the guard before each write.

    Parameters
    ----------
    inner
        Carries the calls that may go out.
    guard
        Tells which calls may go out.
    """

    def __init__(self, inner: Transport, guard: WriteGuard) -> None:
        self._inner = inner
        self._guard = guard

    async def request(self, call: Call) -> Answer:
        """Send a call that may go out."""
        self._guard.before(call)
        return await self._inner.request(call)

    def stream(self, call: Call) -> AbstractAsyncContextManager[LineStream]:
        """Open a stream; reading is always allowed."""
        return self._inner.stream(call)

    async def close(self) -> None:
        """Close the transport inside."""
        await self._inner.close()
