"""Check the types of an object's fields, and find the fields that its kind does not have.

Place in the flow: every body of a create, update or patch is checked here before defaulting, so
later code may rely on the types. Wrong types are always refused (400). Unknown fields are refused
only when the client asked for strict field validation.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from moorage.api.quantity import parse_quantity
from moorage.base.clock import parse_rfc3339, rfc3339, rfc3339_micro
from moorage.kinds.facts import OPEN, SCHEMA_PROPS, Definition, Field, go_name, short_name
from moorage.kinds.facts import definition as definition_named

INT32 = range(-(2**31), 2**31)
INT64 = range(-(2**63), 2**63)

_GO_TYPES: Mapping[str, str] = {
    "string": "string",
    "int32": "int32",
    "int64": "int64",
    "double": "float64",
    "boolean": "bool",
    "bytes": "[]uint8",
    "Time": "v1.Time",
    "MicroTime": "v1.MicroTime",
    "Quantity": "resource.Quantity",
    "IntOrString": "intstr.IntOrString",
}
_QUANTITY_FORM = "^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$"


class _Place(msgspec.Struct, frozen=True):
    """Position of a value: the struct of its field, and the dotted path without indexes."""

    struct: str
    path: str


def unknown_fields(definition: Definition, obj: Mapping[str, Any]) -> list[str]:
    """Return the paths of all fields that a definition lacks, ``spec.containers[0].imagee``.

    Parameters
    ----------
    definition
        Definition of the object.
    obj
        Decoded JSON; values of a wrong type are passed over, `type_errors` names them.
    """
    found: list[str] = []
    _collect_unknown(definition, obj, "", found)
    return found


def type_errors(definition: Definition, obj: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Return the type errors of an object, in the words of the API server's JSON decoder.

    Parameters
    ----------
    definition
        Definition of the object.
    obj
        Decoded JSON.
    prefix
        Path of the object with a dot behind it, ``metadata.``; empty for a whole object.

    Returns
    -------
    list of str
        ``json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type
        int32`` and the like, in document order; empty when every type is right.
    """
    found: list[str] = []
    _check_object(definition, obj, prefix, found)
    return found


def prune(definition: Definition, obj: dict[str, Any]) -> None:
    """Drop nulls and fields that a definition lacks, in place, as decoding into Go would.

    Times become UTC, ``Time`` with whole seconds and ``MicroTime`` with six decimals. A client
    that reads ``Z`` and sends ``+00:00`` then changes nothing.

    The object must have passed `type_errors` without an error.
    """
    fields = definition.fields
    for key in [key for key, value in obj.items() if value is None or key not in fields]:
        del obj[key]
    for key, value in obj.items():
        if isinstance(value, dict | list):
            _prune_value(fields[key], value)
        elif isinstance(value, str) and fields[key].name in _TIMES:
            obj[key] = _canonical_time(value, _TIMES[fields[key].name])


_TIMES: Mapping[str, Callable[[int], str]] = {"Time": rfc3339, "MicroTime": rfc3339_micro}


def _canonical_time(text: str, write: Callable[[int], str]) -> str:
    try:
        ns = parse_rfc3339(text)
    except (ValueError, OverflowError):
        return text
    # Some platforms cannot format years outside this range; no clock shows them.
    return write(ns) if 0 <= ns < _YEAR_9999_NS else text


_YEAR_9999_NS = 253_370_764_800 * 10**9


def _prune_value(field: Field, value: Any) -> None:
    if field.shape == "object":
        prune(definition_named(field.name), value)
    elif field.shape == "list":
        if field.element.name in OPEN:
            return
        value[:] = [element for element in value if element is not None]
        if field.element.shape != "scalar":
            for element in value:
                _prune_value(field.element, element)
    elif field.shape == "map":
        for key in [key for key, element in value.items() if element is None]:
            del value[key]


def _collect_unknown(
    definition: Definition, obj: Mapping[str, Any], prefix: str, unknown: list[str]
) -> None:
    for key, value in obj.items():
        field = definition.fields.get(key)
        if field is None:
            unknown.append(f"{prefix}{key}")
        else:
            _unknown_inside(field, value, f"{prefix}{key}", unknown)


def _unknown_inside(field: Field, value: Any, path: str, unknown: list[str]) -> None:
    if field.shape == "object" and isinstance(value, dict):
        _collect_unknown(definition_named(field.name), value, f"{path}.", unknown)
    elif field.shape == "list" and isinstance(value, list):
        for index, element in enumerate(value):
            _unknown_inside(field.element, element, f"{path}[{index}]", unknown)
    elif field.shape == "map" and isinstance(value, dict):
        for key, element in value.items():
            _unknown_inside(field.element, element, f"{path}.{key}", unknown)


def _check_object(
    definition: Definition, obj: Mapping[str, Any], prefix: str, faults: list[str]
) -> None:
    for key, value in obj.items():
        field = definition.fields.get(key)
        if field is not None and value is not None:
            place = _Place(short_name(definition.name), f"{prefix}{key}")
            _check_value(field, value, place, faults)


