"""Makes writes durable in groups, before anybody is told of them.

The store applies a write in memory at once and hands it over; while one group is being committed
in a thread, the next gathers. Callers wait in `durable`, watchers are told after the commit. A
group that cannot be committed (the disk is full) is taken back together with all that was written
on top of it: nobody has seen any of it, so the store goes on from what is on the disk.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from moorage.apiserver.journal import Journal
from moorage.apiserver.status import StatusError
from moorage.apiserver.store import Store, Write
from moorage.base.aio import TaskOwner

_log = logging.getLogger(__name__)

_FULL = ("SQLITE_FULL", "SQLITE_IOERR_WRITE")


class _Group:
    """Writes committed together, and who waits for that."""

    def __init__(self) -> None:
        self.writes: list[Write] = []
        self.waiting: list[asyncio.Future[None]] = []

    def settle(self, error: StatusError | None) -> None:
        """Tell everybody who waits."""
        for future in self.waiting:
            # Whoever hung up meanwhile is done.
            if future.done():
                continue
            if error is None:
                future.set_result(None)
            else:
                future.set_exception(error)


class Persistence:
    """Commits the writes of a store.

    Parameters
    ----------
    store
        Whose writes; from now on its watchers are told of committed writes only.
    journal
        Where to. Holds what the store holds.
    on_undone
        Called with the writes that were taken back.
    """

    def __init__(
        self, store: Store, journal: Journal, *, on_undone: Callable[[list[Write]], None]
    ) -> None:
        self._store = store
        self._journal = journal
        self._on_undone = on_undone
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="journal")
        self._tasks = TaskOwner()
        # What gathers, and what is being committed.
        self._next = _Group()
        self._current: _Group | None = None
        self._committing = False
        self._refusing = False
        store.hold_back(self._written)

    async def durable(self) -> None:
        """Wait until everything written so far is on the disk.

        Raises
        ------
        StatusError
            507 or 500: it could not be written, and has been taken back.
        """
        group = self._next if self._next.writes else self._current
        if group is None:
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        group.waiting.append(future)
        await future

    async def close(self) -> None:
        """Commit what is left and let the file go."""
        try:
            await self.durable()
        except StatusError as error:
            _log.error("the last writes are lost: %s", error)
        await self._tasks.cancel_all()
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._thread, self._journal.close)
        self._thread.shutdown()

    def _written(self, write: Write) -> None:
        self._next.writes.append(write)
        if not self._committing:
            self._committing = True
            self._tasks.spawn(self._commit_all(), name="commit writes")

    async def _commit_all(self) -> None:
        """Commit groups until nothing is left."""
        loop = asyncio.get_running_loop()
        try:
            while self._next.writes:
                group, self._next = self._next, _Group()
                self._current = group
                try:
                    await loop.run_in_executor(self._thread, self._journal.commit, group.writes)
                except sqlite3.Error as error:
                    self._refuse(group, error)
                else:
                    self._accept(group)
        finally:
            self._committing = False

    def _accept(self, group: _Group) -> None:
        self._current = None
        if self._refusing:
            self._refusing = False
            _log.warning("writes are kept again")
        self._store.publish(group.writes)
        group.settle(None)

    def _refuse(self, group: _Group, error: sqlite3.Error) -> None:
        """Take back a group and everything written on top of it."""
        above, self._next, self._current = self._next, _Group(), None
        undone = group.writes + above.writes
        if not self._refusing:
            self._refusing = True
            _log.error("writes are refused: %s", error)
        self._store.undo(undone)
        self._on_undone(undone)
        if self._next.writes:
            # What the server itself wrote to settle things would be refused as well, for ever.
            self._store.undo(self._next.writes)
            self._next = _Group()
        refusal = _refusal(error)
        group.settle(refusal)
        above.settle(refusal)


def _refusal(error: sqlite3.Error) -> StatusError:
    name = getattr(error, "sqlite_errorname", "")
    if name in _FULL:
        return StatusError(
            507,
            "InsufficientStorage",
            f"the data directory takes no more writes: {error}; nothing was changed, "
            "make room and try again",
        )
    return StatusError(
        500,
        "InternalError",
        f"Internal error occurred: the write could not be made durable: {error}; "
        "nothing was changed",
    )
