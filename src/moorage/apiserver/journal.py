"""The cluster on disk: one SQLite file with every object as it is, committed in groups.

`persistence` decides when to commit and runs this in a thread; here is only the file: its tables,
its checks, and what may be wrong with it. SQLite's write-ahead log is the journal: a commit is one
append and one fsync, and SQLite itself works the log into the tables and cuts it off again.

Notes
-----
A watch's history is not kept: after a restart a watch that reaches further back is answered 410,
as by an API server whose watch cache is new, and its client lists again.
"""

from __future__ import annotations

import contextlib
import sqlite3
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from moorage.apiserver.record import Record
from moorage.apiserver.store import Write
from moorage.base.clock import Clock
from moorage.base.errors import UsageError

FORMAT = 1
"""Version of the file's layout, kept in its ``user_version``; one that differs is refused."""

# "moor" as a number, kept in the file's application_id: tells ours from any other SQLite file.
_APPLICATION = 0x6D6F6F72
# Pages of 4 KiB after which SQLite works the log into the tables: 16 MiB (a guess, between a long
# restart and working it in all the time).
_CHECKPOINT_PAGES = 4096

_TABLES = """
CREATE TABLE objects (
    resource TEXT NOT NULL,
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    version INTEGER NOT NULL,
    about BLOB NOT NULL,
    data BLOB NOT NULL,
    checksum INTEGER NOT NULL,
    PRIMARY KEY (resource, namespace, name)
);
CREATE TABLE newest (version INTEGER NOT NULL);
INSERT INTO newest VALUES (0);
"""
# Only where the cluster's time is not the machine's; readers of this format may ignore it.
_MOMENT = "CREATE TABLE IF NOT EXISTS moment (id INTEGER PRIMARY KEY, now_ns INTEGER NOT NULL)"
_PUT_MOMENT = "INSERT OR REPLACE INTO moment VALUES (0, ?)"
_PUT = "INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?, ?, ?, ?)"
_REMOVE = "DELETE FROM objects WHERE resource = ? AND namespace = ? AND name = ?"
_READ = (
    "SELECT resource, namespace, name, version, about, data, checksum FROM objects "
    "ORDER BY resource, namespace, name"
)


class _About(msgspec.Struct, frozen=True, array_like=True):
    """What a `Record` knows besides its bytes."""

    uid: str
    labels: Mapping[str, str]
    fields: Mapping[str, str]


_encode_about = msgspec.json.Encoder().encode
_decode_about = msgspec.json.Decoder(_About).decode


