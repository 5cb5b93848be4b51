"""Objects in protobuf, as ``kubectl create deployment`` and its like send them, to their JSON form.

Generated Go clients send some requests in protobuf whatever the server offers, and a 415 does not
make them send JSON (docs/decisions/0014-protobuf-of-kubectl-create.md). What such a body says is
read here by the tables of ``protobuf_fields``; from then on the object is one like any other.
Answers are always JSON.
"""

from __future__ import annotations

import base64
from typing import Any

from moorage.api.resources import ResourceType
from moorage.apiserver.kind import Obj
from moorage.apiserver.protobuf import fields_of, malformed, open_envelope, text_of
from moorage.apiserver.protobuf_fields import KINDS, MESSAGES, Numbered
from moorage.apiserver.schema import catalog
from moorage.apiserver.schema.definitions import Definition, TypeRef
from moorage.apiserver.status import StatusError
from moorage.base.clock import NS_PER_SECOND, rfc3339

_Value = int | bytes
_STATUS = 3  # of every kind that has one; what a client says of it does not count
_DEPTH_MAX = 64  # messages in messages; no object of these kinds comes near


def reads_protobuf(resource: ResourceType) -> bool:
    """Whether objects of a kind are read in protobuf."""
    return resource.kind in KINDS and catalog.is_built_in(resource)


def read_object(body: bytes, resource: ResourceType) -> Obj:
    """Return the JSON form of an object in protobuf.

    Raises
    ------
    StatusError
        400: not protobuf in the envelope of Kubernetes, or another kind. 415: it sets a field
        that is not read in protobuf here, and must be sent in JSON.
    """
    version, raw = open_envelope(body, resource.kind)
    obj = _Reader().message(raw, catalog.kind_definition(resource), depth=0)
    return {"apiVersion": version or resource.api_version, "kind": resource.kind, **obj}


class _Reader:
    def message(self, raw: bytes, definition: Definition, *, depth: int) -> Obj:
        name = catalog.go_name(definition.name)
        if name not in MESSAGES:
            name = catalog.short_name(definition.name)
        if depth > _DEPTH_MAX:
            raise malformed(f"more than {_DEPTH_MAX} messages within each other", name)
        obj: Obj = {}
        self._fill(obj, raw, name, definition, depth)
        return obj

    def _fill(self, obj: Obj, raw: bytes, name: str, definition: Definition, depth: int) -> None:
        """Add what a message says to an object, in place."""
        table = MESSAGES.get(name)
        for number, value in fields_of(raw):
            known = table.get(number) if table is not None else None
            if known is None:
                status = number == _STATUS and {"metadata", "status"} <= definition.fields.keys()
                if not status and value not in (0, b""):
                    raise _not_read(name, number)
            elif known.inline:
                self._fill(obj, _message(value), known.name, definition, depth)
            else:
                self._set(obj, known, value, definition, depth)

    def _set(
        self, obj: Obj, known: Numbered, value: _Value, definition: Definition, depth: int
    ) -> None:
        type_ref = definition.fields[known.name].type
        if type_ref.shape == "list":
            found = obj.setdefault(known.name, [])
            found.append(self._value(value, type_ref.element, depth))
        elif type_ref.shape == "map":
            key, entry = self._entry(_message(value), type_ref.element, depth)
            obj.setdefault(known.name, {})[key] = entry
        else:
            read = self._value(value, type_ref, depth)
            if read is not None and (known.keeps_zero or read not in (0, "", False)):
                obj[known.name] = read

    def _entry(self, raw: bytes, type_ref: TypeRef, depth: int) -> tuple[str, Any]:
        parts = dict(fields_of(raw))
        absent: _Value = 0 if type_ref.name in ("int32", "int64", "boolean") else b""
        return text_of(parts.get(1, b"")), self._value(parts.get(2, absent), type_ref, depth)

    def _value(self, value: _Value, type_ref: TypeRef, depth: int) -> Any:
        if type_ref.shape == "object":
            definition = catalog.definition(type_ref.name)
            return self.message(_message(value), definition, depth=depth + 1)
        return _scalar(value, type_ref.name)


def _scalar(value: _Value, scalar: str) -> Any:
    if scalar in ("int32", "int64"):
        return _number(value)
    if scalar == "boolean":
        return bool(_number(value))
    if scalar == "bytes":
        return base64.b64encode(_message(value)).decode()
    if scalar in ("Time", "MicroTime"):
        return _time(_message(value))
    if scalar == "Quantity":
        return text_of(dict(fields_of(_message(value))).get(1, b"")) or "0"
    if scalar == "IntOrString":
        return _number_or_text(_message(value))
    if scalar == "string":
        return text_of(value)
    raise malformed(f"a field of type {scalar!r} is not read")


def _time(raw: bytes) -> str | None:
    seconds = _number(dict(fields_of(raw)).get(1, 0))
    return rfc3339(seconds * NS_PER_SECOND) if raw and 0 < seconds < 1 << 38 else None


def _number_or_text(raw: bytes) -> int | str:
    parts = dict(fields_of(raw))
    return text_of(parts.get(3, b"")) if parts.get(1) == 1 else _number(parts.get(2, 0))


def _number(value: _Value) -> int:
    if not isinstance(value, int):
        raise malformed("a text where a number is expected")
    return value - (value >> 63 << 64)


def _message(value: _Value) -> bytes:
    if isinstance(value, int):
        raise malformed("a number where a message or text is expected")
    return value


def _not_read(name: str, number: int) -> StatusError:
    text = f"field {number} of {name} is not read in protobuf here; send application/json"
    return StatusError(415, "UnsupportedMediaType", text)
