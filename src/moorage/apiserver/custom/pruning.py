"""Dropping the fields that a structural schema does not declare, and filling in its defaults.

Place in the flow: the first step of every write of a custom resource, before validation. Mirrors
kubernetes v1.36 apiextensions-apiserver pkg/apiserver/schema/{pruning,defaulting}.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any

from moorage.apiserver.schema import check
from moorage.apiserver.schema.catalog import OBJECT_META, definition

Schema = Mapping[str, Any]
"""A node of a structural schema: decoded JSON of ``JSONSchemaProps``."""

PRESERVE = "x-kubernetes-preserve-unknown-fields"
EMBEDDED = "x-kubernetes-embedded-resource"
_TYPE_META = ("apiVersion", "kind", "metadata")


def prune(schema: Schema, obj: dict[str, Any]) -> None:
    """Drop the unknown fields of a custom resource, in place; its metadata is left alone."""
    for holder, key in list(_unknown(schema, obj, whole=True)):
        holder[0].pop(key, None)


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
    kept = schema.get(PRESERVE) is True or rest is True
    whole = whole or schema.get(EMBEDDED) is True
    for key, member in value.items():
        if whole and key in _TYPE_META:
            continue
        if key in properties:
            yield from _unknown(properties[key], member, prefix + key)
        elif isinstance(rest, dict):
            yield from _unknown(rest, member, prefix + key)
        elif not kept:
            yield (value, prefix), key


def fill_defaults(schema: Schema, value: Any) -> None:
    """Set a default where a field is absent, or null where null is not allowed, in place."""
    if isinstance(value, list):
        for element in value:
            fill_defaults(schema.get("items") or {}, element)
        return
    if not isinstance(value, dict):
        return
    properties = schema.get("properties") or {}
    for key, sub in properties.items():
        if "default" not in sub:
            continue
        if key not in value or (value[key] is None and not sub.get("nullable")):
            value[key] = copy.deepcopy(sub["default"])
    rest = schema.get("additionalProperties")
    for key, member in value.items():
        if key in properties:
            fill_defaults(properties[key], member)
        elif isinstance(rest, dict):
            fill_defaults(rest, member)


def prune_metadata(obj: dict[str, Any]) -> None:
    """Drop nulls and unknown fields of an object's metadata, in place."""
    meta = obj.get("metadata")
    if isinstance(meta, dict):
        check.prune(definition(OBJECT_META), meta)
