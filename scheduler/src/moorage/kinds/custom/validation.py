"""Validation of a custom resource by the schema of its definition.

Place in the flow: validation of custom resources, after defaulting. Messages and paths follow
kubernetes v1.36: kube-openapi pkg/validation and the translation of its results into field errors
in apiextensions-apiserver pkg/apiserver/validation. Rules in CEL (`moorage_sandbox.rules`) come
after.
"""

from __future__ import annotations

from typing import Any

import msgspec

from moorage.cel.patterns import compile_pattern
from moorage.kinds.custom.formats import has_format
from moorage.kinds.kind import FieldError, duplicate, invalid, not_supported, required, too_many
from moorage.kinds.schema.pruning import EMBEDDED, Schema

INT_OR_STRING = "x-kubernetes-int-or-string"

_encode = msgspec.json.Encoder(order="sorted").encode


def validate(schema: Schema, value: Any, path: str = "", old: Any = None) -> list[FieldError]:
    """Return every error of a value; an update may keep values that break the schema.

    Parameters
    ----------
    schema
        Schema of the value.
    value
        Decoded JSON.
    path
        Path of the value, ``spec.replicas``; empty for the object itself.
    old
        The value before an update; None where there was none, or where nothing tells which it was,
        as for items of a list without keys.

    Notes
    -----
    Kept values: apiextensions-apiserver v1.36 pkg/apiserver/validation/ratcheting.go. Here a list
    that is kept may also have an item or a key twice.
    """
    if old is not None and value == old and _same(value, old):
        return []
    if value is None:
        if schema.get("nullable"):
            return []
        if not schema.get("type") and not schema.get(INT_OR_STRING):
            return _check_combined(schema, value, path)
    wrong_type = _check_type(schema, value, path)
    if wrong_type:
        return wrong_type
    errors = []
    if "enum" in schema and not any(_same(value, each) for each in schema["enum"]):
        errors.append(_not_in_enum(schema["enum"], value, path))
    form = schema.get("format")
    if form and not has_format(form, value):
        errors.append(_wrong(path, value, f'must be of type {form}: "{value}"'))
    if isinstance(value, dict):
        errors += _check_object(schema, value, path, old)
    elif isinstance(value, list):
        errors += _check_list(schema, value, path, old)
    elif isinstance(value, str):
        errors += _check_text(schema, value, path)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        errors += _check_number(schema, value, path)
    return errors + _check_combined(schema, value, path)


def _wrong(path: str, value: Any, what: str) -> FieldError:
    return invalid(path, value, f"{path} in body {what}")


def _check_type(schema: Schema, value: Any, path: str) -> list[FieldError]:
    actual = _type_name(value)
    if schema.get(INT_OR_STRING):
        wanted = "integer,string"
        right = actual in ("integer", "string")
    else:
        wanted = schema.get("type") or ""
        right = not wanted or actual == wanted or (wanted, actual) == ("number", "integer")
    if right:
        return []
    text = f'{path} in body must be of type {wanted}: "{actual}"'
    return [FieldError("FieldValueTypeInvalid", path or "<nil>", actual, text)]


