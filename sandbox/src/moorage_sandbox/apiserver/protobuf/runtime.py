"""Message classes of Google's protobuf runtime, built from `facts` on first use.

Place in the flow: the only module that imports the runtime; `codec` reads and fills its messages.
Building a package takes a few milliseconds; the packages it refers to are built with it.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from google.protobuf.descriptor_pb2 import (
    EDITION_2023,
    FeatureSet,
    FieldDescriptorProto,
    FileDescriptorProto,
)
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError as RuntimeDecodeError
from google.protobuf.message import EncodeError as RuntimeEncodeError
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.unknown_fields import UnknownFieldSet

from moorage_sandbox.apiserver.protobuf import facts
from moorage_sandbox.apiserver.protobuf.facts import Field

# Scalar types of the facts, as the runtime numbers them.
_TYPES: Final[Mapping[str, int]] = {
    "string": FieldDescriptorProto.TYPE_STRING,
    "bytes": FieldDescriptorProto.TYPE_BYTES,
    "bool": FieldDescriptorProto.TYPE_BOOL,
    "int32": FieldDescriptorProto.TYPE_INT32,
    "int64": FieldDescriptorProto.TYPE_INT64,
    "double": FieldDescriptorProto.TYPE_DOUBLE,
}

__all__ = [
    "RuntimeDecodeError",
    "RuntimeEncodeError",
    "UnknownFieldSet",
    "message_class",
]


class _Pool:
    """The descriptors built so far."""

    def __init__(self) -> None:
        self._pool = DescriptorPool()
        self._added: dict[str, None] = {}
        # Heavy calls are answered in a thread of their own.
        self._lock = threading.Lock()

    def message_class(self, full: str) -> type[Message]:
        package = full.rpartition(".")[0]
        with self._lock:
            self._add(package)
        return GetMessageClass(self._pool.FindMessageTypeByName(full))

    def _add(self, package: str) -> None:
        if package in self._added:
            return
        self._added[package] = None
        # Version 2 of the language, as Kubernetes uses it, with texts checked to be UTF-8.
        content = FileDescriptorProto(
            name=package, package=package, syntax="editions", edition=EDITION_2023
        )
        content.options.features.repeated_field_encoding = FeatureSet.EXPANDED
        needed: dict[str, None] = {}
        for name, fields in facts.package(package).items():
            message = content.message_type.add(name=name)
            for field in fields:
                used = _describe(message, field, f"{package}.{name}", package)
                if used and used != package:
                    needed[used] = None
        for used in needed:
            self._add(used)
        content.dependency.extend(needed)
        self._pool.Add(content)


def _describe(message: Any, field: Field, full: str, package: str) -> str:
    """Add one field to a message; return the package of the type it refers to, if any."""
    repeated = field.how in ("r", "m")
    label = FieldDescriptorProto.LABEL_REPEATED if repeated else FieldDescriptorProto.LABEL_OPTIONAL
    described = message.field.add(name=attribute(field), number=field.number, label=label)
    if field.how != "m":
        return _set_type(described, field.type, package)
    # A map is a list of entries; the runtime recognises a map by this name and option.
    entry = message.nested_type.add(name=_entry_name(attribute(field)))
    entry.options.map_entry = True
    optional = FieldDescriptorProto.LABEL_OPTIONAL
    entry.field.add(name="key", number=1, label=optional, type=_TYPES["string"])
    value = entry.field.add(name="value", number=2, label=optional)
    described.type = FieldDescriptorProto.TYPE_MESSAGE
    described.type_name = f".{full}.{entry.name}"
    return _set_type(value, facts.value_type(field), package)


def _set_type(described: Any, type_name: str, package: str) -> str:
    scalar = _TYPES.get(type_name)
    if scalar is not None:
        described.type = scalar
        return ""
    full = facts.full_name(type_name, package)
    described.type = FieldDescriptorProto.TYPE_MESSAGE
    described.type_name = f".{full}"
    return full.rpartition(".")[0]


def attribute(field: Field) -> str:
    """Return the name of a field in the runtime's messages."""
    return field.wire_name or field.name


def _entry_name(name: str) -> str:
    words = name.split("_")
    return "".join(word[:1].upper() + word[1:] for word in words) + "Entry"


_pool: Final = _Pool()


@cache
def message_class(full: str) -> type[Message]:
    """Return the class of a message, given its full name.

    Raises
    ------
    KeyError
        There is no such message.
    """
    return _pool.message_class(full)
