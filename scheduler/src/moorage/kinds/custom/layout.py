"""The layout of custom resources under server-side apply, from their structural schema.

Place in the flow: `applying` takes custom resources apart by these layouts. Built-in kinds have
the layouts of `moorage.kinds.schema.layout`.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from moorage.kinds.facts import OBJECT_META
from moorage.kinds.kind import ATOMIC, DEDUCED, Layout
from moorage.kinds.schema.layout import object_layout
from moorage.kinds.schema.pruning import PRESERVE, Schema


def schema_layout(schema: Any, *, whole: bool = False) -> Layout:
    """Return the layout of a value.

    Parameters
    ----------
    schema
        The value's node of a structural schema; None where nothing is declared.
    whole
        The value is an object with metadata.
    """
    if not isinstance(schema, dict) or (not schema.get("type") and schema.get(PRESERVE)):
        return DEDUCED
    if schema.get("type") == "array":
        return _list_layout(schema)
    if schema.get("type") == "object" and schema.get("x-kubernetes-map-type") != "atomic":
        return Layout("object", member=partial(_member, schema, whole))
    return ATOMIC


def _list_layout(schema: Schema) -> Layout:
    items = schema.get("items")
    kind = schema.get("x-kubernetes-list-type")
    if kind == "map":
        properties = (items or {}).get("properties") or {}
        names = schema.get("x-kubernetes-list-map-keys") or []
        keys = tuple((name, properties.get(name, {}).get("default")) for name in names)
        return Layout("keyed", keys, item=partial(schema_layout, items))
    return Layout("set", item=partial(schema_layout, items)) if kind == "set" else ATOMIC


def _member(schema: Schema, whole: bool, name: str) -> Layout:
    if whole and name == "metadata":
        return object_layout(OBJECT_META)
    declared = (schema.get("properties") or {}).get(name)
    return schema_layout(schema.get("additionalProperties") if declared is None else declared)