def _type_name(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return "integer"
    for kind, name in ((float, "number"), (str, "string"), (list, "array"), (dict, "object")):
        if isinstance(value, kind):
            return name
    return "null"


def _same(left: Any, right: Any) -> bool:
    """Whether two JSON values are equal; in Python true equals 1."""
    return _encode(left) == _encode(right) or (
        _type_name(left) == _type_name(right) == "integer" and left == right
    )


def _not_in_enum(allowed: list[Any], value: Any, path: str) -> FieldError:
    return not_supported(path, value, [str(each) for each in allowed])


def _check_number(schema: Schema, value: float, path: str) -> list[FieldError]:
    errors = []
    highest, lowest = schema.get("maximum"), schema.get("minimum")
    if highest is not None:
        if schema.get("exclusiveMaximum") and value >= highest:
            errors.append(_wrong(path, value, f"should be less than {_number(highest)}"))
        elif value > highest:
            text = f"should be less than or equal to {_number(highest)}"
            errors.append(_wrong(path, value, text))
    if lowest is not None:
        if schema.get("exclusiveMinimum") and value <= lowest:
            errors.append(_wrong(path, value, f"should be greater than {_number(lowest)}"))
        elif value < lowest:
            text = f"should be greater than or equal to {_number(lowest)}"
            errors.append(_wrong(path, value, text))
    factor = schema.get("multipleOf")
    if factor and not float(value / factor).is_integer():
        errors.append(_wrong(path, value, f"should be a multiple of {_number(factor)}"))
    return errors


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(value)


def _check_text(schema: Schema, value: str, path: str) -> list[FieldError]:
    errors = []
    longest, shortest = schema.get("maxLength"), schema.get("minLength")
    if longest is not None and len(value) > longest:
        text = f"may not be more than {longest} bytes"
        errors.append(FieldError("FieldValueTooLong", path, value, text))
    if shortest is not None and len(value) < shortest:
        errors.append(_wrong(path, value, f"should be at least {shortest} chars long"))
    pattern = schema.get("pattern")
    if pattern and not compile_pattern(pattern).search(value):
        errors.append(_wrong(path, value, f"should match '{pattern}'"))
    return errors


def _check_list(schema: Schema, value: list[Any], path: str, old: Any) -> list[FieldError]:
    errors = []
    most, least = schema.get("maxItems"), schema.get("minItems")
    if most is not None and len(value) > most:
        errors.append(too_many(path, len(value), most))
    if least is not None and len(value) < least:
        errors.append(_wrong(path, len(value), f"should have at least {least} items"))
    if schema.get("uniqueItems") and len({_encode(each) for each in value}) < len(value):
        errors.append(_wrong(path, value, "shouldn't contain duplicates"))
    items = schema.get("items")
    if items:
        before = _by_key(schema, old)
        for index, element in enumerate(value):
            kept = before.get(_encode(_keys_of(schema, element))) if before else None
            errors += validate(items, element, f"{path}[{index}]", kept)
    return errors + _check_list_type(schema, value, path)


def _by_key(schema: Schema, old: Any) -> dict[bytes, Any]:
    """Return the items of an old list by their keys; none for a list without keys."""
    if schema.get("x-kubernetes-list-type") != "map" or not isinstance(old, list):
        return {}
    return {_encode(_keys_of(schema, each)): each for each in old}


def _keys_of(schema: Schema, element: Any) -> Any:
    """Return what tells an item from the others: its keys, or the whole item."""
    if schema.get("x-kubernetes-list-type") != "map" or not isinstance(element, dict):
        return element
    properties = (schema.get("items") or {}).get("properties") or {}
    keys = schema.get("x-kubernetes-list-map-keys") or []
    return {key: element.get(key, properties.get(key, {}).get("default")) for key in keys}


def _check_list_type(schema: Schema, value: list[Any], path: str) -> list[FieldError]:
    """Check that the items of a set, or the keys of a map, differ."""
    kind = schema.get("x-kubernetes-list-type")
    errors = []
    identities: set[bytes] = set()
    for index, element in enumerate(value):
        if kind not in ("set", "map") or (kind == "map" and not isinstance(element, dict)):
            continue
        shown = _keys_of(schema, element)
        identity = _encode(shown)
        if identity in identities:
            errors.append(duplicate(f"{path}[{index}]", shown))
        identities.add(identity)
    return errors


def _check_object(schema: Schema, value: dict[str, Any], path: str, old: Any) -> list[FieldError]:
    prefix = f"{path}." if path else ""
    errors = []
    most, least = schema.get("maxProperties"), schema.get("minProperties")
    if most is not None and len(value) > most:
        errors.append(_wrong(path, len(value), f"should have at most {most} properties"))
    if least is not None and len(value) < least:
        errors.append(_wrong(path, len(value), f"should have at least {least} properties"))
    if schema.get(EMBEDDED):
        names = ("apiVersion", "kind")
        errors += [
            required(prefix + name, "must not be empty") for name in names if not value.get(name)
        ]
    errors += [required(prefix + n) for n in schema.get("required") or [] if n not in value]
    properties = schema.get("properties") or {}
    rest = schema.get("additionalProperties")
    atomic = schema.get("x-kubernetes-map-type") == "atomic"
    before = old if isinstance(old, dict) and not atomic else {}
    for key, member in value.items():
        if key in properties:
            errors += validate(properties[key], member, prefix + key, before.get(key))
        elif isinstance(rest, dict):
            errors += validate(rest, member, prefix + key, before.get(key))
    return errors


def _check_combined(schema: Schema, value: Any, path: str) -> list[FieldError]:
    """Check ``allOf``, ``anyOf``, ``oneOf`` and ``not``."""
    errors: list[FieldError] = []
    shown = f'"{path}"'
    for sub in schema.get("allOf") or ():
        errors += validate(sub, value, path)
    if errors:
        errors.insert(0, invalid(path, "", f"{shown} must validate all the schemas (allOf)"))
    if choices := schema.get("anyOf"):
        results = [validate(sub, value, path) for sub in choices]
        if all(results):
            errors.append(invalid(path, "", f"{shown} must validate at least one schema (anyOf)"))
            errors += _shortest(results)
    if choices := schema.get("oneOf"):
        results = [validate(sub, value, path) for sub in choices]
        right = sum(not each for each in results)
        if right != 1:
            count = f"Found {right} valid alternatives" if right else "Found none valid"
            text = f"{shown} must validate one and only one schema (oneOf). {count}"
            errors.append(invalid(path, "", text))
            errors += [] if right else _shortest(results)
    if (negated := schema.get("not")) is not None and not validate(negated, value, path):
        errors.append(invalid(path, "", f"{shown} must not validate the schema (not)"))
    return errors


def _shortest(results: list[list[FieldError]]) -> list[FieldError]:
    """Return the errors of the alternative with the closest match."""
    return sorted(results, key=len)[0]
