"""Reading a cluster that an earlier version kept: a SQLite database, format 1.

The checksums of format 1 cover the content of objects, not their names, and SQLite leaves out
damaged parts of its log. So damage that the earlier version could not detect stays undetected here.
"""

from __future__ import annotations

import contextlib
import sqlite3
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from moorage.apiserver.record import Record
from moorage.base.errors import UsageError

NAME = "cluster.db"
"""The database in a data directory; beside it are the files of SQLite, with a suffix."""
_APPLICATION = 0x6D6F6F72
_READ = (
    "SELECT resource, namespace, name, version, about, data, checksum FROM objects "
    "ORDER BY resource, namespace, name"
)


class _About(msgspec.Struct, frozen=True, array_like=True):
    uid: str
    labels: Mapping[str, str]
    fields: Mapping[str, str]


_decode_about = msgspec.json.Decoder(_About).decode


class Old(msgspec.Struct, frozen=True):
    """The content of such a database: (resource, object), the newest version, and the moment."""

    records: list[tuple[str, Record]]
    version: int
    moment_ns: int


def read_old(path: Path) -> Old:
    """Read a database of format 1.

    Raises
    ------
    UsageError
        The file is no such database, has another format, or is damaged.
    """
    try:
        with contextlib.closing(sqlite3.connect(path)) as database:
            _check(path, database)
            found = database.execute("SELECT version FROM newest").fetchall()
            if len(found) != 1:
                raise _damaged(path, "its version is missing")
            records = list(_records(path, database))
    except sqlite3.DatabaseError as error:
        raise _damaged(path, str(error)) from error
    return Old(records, int(found[0][0]), old_moment(path))


def old_moment(path: Path) -> int:
    """Return the time kept in a database, nanoseconds since the Unix epoch; 0 without a time."""
    if not path.exists():
        return 0
    try:
        with contextlib.closing(sqlite3.connect(path)) as database:
            found = database.execute("SELECT now_ns FROM moment").fetchone()
    except sqlite3.Error:
        return 0
    return int(found[0]) if found else 0


def _check(path: Path, database: sqlite3.Connection) -> None:
    (application,) = database.execute("PRAGMA application_id").fetchone()
    (layout,) = database.execute("PRAGMA user_version").fetchone()
    if application != _APPLICATION:
        raise UsageError(f"{path} is a database of another program")
    if layout != 1:
        raise UsageError(f"{path} has format {layout}; this version of moorage reads 1")
    (answer,) = database.execute("PRAGMA quick_check(1)").fetchone()
    if answer != "ok":
        raise _damaged(path, answer)


def _records(path: Path, database: sqlite3.Connection) -> Iterator[tuple[str, Record]]:
    for row in database.execute(_READ):
        resource, namespace, name, version, about, data, checksum = row
        if zlib.crc32(data, zlib.crc32(about)) != checksum:
            raise _damaged(path, f"{resource} {namespace}/{name} is not what was written")
        known = _decode_about(about)
        yield (
            resource,
            Record(
                namespace=namespace,
                name=name,
                uid=known.uid,
                version=version,
                data=data,
                labels=known.labels,
                fields=known.fields,
            ),
        )


def _damaged(path: Path, what: str) -> UsageError:
    return UsageError(
        f"{path} is damaged: {what}; put back a copy of its directory, or name another"
    )