def _check_value(field: Field, value: Any, place: _Place, faults: list[str]) -> None:
    if field.name in _SCHEMA_OR:
        _check_schema_or(field, value, place, faults)
    elif field.shape == "scalar":
        fault = _SCALAR_CHECKS[field.name](value)
        if fault is not None:
            # Upstream's own text does not name the field; this message does, for the reader's sake.
            shown = f"{fault} ({place.path}: {json.dumps(value, ensure_ascii=False)})"
            faults.append(shown if fault else _mismatch(field, value, place))
    elif field.shape == "list":
        if not isinstance(value, list):
            faults.append(_mismatch(field, value, place))
            return
        for element in value:
            if element is not None:
                _check_value(field.element, element, place, faults)
    elif not isinstance(value, dict):
        faults.append(_mismatch(field, value, place))
    elif field.shape == "map":
        for element in value.values():
            if element is not None:
                _check_value(field.element, element, place, faults)
    else:
        _check_object(definition_named(field.name), value, f"{place.path}.", faults)


# JSON that may stand in place of a schema, in the fields of a CustomResourceDefinition.
_SCHEMA = Field(ref=SCHEMA_PROPS)
_SCHEMA_OR: Mapping[str, Field] = {
    "JSONSchemaPropsOrArray": Field(list=_SCHEMA),
    "JSONSchemaPropsOrBool": Field(type="boolean"),
    "JSONSchemaPropsOrStringArray": Field(list=Field(type="string")),
}


def _check_schema_or(field: Field, value: Any, place: _Place, faults: list[str]) -> None:
    """Check a schema, or the other value that its field may have."""
    other = _SCHEMA_OR[field.name]
    right = isinstance(value, dict | list if other.shape == "list" else dict | bool)
    if not right:
        faults.append(_mismatch(field, value, place))
    else:
        _check_value(_SCHEMA if isinstance(value, dict) else other, value, place, faults)


def _mismatch(field: Field, value: Any, place: _Place) -> str:
    shown = _json_type(value)
    if shown == "number" and field.name in ("int32", "int64"):
        shown = f"number {value}"
    return (
        f"json: cannot unmarshal {shown} into Go struct field {place.struct}.{place.path} "
        f"of type {_go_type(field)}"
    )


def no_object(value: Any, place: str, name: str) -> str:
    """Return the error of a value that should be an object of a definition.

    Parameters
    ----------
    place
        The field with its type before it, ``PodGroup.metadata``.
    name
        Full name of the definition.
    """
    shown = _json_type(value)
    return f"json: cannot unmarshal {shown} into Go struct field {place} of type {go_name(name)}"


def _go_type(field: Field) -> str:
    if field.shape == "list":
        return f"[]{_go_type(field.element)}"
    if field.shape == "map":
        return f"map[string]{_go_type(field.element)}"
    if field.shape == "object":
        return go_name(field.name)
    return _GO_TYPES.get(field.name, f"v1.{field.name}")


def _json_type(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    if isinstance(value, list):
        return "array"
    return "null" if value is None else "object"


# A scalar check returns None when the value is right, "" for a plain mismatch of types, or a
# message of its own.
def _string(value: Any) -> str | None:
    return None if isinstance(value, str) else ""


def _boolean(value: Any) -> str | None:
    return None if isinstance(value, bool) else ""


def _number(value: Any) -> str | None:
    return None if isinstance(value, int | float) and not isinstance(value, bool) else ""


def _integer(limits: range) -> Callable[[Any], str | None]:
    def check(value: Any) -> str | None:
        is_integer = isinstance(value, int) and not isinstance(value, bool)
        return None if is_integer and value in limits else ""

    return check


def _integer_or_string(value: Any) -> str | None:
    if isinstance(value, str):
        return None
    return _integer(INT32)(value)


def _quantity(value: Any) -> str | None:
    try:
        parse_quantity(value)
    except (ValueError, TypeError):
        return f"quantities must match the regular expression '{_QUANTITY_FORM}'"
    return None


def _time(value: Any) -> str | None:
    if not isinstance(value, str):
        return ""
    try:
        parse_rfc3339(value)
    except ValueError:
        layout = "2006-01-02T15:04:05Z07:00"
        return f'parsing time "{value}" as "{layout}": cannot parse "{value}" as "2006"'
    return None


def _base64(value: Any) -> str | None:
    if not isinstance(value, str):
        return ""
    try:
        base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return "illegal base64 data at input byte 0"
    return None


def _anything(value: Any) -> str | None:
    return None


_SCALAR_CHECKS: Mapping[str, Callable[[Any], str | None]] = {
    "string": _string,
    "int32": _integer(INT32),
    "int64": _integer(INT64),
    "double": _number,
    "boolean": _boolean,
    "Time": _time,
    "MicroTime": _time,
    "Quantity": _quantity,
    "IntOrString": _integer_or_string,
    "bytes": _base64,
    **dict.fromkeys(sorted(OPEN), _anything),
}
