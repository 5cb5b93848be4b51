"""Dropping fields and nulls that a structural schema does not allow, and filling in its defaults.

Place in the flow: the first step of every write of a custom resource, before validation. Mirrors
kubernetes v1.36 apiextensions-apiserver pkg/apiserver/schema/{pruning,defaulting}.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any

from moorage.kinds.facts import OBJECT_META, definition
from moorage.kinds.schema import check

Schema = Mapping[str, Any]
"""A node of a structural schema: decoded JSON of ``JSONSchemaProps``."""

PRESERVE = "x-kubernetes-preserve-unknown-fields"
EMBEDDED = "x-kubernetes-embedded-resource"
_TYPE_META = ("apiVersion", "kind", "metadata")


def prune(schema: Schema, obj: dict[str, Any]) -> None:
    """Drop the unknown fields and the nulls of a custom resource, in place.

    The metadata is left alone. A null stays where the schema allows it or has a default for it.
    """
    for holder, key in list(_unknown(schema, obj, whole=True)):
        holder[0].pop(key, None)
    _drop_nulls(schema, obj)


def _drop_nulls(schema: Schema, value: Any) -> None:
    if isinstance(value, list):
        for element in value:
            _drop_nulls(schema.get("items") or {}, element)
    elif isinstance(value, dict):
        for key, sub in _declared(schema, value):
            if value[key] is None and not sub.get("nullable") and "default" not in sub:
                del value[key]
            else:
                _drop_nulls(sub, value[key])


def _declared(schema: Schema, value: dict[str, Any]) -> list[tuple[str, Schema]]:
    """Return the fields of an object that the schema declares, with the schema of each."""
    properties = schema.get("properties") or {}
    rest = schema.get("additionalProperties")
    found = [(key, properties.get(key, rest)) for key in value]
    return [(key, sub) for key, sub in found if isinstance(sub, dict)]


def unknown_fields(schema: Schema, obj: dict[str, Any]) -> list[str]:
    """Return the paths of the fields that `prune` would drop, in document order."""
    return [f"{holder[1]}{key}" for holder, key in _unknown(schema, obj, whole=True)]


def _unknown(
    schema: Schema, value: Any, path: str = "", *, whole: bool = False
) -> Iterator[tuple[tuple[dict[str, Any], str], str]]:
    """Yield ((object with the field, path of this object), key) of each unknown field."""
    if isinstance(value, list):
        items = schema.get("items") or {}
        if schema.get(PRESERVE) is True:
            # The fields of the items are preserved, too.
            items = {**items, PRESERVE: True}
        for index, element in enumerate(value):
            yield from _unknown(items, element, f"{path}[{index}]")
        return
    if not isinstance(value, dict):
        return
    prefix = f"{path}." if path else ""
    properties = schema.get("properties") or {}
    rest = schema.get("additionalProperties")
    preserves = schema.get(PRESERVE) is True or rest is True
    whole = whole or schema.get(EMBEDDED) is True
    for key, member in value.items():
        if whole and key in _TYPE_META:
            continue
        if key in properties:
            yield from _unknown(properties[key], member, prefix + key)
        elif isinstance(rest, dict):
            yield from _unknown(rest, member, prefix + key)
        elif not preserves:
            yield (value, prefix), key


def fill_defaults(schema: Schema, value: Any) -> None:
    """Set a default where a field is absent, or null where null is not allowed, in place."""
    if isinstance(value, list):
        for element in value:
            fill_defaults(schema.get("items") or {}, element)
        return
    if not isinstance(value, dict):
        return
    for key, sub in (schema.get("properties") or {}).items():
        if "default" in sub:
            value.setdefault(key, copy.deepcopy(sub["default"]))
    for key, sub in _declared(schema, value):
        if value[key] is None and not sub.get("nullable") and "default" in sub:
            value[key] = copy.deepcopy(sub["default"])
        fill_defaults(sub, value[key])


def prune_metadata(obj: dict[str, Any]) -> None:
    """Drop nulls and unknown fields of an object's metadata, in place."""
    meta = obj.get("metadata")
    if isinstance(meta, dict):
        check.prune(definition(OBJECT_META), meta)
