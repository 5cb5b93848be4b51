"""OpenAPI in protobuf, written from the document in JSON.

Place in the flow: `discovery` answers with it where a client of ``/openapi`` prefers it. The
table below has the messages that a document of this server can contain; field numbers and types are
those of gnostic openapiv3/OpenAPIv3.proto, and of openapiv2/OpenAPIv2.proto for the messages whose
name ends in 2. Values without a type of their own (extensions, enums) are YAML there; JSON is YAML,
too.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

import msgspec

from moorage_sandbox.apiserver.protobuf.fields import FIXED64, VARINT, bytes_field, varint

# Message -> name of the field in JSON: number and type. ``[T]`` is a list of T, ``{T}`` a map from
# names to T, ``T?`` a T or a reference to one, ``=T`` a message whose first field is a T. ``*`` is
# every other name, ``x-`` every extension.
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
Document2 swagger:1:string info:2:Info2 paths:8:Paths2 definitions:9:{Schema2} x-:16
Info2 title:1:string version:2:string description:3:string x-:7
Paths2 *:2:PathItem2 x-:1
PathItem2 get:2:Operation2 put:3:Operation2 post:4:Operation2 delete:5:Operation2
 patch:8:Operation2 parameters:9:[parameter2] x-:10
Operation2 tags:1:[string] description:3:string operationId:5:string produces:6:[string]
 consumes:7:[string] parameters:8:[parameter2] responses:9:Responses2 x-:13
Body2 description:1:string name:2:string in:3:string required:4:bool schema:5:Schema2 x-:6
Query2 required:1:bool in:2:string description:3:string name:4:string type:6:string
 uniqueItems:20:bool x-:23
Path2 required:1:bool in:2:string description:3:string name:4:string type:5:string
 uniqueItems:19:bool x-:22
Responses2 *:1:=Response2 x-:2
Response2 description:1:string schema:2:=Schema2 x-:5
Schema2 $ref:1:string format:2:string title:3:string description:4:string default:5:any
 multipleOf:6:double maximum:7:double exclusiveMaximum:8:bool minimum:9:double
 exclusiveMinimum:10:bool maxLength:11:int minLength:12:int pattern:13:string maxItems:14:int
 minItems:15:int uniqueItems:16:bool maxProperties:17:int minProperties:18:int
 required:19:[string] enum:20:[any] additionalProperties:21:additional2 type:22:=string
 items:23:=Schema2 allOf:24:[Schema2] properties:25:{Schema2} readOnly:27:bool
 externalDocs:29:ExternalDocs example:30:any x-:31
"""
_DOCUMENTS: Final = {2: "Document2", 3: "Document"}
# Where a parameter of version 2 is -> its fields in the messages around it, and its message.
_PARAMETERS: Final = {
    "body": ((1, 1), "Body2"),
    "query": ((1, 2, 3), "Query2"),
    "path": ((1, 2, 4), "Path2"),
}
_EXTENSION: Final = "x-"
_OTHERS: Final = "*"

_Field = tuple[int, str]


def in_protobuf(document: bytes, version: int) -> bytes:
    """Return a document of this version of OpenAPI, which is given as JSON."""
    return _message(msgspec.json.decode(document), _DOCUMENTS[version])


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
            yield bytes_field(number, _one(each, type_[1:-1]))
    else:
        yield bytes_field(number, _one(value, type_))


def _one(value: Any, type_: str) -> bytes:
    """Return the content of a message, or of a text."""
    if type_ in _OWN_FORMS:
        return _OWN_FORMS[type_](value)
    if type_[0] == "{":
        entries = (_entry(key, each, type_[1:-1]) for key, each in value.items())
        return b"".join(bytes_field(1, each) for each in entries)
    if type_[0] == "=":
        return bytes_field(1, _one(value, type_[1:]))
    if type_[-1] == "?":
        if "$ref" in value:
            return bytes_field(2, _message(value, "Reference"))
        return bytes_field(1, _message(value, type_[:-1]))
    return _message(value, type_)


def _items(value: Any) -> bytes:
    schemas = value if isinstance(value, list) else [value]
    return b"".join(bytes_field(1, _one(each, "Schema?")) for each in schemas)


def _additional(value: Any, schema: str) -> bytes:
    """Return what other properties may be: a schema, or whether there may be any."""
    if isinstance(value, dict):
        return bytes_field(1, _one(value, schema))
    return _varint_field(2, value)


def _parameter(value: dict[str, Any]) -> bytes:
    """Return a parameter of version 2, which lies in a message for each of its alternatives."""
    numbers, name = _PARAMETERS[value["in"]]
    encoded = _message(value, name)
    for number in reversed(numbers):
        encoded = bytes_field(number, encoded)
    return encoded


def _default(value: Any) -> bytes:
    """Return a default; those that are objects or lists have no form in protobuf."""
    if isinstance(value, bool):
        return _varint_field(2, value)
    if isinstance(value, int | float):
        return _double_field(1, value)
    return bytes_field(3, value.encode()) if isinstance(value, str) else b""


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
# Types whose content is not that of a message of the table.
_OWN_FORMS: Final[dict[str, Callable[[Any], bytes]]] = {
    "additional": partial(_additional, schema="Schema?"),
    "additional2": partial(_additional, schema="Schema2"),
    "any": lambda value: bytes_field(2, msgspec.json.encode(value) + b"\n"),
    "default": _default,
    "items": _items,
    "parameter2": _parameter,
    "string": str.encode,
}
