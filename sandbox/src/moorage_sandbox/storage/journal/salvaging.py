"""Reading the undamaged part of a damaged journal, and reporting the rest.

When a group cannot be read, only its own objects are lost: each other group has its own checksum.
The report gives the place and the resourceVersions of a lost part, because the names of its objects
are unknown.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from moorage_sandbox.storage.journal.faults import DamagedError
from moorage_sandbox.storage.journal.files import Files, put
from moorage_sandbox.storage.journal.groups import (
    FORMAT,
    Chain,
    Group,
    GroupKind,
    find_group,
    is_torn,
)
from moorage_sandbox.storage.journal.mark import (
    Mark,
    generation_of,
    log_name,
    read_mark,
    read_progress,
    snapshot_name,
)
from moorage_sandbox.storage.journal.reading import Entries, JournalContent, apply

# How far the versions are set ahead where no file says which versions were given out: more than a
# server gives out in a day.
_VERSIONS_UNKNOWN = 1_000_000_000


class Gap(msgspec.Struct, frozen=True):
    """A part of a file that cannot be read, in bytes."""

    start: int
    end: int


class Salvaged(msgspec.Struct, frozen=True, kw_only=True):
    """The readable content of a journal, and a report of the unreadable parts.

    Parameters
    ----------
    content
        Objects, and the version to go on from.
    report
        Lines for people.
    folder
        Folder for the damaged files.
    damaged
        Names of the damaged files.
    """

    content: JournalContent
    report: list[str]
    folder: str
    damaged: list[str]

    def set_aside(self, files: Files) -> None:
        """Move the damaged files out of the way, once their content has been written again.

        Raises
        ------
        OSError
            The files are still in their old place.
        """
        for name in self.damaged:
            files.rename(name, f"{self.folder}/{name}")
        text = "".join(f"{line}\n" for line in self.report).encode()
        draft = "report.txt.new"
        put(files, draft, text)
        files.rename(draft, f"{self.folder}/report.txt")
        files.sync_names()


def salvage(files: Files, damage: DamagedError) -> Salvaged:
    """Read the undamaged part.

    Parameters
    ----------
    files
        The damaged journal; nothing in it changes.
    damage
        Why the journal could not be read as a whole.

    Raises
    ------
    OSError
        The disk cannot be read.
    """
    return _Salvage(files, damage).salvaged()


class _Salvage:
    def __init__(self, files: Files, damage: DamagedError) -> None:
        self._files = files
        self._report = [f"damaged: {damage.what}"]
        self._entries: Entries = {}
        self._sequence = self._version = self._moment_ns = 0
        names = files.names()
        self._damaged = [name for name in names if generation_of(name) is not None]
        # The last group of the logs that was taken; None where it is unknown what comes next.
        self._last: int | None = None
        self._written_to = 0
        self._newest = max((generation_of(name) or 0 for name in self._damaged), default=0)
        self._mark = self._read_mark()

    def salvaged(self) -> Salvaged:
        first = self._read_snapshot()
        last = max(self._mark.log if self._mark is not None else 0, *self._there("log-"), first)
        for generation in range(first, last + 1):
            self._read_log(generation, last=generation == last)
        mark, progress = self._mark, read_progress(self._files)
        if progress is not None:
            lost = progress.sequence - self._sequence
            if lost > 0:
                self._report.append(f"lost: the last {lost} groups of writes")
            self._sequence = max(self._sequence, progress.sequence)
            self._version = max(self._version, progress.version)
        if mark is not None and (self._written_to > mark.log or self._version > mark.ceiling):
            self._report.append("damaged: mark is older than the logs")
            self._newest = max(self._newest, mark.log)
            mark = None
        if mark is None:
            version = self._version + _VERSIONS_UNKNOWN
        else:
            version = max(mark.ceiling, self._version)
            self._sequence = max(self._sequence, mark.sequence)
            self._newest = max(self._newest, mark.log)
        folder = f"damaged-{self._newest + 1}"
        self._report.append(f"kept: {len(self._entries)} objects")
        self._report.append(
            f"resourceVersions go on above {version}; the damaged files are in "
            f"{self._files.where}/{folder}"
        )
        content = JournalContent(
            entries=self._entries,
            mark=Mark(
                format=FORMAT,
                snapshot=self._newest,
                log=self._newest,
                ceiling=version,
                clean=False,
                sequence=self._sequence,
                version=version,
                moment_ns=self._moment_ns,
            ),
            version=version,
            moment_ns=self._moment_ns,
            chain=Chain(self._sequence),
            log_bytes=0,
            snapshot_bytes=0,
        )
        return Salvaged(content=content, report=self._report, folder=folder, damaged=self._damaged)

    def _read_mark(self) -> Mark | None:
        try:
            mark = read_mark(self._files)
        except DamagedError:
            return None
        if mark is not None:
            self._moment_ns = mark.moment_ns
        return mark

    def _read_snapshot(self) -> int:
        """Take the objects of the snapshot; return the generation of the first log behind it."""
        there = self._there("snapshot-")
        generation = max(there)
        if self._mark is not None and (self._mark.snapshot in there or not generation):
            generation = self._mark.snapshot
        name = snapshot_name(generation)
        if generation not in there or not generation:
            missing = f"{name} is missing" if generation else "there is no snapshot"
            self._report.append(f"lost: {missing}, with all it held")
            return max(generation, 1)
        self._read_objects(name)
        # Groups of a snapshot are counted apart from those of the logs.
        self._sequence = self._last or 0
        return generation

    def _read_objects(self, name: str) -> None:
        before, last, ended = "the first", 0, False
        gap: Gap | None = None
        for part in self._parts(name):
            if isinstance(part, Gap):
                gap = part
                continue
            entries = part.entries() if part.kind is GroupKind.WRITES else []
            if gap is not None or part.sequence > last + 1:
                behind = _shown(entries[0].key) if entries else "the last"
                self._report.append(_lost_objects(name, gap, before, behind))
                gap = None
            if entries:
                before = _shown(entries[-1].key)
            last, ended = part.sequence, part.kind is GroupKind.END
            if part.kind is GroupKind.OPENING:
                self._last = self._opening(part, name)
            self._take_group(part)
        if gap is not None or not ended:
            self._report.append(_lost_objects(name, gap, before, "the last"))

    def _opening(self, group: Group, name: str) -> int:
        """Return the group that the logs go on from, by the opening of a snapshot."""
        opening = group.opening()
        if opening.name != name:
            self._report.append(
                f"damaged: {name} is {opening.name} under another name: its objects are older"
            )
        return opening.sequence

    def _there(self, prefix: str) -> list[int]:
        """Return the generations of the files of a kind; 0 is always among them."""
        return [0] + [
            generation_of(name) or 0
            for name in self._damaged
            if name.startswith(prefix) and not name.endswith(".new")
        ]

    def _read_log(self, generation: int, *, last: bool) -> None:
        name = log_name(generation)
        if name not in self._damaged:
            self._report.append(f"lost: {name} is missing, with all that was written in it")
            self._last = None
            return
        before, older = self._version, 0
        gap: Gap | None = None
        for part in self._parts(name, may_be_torn=last):
            if isinstance(part, Gap):
                gap = part
                continue
            if self._last is not None and part.sequence <= self._last:
                # An old copy: to apply it would take objects back to what they were.
                older += part.kind is GroupKind.WRITES
                continue
            if gap is not None or (self._last is not None and part.sequence > self._last + 1):
                self._report.append(_lost_writes(name, gap, before, part.version))
                gap = None
            if part.kind is GroupKind.WRITES:
                self._written_to = generation
            self._take_group(part)
            before, self._last = part.version, part.sequence
        if older:
            self._report.append(f"left out: {older} groups of {name}: they are kept already")
        if gap is not None:
            self._report.append(_lost_writes(name, gap, before, None))

    def _take_group(self, group: Group) -> None:
        apply(self._entries, group)
        self._sequence = max(self._sequence, group.sequence)
        self._version = max(self._version, group.version)
        self._moment_ns = max(self._moment_ns, group.moment_ns)

    def _parts(self, name: str, *, may_be_torn: bool = False) -> Iterator[Group | Gap]:
        with self._files.read(name) as file:
            data = file.read()
        offset = 0
        while (found := find_group(data, offset)) is not None:
            start, group = found
            if start > offset:
                yield Gap(offset, start)
            yield group
            offset = start + group.size
        if offset < len(data) and not (may_be_torn and is_torn(offset, data[offset:])):
            yield Gap(offset, len(data))


def _place(name: str, gap: Gap | None) -> str:
    """Name the losses: damaged bytes, or missing groups."""
    return f"a part of {name}" if gap is None else f"bytes {gap.start} to {gap.end} of {name}"


def _lost_objects(name: str, gap: Gap | None, before: str, behind: str) -> str:
    return (
        f"lost: {_place(name, gap)}: objects between {before} and {behind} "
        "that were not written since"
    )


def _lost_writes(name: str, gap: Gap | None, before: int, after: int | None) -> str:
    versions = f"above {before}" if after is None else f"{before + 1} to at most {after}"
    return (
        f"lost: {_place(name, gap)}: writes of resourceVersion {versions}; "
        "an object changed there is as it was before, one removed there is back"
    )


def _shown(key: tuple[str, str, str]) -> str:
    resource, namespace, name = key
    return f"{resource} {namespace}/{name}" if namespace else f"{resource} {name}"
