"""The ways to log in: a link that works once, or a token of the cluster.

Whoever comes by a link sees what the page may see, the same for all. Whoever comes with a token
sees what this token may see: the page needs no rights of its own then.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from http import HTTPStatus
from typing import Final, Protocol

from moorage.base.clock import Clock
from moorage.base.errors import MoorageError, UnauthorizedError
from moorage.dashboard.source import Source
from moorage.dashboard.view import View

_TOKEN_BYTES: Final = 32
_TOKEN_CHARS_MAX: Final = 16 * 1024
_LOGINS_MAX: Final = 4
"""Tokens that are tried at a time: strangers cost the API server no more; a guess."""

OpenSource = Callable[[str], AbstractAsyncContextManager[Source]]
"""Opens the source that answers with the rights of a token."""


class LoginError(MoorageError):
    """A token opens nothing; the message is for the viewer."""


class Door(Protocol):
    """Lets viewers in.

    Attributes
    ----------
    has_form
        Whether a viewer types a token into a form; otherwise a link has it.
    closed_text
        What somebody reads who has not logged in.
    """

    has_form: bool
    closed_text: str

    def start(self) -> None:
        """Let viewers in from now on."""
        ...

    async def view(self, token: str) -> View:
        """Return what a viewer with a token sees.

        Raises
        ------
        LoginError
            The token opens nothing.
        MoorageError
            Nobody can say.
        """
        ...

    async def leave(self, view: View) -> None:
        """Take back what a viewer saw, after the end of the session."""
        ...

    async def close(self) -> None:
        """Let nobody in any more."""
        ...


class LinkDoor:
    """One view for all, behind a link that works once.

    Parameters
    ----------
    view
        What every viewer sees.
    on_token
        Called with each new token: the first at once, another whenever one was used.
    """

    has_form = False
    closed_text = (
        "This page opens with a login link, which works once.\n"
        "The program that serves the page prints the link, and the next one when it was used.\n"
    )

    def __init__(self, view: View, on_token: Callable[[str], None]) -> None:
        self._view = view
        self._on_token = on_token
        self._token = ""

    def start(self) -> None:
        """Make the first token."""
        self._view.start()
        self._renew_token()

    async def view(self, token: str) -> View:
        """Return the view of all viewers; the token works once."""
        if not self._token or not hmac.compare_digest(token.encode(), self._token.encode()):
            raise LoginError(
                "This login link was used, or is another page's. "
                "The program that serves the page prints the next one."
            )
        self._renew_token()
        return self._view

    async def leave(self, view: View) -> None:
        """Do nothing: others may look at the same view."""

    async def close(self) -> None:
        """End the view."""
        await self._view.close()

    def _renew_token(self) -> None:
        # Not from a stream of `base.rng`: a seed that is printed must not open the page.
        self._token = secrets.token_urlsafe(_TOKEN_BYTES)
        self._on_token(self._token)


class TokenDoor:
    """A view for each viewer, with the rights of the viewer's own token.

    Parameters
    ----------
    open_source
        Opens the source that answers with the rights of a token.
    clock
        Real time.
    """

    has_form = True
    closed_text = "Log in at /login, with a token of the cluster.\n"

    def __init__(self, open_source: OpenSource, clock: Clock) -> None:
        self._open_source = open_source
        self._clock = clock
        self._turns = asyncio.Semaphore(_LOGINS_MAX)
        self._views: dict[View, None] = {}

    def start(self) -> None:
        """Do nothing: each view begins with its viewer."""

    async def view(self, token: str) -> View:
        """Try a token on the scheduler, and return what it shows."""
        if not (token.isascii() and token.isprintable() and 0 < len(token) <= _TOKEN_CHARS_MAX):
            raise LoginError("This is no token.")
        async with self._turns, AsyncExitStack() as stack:
            source = await stack.enter_async_context(self._open_source(token))
            await _check_answers(source)
            view = View(source, self._clock, stack.pop_all().aclose)
        self._views[view] = None
        view.start()
        return view

    async def leave(self, view: View) -> None:
        """End the view."""
        self._views.pop(view, None)
        await view.close()

    async def close(self) -> None:
        """End every view."""
        for view in list(self._views):
            await self.leave(view)


async def _check_answers(source: Source) -> None:
    try:
        answered = await source.ask("/queue", {"limit": "1"})
    except MoorageError as error:
        # A caller that may not read the Lease is refused before there is a scheduler to ask.
        if isinstance(error.__cause__, UnauthorizedError):
            raise LoginError(f"The API server refuses this token: {error.__cause__}") from error
        raise
    if answered.status != HTTPStatus.OK:
        raise LoginError(f"The scheduler refuses this token: {answered.message}")
