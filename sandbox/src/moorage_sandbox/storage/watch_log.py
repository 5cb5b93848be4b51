"""The changes of one resource, in order: the source of every watch stream.

`store` appends, `watching` reads. Each reader keeps its own position, the last resourceVersion it
has seen. The log keeps no queue for any reader, so memory does not grow with readers. When the log
has dropped the position of a slow reader, the reader gets a 410 and starts over.

Waking a reader costs as much as its reading. So many readers are woken together, and then not again
at once: see `WatchLog.append`.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Literal

import msgspec

from moorage.base.aio import paces_by_time
from moorage_sandbox.storage.record import Record

ChangeType = Literal["ADDED", "MODIFIED", "DELETED"]

# Up to this number of readers are woken at every change; most resources have fewer readers.
_READERS_FEW = 4
# With more readers, the pause after waking all of them, for each reader. Waking a reader, and
# writing to it over TLS, costs a fifth of it. So waking takes a fifth of the time at most.
_PAUSE_SECONDS = 0.0004


class Change(msgspec.Struct, frozen=True):
    """One write.

    Parameters
    ----------
    type
        Type of the change, for a reader of all objects.
    version
        resourceVersion of the write; rises along the log.
    record
        The object after the write; for DELETED the last state, with the deletion's version.
    previous
        The object before, None for ADDED.
    """

    type: ChangeType
    version: int
    record: Record
    previous: Record | None


class Limits(msgspec.Struct, frozen=True):
    """Bounds of a log. The defaults are guesses: minutes of a busy 5000 node cluster.

    Parameters
    ----------
    changes
        Number of changes.
    size_bytes
        Sum of the encoded objects of these changes.
    """

    changes: int = 50_000
    size_bytes: int = 64 * 1024 * 1024


class WatchLog:
    """A bounded list of changes of one resource, and the readers that wait for the next change."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._changes: list[Change] = []
        # The live part of _changes begins here. The dead front is cut off now and then, because
        # cutting off each change by itself would move the whole list each time.
        self._start = 0
        self._size_bytes = 0
        # Every change with a version above this one is still here.
        self._forgotten_version = 0
        # By arrival: a set would wake readers in an order that differs from run to run.
        self._asleep: dict[asyncio.Future[None], None] = {}
        self._readers = 0
        # Loop time before which many readers are not woken again, and the timer that wakes them
        # then.
        self._wake_after = 0.0
        self._wake_later: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._changes) - self._start

    @property
    def size_bytes(self) -> int:
        """Encoded size of the objects of all changes kept, bytes."""
        return self._size_bytes

    @property
    def forgotten_version(self) -> int:
        """Highest version dropped; a reader at or above it can go on without a gap."""
        return self._forgotten_version

    @property
    def readers_asleep(self) -> int:
        """Number of readers waiting for the next change."""
        return len(self._asleep)

    @property
    def readers(self) -> int:
        """Number of readers, waiting or not."""
        return self._readers

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Count the caller as a reader."""
        self._readers += 1
        try:
            yield
        finally:
            self._readers -= 1

    def append(self, change: Change) -> None:
        """Add the newest change, drop the oldest beyond the limits, wake all readers.

        Few readers are woken at once. Many readers are woken at once after a quiet time, else at
        the end of their pause, to read all changes since.
        """
        self._changes.append(change)
        self._size_bytes += len(change.record.data)
        while len(self) > self._limits.changes or (
            self._size_bytes > self._limits.size_bytes and len(self) > 1
        ):
            self._forget_oldest()
        if self._readers <= _READERS_FEW:
            self.wake()
        elif self._wake_later is None:
            self._wake_many()

    def compact(self, version: int) -> None:
        """Forget every change up to and including this version."""
        while len(self) and self._changes[self._start].version <= version:
            self._forget_oldest()
        self._forgotten_version = max(self._forgotten_version, version)

    def since(self, version: int, limit: int) -> Sequence[Change] | None:
        """Return up to ``limit`` changes after ``version``; None when the log has dropped some."""
        if version < self._forgotten_version:
            return None
        first = bisect_right(self._changes, version, lo=self._start, key=_version)
        return self._changes[first : first + limit]

    async def wait_for_change(self, timeout_seconds: float) -> None:
        """Wait for the next change, or `wake`, or the end of the time."""
        if timeout_seconds <= 0:
            return
        loop = asyncio.get_running_loop()
        woken: asyncio.Future[None] = loop.create_future()
        timer = loop.call_later(timeout_seconds, _set, woken)
        self._asleep[woken] = None
        try:
            await woken
        finally:
            timer.cancel()
            self._asleep.pop(woken, None)

    async def gather(self) -> None:
        """Wait for the end of the current pause, in which changes gather for many readers."""
        if self._wake_later is not None:
            await self.wait_for_change(self._readers * _PAUSE_SECONDS)

    def wake(self) -> None:
        """Wake every reader in the order they came, change or not (on shutdown)."""
        if self._asleep:
            asleep, self._asleep = self._asleep, {}
            for future in asleep:
                _set(future)

    def _wake_many(self) -> None:
        """Wake all readers now, or when their pause is over."""
        loop = asyncio.get_running_loop()
        if loop.time() < self._wake_after and paces_by_time():
            self._wake_later = loop.call_at(self._wake_after, self._pause_over)
        else:
            self._pause_over()

    def _pause_over(self) -> None:
        self._wake_later = None
        pause = self._readers * _PAUSE_SECONDS
        self._wake_after = asyncio.get_running_loop().time() + pause
        self.wake()

    def _forget_oldest(self) -> None:
        change = self._changes[self._start]
        self._forgotten_version = change.version
        self._size_bytes -= len(change.record.data)
        self._start += 1
        if self._start >= 256 and self._start * 2 >= len(self._changes):
            del self._changes[: self._start]
            self._start = 0


def _version(change: Change) -> int:
    return change.version


def _set(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
