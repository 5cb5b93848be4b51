"""A disk in memory that loses, tears, flips and reorders what is written, and lies about it.

It implements `moorage_sandbox.storage.journal.files.Files`. What has been written is in the cache
of the system; what was synced is on the platter. A killed process leaves both, a power cut the
platter and whatever of the cache `surviving` says.
"""

from __future__ import annotations

import errno
import io
from collections.abc import Callable
from typing import BinaryIO

import msgspec

from moorage.base.rng import Random, Streams
from moorage_sandbox.storage.journal.files import File

SECTOR_BYTES = 512


class KilledError(BaseException):
    """The process is killed in the midst of a call to the disk."""


class Fault(msgspec.Struct, frozen=True):
    """A fault of the disk at one call.

    Parameters
    ----------
    step
        Number of the call, from 1; 0 for none.
    kind
        ``kill``: the process dies before the call takes effect. ``fail``: the call fails with an
        error and takes no effect. ``short``: a write takes effect in part and fails. ``lose``: a
        write takes no effect and succeeds. ``lie``: from this call on nothing is synced, whatever
        is said.
    error
        The error of ``fail`` and ``short``.
    calls
        How long a ``lie`` lasts; then the process is killed.
    """

    step: int = 0
    kind: str = ""
    error: int = errno.EIO
    calls: int = 0


class _Inode:
    """One file: what is on the platter, and the writes that are not yet."""

    def __init__(self) -> None:
        self.cache = bytearray()
        self.platter = bytearray()
        # (offset, data) of each write since the last sync; a cut is (size, None).
        self.pending: list[tuple[int, bytes | None]] = []

    def write_at(self, offset: int, data: bytes) -> None:
        _write(self.cache, offset, data)
        self.pending.append((offset, data))

    def cut(self, size: int) -> None:
        del self.cache[size:]
        self.pending.append((size, None))

    def sync(self, keep: Callable[[int, bytes], list[tuple[int, bytes]]] | None = None) -> None:
        """Bring the pending writes to the platter, or those parts that are kept."""
        for offset, data in self.pending:
            if data is None:
                del self.platter[offset:]
                continue
            for at, part in [(offset, data)] if keep is None else keep(offset, data):
                _write(self.platter, at, part)
        self.pending.clear()


