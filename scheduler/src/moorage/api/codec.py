"""JSON bytes to typed objects and back; the only module that knows the codec library's errors.

Decoders are built once for each type and reused. A null where Kubernetes means "absent" (Go
writes ``"items": null`` for an empty list) is accepted: such bytes take a slower second look.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar

import msgspec

from moorage.base.errors import DecodeError

T = TypeVar("T")

_ENCODER = msgspec.json.Encoder()
_UNTYPED: msgspec.json.Decoder[Any] = msgspec.json.Decoder()

NOT_JSON: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""The exceptions of a decoder. RecursionError: brackets are nested deeper than the interpreter
follows; no API object is nested so deeply."""

_DECODERS: dict[type, msgspec.json.Decoder[Any]] = {}
"""One decoder a type. Bounded by the number of types in the program."""


def decoder(type_: type[T]) -> msgspec.json.Decoder[T]:
    """Return the shared decoder of a type; for callers that decode in a tight loop."""
    found = _DECODERS.get(type_)
    if found is None:
        found = _DECODERS[type_] = msgspec.json.Decoder(type_)
    return found


def decode(type_: type[T], data: bytes | bytearray | memoryview | str) -> T:
    """Decode JSON into `type_`; unknown fields are dropped, wrong types refused.

    Raises
    ------
    DecodeError
        Not JSON, or not this type; names kind, object and the path of the field.
    """
    try:
        return decoder(type_).decode(data)
    except msgspec.ValidationError:
        return from_dict(type_, decode_untyped(data))
    except NOT_JSON as error:
        raise DecodeError(f"{type_.__name__}: not JSON: {error}") from error


def decode_untyped(data: bytes | bytearray | memoryview | str) -> Any:
    """Decode JSON into plain dicts, lists, strings, numbers, booleans and None.

    Raises
    ------
    DecodeError
        Not JSON.
    """
    try:
        return _UNTYPED.decode(data)
    except NOT_JSON as error:
        raise DecodeError(f"not JSON: {error}") from error


def from_dict(type_: type[T], mapping: Mapping[str, Any]) -> T:
    """Build `type_` from decoded JSON or YAML; nulls count as absent where they do not fit.

    Raises
    ------
    DecodeError
        A field has the wrong type; names kind, object and the path of the field.
    """
    try:
        return msgspec.convert(mapping, type_)
    except (msgspec.ValidationError, RecursionError):
        pass
    try:
        return msgspec.convert(_without_nulls(mapping), type_)
    except (msgspec.ValidationError, RecursionError) as error:
        raise DecodeError(f"{_describe(type_, mapping)}: {error}") from error


def to_dict(obj: msgspec.Struct) -> dict[str, Any]:
    """Return an object as plain JSON values, fields at their defaults left out."""
    result: dict[str, Any] = msgspec.to_builtins(obj)
    return result


def encode(obj: object) -> bytes:
    """Encode a struct, or plain values, as compact JSON; fields at their defaults are left out."""
    return _ENCODER.encode(obj)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value


def _describe(type_: type[object], value: object) -> str:
    """Name the object as far as its bytes allow: ``Pod default/web``."""
    kind, name, namespace = type_.__name__, "", ""
    if isinstance(value, Mapping):
        kind = _text(value.get("kind")) or kind
        metadata = value.get("metadata")
        if isinstance(metadata, Mapping):
            name, namespace = _text(metadata.get("name")), _text(metadata.get("namespace"))
    where = f"{namespace}/{name}" if namespace and name else name
    return f"{kind} {where}" if where else kind


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
