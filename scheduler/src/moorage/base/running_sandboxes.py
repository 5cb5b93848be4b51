"""The sandboxes that run: a record next to each kubeconfig, locked while the sandbox runs.

``moorage up`` holds the lock; ``status``, ``wait`` and ``down`` read the record. The operating
system releases the lock however the process ends, so a record without a lock is out of date.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Self

import msgspec

from moorage.base.errors import UsageError

TIME_PATH = "/moorage.dev/v1/time"
"""The path of a sandbox that reports and changes its time; no other server has it."""
FOLDER = Path(".moorage")
"""The folder of the sandboxes that are started in a directory."""
_SUFFIX = "-sandbox.json"
# A record is written in one piece, so that a reader sees the old one or the new one. A guess: long
# paths need some hundred bytes.
_BYTES = 16_384


class SandboxRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A sandbox that runs.

    Parameters
    ----------
    name
        The name given by ``--name``; "" for none.
    process
        Process id of ``moorage up``.
    kubeconfig
        Path of the kubeconfig.
    started
        When the process started, RFC 3339.
    state
        ``starting`` until pods are scheduled and the first pods are created.
    url
        Address of the API server; "" while there is none.
    nodes
        Number of fake nodes at the start.
    autoscale
        ``MIN:MAX`` where nodes come and go; "" where they stay.
    served
        The schedulerNames that are served; None if no scheduler runs, or it is not known.
    health
        Address of the scheduler's metrics and health checks; "" if they are not served.
    page
        The login link of the page that has not been used; "" if no page is served.
    log
        File of the messages; "" if they go to a terminal.
    """

    name: str = ""
    process: int = 0
    kubeconfig: str = ""
    started: str = ""
    state: Literal["starting", "ready"] = "starting"
    url: str = ""
    nodes: int = 0
    autoscale: str = ""
    served: tuple[str, ...] | None = None
    health: str = ""
    page: str = ""
    log: str = ""

    @property
    def title(self) -> str:
        """The sandbox in words, for messages."""
        return f"sandbox {self.name}" if self.name else "sandbox"


def kubeconfig_of(name: str) -> Path:
    """Return where the kubeconfig of a sandbox is, by the sandbox's name."""
    return FOLDER / name / "kubeconfig"


def log_of(kubeconfig: Path) -> Path:
    """Return the log file of a sandbox in the background."""
    return kubeconfig.with_name(f"{kubeconfig.name}-log")


class LockedRecord:
    """The record of a sandbox of this process, from `hold` until `release`.

    Parameters
    ----------
    files
        The files of the record, locked: path and descriptor.
    record
        The record.
    """

    def __init__(self, files: Sequence[tuple[Path, int]], record: SandboxRecord) -> None:
        self._files = list(files)
        self.record = record
        self.change()

    def change(self, **fields: object) -> None:
        """Write the record with other values of some fields."""
        self.record = msgspec.structs.replace(self.record, **fields)
        text = msgspec.json.encode(self.record).ljust(_BYTES - 1) + b"\n"
        for _, descriptor in self._files:
            os.pwrite(descriptor, text, 0)

    def release(self) -> None:
        """Remove the record; idempotent."""
        while self._files:
            path, descriptor = self._files.pop()
            # Removed while locked: a process that locks a removed file notices, and takes a new
            # one.
            path.unlink(missing_ok=True)
            os.close(descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def hold(record: SandboxRecord) -> LockedRecord:
    """Write the record of a sandbox that starts, unless another one has the same kubeconfig.

    A sandbox with a name has its record where its name says, too: its kubeconfig may be elsewhere.

    Raises
    ------
    UsageError
        A sandbox with this kubeconfig, or of this name in this folder, runs, or the record cannot
        be written.
    """
    paths = [_record_of(Path(record.kubeconfig))]
    if record.name and (named := _record_of(kubeconfig_of(record.name)).resolve()) not in paths:
        paths.append(named)
    files: list[tuple[Path, int]] = []
    try:
        files.extend((path, _locked(path, record)) for path in paths)
    except BaseException:
        for path, descriptor in files:
            path.unlink(missing_ok=True)
            os.close(descriptor)
        raise
    return LockedRecord(files, record)


def _locked(path: Path, record: SandboxRecord) -> int:
    """Return the descriptor of a record's file, locked."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        while True:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
            try:
                _lock(descriptor)
            except BlockingIOError:
                os.close(descriptor)
                raise _in_use(path, record) from None
            if _is_still(path, descriptor):
                return descriptor
            os.close(descriptor)
    except OSError as error:
        raise UsageError(
            f"cannot write the kubeconfig to {record.kubeconfig}: {error.strerror}; "
            "name another file with --kubeconfig-out"
        ) from error


def find(kubeconfig: Path) -> SandboxRecord | None:
    """Return the running sandbox that wrote a kubeconfig; None if there is none."""
    path = _record_of(kubeconfig)
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _decoded(os.pread(descriptor, _BYTES, 0))
    finally:
        os.close(descriptor)
    return None


def find_all() -> Sequence[SandboxRecord]:
    """Return the sandboxes of this directory that run, the one without a name first."""
    files = [kubeconfig_of(""), *sorted(each / "kubeconfig" for each in _folders())]
    return [record for each in files if (record := find(each)) is not None]


def find_dead() -> Sequence[str]:
    """Return the names of the sandboxes of this directory that ended without taking leave.

    Their records are there, but no process holds them: the process was killed.
    """
    names = ["", *sorted(each.name for each in _folders())]
    return [
        name
        for name in names
        if _record_of(kubeconfig_of(name)).exists() and find(kubeconfig_of(name)) is None
    ]


def remove_dead(kubeconfig: Path) -> bool:
    """Remove the record of a sandbox that was killed; return whether there was one."""
    path = _record_of(kubeconfig)
    if not path.exists() or find(kubeconfig) is not None:
        return False
    path.unlink(missing_ok=True)
    return True


def _folders() -> Sequence[Path]:
    return [each for each in FOLDER.iterdir() if each.is_dir()] if FOLDER.is_dir() else []


def _record_of(kubeconfig: Path) -> Path:
    return kubeconfig.with_name(f"{kubeconfig.name}{_SUFFIX}")


def _lock(descriptor: int) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        found = _decoded(os.pread(descriptor, _BYTES, 0))
        if found is not None and _lives(found.process):
            raise
        # Not a sandbox but a reader, which looks whether there is a lock and goes.
        fcntl.flock(descriptor, fcntl.LOCK_EX)


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return process > 0


def _is_still(path: Path, descriptor: int) -> bool:
    try:
        return path.stat().st_ino == os.fstat(descriptor).st_ino
    except FileNotFoundError:
        return False


def _decoded(text: bytes) -> SandboxRecord | None:
    try:
        return msgspec.json.decode(text, type=SandboxRecord)
    except msgspec.MsgspecError:
        return None


def _in_use(path: Path, record: SandboxRecord) -> UsageError:
    found = _decoded(path.read_bytes()) or record
    named = f" --name {found.name}" if found.name else ""
    server = f", {found.url}" if found.url else ""
    return UsageError(
        f"the {found.title} of this folder runs already (process {found.process}{server}): "
        f"`moorage down{named}` ends it, `moorage up --name NAME` starts another beside it"
    )
