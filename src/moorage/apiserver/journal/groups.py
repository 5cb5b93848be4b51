"""The form of a journal's files: groups, each of which vouches for itself and for the one before.

A group is a header and a body. The digest in the header covers the whole group but for itself, the
digest of the group before included; a checksum of the header tells a damaged length from a group
whose end is missing. So nothing in a file can change, move, vanish or come twice unseen, but at
its end, where `is_torn` tells what a crash may leave there.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from enum import IntEnum
from hashlib import blake2b
from typing import BinaryIO

import msgspec

from moorage.apiserver.record import Record

FORMAT = 2
"""Version of this form; 1 was a SQLite database."""
NO_DIGEST = bytes(16)
"""In place of the digest of a group before the first."""

_MAGIC = b"moorage\x02"
# magic, kind, length of the body, sequence, version, moment, digest of the group before
_PLAIN = struct.Struct("<8sBQQQq16s")
_DIGEST_BYTES = 16
_CHECKSUM = struct.Struct("<I")
HEADER_BYTES = _PLAIN.size + _DIGEST_BYTES + _CHECKSUM.size
# A sector, which a disk writes whole; a crash leaves each as it was or as it should be.
_SECTOR_BYTES = 512


class GroupKind(IntEnum):
    """The kind of content of a group."""

    OPENING = 1
    """The identity of the file; the first group."""
    WRITES = 2
    """Objects written, and removed."""
    END = 3
    """How many objects there were; the last group of a snapshot."""


class Opening(msgspec.Struct, frozen=True, array_like=True):
    """The identity of a file, written in its first group.

    Parameters
    ----------
    format
        `FORMAT`.
    name
        The file's name.
    sequence, digest
        Of the last group of the log before it; its own first group follows that one.
    """

    format: int
    name: str
    sequence: int
    digest: bytes


class Entry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One object as it was written, or that it was removed.

    Parameters
    ----------
    resource
        Name of its shelf.
    namespace, name, version, uid, labels, fields, data
        As in `Record`; ``data`` is None where the object was removed.
    """

    resource: str
    namespace: str
    name: str
    version: int
    uid: str = ""
    labels: Mapping[str, str] = {}
    fields: Mapping[str, str] = {}
    data: bytes | None = None

    @property
    def key(self) -> tuple[str, str, str]:
        """(resource, namespace, name)."""
        return (self.resource, self.namespace, self.name)

    @property
    def record(self) -> Record:
        """The object, of an entry that is no removal."""
        assert self.data is not None, "a removed object has no record"
        return Record(
            namespace=self.namespace,
            name=self.name,
            uid=self.uid,
            version=self.version,
            data=self.data,
            labels=self.labels,
            fields=self.fields,
        )


class Group(msgspec.Struct, frozen=True):
    """One group as it was read.

    Parameters
    ----------
    kind
        What its body holds.
    sequence
        Its number in the chain.
    version
        The newest resourceVersion written with it or before.
    moment_ns
        What time it was for the cluster; 0 where that is the machine's.
    previous, digest
        Checksums of the group before, and of this one.
    body
        Encoded.
    """

    kind: GroupKind
    sequence: int
    version: int
    moment_ns: int
    previous: bytes
    digest: bytes
    body: bytes

    def entries(self) -> list[Entry]:
        """Return what was written."""
        return _decode_entries(self.body)

    def opening(self) -> Opening:
        """Return what the file says of itself."""
        return _decode_opening(self.body)

    def count(self) -> int:
        """Return how many objects a snapshot has."""
        return _decode_count(self.body)

    @property
    def size(self) -> int:
        """Bytes in the file."""
        return HEADER_BYTES + len(self.body)


_encode = msgspec.msgpack.Encoder().encode
_decode_entries = msgspec.msgpack.Decoder(list[Entry]).decode
_decode_opening = msgspec.msgpack.Decoder(Opening).decode
_decode_count = msgspec.msgpack.Decoder(int).decode


class BrokenError(Exception):
    """A file does not go on with a whole group.

    Parameters
    ----------
    offset
        Where in the file, in bytes.
    rest
        Everything from there.
    """

    def __init__(self, offset: int, rest: bytes) -> None:
        super().__init__(f"no whole group at byte {offset}")
        self.offset = offset
        self.rest = rest


