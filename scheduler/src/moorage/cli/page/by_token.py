"""Opens what a viewer with a token may see: the scheduler is asked as this viewer.

The page adds no rights of its own. The API server says who the viewer is and which Lease, pod and
objects the viewer may read, and the scheduler leaves out of its answers what the viewer may not.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Final

import msgspec

from moorage.base.errors import MoorageError
from moorage.base.rng import Streams
from moorage.cli.ask import find_scheduler, is_by_lease, leader_of
from moorage.cli.page.objects import WithObjects
from moorage.cli.page.remote import Remote
from moorage.cli.question_target import QuestionTarget
from moorage.client.auth import Credential, FixedCredentials, ServerAccess, bearer
from moorage.client.http_transport import HttpTransport
from moorage.client.leaders.finding import leader_access
from moorage.client.writes import Client
from moorage.dashboard.source import Answered, Source

AGENT: Final = "moorage-dashboard"


@asynccontextmanager
async def source_of_viewer(
    to: QuestionTarget, server: ServerAccess, token: str
) -> AsyncIterator[Source]:
    """Open the source that answers with the rights of a token.

    Parameters
    ----------
    to
        The scheduler to ask.
    server
        The API server; its own credentials are not used.
    token
        A token of the API server.
    """
    credentials = FixedCredentials(Credential((bearer(token),)))
    viewer = msgspec.structs.replace(server, credentials=credentials)
    transport = HttpTransport(viewer, user_agent=AGENT)
    scheduler = Reopened(lambda: _scheduler(to, viewer, transport))
    try:
        yield WithObjects(scheduler, Client(transport, rng=Streams().stream("page")))
    finally:
        await scheduler.close()
        await transport.close()


@asynccontextmanager
async def _scheduler(
    to: QuestionTarget, viewer: ServerAccess, server: HttpTransport
) -> AsyncIterator[Source]:
    """Open the way to the scheduler that is named, or to the leader."""
    async with AsyncExitStack() as stack:
        if is_by_lease(to):
            leader, _ = await leader_of(to, server, viewer.server)
            access = await stack.enter_async_context(leader_access(viewer, server, leader))
            path = ""
        else:
            named, path, _ = find_scheduler(to)
            access = msgspec.structs.replace(named, credentials=viewer.credentials)
        transport = HttpTransport(access, user_agent=AGENT)
        stack.push_async_callback(transport.close)
        yield Remote(transport, path)


class Reopened:
    """A source that is opened with the first question, and anew after a failure.

    Another scheduler may lead by then.

    Parameters
    ----------
    open_source
        Opens the source.
    """

    def __init__(self, open_source: Callable[[], AbstractAsyncContextManager[Source]]) -> None:
        self._open_source = open_source
        self._opening = asyncio.Lock()
        self._open: tuple[Source, AsyncExitStack] | None = None

    async def ask(self, path: str, query: Mapping[str, str], body: bytes = b"") -> Answered:
        """Ask a question.

        Raises
        ------
        MoorageError
            The source cannot be opened, or does not answer.
        """
        async with self._opening:
            if self._open is None:
                stack = AsyncExitStack()
                self._open = await stack.enter_async_context(self._open_source()), stack
            now = self._open
        source, stack = now
        try:
            return await source.ask(path, query, body)
        except MoorageError as error:
            if self._open is now:
                self._open = None
                # With the error, which the way to the scheduler may know the cause of.
                await stack.__aexit__(type(error), error, error.__traceback__)
            raise

    async def close(self) -> None:
        """Close what is open; idempotent."""
        now, self._open = self._open, None
        if now is not None:
            await now[1].aclose()
