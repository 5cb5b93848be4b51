"""Reading a journal strictly: everything as it was written, or an error that names the damage.

Only the end of the last log may be missing, and only after a server that died: the unfinished
write, whose caller has had no answer.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from moorage.base.errors import UsageError
from moorage_sandbox.storage.journal.faults import DamagedError
from moorage_sandbox.storage.journal.files import Files
from moorage_sandbox.storage.journal.groups import (
    FORMAT,
    BrokenError,
    Chain,
    Entry,
    Group,
    GroupKind,
    Opening,
    find_group,
    is_torn,
    read_groups,
)
from moorage_sandbox.storage.journal.mark import (
    MARK,
    Mark,
    log_name,
    read_mark,
    read_progress,
    snapshot_name,
)

Entries = dict[tuple[str, str, str], Entry]
"""Key -> object."""


class JournalContent(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a journal.

    Parameters
    ----------
    entries
        Every object.
    mark
        The mark in the files.
    version
        The newest resourceVersion committed.
    moment_ns
        The cluster's time of the last commit; 0 for a cluster with the machine's time.
    chain
        The last group.
    log_bytes, snapshot_bytes
        Sizes of the log that grows and of the snapshot.
    """

    entries: Entries
    mark: Mark
    version: int
    moment_ns: int
    chain: Chain
    log_bytes: int
    snapshot_bytes: int


def load(files: Files, *, served: bool = False) -> JournalContent | None:
    """Return the content of a journal; None without a journal.

    Parameters
    ----------
    files
        Where.
    served
        Whether a journal existed before, so that a missing one is damage.

    Raises
    ------
    DamagedError
        Some file differs from what the server wrote.
    UsageError
        The files are of another form.
    """
    mark = read_mark(files)
    if mark is None:
        if served:
            raise DamagedError(f"{MARK} is missing", files.where)
        return None
    entries: Entries = {}
    reader = SnapshotReader(files, mark.snapshot)
    for entry in reader:
        entries[entry.key] = entry
    state = _State(reader.chain, reader.version, reader.moment_ns)
    log_bytes = 0
    for generation in range(mark.snapshot, mark.log + 1):
        torn = generation == mark.log and not mark.clean
        log_bytes = 0
        for group in log_groups(files, generation, state.chain, may_be_torn=torn):
            log_bytes += group.size
            state = _State(Chain(group.sequence, group.digest), group.version, group.moment_ns)
            apply(entries, group)
    content = JournalContent(
        entries=entries,
        mark=mark,
        version=state.version,
        moment_ns=max(mark.moment_ns, state.moment_ns),
        chain=state.chain,
        log_bytes=log_bytes,
        snapshot_bytes=reader.size,
    )
    _check_end(files, content)
    return content


def apply(entries: Entries, group: Group) -> None:
    """Apply the writes of a group of a log to the objects."""
    for entry in writes_of(group):
        if entry.data is None:
            entries.pop(entry.key, None)
        else:
            entries[entry.key] = entry


def writes_of(group: Group) -> list[Entry]:
    """Return the entries that a group writes; an opening or an end has no entries."""
    return group.entries() if group.kind is GroupKind.WRITES else []


class _State(msgspec.Struct, frozen=True):
    chain: Chain
    version: int
    moment_ns: int


class SnapshotReader:
    """Yields the objects of a snapshot; at the end the snapshot is known to be whole.

    Parameters
    ----------
    files
        Where.
    generation
        Its number.

    Raises
    ------
    DamagedError
        The file is missing, or differs from the written bytes.
    """

    def __init__(self, files: Files, generation: int) -> None:
        self._files = files
        self._name = snapshot_name(generation)
        # The last group of the log that the snapshot contains.
        self.chain = Chain()
        self.version = 0
        self.moment_ns = 0
        self.size = 0

    def __iter__(self) -> Iterator[Entry]:
        """Read from the beginning."""
        count, ended, last = 0, False, Chain()
        for group in _groups(self._files, self._name):
            if ended:
                raise self._damaged("goes on behind its end")
            if (group.sequence, group.previous) != (last.sequence + 1, last.digest):
                raise self._damaged("has lost a part")
            last = Chain(group.sequence, group.digest)
            self.size += group.size
            self.version, self.moment_ns = group.version, group.moment_ns
            if group.kind is GroupKind.OPENING:
                opening = _checked(self._files, group, self._name)
                self.chain = Chain(opening.sequence, opening.digest)
            elif group.kind is GroupKind.END:
                ended = group.count() == count
            else:
                found = group.entries()
                count += len(found)
                yield from found
        if not ended:
            raise self._damaged("has lost its end")

    def _damaged(self, what: str) -> DamagedError:
        return DamagedError(f"{self._name} {what}", self._files.where)