class Chain:
    """Makes groups that follow each other.

    Parameters
    ----------
    sequence, digest
        Of the group that the first one follows.
    """

    def __init__(self, sequence: int = 0, digest: bytes = NO_DIGEST) -> None:
        self.sequence = sequence
        self.digest = digest

    def next_group(
        self,
        kind: GroupKind,
        content: Opening | Sequence[Entry] | int,
        *,
        version: int,
        moment_ns: int,
    ) -> tuple[bytes, Chain]:
        """Return the bytes of the group that comes next, and the chain with it."""
        body = _encode(content)
        sequence = self.sequence + 1
        plain = _PLAIN.pack(_MAGIC, kind, len(body), sequence, version, moment_ns, self.digest)
        digest = _digest(plain, body)
        checksum = _CHECKSUM.pack(zlib.crc32(digest, zlib.crc32(plain)))
        return b"".join((plain, digest, checksum, body)), Chain(sequence, digest)


def entry_of(resource: str, record: Record, *, removed: bool = False) -> Entry:
    """Return what is written of an object."""
    if removed:
        return Entry(resource, record.namespace, record.name, record.version)
    return Entry(
        resource,
        record.namespace,
        record.name,
        record.version,
        record.uid,
        record.labels,
        record.fields,
        record.data,
    )


def read_groups(file: BinaryIO) -> Iterator[Group]:
    """Yield the groups of a file.

    Raises
    ------
    BrokenError
        What follows is no whole group.
    """
    offset = 0
    while header := file.read(HEADER_BYTES):
        fields = _read_header(header)
        body = file.read(fields[0]) if fields is not None else b""
        group = _whole(header, body) if fields is not None else None
        if group is None:
            raise BrokenError(offset, header + body + file.read())
        yield group
        offset += group.size


def find_group(data: bytes, start: int) -> tuple[int, Group] | None:
    """Return the next whole group at or behind a place, and where it is; None without one."""
    at = data.find(_MAGIC, start)
    while at >= 0:
        header = data[at : at + HEADER_BYTES]
        fields = _read_header(header)
        if fields is not None:
            body_at = at + HEADER_BYTES
            group = _whole(header, data[body_at : body_at + fields[0]])
            if group is not None:
                return at, group
        at = data.find(_MAGIC, at + 1)
    return None


def is_torn(offset: int, rest: bytes) -> bool:
    """Whether a file's end is what a crash may leave of a group that was being written.

    Its end is missing then, or whole sectors of it, which read as zeros; a group that is all there
    and wrong has been changed since.

    Parameters
    ----------
    offset
        Where the group begins.
    rest
        The file from there.
    """
    if len(rest) < HEADER_BYTES:
        return True
    fields = _read_header(rest[:HEADER_BYTES])
    end = HEADER_BYTES if fields is None else HEADER_BYTES + fields[0]
    if fields is not None and len(rest) < end:
        return True
    first = offset - offset % _SECTOR_BYTES
    for sector in range(first, offset + end, _SECTOR_BYTES):
        part = rest[max(sector - offset, 0) : min(sector + _SECTOR_BYTES - offset, end)]
        if not any(part):
            return True
    return False


def _read_header(header: bytes) -> tuple[int] | None:
    """Return (length of the body,), None where the header is not what was written."""
    if len(header) < HEADER_BYTES:
        return None
    (checksum,) = _CHECKSUM.unpack_from(header, HEADER_BYTES - _CHECKSUM.size)
    covered = header[: HEADER_BYTES - _CHECKSUM.size]
    if not header.startswith(_MAGIC) or zlib.crc32(covered) != checksum:
        return None
    return (_PLAIN.unpack_from(header)[2],)


def _whole(header: bytes, body: bytes) -> Group | None:
    plain, digest = header[: _PLAIN.size], header[_PLAIN.size : _PLAIN.size + _DIGEST_BYTES]
    _, kind, length, sequence, version, moment_ns, previous = _PLAIN.unpack(plain)
    if len(body) != length or _digest(plain, body) != digest:
        return None
    return Group(GroupKind(kind), sequence, version, moment_ns, previous, digest, body)


def _digest(plain: bytes, body: bytes) -> bytes:
    return blake2b(body, digest_size=_DIGEST_BYTES, key=plain[: blake2b.MAX_KEY_SIZE]).digest()