class Journal:
    """The file of one cluster. Not safe for two threads at once.

    Parameters
    ----------
    path
        The file; made when it is not there.
    clock
        Whose time is kept with every commit; None for the machine's, which need not be kept.

    Raises
    ------
    UsageError
        It is something else, of another format, damaged, or cannot be read and written.
    """

    def __init__(self, path: Path, clock: Clock | None = None) -> None:
        self._path = path
        self._clock = clock
        try:
            self._database = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        except sqlite3.Error as error:
            raise UsageError(f"cannot open {path}: {error}") from error
        try:
            self._open()
        except sqlite3.DatabaseError as error:
            self._database.close()
            raise self._unusable(error) from error
        except UsageError:
            self._database.close()
            raise

    def _open(self) -> None:
        database = self._database
        (application,) = database.execute("PRAGMA application_id").fetchone()
        (layout,) = database.execute("PRAGMA user_version").fetchone()
        (tables,) = database.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        if tables and application != _APPLICATION:
            raise UsageError(f"{self._path} is a database of another program")
        if tables and layout != FORMAT:
            raise UsageError(
                f"{self._path} has format {layout}, and this version of moorage writes format "
                f"{FORMAT}; use the version that wrote it, and `moorage snapshot save` to move on"
            )
        # The journal mode is written to the file, so after it is known to be ours.
        database.execute("PRAGMA journal_mode = WAL")
        # A commit returns when its bytes are on the disk: acknowledged writes survive power cuts.
        database.execute("PRAGMA synchronous = FULL")
        database.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
        database.execute(f"PRAGMA journal_size_limit = {_CHECKPOINT_PAGES * 4096}")
        if not tables:
            database.executescript(
                f"BEGIN; PRAGMA application_id = {_APPLICATION}; PRAGMA user_version = {FORMAT};"
                f"{_TABLES} COMMIT;"
            )
        if self._clock is not None:
            database.execute(_MOMENT)

    def version(self) -> int:
        """Return the newest resourceVersion committed, 0 for a new file.

        Raises
        ------
        UsageError
            The file is damaged.
        """
        try:
            found = self._database.execute("SELECT version FROM newest").fetchall()
            (answer,) = self._database.execute("PRAGMA quick_check(1)").fetchone()
        except sqlite3.DatabaseError as error:
            raise self._unusable(error) from error
        if answer != "ok" or len(found) != 1:
            raise self._damaged(str(answer) if answer != "ok" else "its version is missing")
        return int(found[0][0])

    def records(self) -> Iterator[tuple[str, Record]]:
        """Yield (resource, object) of everything kept, in order.

        Raises
        ------
        UsageError
            An object is damaged; the message names it.
        """
        try:
            for row in self._database.execute(_READ):
                resource, namespace, name, version, about, data, checksum = row
                if _checksum(about, data) != checksum:
                    raise self._damaged(f"{resource} {namespace}/{name} is not what was written")
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
        except sqlite3.DatabaseError as error:
            raise self._unusable(error) from error

    def commit(self, writes: Sequence[Write]) -> None:
        """Make writes durable, all or none; of several to one object only the last is written.

        Raises
        ------
        sqlite3.Error
            They are not durable; the file is as it was.
        """
        last = {(write.resource, *write.change.record.key): write for write in writes}
        database = self._database
        database.execute("BEGIN IMMEDIATE")
        try:
            for key, write in last.items():
                if write.change.type == "DELETED":
                    database.execute(_REMOVE, key)
                else:
                    database.execute(_PUT, _row(write.resource, write.change.record))
            version = writes[-1].change.version
            database.execute("UPDATE newest SET version = ?", (version,))
            self._keep_moment()
            database.execute("COMMIT")
        except BaseException:
            # A full disk may have ended the transaction already.
            if database.in_transaction:
                database.execute("ROLLBACK")
            raise

    def fill(self, records: Sequence[tuple[str, Record]], version: int) -> None:
        """Write everything a new cluster begins with.

        Raises
        ------
        UsageError
            There is no room for it.
        """
        try:
            self._database.execute("BEGIN IMMEDIATE")
            self._database.executemany(_PUT, [_row(*each) for each in records])
            self._database.execute("UPDATE newest SET version = ?", (version,))
            self._keep_moment()
            self._database.execute("COMMIT")
        except sqlite3.Error as error:
            raise UsageError(f"cannot write to {self._path}: {error}") from error

    def close(self) -> None:
        """Work the log into the tables and let the file go."""
        with contextlib.suppress(sqlite3.Error):
            self._keep_moment()
        self._database.close()

    def _keep_moment(self) -> None:
        """Keep what time it is: no object that is on the disk is younger."""
        if self._clock is not None:
            self._database.execute(_PUT_MOMENT, (self._clock.now_ns(),))

    def _unusable(self, error: sqlite3.DatabaseError) -> UsageError:
        if isinstance(error, sqlite3.OperationalError):
            return UsageError(f"cannot use {self._path}: {error}")
        return self._damaged(str(error))

    def _damaged(self, what: str) -> UsageError:
        return UsageError(
            f"{self._path} is damaged: {what}; put back a copy of its directory, or name another"
        )


def kept_moment(path: Path) -> int:
    """Return the time kept in a file, nanoseconds since the Unix epoch; 0 where none is.

    What is wrong with the file, `Journal` will say.
    """
    if not path.exists():
        return 0
    try:
        database = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
        with contextlib.closing(database):
            found = database.execute("SELECT now_ns FROM moment").fetchone()
    except sqlite3.Error:
        return 0
    return int(found[0]) if found else 0


def _row(resource: str, record: Record) -> tuple[str, str, str, int, bytes, bytes, int]:
    about = _encode_about(_About(record.uid, record.labels, record.fields))
    checksum = _checksum(about, record.data)
    return resource, record.namespace, record.name, record.version, about, record.data, checksum


def _checksum(about: bytes, data: bytes) -> int:
    return zlib.crc32(data, zlib.crc32(about))