class FaultyDisk:
    """The files of one directory.

    Parameters
    ----------
    fault
        What goes wrong.
    """

    where = "DIR"

    def __init__(self, fault: Fault | None = None) -> None:
        self.fault = fault or Fault()
        self.step = 0
        self._names: dict[str, _Inode] = {}
        self._durable_names: dict[str, _Inode] = {}
        # Changes of names since the last sync of the directory: the names as they were after each.
        self._pending_names: list[dict[str, _Inode]] = []
        self.room_bytes: int | None = None

    # -- Files -------------------------------------------------------------------------------------

    def names(self) -> list[str]:
        """Return the names of all files."""
        return sorted(name for name in self._names if "/" not in name)

    def read(self, name: str) -> BinaryIO:
        """Open a file for reading."""
        if name not in self._names:
            raise FileNotFoundError(errno.ENOENT, "No such file", name)
        return io.BytesIO(bytes(self._names[name].cache))

    def open(self, name: str, *, new: bool) -> File:
        """Open a file for appending."""
        if name not in self._names:
            self._count_call("open")
            self._names[name] = _Inode()
            self._note_names()
        inode = self._names[name]
        if new and inode.cache:
            inode.cut(0)
        return _OpenFile(self, inode)

    def note(self, name: str, data: bytes) -> None:
        """Overwrite the beginning of a file without waiting for the disk."""
        if name not in self._names:
            self._names[name] = _Inode()
            self._note_names()
        if self._count_call("write"):
            self._names[name].write_at(0, data)

    def rename(self, old: str, new: str) -> None:
        """Give a file another name."""
        self._count_call("name")
        self._names[new] = self._names.pop(old)
        self._note_names()

    def remove(self, name: str) -> None:
        """Remove a file."""
        if name in self._names:
            self._count_call("name")
            del self._names[name]
            self._note_names()

    def sync_names(self) -> None:
        """Bring the names to the platter."""
        if self._count_call("sync"):
            self._durable_names = dict(self._names)
            self._pending_names.clear()

    # -- what happens to it ------------------------------------------------------------------------

    def call_write(self, inode: _Inode, data: bytes) -> None:
        """Append to a file."""
        fault = self.fault
        if fault.kind == "short" and self.step + 1 == fault.step:
            self.step += 1
            inode.write_at(len(inode.cache), data[: len(data) // 2])
            raise OSError(fault.error, "a short write")
        if self._count_call("write"):
            self._check_room(len(data))
            inode.write_at(len(inode.cache), data)

    def call_sync(self, inode: _Inode) -> None:
        """Sync a file; after a failure the system takes what was pending for written."""
        try:
            synced = self._count_call("sync")
        except OSError:
            inode.pending.clear()
            raise
        if synced:
            inode.sync()

    def call_cut(self, inode: _Inode, size: int) -> None:
        """Cut a file."""
        self._count_call("cut")
        inode.cut(size)

    def after_death(self) -> FaultyDisk:
        """Return the disk as the next process finds it: the system has lost nothing."""
        return self._restarted(self._names)

    def after_power_cut(self, surviving: str, seed: int = 0) -> FaultyDisk:
        """Return the disk as it is after a power cut.

        Parameters
        ----------
        surviving
            What of the cache is on the platter: ``nothing``, ``all``, the ``first half`` of each
            write, or some ``sectors`` of each. Of changes of names, those are there that came
            first.
        seed
            Which.
        """
        rng = Streams(seed).stream("power cut")
        steps = [self._durable_names, *self._pending_names]
        names = steps[{"nothing": 0, "all": -1}.get(surviving, rng.randrange(len(steps)))]

        def keep(offset: int, data: bytes) -> list[tuple[int, bytes]]:
            if surviving == "nothing":
                return []
            if surviving == "first half":
                return [(offset, data[: len(data) // 2])]
            if surviving == "sectors":
                return _some_sectors(offset, data, rng)
            return [(offset, data)]

        for inode in names.values():
            inode.sync(keep)
            inode.cache[:] = inode.platter
        return self._restarted(names)

    def flip(self, name: str, offset: int) -> None:
        """Change one bit of a file, on the platter and in the cache."""
        self._names[name].cache[offset] ^= 0x10

    def contents(self) -> dict[str, int]:
        """Return name -> size of every file."""
        return {name: len(inode.cache) for name, inode in sorted(self._names.items())}

    def _restarted(self, names: dict[str, _Inode]) -> FaultyDisk:
        disk = FaultyDisk()
        disk._names = dict(names)
        disk._durable_names = dict(names)
        return disk

    def _note_names(self) -> None:
        self._pending_names.append(dict(self._names))

    def _check_room(self, size: int) -> None:
        if self.room_bytes is None:
            return
        used = sum(len(inode.cache) for inode in self._names.values())
        if used + size > self.room_bytes:
            raise OSError(errno.ENOSPC, "No space left on device")

    def _count_call(self, what: str) -> bool:
        """Count a call; return whether it takes effect."""
        self.step += 1
        fault = self.fault
        if fault.kind == "lie":
            if self.step == fault.step + fault.calls:
                raise KilledError
            return not (what == "sync" and self.step >= fault.step)
        if self.step != fault.step:
            return True
        if fault.kind == "kill":
            raise KilledError
        if fault.kind == "lose":
            return what != "write"
        raise OSError(fault.error, "the disk failed")


class _OpenFile:
    def __init__(self, disk: FaultyDisk, inode: _Inode) -> None:
        self._disk = disk
        self._inode = inode

    def write(self, data: bytes) -> None:
        self._disk.call_write(self._inode, data)

    def sync(self) -> None:
        self._disk.call_sync(self._inode)

    def cut(self, size: int) -> None:
        self._disk.call_cut(self._inode, size)

    def close(self) -> None:
        pass


def _write(content: bytearray, offset: int, data: bytes) -> None:
    if len(content) < offset:
        content.extend(bytes(offset - len(content)))
    content[offset : offset + len(data)] = data


def _some_sectors(offset: int, data: bytes, rng: Random) -> list[tuple[int, bytes]]:
    """Return about half of the sectors of a write, and zeros for the others."""
    parts = []
    at = offset
    while at < offset + len(data):
        end = min(at - at % SECTOR_BYTES + SECTOR_BYTES, offset + len(data))
        part = data[at - offset : end - offset]
        parts.append((at, part if rng.random() < 0.5 else bytes(len(part))))
        at = end
    return parts
