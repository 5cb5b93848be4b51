"""The directory a cluster is kept in: ``moorage up --data DIR``.

The directory holds the cluster's journal (`moorage_sandbox.storage.journal`), its authority and
secrets (``identity.json``), and a lock, so that no two servers write to it. All files are readable
by their owner alone from the moment they are created.
"""

from __future__ import annotations

import fcntl
import logging
import os
import stat
from pathlib import Path

import msgspec

from moorage.base.certificates import Authority, KeyPair
from moorage.base.clock import Clock, SystemClock
from moorage.base.errors import UsageError
from moorage_sandbox.storage.journal.files import Directory, put
from moorage_sandbox.storage.journal.journal import Journal
from moorage_sandbox.storage.journal.mark import MARK
from moorage_sandbox.storage.journal.reading import newest_moment as moment_in

FORMAT = 1
"""Version of ``identity.json``."""
_IDENTITY = "identity.json"
_OTHERS = stat.S_IRWXG | stat.S_IRWXO

_log = logging.getLogger(__name__)


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """The data that makes a cluster the same one after a restart.

    Parameters
    ----------
    format
        Version of this layout.
    certificate, key
        The authority's own certificate and key, PEM.
    port
        The port the server listened on last; 0 before the first time.
    """

    format: int = FORMAT
    certificate: bytes
    key: bytes
    port: int = 0

    def authority(self, clock: Clock) -> Authority:
        """Return the stored authority."""
        return Authority(clock, stored_pair=KeyPair(self.certificate, self.key))


def newest_moment(path: Path) -> int:
    """Return a cluster's time when it was last saved, nanoseconds since the Unix epoch.

    0 if the cluster's time was always the machine's, or the directory holds no cluster.
    """
    if not path.is_dir():
        return 0
    return moment_in(Directory(path))


def new_identity(clock: Clock) -> Identity:
    """Make the identity of a new cluster."""
    pair = Authority(clock).pair
    return Identity(certificate=pair.certificate, key=pair.key)


class DataDirectory:
    """A directory held by this process alone until `close`.

    Parameters
    ----------
    path
        The directory; created if missing.
    clock
        Time for new certificates.

    Raises
    ------
    UsageError
        The directory cannot be used, another server holds it, or its files are damaged.
    """

    def __init__(self, path: Path, *, clock: Clock) -> None:
        self._path = path
        self._lock = -1
        self._files = Directory(path)
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = os.open(path / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
            self._take_lock()
            _make_private(path)
            self.identity = self._read_identity(clock)
        except OSError as error:
            self.close()
            raise UsageError(f"cannot keep a cluster in {path}: {error.strerror}") from error
        except UsageError:
            self.close()
            raise

    def open_journal(self, clock: Clock, *, salvaging: bool = False) -> Journal:
        """Open the cluster's objects.

        Parameters
        ----------
        clock
            The cluster's clock; its time is kept as well if it is not the machine's clock.
        salvaging
            Whether to use the readable part of damaged files.

        Raises
        ------
        UsageError
            The objects' files are damaged, or of another version.
        """
        kept_clock = None if isinstance(clock, SystemClock) else clock
        served = self.identity.port != 0
        return Journal(self._files, kept_clock, served=served, salvaging=salvaging)

    def keep_port(self, port: int) -> None:
        """Save the cluster's port, so that kubeconfigs stay valid.

        Raises
        ------
        UsageError
            The port cannot be written.
        """
        if port == self.identity.port:
            return
        self.identity = msgspec.structs.replace(self.identity, port=port)
        try:
            self._write_identity()
        except OSError as error:
            raise UsageError(f"cannot write to {self._path}: {error.strerror}") from error

    def close(self) -> None:
        """Release the directory."""
        self._files.close()
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
        file = self._path / _IDENTITY
        if not file.exists():
            if (self._path / MARK).exists():
                raise UsageError(
                    f"{file} is missing, without which the cluster in {self._path} cannot be "
                    "served under its old credentials; put it back, or name another directory"
                )
            self.identity = new_identity(clock)
            self._write_identity()
            return self.identity
        try:
            identity = msgspec.json.decode(file.read_bytes(), type=Identity)
            identity.authority(clock)
        except (msgspec.DecodeError, ValueError) as error:
            raise UsageError(f"{file} is damaged: {error}; put back a copy of it") from error
        if identity.format != FORMAT:
            raise UsageError(f"{file} has format {identity.format}; this version reads {FORMAT}")
        return identity

    def _write_identity(self) -> None:
        put(self._files, _IDENTITY, msgspec.json.encode(self.identity))


def _make_private(path: Path) -> None:
    """Remove other users' permissions from the files of a directory."""
    for each in sorted(path.rglob("*")):
        if each.is_symlink():
            raise UsageError(f"{each} is a link; put the file itself in its place")
        mode = stat.S_IMODE(each.stat().st_mode)
        if mode & _OTHERS:
            each.chmod(mode & ~_OTHERS)
            _log.warning("%s could be read by others; now it can be read by its owner alone", each)
