"""The journal of one cluster: opened, committed to, compacted, closed.

`persistence` commits in one thread and compacts in another; only the mark is touched by both.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import logging
import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import msgspec

from moorage.base.clock import Clock
from moorage.base.errors import UsageError
from moorage_sandbox.storage.journal.faults import DamagedError, NoRoomError, UnsureError
from moorage_sandbox.storage.journal.files import File, Files, put
from moorage_sandbox.storage.journal.groups import (
    FORMAT,
    Chain,
    Entry,
    GroupKind,
    Opening,
    entry_of,
)
from moorage_sandbox.storage.journal.mark import (
    MARK,
    PROGRESS,
    Mark,
    Progress,
    encode_mark,
    encode_progress,
    generation_of,
    log_name,
    read_mark,
)
from moorage_sandbox.storage.journal.reading import (
    Entries,
    JournalContent,
    SnapshotReader,
    load,
    log_groups,
    writes_of,
)
from moorage_sandbox.storage.journal.salvaging import salvage
from moorage_sandbox.storage.journal.snapshots import merged, write_snapshot
from moorage_sandbox.storage.record import Record
from moorage_sandbox.storage.store import Write

_log = logging.getLogger(__name__)

# How many versions are set aside at once (a guess). More are set aside when half of them are used
# up, long before the mark is needed: a disk may lose the last write that it confirmed.
VERSIONS_AHEAD = 10_000
# The smallest size of a log that is compacted into the snapshot: a guess, between a long restart
# and constant compaction. The log of a larger snapshot may grow as large as the snapshot.
LOG_BYTES = 16 << 20
RESERVE = "reserve"
RESERVE_BYTES = 1 << 20
"""Room that is set aside for deletes on a full disk, because deletes free more room."""
# Of the commits that are refused for want of room at the start, every so many tries once more, and
# the first few (a guess: about once a minute, by the leases of a sandbox).
_TRIES_APART = 64
# A write that fails with one of these errors has not begun, or is cut off again.
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class Journal:
    """The files of one cluster. Each method is called by one thread at a time.

    Parameters
    ----------
    files
        The files of the journal.
    clock
        The clock whose time is kept with every commit; None for the machine's clock.
    served
        Whether the cluster was served before, so that missing files are damage.
    salvaging
        Whether to take the readable part of a damaged journal; `report` lists the rest.

    Raises
    ------
    UsageError
        The files are damaged, of another form, or cannot be read and written.
    """

    def __init__(
        self,
        files: Files,
        clock: Clock | None = None,
        *,
        served: bool = False,
        salvaging: bool = False,
    ) -> None:
        self._files = files
        self._clock = clock
        self._marking = threading.Lock()
        self._ending = False
        self._log: File | None = None
        self._mark = Mark(
            format=FORMAT,
            snapshot=1,
            log=1,
            ceiling=0,
            clean=False,
            sequence=0,
            version=0,
            moment_ns=0,
        )
        self._chain = Chain()
        self._version = self._moment_ns = self._log_bytes = self._snapshot_bytes = 0
        self._log_bytes_max, self._retry_bytes = LOG_BYTES, 0
        self._entries: Entries = {}
        self._has_reserve = False
        # Commits refused since the journal was opened without room to write; see `_without_room`.
        self._refused = 0
        self.report: list[str] = []
        try:
            self._has_reserve = RESERVE in files.names()
            self._open(served=served, salvaging=salvaging)
        except OSError as error:
            raise UsageError(f"cannot use {files.where}: {error.strerror or error}") from error

    # -- beginning ---------------------------------------------------------------------------------

    def _open(self, *, served: bool, salvaging: bool) -> None:
        try:
            content = load(self._files, served=served)
        except DamagedError as damage:
            if not salvaging:
                raise
            salvaged = salvage(self._files, damage)
            self.report = salvaged.report
            self._begin(salvaged.content, salvaged.content.version)
            salvaged.set_aside(self._files)
            self._clear()
            return
        if content is None:
            return
        try:
            self._go_on(content)
        except OSError as error:
            self._without_room(content, error)
        else:
            self._clear()

    def _go_on(self, content: JournalContent) -> None:
        """Open the end of the chain for writing."""
        if not content.mark.clean:
            # Some of the versions set aside may have been given out and lost; no version is given
            # out twice.
            self._begin(content, content.mark.ceiling)
            return
        self._take_over(content, content.version)
        self._log = self._files.open(log_name(content.mark.log), new=False)
        self._log_bytes_max = max(LOG_BYTES, content.snapshot_bytes)
        self._set_mark(clean=False, ceiling=content.version + VERSIONS_AHEAD)

    def _without_room(self, content: JournalContent, error: OSError) -> None:
        """Take over what is kept although the disk is full; writes are refused until it is not.

        Raises
        ------
        OSError
            Something else is wrong.
        """
        self._forget_log()
        if error.errno not in _NO_ROOM or read_mark(self._files) != content.mark:
            raise error
        self._remove_unnamed(content.mark)
        if self._give_reserve():
            try:
                self._go_on(content)
            except OSError as second:
                self._without_room(content, second)
            return
        self._take_over(content, content.version if content.mark.clean else content.mark.ceiling)
        _log.error(
            "%s has no room: the cluster is served as it is kept there, and every write is "
            "refused until about %d MiB are free",
            self._files.where,
            ((content.snapshot_bytes + content.log_bytes) >> 20) + 1,
        )

    def _forget_log(self) -> None:
        if self._log is not None:
            self._log.close()
            self._log = None

    def _begin_late(self) -> None:
        """Try to open for writing what was opened without room; now and then, as it takes long.

        Raises
        ------
        NoRoomError
            There is still no room.
        """
        self._refused += 1
        often = self._refused & (self._refused - 1) == 0 or self._refused % _TRIES_APART == 0
        error: OSError | None = None
        if often:
            content, moment_ns = load(self._files, served=True), self._moment_ns
            assert content is not None, "a journal was opened"
            try:
                self._go_on(content)
            except OSError as problem:
                error = problem
                self._forget_log()
                self._remove_unnamed(content.mark)
                if error.errno not in _NO_ROOM:
                    raise _unsure(self._files, error) from error
            self._entries, self._moment_ns = {}, max(moment_ns, self._moment_ns)
        if self._log is None:
            raise NoRoomError(f"{self._files.where}: {os.strerror(errno.ENOSPC)}") from error
        self._clear()

    def _begin(self, content: JournalContent, version: int) -> None:
        """Write everything again: some of the read data may be in the system's memory only."""
        self._take_over(content, version)
        entries = [entry for _, entry in sorted(content.entries.items())]
        self._write_all(content.mark.log + 1, entries)

    def _take_over(self, content: JournalContent, version: int) -> None:
        self._mark, self._chain, self._entries = content.mark, content.chain, content.entries
        self._version, self._moment_ns = version, content.moment_ns
        self._log_bytes, self._snapshot_bytes = content.log_bytes, content.snapshot_bytes

    def version(self) -> int:
        """Return the newest version that may have been given out; 0 for a new journal."""
        return self._version

    def records(self) -> Iterator[tuple[str, Record]]:
        """Yield (resource, object) of everything kept, in order; only once."""
        entries, self._entries = self._entries, {}
        for _, entry in sorted(entries.items()):
            yield entry.resource, entry.record

    def fill(self, records: Sequence[tuple[str, Record]], version: int) -> None:
        """Write everything a new cluster begins with.

        Parameters
        ----------
        records
            Resource and object.
        version
            The newest resourceVersion given out.

        Raises
        ------
        UsageError
            The disk is full.
        """
        self._version = version
        entries = sorted((entry_of(*each) for each in records), key=lambda entry: entry.key)
        try:
            self._write_all(1, entries)
            self._clear()
        except OSError as error:
            why = error.strerror or error
            raise UsageError(f"cannot write to {self._files.where}: {why}") from error

    def _write_all(self, generation: int, entries: list[Entry]) -> None:
        """Write a snapshot and an empty log, and let the mark name them."""
        moment_ns = self._now()
        at = (self._version, moment_ns)
        self._snapshot_bytes = write_snapshot(self._files, generation, self._chain, entries, at=at)
        self._log, self._chain, self._log_bytes = self._begin_log(generation)
        self._set_mark(
            snapshot=generation,
            log=generation,
            clean=False,
            ceiling=self._version + VERSIONS_AHEAD,
        )
        self._log_bytes_max = max(LOG_BYTES, self._snapshot_bytes)

    def _begin_log(self, generation: int) -> tuple[File, Chain, int]:
        """Make an empty log durable; return it, its opening as the end of the chain, its size."""
        name = log_name(generation)
        opening = Opening(FORMAT, name, self._chain.sequence, self._chain.digest)
        data, chain = self._chain.next_group(
            GroupKind.OPENING, opening, version=self._version, moment_ns=self._now()
        )
        log = self._files.open(name, new=True)
        try:
            log.write(data)
            log.sync()
            self._files.sync_names()
        except OSError:
            log.close()
            raise
        return log, chain, len(data)

    def _clear(self) -> None:
        """Remove files that the mark does not name, and set room aside."""
        self._remove_unnamed(self._mark)
        self._set_room_aside()

    def _remove_unnamed(self, mark: Mark) -> None:
        for name in self._files.names():
            generation = generation_of(name)
            if generation is None:
                continue
            if name.endswith(".new") or not mark.snapshot <= generation <= mark.log:
                self._files.remove(name)

    # -- writing -----------------------------------------------------------------------------------

    def commit(self, writes: Sequence[Write]) -> None:
        """Make writes durable, all or none; of several writes to one object only the last is kept.

        Raises
        ------
        NoRoomError
            The writes are not durable; the files are as they were.
        UnsureError
            The writes may be durable or not; nothing more can be written.
        """
        last = {(write.resource, *write.change.record.key): write for write in writes}
        entries = [
            entry_of(each.resource, each.change.record, removed=each.change.type == "DELETED")
            for each in last.values()
        ]
        version = writes[-1].change.version
        if self._log is None:
            self._begin_late()
        try:
            self._append(entries, version)
        except NoRoomError:
            if not any(_makes_room(write) for write in writes) or not self._give_reserve():
                raise
            self._append(entries, version)
        # Only one log at a time waits for compaction.
        if self._log_bytes >= self._log_bytes_max and self._mark.snapshot == self._mark.log:
            self._rotate()

    def _append(self, entries: Sequence[Entry], version: int) -> None:
        log = self._log
        assert log is not None, "fill comes first"
        if version > self._mark.ceiling - VERSIONS_AHEAD // 2:
            self._raise_ceiling(version)
        data, chain = self._chain.next_group(
            GroupKind.WRITES, entries, version=version, moment_ns=self._now()
        )
        try:
            log.write(data)
        except OSError as error:
            if error.errno not in _NO_ROOM:
                raise _unsure(self._files, error) from error
            try:
                log.cut(self._log_bytes)
            except OSError as second:
                raise _unsure(self._files, second) from second
            raise NoRoomError(f"{self._files.where}: {error.strerror}") from error
        try:
            log.sync()
        except OSError as error:
            raise _unsure(self._files, error) from error
        self._chain, self._version = chain, version
        self._log_bytes += len(data)
        progress = Progress(chain.sequence, version, chain.digest)
        with contextlib.suppress(OSError):
            self._files.note(PROGRESS, encode_progress(progress))

    def _raise_ceiling(self, version: int) -> None:
        """Set versions aside before any of them is given out."""
        try:
            self._set_mark(ceiling=version + VERSIONS_AHEAD)
        except OSError as error:
            if error.errno in _NO_ROOM:
                raise NoRoomError(f"{self._files.where}: {error.strerror}") from error
            raise _unsure(self._files, error) from error

    def _set_mark(self, **changes: Any) -> None:
        with self._marking:
            mark = msgspec.structs.replace(
                self._mark,
                sequence=self._chain.sequence,
                version=self._version,
                moment_ns=self._moment_ns,
                **changes,
            )
            put(self._files, MARK, encode_mark(mark))
            self._mark = mark

    def _now(self) -> int:
        """Return the present time; no object on the disk is younger."""
        if self._clock is not None:
            self._moment_ns = self._clock.now_ns()
        return self._moment_ns

    # -- compacting --------------------------------------------------------------------------------

    @property
    def compaction_due(self) -> bool:
        """Whether some log no longer grows, and its compaction may succeed."""
        waits = self._mark.snapshot < self._mark.log and not self._ending
        return waits and self._log_bytes >= self._retry_bytes

    def _rotate(self) -> None:
        """Begin a new log, so that the log before can be compacted into the snapshot."""
        old, generation = self._log, self._mark.log + 1
        try:
            log, chain, log_bytes = self._begin_log(generation)
        except OSError as error:
            # Committed writes are safe in the old log; the next commit shows the state of the disk.
            self._log_bytes_max = self._log_bytes + LOG_BYTES
            _log.warning("cannot begin a new log in %s: %s", self._files.where, error)
            return
        try:
            self._set_mark(log=generation)
        except OSError as error:
            log.close()
            raise _unsure(self._files, error) from error
        self._log, self._chain, self._log_bytes = log, chain, log_bytes
        self._log_bytes_max = max(LOG_BYTES, self._snapshot_bytes)
        if old is not None:
            old.close()

    def compact(self) -> None:
        """Compact the log that no longer grows into a new snapshot; may run next to `commit`."""
        try:
            self._compact(self._mark.snapshot, self._mark.log)
        except _EndingError:
            return
        except (OSError, DamagedError) as error:
            self._retry_bytes = self._log_bytes + LOG_BYTES
            _log.error("the logs in %s cannot be compacted: %s", self._files.where, error)

    def _compact(self, first: int, growing: int) -> None:
        reader = SnapshotReader(self._files, first)
        objects = iter(reader)
        # The first object comes after the opening, which names the next group of the log.
        head = list(islice(objects, 1))
        chain, at = reader.chain, (reader.version, reader.moment_ns)
        changes: Entries = {}
        for generation in range(first, growing):
            for group in log_groups(self._files, generation, chain):
                self._check_ending()
                chain = Chain(group.sequence, group.digest)
                at = (group.version, group.moment_ns)
                for entry in writes_of(group):
                    changes[entry.key] = entry
        entries = self._until_ending(merged(itertools.chain(head, objects), changes))
        size = write_snapshot(self._files, growing, chain, entries, at=at)
        self._set_mark(snapshot=growing)
        self._snapshot_bytes, self._retry_bytes = size, 0
        self._clear()

    def _until_ending(self, entries: Iterable[Entry]) -> Iterator[Entry]:
        for entry in entries:
            self._check_ending()
            yield entry

    def _check_ending(self) -> None:
        if self._ending:
            raise _EndingError

    # -- room and end ------------------------------------------------------------------------------

    def _set_room_aside(self) -> None:
        if self._has_reserve:
            return
        try:
            reserve = self._files.open(RESERVE, new=True)
            try:
                reserve.write(bytes(RESERVE_BYTES))
                reserve.sync()
            finally:
                reserve.close()
            self._has_reserve = True
        except OSError:
            # There is no room to set aside.
            self._files.remove(RESERVE)

    def _give_reserve(self) -> bool:
        """Give up the room that was set aside; returns whether there was any."""
        if not self._has_reserve:
            return False
        try:
            self._files.remove(RESERVE)
        except OSError:
            # Some file systems need room to remove a file.
            return False
        self._has_reserve = False
        return True

    def end_compaction(self) -> None:
        """Make a compaction under way give up."""
        self._ending = True

    def close(self, *, sure: bool = True) -> None:
        """Close the files.

        Parameters
        ----------
        sure
            Whether the end of the chain is known to be on the disk, so that the next server may
            expect the whole chain.
        """
        if self._log is None:
            return
        if sure:
            self._now()
            with contextlib.suppress(OSError):
                self._set_mark(clean=True, ceiling=self._version)
        self._log.close()
        self._log = None


class _EndingError(Exception):
    """The server ends without waiting for a compaction."""


def _makes_room(write: Write) -> bool:
    """Whether a write removes an object, or begins to remove it."""
    change = write.change
    if change.type == "DELETED":
        return True
    marked = b'"deletionTimestamp"'
    before = change.previous
    return marked in change.record.data and (before is None or marked not in before.data)


def _unsure(files: Files, error: OSError) -> UnsureError:
    return UnsureError(f"{files.where}: {error.strerror or error}")
