"""The layout of custom resources under server-side apply, from their structural schema.

Place in the flow: `applying` takes custom resources apart by these layouts. Built-in kinds have
the layouts of `moorage.apiserver.schema.layout`.
"""

from __future__ import annotations

from typing import Any

from moorage.apiserver.custom.pruning import PRESERVE, Schema
from moorage.apiserver.kind import Layout, LayoutForm
from moorage.apiserver.schema.catalog import OBJECT_META
from moorage.apiserver.schema.layout import ATOMIC, DEDUCED, object_layout


class SchemaLayout:
    """The layout of a value with a schema; implements `moorage.apiserver.kind.Layout`.

    Parameters
    ----------
    schema
        The value's node of a structural schema.
    whole
        The value is an object with metadata.
    """

    def __init__(self, schema: Schema, *, whole: bool = False) -> None:
        self._schema = schema
        self._whole = whole
        self.form: LayoutForm = _form(schema)
        self.keys: tuple[tuple[str, Any], ...] = ()
        if self.form == "keyed":
            properties = (schema.get("items") or {}).get("properties") or {}
            names = schema.get("x-kubernetes-list-map-keys") or []
            self.keys = tuple((name, properties.get(name, {}).get("default")) for name in names)

    def member(self, name: str) -> Layout:
        """Return the layout of a field."""
        if self._whole and name == "metadata":
            return object_layout(OBJECT_META)
        sub = (self._schema.get("properties") or {}).get(name)
        if sub is None:
            sub = self._schema.get("additionalProperties")
        return _of(sub)

    def item(self) -> Layout:
        """Return the layout of the items of a list."""
        return _of(self._schema.get("items"))


def _of(schema: Any) -> Layout:
    if not isinstance(schema, dict) or (not schema.get("type") and schema.get(PRESERVE)):
        return DEDUCED
    return SchemaLayout(schema)


def _form(schema: Schema) -> LayoutForm:
    kind = schema.get("type")
    if kind == "array":
        marked = schema.get("x-kubernetes-list-type")
        return {"map": "keyed", "set": "set"}.get(marked or "", "atomic")  # type: ignore[return-value]
    if kind == "object" and schema.get("x-kubernetes-map-type") != "atomic":
        return "object"
    return "atomic"


__all__ = ["ATOMIC", "SchemaLayout"]
