"""The protobuf messages read here: ``DeleteOptions`` and ``Eviction``, as ``kubectl drain`` sends.

Generated Go clients send these bodies in protobuf, and no answer makes them send JSON (kubernetes
v1.36 client-go rest/request.go). They are small, so `deleting` and `eviction` take them too. Whole
objects are read by `moorage.apiserver.protobuf_objects`, on top of the same wire format.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from moorage.apiserver.status import StatusError, bad_request

PROTOBUF = "application/vnd.kubernetes.protobuf"

# Kubernetes' envelope: these bytes, then the message runtime.Unknown.
_MAGIC = b"k8s\x00"
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_VARINT_LENGTH_MAX = 10


def read_delete_options(body: bytes) -> dict[str, Any]:
    """Return the JSON form of a ``DeleteOptions`` in protobuf.

    Raises
    ------
    StatusError
        400: not protobuf in the envelope of Kubernetes, or another kind.

    Notes
    -----
    Field numbers of apimachinery v1.36 pkg/runtime and pkg/apis/meta/v1 generated.proto.
    """
    _, raw = open_envelope(body, "DeleteOptions")
    return _delete_options(raw)


def read_eviction(body: bytes) -> dict[str, Any]:
    """Return the JSON form of a policy ``Eviction`` in protobuf.

    Raises
    ------
    StatusError
        400: not protobuf in the envelope of Kubernetes, or another kind.

    Notes
    -----
    Field numbers of api v1.36 policy/v1 generated.proto; of the metadata name and namespace.
    """
    version, raw = open_envelope(body, "Eviction")
    eviction: dict[str, Any] = {"apiVersion": version, "kind": "Eviction"}
    for number, value in fields_of(raw):
        if number == 1:
            names = {1: "name", 3: "namespace"}
            found = fields_of(_bytes(value))
            eviction["metadata"] = {names[n]: text_of(v) for n, v in found if n in names}
        elif number == 2:
            eviction["deleteOptions"] = _delete_options(_bytes(value))
    return eviction


def open_envelope(body: bytes, kind: str) -> tuple[str, bytes]:
    """Return API version and message of an envelope that must hold a kind.

    Raises
    ------
    StatusError
        400: it is no such envelope, or holds another kind.
    """
    if not body.startswith(_MAGIC):
        raise malformed("provided data does not appear to be a protobuf message", kind)
    envelope = dict(fields_of(body[len(_MAGIC) :]))
    type_meta = dict(fields_of(_bytes(envelope.get(1, b""))))
    found = text_of(type_meta.get(2, b""))
    if found != kind:
        raise malformed(f'expected kind "{kind}", not "{found}"', kind)
    return text_of(type_meta.get(1, b"")), _bytes(envelope.get(2, b""))


def _delete_options(raw: bytes) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for number, value in fields_of(raw):
        if number == 1 and isinstance(value, int):
            options["gracePeriodSeconds"] = value - (value >> 63 << 64)
        elif number == 2:
            names = {1: "uid", 2: "resourceVersion"}
            found = fields_of(_bytes(value))
            options["preconditions"] = {names[n]: text_of(v) for n, v in found if n in names}
        elif number == 4:
            options["propagationPolicy"] = text_of(value)
        elif number == 5:
            options.setdefault("dryRun", []).append(text_of(value))
    return options


def fields_of(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield (number, value) of a message's fields, in the order sent.

    Raises
    ------
    StatusError
        400: the bytes are no protobuf.
    """
    place = 0
    while place < len(data):
        tag, place = _varint(data, place)
        wire = tag & 7
        if wire == _VARINT:
            number, place = _varint(data, place)
            yield tag >> 3, number
            continue
        if wire == _BYTES:
            size, place = _varint(data, place)
        elif wire in (_FIXED64, _FIXED32):
            size = 8 if wire == _FIXED64 else 4
        else:
            raise malformed(f"unknown wire type {wire}")
        if place + size > len(data):
            raise malformed("unexpected end")
        yield tag >> 3, data[place : place + size]
        place += size


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = 0
    for count, byte in enumerate(data[place : place + _VARINT_LENGTH_MAX]):
        value |= (byte & 0x7F) << (7 * count)
        if byte < 0x80:
            return value & (2**64 - 1), place + count + 1
    raise malformed("unexpected end")


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise malformed("a number where a message or text is expected")
    return value


def text_of(value: int | bytes) -> str:
    """Return a field that is a text.

    Raises
    ------
    StatusError
        400: it is a number, or not UTF-8.
    """
    try:
        return _bytes(value).decode()
    except UnicodeDecodeError as error:
        raise malformed(str(error)) from error


def malformed(why: str, what: str = "the body") -> StatusError:
    """400: bytes that are no such message."""
    return bad_request(f"{what} cannot be read: {why}")
