"""The view of a login: the source that answers its questions, and the feed of the changes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from moorage.base.aio import TaskOwner
from moorage.base.clock import Clock
from moorage.dashboard.feed import Feed
from moorage.dashboard.source import Source


async def _nothing() -> None:
    """Close nothing."""


class View:
    """A source, and the feed over it.

    Parameters
    ----------
    source
        Answers the questions, with the rights of whoever looks.
    clock
        Real time.
    on_close
        Closes what the source reads from; idempotent.
    """

    def __init__(
        self, source: Source, clock: Clock, on_close: Callable[[], Awaitable[None]] = _nothing
    ) -> None:
        self.source = source
        self.feed = Feed(source, clock)
        self._on_close = on_close
        self._tasks = TaskOwner()

    def start(self) -> None:
        """Follow the source while somebody looks."""
        self._tasks.spawn(self.feed.run(), name="look for the page")
        self._tasks.spawn(self.feed.beat(), name="signs of life of the page")

    async def close(self) -> None:
        """End the feed, and close what the source reads from; idempotent."""
        await self._tasks.cancel_all()
        await self._on_close()
