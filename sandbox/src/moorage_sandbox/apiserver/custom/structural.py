"""Structural schemas: the only schemas that a CustomResourceDefinition may have.

Place in the flow: part of the validation of a definition. Mirrors kubernetes v1.36
apiextensions-apiserver pkg/apiserver/schema (NewStructural, ValidateStructural). Every value has a
type. Logical combinations only restrict values that the skeleton around them declares.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from moorage.cel.patterns import compile_pattern
from moorage.kinds.custom.formats import is_known
from moorage.kinds.custom.validation import INT_OR_STRING, validate
from moorage.kinds.kind import FieldError, forbidden, invalid, not_supported, required
from moorage.kinds.schema import pruning
from moorage_sandbox.rules.compiled import RULES
from moorage_sandbox.rules.validation import rules_broken_by

_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_NEVER = ("$ref", "$schema", "id", "definitions", "dependencies", "patternProperties")
_NOT_INSIDE = (
    "type",
    "default",
    "nullable",
    "additionalProperties",
    "description",
    "title",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
)


def check_schema(schema: Any, field: str) -> list[FieldError]:
    """Return the faults that keep a schema from being served.

    Parameters
    ----------
    schema
        ``openAPIV3Schema`` of one version.
    field
        Path of the schema, for messages.
    """
    if not isinstance(schema, dict):
        return [invalid(field, schema, "must be a schema")]
    errors = []
    if schema.get("type") != "object":
        kind = schema.get("type") or ""
        text = "must be object at the root"
        errors.append(
            invalid(f"{field}.type", kind, text) if kind else required(f"{field}.type", text)
        )
    return errors + _check_node(schema, field, root=True)


def places_of_rules(schema: Any, path: str = "") -> Iterator[str]:
    """Yield the path of every value with rules in CEL."""
    if not isinstance(schema, dict):
        return
    if schema.get(RULES):
        yield path or "the object"
    for key, sub in _members(schema):
        yield from places_of_rules(sub, f"{path}{'' if not path or key == '[*]' else '.'}{key}")


def unknown_formats(schema: Any) -> Iterator[str]:
    """Yield each ``format`` that is no format of its type."""
    if not isinstance(schema, dict):
        return
    form = schema.get("format")
    if form and not is_known(form, schema.get("type") or ""):
        yield form
    for key in ("allOf", "anyOf", "oneOf"):
        for sub in schema.get(key) or ():
            yield from unknown_formats(sub)
    for sub in (schema.get("not"), *(sub for _, sub in _members(schema))):
        yield from unknown_formats(sub)


def _members(schema: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    yield from (schema.get("properties") or {}).items()
    if isinstance(schema.get("additionalProperties"), dict):
        yield "*", schema["additionalProperties"]
    if schema.get("items"):
        yield "[*]", schema["items"]


def _check_node(schema: Any, field: str, *, root: bool = False) -> list[FieldError]:
    if not isinstance(schema, dict):
        return [invalid(field, schema, "must be a schema")]
    errors = _check_kind(schema, field, root=root)
    errors += [
        forbidden(f"{field}.{key}", f"{key} is not supported") for key in _NEVER if key in schema
    ]
    if isinstance(schema.get("items"), list):
        errors.append(forbidden(f"{field}.items", "items must be a schema object and not an array"))
        return errors
    if not isinstance(schema.get("additionalProperties", True), bool | dict):
        where = f"{field}.additionalProperties"
        errors.append(invalid(where, schema["additionalProperties"], "must be a schema or boolean"))
    if schema.get("uniqueItems"):
        errors.append(
            forbidden(
                f"{field}.uniqueItems",
                "uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
            )
        )
    if schema.get("properties") and schema.get("additionalProperties"):
        text = "additionalProperties and properties are mutual exclusive"
        errors.append(forbidden(f"{field}.additionalProperties", text))
    errors += _check_pattern(schema, field)
    errors += _check_lists(schema, field)
    for key in ("allOf", "anyOf", "oneOf"):
        for index, sub in enumerate(schema.get(key) or ()):
            errors += _check_inside(schema, sub, f"{field}.{key}[{index}]")
    if "not" in schema:
        errors += _check_inside(schema, schema["not"], f"{field}.not")
    if "default" in schema:
        errors += _check_default(schema, field, root=root)
    errors += _check_members(schema, field, root=root)
    if "default" in schema and not errors:
        return _broken_by_default(schema, field)
    return errors


def _check_members(schema: Mapping[str, Any], field: str, *, root: bool) -> list[FieldError]:
    errors = []
    for name, sub in (schema.get("properties") or {}).items():
        if not (root and name == "metadata"):
            errors += _check_node(sub, f"{field}.properties[{name}]")
    if isinstance(schema.get("additionalProperties"), dict):
        errors += _check_node(schema["additionalProperties"], f"{field}.additionalProperties")
    if schema.get("items"):
        errors += _check_node(schema["items"], f"{field}.items")
    return errors


def _check_kind(schema: Mapping[str, Any], field: str, *, root: bool) -> list[FieldError]:
    kind = schema.get("type")
    if kind and kind not in _TYPES:
        return [not_supported(f"{field}.type", kind, _TYPES)]
    if schema.get(INT_OR_STRING):
        if kind:
            text = "must be empty if x-kubernetes-int-or-string is true"
            return [invalid(f"{field}.type", kind, text)]
        return []
    if not kind and not schema.get(pruning.PRESERVE) and not root:
        return [required(f"{field}.type", "must not be empty for specified object fields")]
    if kind == "array" and not schema.get("items"):
        return [required(f"{field}.items", "must be specified")]
    return []


def _check_pattern(schema: Mapping[str, Any], field: str) -> list[FieldError]:
    pattern = schema.get("pattern")
    if not pattern:
        return []
    if not isinstance(pattern, str):
        return [invalid(f"{field}.pattern", pattern, "must be a text")]
    try:
        compile_pattern(pattern)
    except ValueError as error:
        text = f"must be a valid regular expression, but isn't: {error}"
        return [invalid(f"{field}.pattern", pattern, text)]
    return []


def _check_lists(schema: Mapping[str, Any], field: str) -> list[FieldError]:
    kind = schema.get("x-kubernetes-list-type")
    keys = schema.get("x-kubernetes-list-map-keys") or []
    where = f"{field}.x-kubernetes-list-type"
    if kind is None:
        if keys:
            return [required(where, "must be map if x-kubernetes-list-map-keys is non-empty")]
        return []
    if kind not in ("atomic", "map", "set"):
        return [not_supported(where, kind, ("atomic", "map", "set"))]
    if schema.get("type") != "array":
        text = "must be array if x-kubernetes-list-type is specified"
        return [invalid(f"{field}.type", schema.get("type") or "", text)]
    if kind != "map":
        return []
    if not keys:
        text = "must not be empty if x-kubernetes-list-type is map"
        return [required(f"{field}.x-kubernetes-list-map-keys", text)]
    properties = (schema.get("items") or {}).get("properties") or {}
    return [
        invalid(
            f"{field}.x-kubernetes-list-map-keys",
            keys,
            "entries must all be names of item properties",
        )
        for key in keys
        if key not in properties
    ][:1]


def _check_inside(skeleton: Mapping[str, Any], sub: Any, field: str) -> list[FieldError]:
    """Check a schema inside a logical combination: it may only restrict the skeleton."""
    if not isinstance(sub, dict):
        return [invalid(field, sub, "must be a schema")]
    # Only this spelling of integer-or-string names types inside a combination.
    exempt = "type" if skeleton.get(INT_OR_STRING) else ""
    errors = [
        forbidden(f"{field}.{key}", "must be empty to be structural")
        for key in _NOT_INSIDE
        if key in sub and key != exempt
    ]
    known = skeleton.get("properties") or {}
    open_ended = skeleton.get("additionalProperties") or skeleton.get(pruning.PRESERVE)
    for name, inner in (sub.get("properties") or {}).items():
        if name in known:
            errors += _check_inside(known[name], inner, f"{field}.properties[{name}]")
        elif not open_ended:
            where = f"{field[: field.rfind('.')]}.properties[{name}]"
            text = f"because it is defined in {field}.properties[{name}]"
            errors.append(required(where, text))
    for key in ("allOf", "anyOf", "oneOf"):
        for index, inner in enumerate(sub.get(key) or ()):
            errors += _check_inside(skeleton, inner, f"{field}.{key}[{index}]")
    return errors + _check_pattern(sub, field)


def _check_default(schema: Mapping[str, Any], field: str, *, root: bool) -> list[FieldError]:
    where = f"{field}.default"
    if root:
        return [forbidden(where, "must not be set")]
    value = schema["default"]
    bare = {key: each for key, each in schema.items() if key != "default"}
    return [
        invalid(
            f"{where}{'.' if error.field else ''}{error.field}".rstrip("."),
            value,
            error.detail or error.body,
        )
        for error in validate(bare, value)
    ]


def _broken_by_default(schema: Mapping[str, Any], field: str) -> list[FieldError]:
    """Return the rules that a default breaks; the default is also its old value, as upstream."""
    bare = {key: each for key, each in schema.items() if key != "default"}
    value, where = schema["default"], f"{field}.default"
    whole = schema.get(pruning.EMBEDDED) is True
    return rules_broken_by(bare, value, value, where, whole=whole, forgiving=False)
