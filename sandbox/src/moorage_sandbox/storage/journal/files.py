"""The operations of a journal on files; tests replace them by a disk with faults.

Every file is made readable for its owner alone before anything is written into it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO, Protocol

_MODE = 0o600


class File(Protocol):
    """A file that grows at its end."""

    def write(self, data: bytes) -> None:
        """Append all of the data.

        Raises
        ------
        OSError
            A part of the data may be in the file.
        """
        ...

    def sync(self) -> None:
        """Return when everything appended is on the disk.

        Raises
        ------
        OSError
            It is unknown which part of the data is on the disk.
        """
        ...

    def cut(self, size: int) -> None:
        """Drop everything behind a size in bytes.

        Raises
        ------
        OSError
            The rest may still be in the file.
        """
        ...

    def close(self) -> None:
        """Close the file."""
        ...


class Files(Protocol):
    """The files of one directory; each method raises `OSError` where the disk does not do it."""

    @property
    def where(self) -> str:
        """The directory, for messages."""
        ...

    def names(self) -> list[str]:
        """Return the names of all files, sorted."""
        ...

    def read(self, name: str) -> BinaryIO:
        """Open a file for reading."""
        ...

    def open(self, name: str, *, new: bool) -> File:
        """Open a file for appending; a new file is empty, and replaces an old one of its name."""
        ...

    def note(self, name: str, data: bytes) -> None:
        """Overwrite the beginning of a file without waiting for the disk."""
        ...

    def rename(self, old: str, new: str) -> None:
        """Give a file another name, perhaps in a folder, which is made if it does not exist."""
        ...

    def remove(self, name: str) -> None:
        """Remove a file; a missing file is no error."""
        ...

    def sync_names(self) -> None:
        """Return when new, changed and removed names are on the disk."""
        ...


def put(files: Files, name: str, data: bytes) -> None:
    """Replace a file as a whole and durably: a crash leaves the old file or the new file.

    Raises
    ------
    OSError
        The old file is in place; after a restart it may be the new file.
    """
    draft = f"{name}.new"
    file = files.open(draft, new=True)
    try:
        file.write(data)
        file.sync()
    finally:
        file.close()
    files.rename(draft, name)
    files.sync_names()


class Directory:
    """Implements `Files` by a directory of the machine.

    Parameters
    ----------
    path
        The directory; it exists.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        # The file of `note`, kept open: it is written with each commit.
        self._noted: tuple[str, int] | None = None

    @property
    def where(self) -> str:
        """The path, as given to the constructor."""
        return str(self._path)

    def names(self) -> list[str]:
        """Return the names of all files, sorted."""
        return sorted(each.name for each in self._path.iterdir() if each.is_file())

    def read(self, name: str) -> BinaryIO:
        """Open a file for reading."""
        return (self._path / name).open("rb")

    def open(self, name: str, *, new: bool) -> File:
        """Open a file for appending."""
        flags = os.O_TRUNC if new else 0
        return _OpenFile(self._descriptor(name, os.O_APPEND | flags))

    def note(self, name: str, data: bytes) -> None:
        """Overwrite the beginning of a file without waiting for the disk."""
        if self._noted is None or self._noted[0] != name:
            self._let_go()
            self._noted = (name, self._descriptor(name, 0))
        os.pwrite(self._noted[1], data, 0)

    def rename(self, old: str, new: str) -> None:
        """Give a file another name."""
        to = self._path / new
        to.parent.mkdir(mode=0o700, exist_ok=True)
        (self._path / old).replace(to)

    def remove(self, name: str) -> None:
        """Remove a file."""
        if self._noted is not None and self._noted[0] == name:
            self._let_go()
        (self._path / name).unlink(missing_ok=True)

    def sync_names(self) -> None:
        """Wait for the directory's own entry on the disk."""
        descriptor = os.open(self._path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def close(self) -> None:
        """Close the file that is kept open."""
        self._let_go()

    def _descriptor(self, name: str, flags: int) -> int:
        # No links are followed: a link could lead to a file of another program.
        return os.open(
            self._path / name,
            os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | flags,
            _MODE,
        )

    def _let_go(self) -> None:
        if self._noted is not None:
            os.close(self._noted[1])
            self._noted = None


class _OpenFile:
    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def write(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._descriptor, rest) :]

    def sync(self) -> None:
        os.fsync(self._descriptor)

    def cut(self, size: int) -> None:
        os.ftruncate(self._descriptor, size)

    def close(self) -> None:
        os.close(self._descriptor)
