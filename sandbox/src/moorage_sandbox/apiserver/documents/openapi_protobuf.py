"""OpenAPI version 3 in protobuf, written from the document in JSON.

Place in the flow: `discovery` answers with it where a client of ``/openapi/v3`` prefers it. The
table below has the messages that a document of this server can contain; field numbers and types are
those of gnostic openapiv3/OpenAPIv3.proto. Values without a type of their own (extensions, enums)
are YAML there; JSON is YAML, too.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from moorage_sandbox.apiserver.protobuf.fields import FIXED64, VARINT, bytes_field, varint

# Message -> name of the field in JSON: number and type. ``[T]`` is a list of T, ``{T}`` a map from
# names to T, ``T?`` a T or a reference to one. ``*`` is every other name, ``x-`` every extension.
_MESSAGES: Final = """
Document openapi:1:string info:2:Info paths:4:{PathItem} components:5:Components x-:9
Info title:1:string description:2:string version:6:string x-:7
Components schemas:1:{Schema?} securitySchemes:6:{SecurityScheme?} x-:10
SecurityScheme type:1:string description:2:string name:3:string in:4:string x-:9
PathItem description:3:string get:4:Operation put:5:Operation post:6:Operation delete:7:Operation
 patch:10:Operation parameters:13:[Parameter?] x-:14
Operation tags:1:[string] description:3:string operationId:5:string parameters:6:[Parameter?]
 requestBody:7:RequestBody? responses:8:Responses x-:13
Parameter name:1:string in:2:string description:3:string required:4:bool schema:10:Schema? x-:14
RequestBody description:1:string content:2:{MediaType} required:3:bool x-:4
Responses default:1:Response? *:2:Response? x-:3
Response description:1:string content:3:{MediaType} x-:5
MediaType schema:1:Schema? x-:5
Reference $ref:1:string description:3:string
Schema nullable:1:bool readOnly:3:bool writeOnly:4:bool externalDocs:6:ExternalDocs example:7:any
 deprecated:8:bool title:9:string multipleOf:10:double maximum:11:double exclusiveMaximum:12:bool
 minimum:13:double exclusiveMinimum:14:bool maxLength:15:int minLength:16:int pattern:17:string
 maxItems:18:int minItems:19:int uniqueItems:20:bool maxProperties:21:int minProperties:22:int
 required:23:[string] enum:24:[any] type:25:string allOf:26:[Schema?] oneOf:27:[Schema?]
 anyOf:28:[Schema?] not:29:Schema items:30:items properties:31:{Schema?}
 additionalProperties:32:additional default:33:default description:34:string format:35:string x-:36
ExternalDocs description:1:string url:2:string x-:3
"""
_EXTENSION: Final = "x-"
_OTHERS: Final = "*"

_Field = tuple[int, str]


def in_protobuf(document: bytes) -> bytes:
    """Return a document of OpenAPI version 3, which is given as JSON."""
    return _message(msgspec.json.decode(document), "Document")


def _read_table() -> dict[str, dict[str, _Field]]:
    table = {}
    for line in _MESSAGES.replace("\n ", " ").strip().splitlines():
        name, *fields = line.split()
        parts = [each.split(":") for each in fields]
        table[name] = {
            key: (int(number), type_[0] if type_ else "any") for key, number, *type_ in parts
        }
    return table


_TABLE: Final = _read_table()


def _message(value: dict[str, Any], name: str) -> bytes:
    fields = _TABLE[name]
    parts: list[bytes] = []
    for key, each in value.items():
        extension = key.startswith(_EXTENSION)
        field = fields.get(_EXTENSION if extension else key)
        if field is not None and not extension:
            parts += _encoded(each, *field)
            continue
        field = field or fields.get(_OTHERS)
        if field is not None:
            number, type_ = field
            parts.append(bytes_field(number, _entry(key, each, type_)))
    return b"".join(parts)


def _entry(key: str, value: Any, type_: str) -> bytes:
    """Encode an entry of a map."""
    return bytes_field(1, key.encode()) + bytes_field(2, _one(value, type_))


def _encoded(value: Any, number: int, type_: str) -> Iterator[bytes]:
    """Yield the encoded field of a message; a default value is left out."""
    if type_ in _SCALARS:
        if value:
            yield _SCALARS[type_](number, value)
    elif type_[0] == "[":
        for each in value:
            inner = type_[1:-1]
            yield bytes_field(number, each.encode() if inner == "string" else _one(each, inner))
    else:
        yield bytes_field(number, _one(value, type_))


def _one(value: Any, type_: str) -> bytes:
    return b"".join(_body(value, type_))


def _body(value: Any, type_: str) -> Iterator[bytes]:
    """Yield the content of a message."""
    if type_[0] == "{":
        for key, each in value.items():
            yield bytes_field(1, _entry(key, each, type_[1:-1]))
    elif type_ == "any":
        yield bytes_field(2, msgspec.json.encode(value) + b"\n")
    elif type_ == "items":
        for each in value if isinstance(value, list) else [value]:
            yield bytes_field(1, _one(each, "Schema?"))
    elif type_ == "additional":
        is_schema = isinstance(value, dict)
        yield bytes_field(1, _one(value, "Schema?")) if is_schema else _varint_field(2, value)
    elif type_ == "default":
        yield from _default(value)
    elif type_[-1] == "?":
        if "$ref" in value:
            yield bytes_field(2, _message(value, "Reference"))
        else:
            yield bytes_field(1, _message(value, type_[:-1]))
    else:
        yield _message(value, type_)


def _default(value: Any) -> Iterator[bytes]:
    """Yield a default; those that are objects or lists have no form in protobuf."""
    if isinstance(value, bool):
        yield _varint_field(2, value)
    elif isinstance(value, int | float):
        yield _double_field(1, value)
    elif isinstance(value, str):
        yield bytes_field(3, value.encode())


def _varint_field(number: int, value: int) -> bytes:
    return varint(number << 3 | VARINT) + varint(int(value))


def _double_field(number: int, value: float) -> bytes:
    return varint(number << 3 | FIXED64) + struct.pack("<d", value)


_SCALARS: Final[dict[str, Callable[[int, Any], bytes]]] = {
    "string": lambda number, value: bytes_field(number, value.encode()),
    "bool": _varint_field,
    "int": _varint_field,
    "double": _double_field,
}