def log_groups(
    files: Files, generation: int, after: Chain, *, may_be_torn: bool = False
) -> Iterator[Group]:
    """Yield the groups of a log, its opening included.

    Parameters
    ----------
    files
        Where.
    generation
        Its number.
    after
        The group that the first one has to follow.
    may_be_torn
        Whether its end may be what a crash left.

    Raises
    ------
    DamagedError
        The file is missing, or differs from the written bytes.
    """
    name = log_name(generation)
    chain, opened = after, False
    try:
        for group in _groups(files, name, strict=not may_be_torn):
            if (group.sequence, group.previous) != (chain.sequence + 1, chain.digest):
                raise DamagedError(f"{name} does not go on from what was before it", files.where)
            if (group.kind is GroupKind.OPENING) == opened:
                raise DamagedError(f"{name} is no log", files.where)
            if not opened:
                _checked(files, group, name)
                opened = True
            chain = Chain(group.sequence, group.digest)
            yield group
    except BrokenError as broken:
        if not is_torn(broken.offset, broken.rest) or find_group(broken.rest, 1) is not None:
            raise _broken(files, name, broken) from broken
    if not opened:
        # The mark names a log only when its opening is on the disk.
        raise DamagedError(f"{name} is empty", files.where)


def _groups(files: Files, name: str, *, strict: bool = True) -> Iterator[Group]:
    if name not in files.names():
        raise DamagedError(f"{name} is missing", files.where)
    with files.read(name) as file:
        try:
            yield from read_groups(file)
        except BrokenError as broken:
            if not strict:
                raise
            raise _broken(files, name, broken) from broken


def _broken(files: Files, name: str, broken: BrokenError) -> DamagedError:
    behind = find_group(broken.rest, 1)
    size = broken.offset + len(broken.rest)
    place = f"{name} is not what was written from byte {broken.offset} of {size}"
    if behind is not None:
        place += f"; from byte {broken.offset + behind[0]} on it can be read again"
    return DamagedError(place, files.where)


def _checked(files: Files, group: Group, name: str) -> Opening:
    opening = group.opening()
    if (opening.format, opening.name) != (FORMAT, name):
        raise DamagedError(f"{name} is {opening.name} under another name", files.where)
    return opening


def _check_end(files: Files, content: JournalContent) -> None:
    """Compare the end of the chain with the mark and the progress."""
    mark, sequence = content.mark, content.chain.sequence
    missing = mark.sequence - sequence
    if mark.clean and missing < 0:
        raise DamagedError("mark is older than the log", files.where)
    progress = read_progress(files)
    if progress is not None:
        missing = max(missing, progress.sequence - sequence)
        if progress.sequence == sequence and progress.digest != content.chain.digest:
            raise DamagedError("progress is of another cluster than the log", files.where)
    if missing > 0:
        raise DamagedError(
            f"{log_name(mark.log)} has lost its end: the last {missing} groups of writes",
            files.where,
        )
    if content.version > mark.ceiling:
        raise DamagedError("mark is older than the log", files.where)


def newest_moment(files: Files) -> int:
    """Return the time kept last, nanoseconds since the Unix epoch; 0 without a time.

    Faults of the files are ignored here: `load` reports them.
    """
    moment_ns = 0
    try:
        mark = read_mark(files)
        if mark is None:
            return 0
        moment_ns = mark.moment_ns
        with files.read(log_name(mark.log)) as file:
            for group in read_groups(file):
                moment_ns = max(moment_ns, group.moment_ns)
    except (OSError, BrokenError, UsageError):
        return moment_ns
    return moment_ns
