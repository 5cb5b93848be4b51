"""The directory a cluster is kept in: ``moorage up --data DIR``.

It holds the cluster's objects (``cluster.db``), its authority and secrets (``identity.json``,
readable by its owner alone), and a lock, so that no two servers write to it.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import msgspec

from moorage.apiserver.certs import Authority, KeyPair
from moorage.apiserver.journal import Journal, kept_moment
from moorage.base.clock import Clock, SystemClock
from moorage.base.errors import UsageError

FORMAT = 1
"""Version of ``identity.json``."""
_OBJECTS = "cluster.db"


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """What makes a cluster the same one after a restart.

    Parameters
    ----------
    format
        Version of this layout.
    certificate, key
        The authority's own, PEM.
    port
        Where it listened last; 0 before it has.
    """

    format: int = FORMAT
    certificate: bytes
    key: bytes
    port: int = 0

    def authority(self, clock: Clock) -> Authority:
        """Return the authority, as it was."""
        return Authority(clock, kept=KeyPair(self.certificate, self.key))


def newest_moment(path: Path) -> int:
    """Return a cluster's time when it was last kept, nanoseconds since the Unix epoch.

    0 where it has always been the machine's, or there is no cluster in the directory.
    """
    return kept_moment(path / _OBJECTS)


def new_identity(clock: Clock) -> Identity:
    """Make what a new cluster is known by."""
    pair = Authority(clock).pair
    return Identity(certificate=pair.certificate, key=pair.key)


class DataDirectory:
    """A directory held by this process alone until `close`.

    Parameters
    ----------
    path
        The directory; made when it is not there.
    clock
        Of new certificates.

    Raises
    ------
    UsageError
        It cannot be used, another server has it, or what is in it is damaged.
    """

    def __init__(self, path: Path, *, clock: Clock) -> None:
        self._path = path
        self._lock = -1
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = os.open(path / "lock", os.O_RDWR | os.O_CREAT, 0o600)
            self._take_lock()
            self.identity = self._read_identity(clock)
        except OSError as error:
            self.close()
            raise UsageError(f"cannot keep a cluster in {path}: {error.strerror}") from error
        except UsageError:
            self.close()
            raise

    def open_journal(self, clock: Clock) -> Journal:
        """Open the cluster's objects.

        Parameters
        ----------
        clock
            Of the cluster; where it is not the machine's, its time is kept as well.

        Raises
        ------
        UsageError
            They are damaged, or of another version.
        """
        file = self._path / _OBJECTS
        journal = Journal(file, None if isinstance(clock, SystemClock) else clock)
        file.chmod(0o600)
        return journal

    def keep_port(self, port: int) -> None:
        """Remember where the cluster listens, so that kubeconfigs stay valid.

        Raises
        ------
        UsageError
            It cannot be written.
        """
        if port == self.identity.port:
            return
        self.identity = msgspec.structs.replace(self.identity, port=port)
        try:
            self._write_identity()
        except OSError as error:
            raise UsageError(f"cannot write to {self._path}: {error.strerror}") from error

    def close(self) -> None:
        """Let the directory go."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def _take_lock(self) -> None:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.pread(self._lock, 32, 0).decode(errors="replace").strip()
            raise UsageError(
                f"{self._path} is in use by another server (process {holder or 'unknown'}); "
                "end it, or name another directory with --data"
            ) from error
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, f"{os.getpid()}\n".encode(), 0)

    def _read_identity(self, clock: Clock) -> Identity:
        file = self._path / "identity.json"
        if not file.exists():
            if (self._path / _OBJECTS).exists():
                raise UsageError(
                    f"{file} is missing, without which the cluster in {self._path} cannot be "
                    "served under its old credentials; put it back, or name another directory"
                )
            self.identity = new_identity(clock)
            self._write_identity()
            return self.identity
        try:
            found = msgspec.json.decode(file.read_bytes(), type=Identity)
            found.authority(clock)
        except (msgspec.DecodeError, ValueError) as error:
            raise UsageError(f"{file} is damaged: {error}; put back a copy of it") from error
        if found.format != FORMAT:
            raise UsageError(f"{file} has format {found.format}; this version reads {FORMAT}")
        return found

    def _write_identity(self) -> None:
        """Replace the file as a whole: a crash leaves the old one or the new one."""
        draft = self._path / "identity.json.new"
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(msgspec.json.encode(self.identity))
            file.flush()
            os.fsync(descriptor)
        draft.replace(self._path / "identity.json")
