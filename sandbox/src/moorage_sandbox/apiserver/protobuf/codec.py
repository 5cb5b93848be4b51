"""Between the JSON form of an object and the bytes of its message.

Place in the flow: `envelope` wraps the bytes that this module writes, and unwraps the bytes that it
reads. It writes the same bytes as Kubernetes' generated Go code: a Go value that is no pointer is
on the wire even when it is zero (k8s.io/api v1.36 generated.pb.go). It reads the JSON that the same
Go client would have sent: a zero that JSON omits is left out.

A plan for each message says how each field is converted; it is made when the message is first met.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final

from moorage.base.errors import MoorageError
from moorage.kinds.kind import Obj
from moorage_sandbox.apiserver.protobuf import facts
from moorage_sandbox.apiserver.protobuf.bounds import check_parts
from moorage_sandbox.apiserver.protobuf.facts import Field
from moorage_sandbox.apiserver.protobuf.runtime import (
    RuntimeDecodeError,
    RuntimeEncodeError,
    UnknownFieldSet,
    attribute,
    message_class,
)
from moorage_sandbox.apiserver.protobuf.special import (
    SPECIAL,
    Parts,
    read_bytes,
    read_double,
    write_bytes,
)

_ZERO: Final = {"string": "", "bool": False, "int32": 0, "int64": 0, "double": 0.0}


class ProtobufError(MoorageError):
    """The bytes are no such message, or the object has no such form."""


_Convert = Callable[[Any], Any]


def encode(message: str, obj: Obj) -> bytes:
    """Return the bytes of a message.

    Parameters
    ----------
    message
        Full name of the message.
    obj
        The JSON form. Members without a field in the message, such as ``kind``, are left out.

    Raises
    ------
    ProtobufError
        A value is of another type than its field, or messages nest too deeply.
    """
    try:
        filled = message_class(message)(**_plan(message).encode_message(obj))
        return filled.SerializeToString(deterministic=True)
    except (TypeError, ValueError, AttributeError, RuntimeEncodeError, RecursionError) as error:
        raise ProtobufError(f"{message} cannot be written: {error}") from error


def decode(message: str, data: bytes) -> Obj:
    """Return the JSON form of a message, without ``apiVersion`` and ``kind``.

    Raises
    ------
    ProtobufError
        The bytes are no such message, nest more than 100 messages, have too many parts
        (`check_parts`), or hold a value that JSON cannot express.
    """
    try:
        check_parts(message, data)
        found: Any = message_class(message)()
        found.ParseFromString(data)
        return _plan(message).decode_message(found)
    except (ValueError, RuntimeDecodeError, RecursionError) as error:
        raise ProtobufError(f"{message} cannot be read: {error}") from error


class _Plan:
    """The conversion of one message.

    Parameters
    ----------
    message
        Full name of the message.
    """

    __slots__ = ("_inlined", "_message", "_readers", "_writers", "_zero")

    def __init__(self, message: str) -> None:
        self._message = message
        self._writers: dict[str, tuple[str, _Convert | None]] | None = None
        self._readers: dict[int, tuple[Field, _Convert | None]] = {}
        self._inlined: list[tuple[str, _Plan]] = []
        self._zero: Parts = {}

    def encode_message(self, obj: Obj) -> Parts:
        """Return the parts of a message for its JSON form."""
        writers = self._writers if self._writers is not None else self._prepare()
        parts = self._zero.copy()
        for name, value in obj.items():
            known = writers.get(name)
            if known is not None and value is not None:
                place, convert = known
                parts[place] = value if convert is None else convert(value)
        for place, plan in self._inlined:
            parts[place] = plan.encode_message(obj)
        return parts

    def decode_message(self, message: Any) -> Obj:
        """Return the JSON form of a message; map entries are in the order of their keys."""
        if self._writers is None:
            self._prepare()
        unknown = UnknownFieldSet(message)
        for place in range(len(unknown)):
            # A field of a newer API is ignored; a field that is known must have been understood.
            number = unknown[place].field_number
            if number in self._readers:
                raise ValueError(f"field {number} has the wrong wire type")
        obj: Obj = {}
        for described, value in message.ListFields():
            field, convert = self._readers[described.number]
            if field.how == "v" and field.type in _ZERO and not value:
                continue
            read = value if convert is None else convert(value)
            if field.how == "i":
                obj |= read
            elif read is not None:
                obj[field.name] = read
        return obj

    def _prepare(self) -> dict[str, tuple[str, _Convert | None]]:
        """Look up how each field is converted; not in `__init__`, as messages refer in rings.

        Two threads may do this at once; both find the same conversions.
        """
        writers: dict[str, tuple[str, _Convert | None]] = {}
        readers: dict[int, tuple[Field, _Convert | None]] = {}
        inlined: list[tuple[str, _Plan]] = []
        zero: Parts = {}
        package = self._message.rpartition(".")[0]
        for field in facts.fields(self._message):
            place, type_name = attribute(field), facts.value_type(field)
            readers[field.number] = (field, _reader(field, package))
            if field.how == "i":
                inlined.append((place, _plan(facts.full_name(type_name, package))))
            else:
                writers[field.name] = (place, _writer(field, package))
            if field.how in ("v", "z") and type_name != "bytes":
                zero[place] = _zero(type_name, package)
        self._readers, self._inlined, self._zero = readers, inlined, zero
        self._writers = writers
        return writers


def _zero(type_name: str, package: str) -> Any:
    """Return the value that Go writes for an absent value of a type."""
    if type_name in _ZERO:
        return _ZERO[type_name]
    full = facts.full_name(type_name, package)
    special = SPECIAL.get(full)
    return special.zero if special is not None else _plan(full).encode_message({})


class _SchemaChoice:
    """A message for a schema or something simpler in its place, as in ``items``.

    Parameters
    ----------
    plan
        The plan of the schema.
    place
        Field of the message that holds the simpler value.
    """

    def __init__(self, plan: _Plan, place: str) -> None:
        self._plan = plan
        self._place = place

    def encode_value(self, value: Any) -> Parts:
        """Return the parts of the message; a schema also counts as allowed."""
        if isinstance(value, dict):
            allowed = {"allows": True} if self._place == "allows" else {}
            return {"schema": self._plan.encode_message(value), **allowed}
        if self._place == "jSONSchemas":
            return {self._place: [self._plan.encode_message(each) for each in value]}
        return {self._place: value}

    def decode_value(self, message: Any) -> Any:
        """Return the schema or the simpler value; None where a list is expected but missing."""
        simple = getattr(message, self._place)
        if self._place != "allows" and len(simple):
            if self._place == "property":
                return list(simple)
            return [self._plan.decode_message(each) for each in simple]
        if message.HasField("schema"):
            return self._plan.decode_message(message.schema)
        return simple if self._place == "allows" else None


# The simpler value in place of a schema: apiextensions-apiserver v1.36 types_jsonschema.go.
_CHOICES: Final = {
    "JSONSchemaPropsOrArray": "jSONSchemas",
    "JSONSchemaPropsOrBool": "allows",
    "JSONSchemaPropsOrStringArray": "property",
}


@cache
def _plan(message: str) -> _Plan:
    return _Plan(message)


def _single(type_name: str, package: str) -> tuple[_Convert | None, _Convert | None]:
    """Return the conversion of one value of a type; None for a value that needs no conversion."""
    if type_name == "bytes":
        return write_bytes, read_bytes
    if type_name == "double":
        return None, read_double
    if type_name in facts.SCALARS:
        return None, None
    full = facts.full_name(type_name, package)
    special = SPECIAL.get(full)
    if special is not None:
        return special.write, special.read
    home, _, name = full.rpartition(".")
    if name in _CHOICES:
        choice = _SchemaChoice(_plan(f"{home}.JSONSchemaProps"), _CHOICES[name])
        return choice.encode_value, choice.decode_value
    plan = _plan(full)
    return plan.encode_message, plan.decode_message


def _writer(field: Field, package: str) -> _Convert | None:
    write, _ = _single(facts.value_type(field), package)
    if write is None or field.how not in ("r", "m"):
        return write
    if field.how == "r":
        return lambda values: [write(value) for value in values]
    return lambda values: {key: write(value) for key, value in values.items()}


def _reader(field: Field, package: str) -> _Convert | None:
    _, read = _single(facts.value_type(field), package)
    if field.how == "r":
        return lambda values: _read_list(values, read)
    if field.how == "m":
        return lambda values: _read_map(values, read)
    return read


def _read_list(values: Any, read: _Convert | None) -> list[Any]:
    return list(values) if read is None else [read(value) for value in values]


def _read_map(values: Any, read: _Convert | None) -> dict[str, Any]:
    entries = sorted(values.items())
    return dict(entries) if read is None else {key: read(value) for key, value in entries}
