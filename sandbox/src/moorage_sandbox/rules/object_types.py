"""Types of objects for the CEL runtime: a message for each object of a schema.

Place in the flow: `type_checking` declares variables by these types. They are for the compiler
only; no value is made of them. A value without a simple type has the type ``dyn``, which fits
everywhere.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from google.protobuf import struct_pb2, timestamp_pb2
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool

from moorage.cel.values import escaped
from moorage.kinds.facts import OBJECT_META, Field, closure, definition, definition_name
from moorage.kinds.schema.pruning import EMBEDDED, Schema
from moorage.kinds.served import ServedKind

_PROTO: Final = "google.protobuf."
_KNOWN: Final = (struct_pb2.DESCRIPTOR, timestamp_pb2.DESCRIPTOR)
_SCALARS: Final[Mapping[str, int]] = {
    "boolean": FieldDescriptorProto.TYPE_BOOL,
    "bytes": FieldDescriptorProto.TYPE_BYTES,
    "double": FieldDescriptorProto.TYPE_DOUBLE,
    "int32": FieldDescriptorProto.TYPE_INT64,
    "int64": FieldDescriptorProto.TYPE_INT64,
    "integer": FieldDescriptorProto.TYPE_INT64,
    "number": FieldDescriptorProto.TYPE_DOUBLE,
    "Quantity": FieldDescriptorProto.TYPE_STRING,
    "string": FieldDescriptorProto.TYPE_STRING,
}
_MESSAGES: Final = dict.fromkeys(("MicroTime", "Time"), f"{_PROTO}Timestamp")
# Format of a text in a schema -> its type.
_FORMATS: Final[Mapping[Any, str]] = {
    "byte": "bytes",
    "date": "any",
    "date-time": "Time",
    "duration": "any",
}
_IDENTIFIER: Final = re.compile(r"[A-Za-z_]\w*", re.A)


class _Type(NamedTuple):
    """A scalar, or a message by its name; or a list or map of such values."""

    name: str
    form: str = ""

    def inside(self, form: str) -> _Type:
        """Return the type of a list or map; the elements of a list or map inside have any type."""
        name = {"list": f"{_PROTO}ListValue", "map": f"{_PROTO}Struct"}.get(self.form, self.name)
        return _Type(name, form)


_ANY: Final = _Type(f"{_PROTO}Value")
_Messages = dict[str, dict[str, _Type]]


class ObjectTypes:
    """The types of the objects of some kinds.

    ``pool`` holds the descriptions of their messages.
    """

    def __init__(self) -> None:
        self.pool = DescriptorPool()
        for known in _KNOWN:
            self.pool.AddSerializedFile(known.serialized_pb)
        self._files = [known.name for known in _KNOWN]
        self._added: set[str] = set()

    def add(self, kind: ServedKind) -> str:
        """Return the name of the type of a kind's objects, which is then in the pool."""
        name = definition_name(kind.resource)
        schema = kind.shape.schema(v3=True)
        messages: _Messages = {}
        for each in closure([name] if schema is None else [OBJECT_META]):
            fields = definition(each).fields.items()
            messages[_flat(each)] = {key: _type_of_field(field) for key, field in fields}
        if schema is not None:
            _collect(_flat(name), schema["properties"], messages)
            messages[_flat(name)]["metadata"] = _Type(_flat(OBJECT_META))
        self._describe({key: value for key, value in messages.items() if key not in self._added})
        return _flat(name)

    def _describe(self, messages: _Messages) -> None:
        self._added.update(messages)
        file = f"{len(self._files)}.proto"
        content = FileDescriptorProto(name=file, syntax="proto2", dependency=self._files)
        for name, fields in messages.items():
            message = content.message_type.add(name=name)
            for key, type_ in fields.items():
                for spelling in sorted({key, escaped(key)}):
                    if _IDENTIFIER.fullmatch(spelling):
                        _add_field(message, name, spelling, type_)
        self.pool.Add(content)
        self._files.append(file)


def _flat(name: str) -> str:
    return re.sub(r"\W", "_", name, flags=re.A)


def _type_of_field(field: Field) -> _Type:
    """Return the type of a field of the facts."""
    if field.shape in ("list", "map"):
        return _type_of_field(field.element).inside(field.shape)
    if field.shape == "object":
        return _Type(_flat(field.name))
    return _simple(field.name)


def _simple(name: str) -> _Type:
    return _Type(name) if name in _SCALARS else _Type(_MESSAGES.get(name, _ANY.name))


def _collect(name: str, properties: Mapping[str, Schema], messages: _Messages) -> None:
    """Collect the message of an object of a structural schema, and those inside it."""
    messages[name] = {}
    for key, sub in properties.items():
        messages[name][key] = _type_of_schema(f"{name}_{_flat(key)}", sub, messages)


def _type_of_schema(name: str, schema: Schema, messages: _Messages) -> _Type:
    type_: str = schema.get("type") or ""
    rest = schema.get("additionalProperties")
    if type_ == "array":
        return _type_of_schema(name, schema.get("items") or {}, messages).inside("list")
    if type_ == "object" and isinstance(rest, dict):
        return _type_of_schema(name, rest, messages).inside("map")
    if type_ == "object" and schema.get("properties") and not schema.get(EMBEDDED):
        _collect(name, schema["properties"], messages)
        return _Type(name)
    return _simple(_FORMATS.get(schema.get("format"), type_) if type_ == "string" else type_)


def _add_field(message: Any, full: str, name: str, type_: _Type) -> None:
    repeated = FieldDescriptorProto.LABEL_REPEATED
    once = FieldDescriptorProto.LABEL_OPTIONAL
    number = len(message.field) + 1
    field = message.field.add(name=name, number=number, label=repeated if type_.form else once)
    if type_.form == "map":
        # A map is a list of entries; the runtime recognises a map by this name and option.
        words = [word[:1].upper() + word[1:] for word in name.split("_")]
        entry = message.nested_type.add(name=f"{''.join(words)}Entry")
        entry.options.map_entry = True
        entry.field.add(name="key", number=1, label=once, type=_SCALARS["string"])
        field.type = FieldDescriptorProto.TYPE_MESSAGE
        field.type_name = f".{full}.{entry.name}"
        field = entry.field.add(name="value", number=2, label=once)
    if type_.name in _SCALARS:
        field.type = _SCALARS[type_.name]
    else:
        field.type = FieldDescriptorProto.TYPE_MESSAGE
        field.type_name = f".{type_.name}"
