"""The merge layout of built-in kinds under server-side apply.

Place in the flow: `applying` takes objects apart by these layouts. The facts of the API give their
list types, map types and list keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from moorage.apiserver.kind import Layout, LayoutForm
from moorage.apiserver.schema.catalog import definition
from moorage.apiserver.schema.definitions import OPEN, Definition, Field, TypeRef

Keys = tuple[tuple[str, Any], ...]

# Defaults of keys that a client may leave out, as the facts have no defaults. Source: +default
# marks of kubernetes v1.36 staging/src/k8s.io/api/core/v1/types.go.
_KEY_DEFAULTS: Mapping[str, Any] = {"protocol": "TCP"}


class _Atomic:
    """A value owned as a whole."""

    form: LayoutForm = "atomic"
    keys: Keys = ()

    def member(self, name: str) -> Layout:
        return self

    def item(self) -> Layout:
        return self


class _Deduced:
    """A value without a schema: objects field by field, everything else whole."""

    form: LayoutForm = "object"
    keys: Keys = ()

    def member(self, name: str) -> Layout:
        return self

    def item(self) -> Layout:
        return ATOMIC


ATOMIC: Layout = _Atomic()
"""A value owned as a whole."""
DEDUCED: Layout = _Deduced()
"""A value without a schema."""


class _List:
    def __init__(self, form: LayoutForm, keys: Keys, of: TypeRef) -> None:
        self.form = form
        self.keys = keys
        self._of = of

    def member(self, name: str) -> Layout:
        return ATOMIC

    def item(self) -> Layout:
        return _of_type(self._of)


class _Map:
    form: LayoutForm = "object"
    keys: Keys = ()

    def __init__(self, of: TypeRef) -> None:
        self._of = of

    def member(self, name: str) -> Layout:
        return _of_type(self._of)

    def item(self) -> Layout:
        return ATOMIC


class _Object:
    form: LayoutForm = "object"
    keys: Keys = ()

    def __init__(self, found: Definition) -> None:
        self._definition = found

    def member(self, name: str) -> Layout:
        field = self._definition.fields.get(name)
        return ATOMIC if field is None else _field_layout(field)

    def item(self) -> Layout:
        return ATOMIC


@cache
def object_layout(name: str) -> Layout:
    """Return the layout of a definition, by its full name."""
    found = definition(name)
    return ATOMIC if found.atomic else _Object(found)


@cache
def _field_layout(field: Field) -> Layout:
    if field.atomic:
        return ATOMIC
    if field.type.shape != "list":
        return _of_type(field.type)
    if field.list_type == "map":
        keys = tuple((name, _KEY_DEFAULTS.get(name)) for name in field.list_keys)
        return _List("keyed", keys, field.type.element)
    return _List("set", (), field.type.element) if field.list_type == "set" else ATOMIC


def _of_type(type_ref: TypeRef) -> Layout:
    if type_ref.shape == "map":
        return _Map(type_ref.element)
    if type_ref.shape == "object":
        return object_layout(type_ref.name)
    return DEDUCED if type_ref.name in OPEN else ATOMIC
