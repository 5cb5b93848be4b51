"""Writes records as JSON lines into a file that is rotated; a full disk loses lines only."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from moorage.base.errors import UsageError
from moorage.observe.records.record import AttemptRecord
from moorage.observe.records.shown_attempt import ShownAttempt, shown_attempt

_log = logging.getLogger(__name__)

FILE_BYTES_MAX: Final = 64 * 1024 * 1024
"""A file longer than this is rotated, bytes."""
FILES_MAX: Final = 5
"""Files kept: ``FILE``, ``FILE.1`` and so on, newest first."""


class RecordFile:
    """Writes the record of every ended attempt.

    Parameters
    ----------
    path
        The file; lines are appended.
    bytes_max
        Length from which the file is rotated.
    files_max
        Files kept, the present one included.

    Attributes
    ----------
    written, lost
        Lines that were written, and lines that could not be.

    Raises
    ------
    UsageError
        The file cannot be written at the start.
    """

    def __init__(
        self, path: Path, *, bytes_max: int = FILE_BYTES_MAX, files_max: int = FILES_MAX
    ) -> None:
        self._path = path
        self._bytes_max = bytes_max
        self._files_max = files_max
        self._lines: list[bytes] = []
        self._fails = False
        self.written = 0
        self.lost = 0
        try:
            with path.open("ab"):
                pass
        except OSError as error:
            raise UsageError(f"cannot write records to {path}: {error.strerror}") from error

    def add_record(self, record: AttemptRecord) -> None:
        """Take the record of an ended attempt; `flush` writes it."""
        self._lines.append(msgspec.json.encode(shown_attempt(record)) + b"\n")

    def flush(self) -> None:
        """Write what was put. Lines that cannot be written are counted, and lost."""
        lines, self._lines = self._lines, []
        if not lines:
            return
        try:
            if self._size() >= self._bytes_max:
                self._rotate()
            start = self._size()
            try:
                with self._path.open("ab") as file:
                    file.write(b"".join(lines))
            except OSError:
                self._cut(start)
                raise
        except OSError as error:
            self.lost += len(lines)
            if not self._fails:
                _log.error(
                    "records cannot be written to %s: %s; they are lost until they can",
                    self._path,
                    error.strerror,
                )
            self._fails = True
            return
        if self._fails:
            _log.warning("records are written to %s again; %d are lost", self._path, self.lost)
        self._fails = False
        self.written += len(lines)

    def _size(self) -> int:
        try:
            return self._path.stat().st_size
        except FileNotFoundError:
            return 0

    def _cut(self, size: int) -> None:
        """Take a half-written line off again, so that every line of the file is whole."""
        with self._path.open("ab") as file:
            file.truncate(size)

    def _rotate(self) -> None:
        for number in range(self._files_max - 1, 0, -1):
            older = _numbered(self._path, number)
            newer = _numbered(self._path, number - 1)
            if newer.exists():
                newer.replace(older)


def _numbered(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.{number}") if number else path


def read_records(path: Path) -> Iterator[ShownAttempt]:
    """Yield the records of a file and of the older files next to it, oldest first.

    Raises
    ------
    UsageError
        The file cannot be read, or a line is no record.
    """
    if not path.name:
        raise UsageError(f"cannot read records from {str(path)!r}: it names no file")
    older = [_numbered(path, number) for number in range(FILES_MAX * 10, 0, -1)]
    for each in (*(each for each in older if each.exists()), path):
        try:
            with each.open("rb") as file:
                for number, line in enumerate(file, 1):
                    yield _decoded(line, each, number)
        except OSError as error:
            raise UsageError(f"cannot read records from {each}: {error.strerror}") from error


def _decoded(line: bytes, path: Path, number: int) -> ShownAttempt:
    try:
        return msgspec.json.decode(line, type=ShownAttempt)
    except msgspec.MsgspecError as error:
        raise UsageError(f"{path}:{number}: this line is no record: {error}") from error
