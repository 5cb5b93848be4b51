"""Objects, lists and watch events in protobuf, in the form of a body.

Place in the flow: between `calls` or `rendering` and `codec`. An object is in an envelope that
names its kind: four bytes, then the message ``runtime.Unknown`` (apimachinery v1.36 pkg/runtime
serializer/protobuf). A watch event is a frame of its own: its length in four bytes, then the
message ``meta/v1.WatchEvent``, whose object is in an envelope again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from moorage.kinds.kind import Obj
from moorage_sandbox.apiserver.protobuf import facts
from moorage_sandbox.apiserver.protobuf.codec import ProtobufError, decode, encode
from moorage_sandbox.apiserver.protobuf.fields import bytes_field
from moorage_sandbox.apiserver.protobuf.runtime import RuntimeDecodeError, message_class

_MAGIC: Final = b"k8s\x00"
# contentEncoding and contentType, which stay empty.
_ENVELOPE_END: Final = b"\x1a\x00\x22\x00"


class NoMessageError(ProtobufError):
    """A kind has no protobuf form: it is a custom resource or unknown."""


def write_object(obj: Obj) -> bytes:
    """Return an object in its envelope.

    Parameters
    ----------
    obj
        JSON form, with ``kind``, and ``apiVersion`` where the kind has one.

    Raises
    ------
    NoMessageError
        The kind has no protobuf form.
    ProtobufError
        As for `codec.encode`.
    """
    api_version, kind = obj.get("apiVersion", ""), obj["kind"]
    return wrap(api_version, kind, encode(known_message(api_version, kind), obj))


def read_object(body: bytes, default: tuple[str, str]) -> Obj:
    """Return the JSON form of an object in its envelope.

    Parameters
    ----------
    body
        The envelope.
    default
        API version and kind of an object whose envelope does not name them.

    Raises
    ------
    NoMessageError
        The kind has no protobuf form.
    ProtobufError
        The body is no such envelope, or as for `codec.decode`.
    """
    unknown = _opened(body)
    api_version = unknown.typeMeta.apiVersion or default[0]
    kind = unknown.typeMeta.kind or default[1]
    obj = decode(known_message(api_version, kind), unknown.raw)
    return {"apiVersion": api_version, "kind": kind, **obj}


def count_items(body: bytes) -> int:
    """Return the number of items of a list in its envelope, without decoding the items.

    Raises
    ------
    NoMessageError
        The kind has no protobuf form.
    ProtobufError
        The body is no such envelope, or holds no list.
    """
    unknown = _opened(body)
    found: Any = message_class(known_message(unknown.typeMeta.apiVersion, unknown.typeMeta.kind))()
    try:
        found.ParseFromString(unknown.raw)
        return len(found.items)
    except (RuntimeDecodeError, AttributeError) as error:
        raise ProtobufError(f"{unknown.typeMeta.kind} is no list: {error}") from error


def known_message(api_version: str, kind: str) -> str:
    """Return the full name of the message of a kind.

    Raises
    ------
    NoMessageError
        The kind has no protobuf form.
    """
    message = facts.message_of(api_version, kind)
    if message is None:
        raise NoMessageError(f"{kind} of version {api_version or '(none)'} has no protobuf form")
    return message


def wrap(api_version: str, kind: str, raw: bytes) -> bytes:
    """Return a message in the envelope of its kind."""
    type_meta = bytes_field(1, api_version.encode()) + bytes_field(2, kind.encode())
    return b"".join((_MAGIC, bytes_field(1, type_meta), bytes_field(2, raw), _ENVELOPE_END))


def wrap_list(api_version: str, kind: str, list_meta: Obj, items: Iterable[bytes]) -> bytes:
    """Return a list in its envelope, made of the bytes of messages.

    Parameters
    ----------
    api_version, kind
        Of the list.
    list_meta
        The list's ``metadata``.
    items
        The bytes of each item's message.
    """
    meta = encode(f"{facts.META}.ListMeta", list_meta)
    raw = b"".join((bytes_field(1, meta), *(bytes_field(2, item) for item in items)))
    return wrap(api_version, kind, raw)


def frame(change_type: str, obj: bytes) -> bytes:
    """Return one event of a watch stream.

    Parameters
    ----------
    change_type
        ``ADDED``, ``MODIFIED``, ``DELETED``, ``BOOKMARK`` or ``ERROR``.
    obj
        The object in its envelope.
    """
    event = bytes_field(1, change_type.encode()) + bytes_field(2, bytes_field(1, obj))
    return len(event).to_bytes(4, "big") + event


def _opened(body: bytes) -> Any:
    """Return the message ``runtime.Unknown`` of an envelope."""
    if not body.startswith(_MAGIC):
        raise ProtobufError(
            "provided data does not appear to be a protobuf message, expected prefix "
            f"{list(_MAGIC)}"
        )
    unknown: Any = message_class(f"{facts.RUNTIME}.Unknown")()
    try:
        unknown.ParseFromString(body[len(_MAGIC) :])
    except RuntimeDecodeError as error:
        raise ProtobufError(f"the envelope cannot be read: {error}") from error
    return unknown
