"""Sends writes in parallel, keeps the order within a key, and retries unanswered writes."""

from __future__ import annotations

import asyncio
import logging
import zlib
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from moorage.base import aio
from moorage.base.clock import Clock
from moorage.base.errors import ApiError, MoorageError, TransportError
from moorage.base.rng import Random
from moorage.client.backoff import Backoff, BackoffRule

_log = logging.getLogger(__name__)

_WRITERS = 16  # guess: keeps a local server busy without hogging its connections

Job: TypeAlias = Callable[[], Awaitable[None]]


class KeyedWriters:
    """A fixed number of writers with a queue each; a key always goes to the same writer.

    Parameters
    ----------
    rng
        Stream for the jitter of retries.
    """

    def __init__(self, *, clock: Clock, rng: Random) -> None:
        self._clock = clock
        self._rng = rng
        self._queues: list[asyncio.Queue[tuple[str, Job]]] = [
            asyncio.Queue() for _ in range(_WRITERS)
        ]

    def submit(self, key: str, job: Job) -> None:
        """Add a write; writes of the same key go out in the order they were added."""
        self._queues[zlib.crc32(key.encode()) % _WRITERS].put_nowait((key, job))

    async def drain(self) -> None:
        """Wait until everything submitted so far is done; needs `run`."""
        for queue in self._queues:
            await queue.join()

    async def run(self) -> None:
        """Write until cancelled; an exception in a job ends all writers and is raised."""
        await aio.together(*(self._write_queued(queue) for queue in self._queues))

    async def _write_queued(self, queue: asyncio.Queue[tuple[str, Job]]) -> None:
        while True:
            key, job = await queue.get()
            try:
                await self._persist(key, job)
            finally:
                queue.task_done()

    async def _persist(self, key: str, job: Job) -> None:
        """Repeat a job until the server accepts or refuses it."""
        backoff = Backoff(BackoffRule(), clock=self._clock, rng=self._rng)
        while True:
            try:
                await job()
            except MoorageError as error:
                if not worth_repeating(error):
                    _log.warning("%s: %s", key, error)
                    return
                _log.info("%s: %s; trying again", key, error)
            else:
                return
            await aio.sleep(backoff.next_seconds())


def worth_repeating(error: MoorageError) -> bool:
    """Whether the same write may succeed later: no answer, a conflict, or a busy or failing server.

    A write for which a conflict says that it is done, or for another object, does not raise it.
    """
    if isinstance(error, ApiError):
        return error.code in {409, 429} or error.code >= 500
    return isinstance(error, TransportError)
