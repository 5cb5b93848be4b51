"""The form of a journal's files: groups, each with a checksum of itself and of the group before.

A group is a header and a body. The digest in the header covers the whole group except the digest
itself; the digest of the group before is included. A checksum of the header tells a damaged length
from a group whose end is missing. So every group that was changed, moved, removed or repeated is
noticed. Only the end of a file needs judgement: `is_torn` tells whether a crash can have left it.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from enum import IntEnum
from hashlib import blake2b
from typing import BinaryIO

import msgspec

from moorage_sandbox.storage.record import Record

FORMAT = 2
"""Version of this form."""
NO_DIGEST = bytes(16)
"""Stands for the digest of the group before the first group."""

_MAGIC = b"moorage\x02"
# magic, kind, length of the body, sequence, version, moment, digest of the group before
_PLAIN = struct.Struct("<8sBQQQq16s")
_DIGEST_BYTES = 16
_CHECKSUM = struct.Struct("<I")
HEADER_BYTES = _PLAIN.size + _DIGEST_BYTES + _CHECKSUM.size
# A sector, which a disk writes whole: after a crash each sector is old or new.
_SECTOR_BYTES = 512


class GroupKind(IntEnum):
    """The kind of content of a group."""

    OPENING = 1
    """The identity of the file; the first group."""
    WRITES = 2
    """Objects written, and removed."""
    END = 3
    """The number of objects; the last group of a snapshot."""


class Opening(msgspec.Struct, frozen=True, array_like=True):
    """The identity of a file, written in its first group.

    Parameters
    ----------
    format
        `FORMAT`.
    name
        The file's name.
    sequence, digest
        Of the last group of the log before; the first group of this file follows that group.
    """

    format: int
    name: str
    sequence: int
    digest: bytes


class Entry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One object as it was written, or its removal.

    Parameters
    ----------
    resource
        Name of the shelf of the object.
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
        """The object of an entry that is no removal."""
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
        The kind of content of the body.
    sequence
        The number of the group in the chain.
    version
        The newest resourceVersion written in this group or before.
    moment_ns
        The cluster's time of the write; 0 where the cluster has the machine's time.
    previous, digest
        Checksums of the group before, and of this group.
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
        """Return the written objects and removals."""
        return _decode_entries(self.body)

    def opening(self) -> Opening:
        """Return the identity of the file."""
        return _decode_opening(self.body)

    def count(self) -> int:
        """Return the number of objects in a snapshot."""
        return _decode_count(self.body)

    @property
    def size(self) -> int:
        """Size of the group in the file, bytes."""
        return HEADER_BYTES + len(self.body)


_encode = msgspec.msgpack.Encoder().encode
_decode_entries = msgspec.msgpack.Decoder(list[Entry]).decode
_decode_opening = msgspec.msgpack.Decoder(Opening).decode
_decode_count = msgspec.msgpack.Decoder(int).decode


class BrokenError(Exception):
    """The next bytes of a file are no whole group.

    Parameters
    ----------
    offset
        Position in the file, bytes.
    rest
        The content of the file from the position on.
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
        Number and digest of the group that the first new group follows.
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
        """Return the bytes of the next group, and the chain that includes it."""
        body = _encode(content)
        sequence = self.sequence + 1
        plain = _PLAIN.pack(_MAGIC, kind, len(body), sequence, version, moment_ns, self.digest)
        digest = _digest(plain, body)
        checksum = _CHECKSUM.pack(zlib.crc32(digest, zlib.crc32(plain)))
        return b"".join((plain, digest, checksum, body)), Chain(sequence, digest)


def entry_of(resource: str, record: Record, *, removed: bool = False) -> Entry:
    """Return the entry of an object, as written into a group."""
    if removed:
        return Entry(resource, record.namespace, record.name, record.version)
    return Entry(
        resource,
        record.namespace,
        record.name,
        record.version,
        record.uid,
        dict(record.labels),
        dict(record.fields),
        record.data,
    )


def read_groups(file: BinaryIO) -> Iterator[Group]:
    """Yield the groups of a file.

    Raises
    ------
    BrokenError
        The next bytes are no whole group.
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
    """Return the next whole group at or behind a position, and its position; None if missing."""
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
    """Whether a crash while a group was written can have left this end of a file.

    After a crash the end of the group is missing, or whole sectors read as zeros. A complete group
    with a wrong checksum was changed later.

    Parameters
    ----------
    offset
        Position of the beginning of the group.
    rest
        The content of the file from the position on.
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
    """Return (length of the body,); None where the header is damaged."""
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
