"""Makes writes durable in groups, before any client learns of them.

The store applies a write in memory at once and passes it on. While one group is being committed in
a thread, the next group collects writes. Callers wait in `durable`; watchers learn of a write after
the commit. If the disk has no room for a group, it is taken back together with all later writes. No
client has seen any of them, so the store continues from the content of the disk. After any other
failure the content of the disk is unknown. Then nothing more is written or answered, and the server
ends; it reads its directory again at the next start.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from moorage.base.aio import TaskOwner
from moorage.base.errors import MoorageError
from moorage.kinds.status import StatusError
from moorage_sandbox.storage.journal.faults import NoRoomError, UnsureError
from moorage_sandbox.storage.journal.journal import Journal
from moorage_sandbox.storage.store import Store, Write

_log = logging.getLogger(__name__)


class Group:
    """Writes that are committed together, and the calls that wait for the commit."""

    def __init__(self) -> None:
        self.writes: list[Write] = []
        self._waiting: list[asyncio.Future[None]] = []
        self._settled = False
        self._error: StatusError | None = None

    def report_commit(self, error: StatusError | None) -> None:
        """Give the result of the commit to calls that wait now, or call `wait_durable` later."""
        self._settled, self._error = True, error
        for future in self._waiting:
            if future.done():  # the client has disconnected
                continue
            if error is None:
                future.set_result(None)
            else:
                future.set_exception(error)

    async def wait_durable(self) -> None:
        """Wait until the writes are on the disk.

        Raises
        ------
        StatusError
            As `Persistence.durable`.
        """
        if not self._settled:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(future)
            await future
        elif self._error is not None:
            raise self._error


class Persistence:
    """Commits the writes of a store.

    Parameters
    ----------
    store
        The store; from now on its watchers learn of committed writes only.
    journal
        The journal, with the same content as the store.
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
        # The group that collects writes, and the group being committed.
        self._next = Group()
        self._current: Group | None = None
        self._committing = False
        self._refusing = False
        # Answer to every call once the content of the disk is unknown.
        self._stopped: StatusError | None = None
        self._failed = asyncio.Event()
        self._compacting = False
        self._compactor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="compaction")
        store.hold_back(self.collect)

    @property
    def stopped(self) -> StatusError | None:
        """The answer to every call once writing has been given up."""
        return self._stopped

    async def failed(self) -> None:
        """Wait until writing is given up, and raise its cause.

        Raises
        ------
        MoorageError
            The disk failed.
        """
        await self._failed.wait()
        assert self._stopped is not None, "set before the event"
        raise MoorageError(self._stopped.message)

    async def durable(self) -> None:
        """Wait until all writes so far are on the disk.

        Raises
        ------
        StatusError
            507: the disk is full, and the write has been taken back. 500: the disk failed, and its
            content is unknown.
        """
        if self._stopped is not None:
            raise self._stopped
        group = self.group_of_last_write()
        if group is not None:
            await group.wait_durable()

    def group_of_last_write(self) -> Group | None:
        """Return the group that the last write is in; None where every write is on the disk."""
        return self._next if self._next.writes else self._current

    def collect(self, write: Write) -> None:
        """Take a write of the store into the next group."""
        self._next.writes.append(write)
        if not self._committing and self._stopped is None:
            self._committing = True
            self._tasks.spawn(self._commit_all(), name="commit writes")

    async def close(self) -> None:
        """Commit the remaining writes and close the files."""
        self._journal.end_compaction()
        try:
            await self.durable()
        except StatusError as error:
            if self._stopped is None:
                _log.error("the last writes are lost: %s", error)
        await self._tasks.cancel_all()
        # A compaction under way ends soon, because it has been told to stop.
        await asyncio.to_thread(self._compactor.shutdown)
        sure = self._stopped is None
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._thread, lambda: self._journal.close(sure=sure))
        self._thread.shutdown()

    async def _commit_all(self) -> None:
        """Commit groups until no writes are left."""
        loop = asyncio.get_running_loop()
        try:
            while self._next.writes and self._stopped is None:
                group, self._next = self._next, Group()
                self._current = group
                try:
                    await loop.run_in_executor(self._thread, self._journal.commit, group.writes)
                except NoRoomError as error:
                    self._refuse(group, error)
                except Exception as error:
                    # A bug, too, leaves the content of the disk unknown.
                    if not isinstance(error, UnsureError):
                        _log.exception("the journal failed")
                    self._stop(group, error)
                else:
                    self._accept(group)
        finally:
            self._committing = False

    async def _compact(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            await loop.run_in_executor(self._compactor, self._journal.compact)
        finally:
            self._compacting = False

    def _accept(self, group: Group) -> None:
        self._current = None
        if self._refusing:
            self._refusing = False
            _log.warning("writes are kept again")
        try:
            self._store.publish(group.writes)
        finally:
            # The writes are on the disk, whatever becomes of the watches.
            group.report_commit(None)
        if self._journal.compaction_due and not self._compacting:
            self._compacting = True
            self._tasks.spawn(self._compact(), name="compact the journal")

    def _stop(self, group: Group, error: Exception) -> None:
        """Give up writing: the content of a group on the disk is unknown."""
        above, self._next, self._current = self._next, Group(), None
        self._stopped = StatusError(
            500,
            "InternalError",
            f"Internal error occurred: the disk failed in a write: {error}; whether the last "
            "writes are kept is not known, so the server ends; start it again to read what is "
            "there",
        )
        _log.error("%s", self._stopped.message)
        group.report_commit(self._stopped)
        above.report_commit(self._stopped)
        self._failed.set()

    def _refuse(self, group: Group, error: NoRoomError) -> None:
        """Take back a group and all later writes."""
        above, self._next, self._current = self._next, Group(), None
        undone = group.writes + above.writes
        if not self._refusing:
            self._refusing = True
            _log.error("writes are refused: %s", error)
        self._store.undo(undone)
        self._on_undone(undone)
        if self._next.writes:
            # The server's own repairs would be refused as well, without end.
            self._store.undo(self._next.writes)
            self._next = Group()
        refusal = StatusError(
            507,
            "InsufficientStorage",
            f"the data directory takes no more writes: {error}; nothing was changed, "
            "make room and try again",
        )
        group.report_commit(refusal)
        above.report_commit(refusal)
