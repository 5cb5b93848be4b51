"""The mark, kept apart from the chain: which files belong to the chain, and how far it goes.

``mark`` is durable before anything depends on it. No write waits for ``progress``. It is exact
after a process was killed. After a power cut it is perhaps older than the chain, but never newer.
"""

from __future__ import annotations

import struct
import zlib
from hashlib import blake2b

import msgspec

from moorage.base.errors import UsageError
from moorage_sandbox.storage.journal.faults import DamagedError
from moorage_sandbox.storage.journal.files import Files
from moorage_sandbox.storage.journal.groups import FORMAT

MARK = "mark"
PROGRESS = "progress"
# sequence, version, digest
_PROGRESS = struct.Struct("<QQ16s")
_CHECKSUM = struct.Struct("<I")


class Mark(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The durable part.

    Parameters
    ----------
    format
        Version of the files' form.
    snapshot
        Generation of the snapshot, and of the first log behind it.
    log
        Generation of the log that grows.
    ceiling
        The greatest resourceVersion that may have been given out.
    clean
        Whether the server ended in good order: the chain ends at ``sequence`` then.
    sequence, version, moment_ns
        Of the last group, when the mark was written.
    """

    format: int
    snapshot: int
    log: int
    ceiling: int
    clean: bool
    sequence: int
    version: int
    moment_ns: int


class _Form(msgspec.Struct, frozen=True):
    format: int


class Progress(msgspec.Struct, frozen=True):
    """The position of the chain after the last commit."""

    sequence: int
    version: int
    digest: bytes


def encode_mark(mark: Mark) -> bytes:
    """Return a mark as two lines: the content, and the checksum."""
    text = msgspec.json.encode(mark)
    return text + b"\n" + _checksum(text) + b"\n"


def read_mark(files: Files) -> Mark | None:
    """Return the mark; None without a mark.

    Raises
    ------
    DamagedError
        The mark differs from what the server wrote.
    UsageError
        The files are of another form, perhaps of a newer version.
    """
    if MARK not in files.names():
        return None
    with files.read(MARK) as file:
        text, _, checksum = file.read().partition(b"\n")
    if checksum != _checksum(text) + b"\n":
        raise DamagedError(f"{MARK} is not what was written", files.where)
    form = msgspec.json.decode(text, type=_Form).format
    if form != FORMAT:
        raise UsageError(
            f"{files.where} has format {form}, and this version of moorage writes format {FORMAT}; "
            "use the version that wrote it, and `moorage snapshot save` to move on"
        )
    return msgspec.json.decode(text, type=Mark)


def encode_progress(progress: Progress) -> bytes:
    """Return progress as bytes; the length is always the same."""
    plain = _PROGRESS.pack(progress.sequence, progress.version, progress.digest)
    return plain + _CHECKSUM.pack(zlib.crc32(plain))


def read_progress(files: Files) -> Progress | None:
    """Return the progress; None where it is missing or incomplete."""
    if PROGRESS not in files.names():
        return None
    with files.read(PROGRESS) as file:
        data = file.read(_PROGRESS.size + _CHECKSUM.size)
    plain = data[: _PROGRESS.size]
    if len(data) != _PROGRESS.size + _CHECKSUM.size:
        return None
    if _CHECKSUM.unpack_from(data, _PROGRESS.size) != (zlib.crc32(plain),):
        return None
    return Progress(*_PROGRESS.unpack(plain))


def snapshot_name(generation: int) -> str:
    """Return the name of a snapshot."""
    return f"snapshot-{generation}"


def log_name(generation: int) -> str:
    """Return the name of a log."""
    return f"log-{generation}"


def generation_of(name: str) -> int | None:
    """Return the generation of a snapshot or log, drafts included; None for other files."""
    kind, dash, number = name.removesuffix(".new").partition("-")
    if kind not in ("snapshot", "log") or not dash or not number.isdecimal():
        return None
    return int(number)


def _checksum(text: bytes) -> bytes:
    return blake2b(text, digest_size=16).hexdigest().encode()
