"""The merge layout of built-in kinds under server-side apply.

Place in the flow: `applying` takes objects apart by these layouts. The facts of the API give their
list types, map types and list keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial
from typing import Any

from moorage.kinds.facts import OPEN, Field, definition
from moorage.kinds.kind import ATOMIC, DEDUCED, Layout

__all__ = ["DEDUCED", "object_layout"]

# Defaults of keys that a client may leave out, as the facts have no defaults. Source: +default
# marks of kubernetes v1.36 staging/src/k8s.io/api/core/v1/types.go.
_KEY_DEFAULTS: Mapping[str, Any] = {"protocol": "TCP"}

# Fields that upstream's types always write: structs that are no pointers, and one list without
# omitempty. The facts have no pointers. Source: kubernetes v1.36 staging/src/k8s.io/api, types.go
# of core, apps and batch.
_IMPLIED = frozenset(
    {
        "metadata",
        "spec",
        "status",
        "template",
        "strategy",
        "updateStrategy",
        "jobTemplate",
        "containers",
    }
)


@cache
def object_layout(name: str, *, granular: bool = False) -> Layout:
    """Return the layout of a definition, by its full name.

    Parameters
    ----------
    name
        Full name of the definition.
    granular
        The field is owned field by field, whatever the definition says.
    """
    type_ = definition(name)
    if type_.map_type == "atomic" and not granular:
        return ATOMIC

    members: dict[str, Layout] = {}  # by name, as hashing a field takes longer than all the rest

    def member(key: str) -> Layout:
        layout = members.get(key)
        if layout is None:
            field = type_.fields.get(key)
            if field is None:
                return ATOMIC
            layout = members[key] = _field_layout(field)
        return layout

    return Layout("object", member=member, implied=_IMPLIED)


@cache
def _field_layout(field: Field) -> Layout:
    if field.map_type == "atomic":
        return ATOMIC
    if field.shape != "list":
        return _of_type(field)
    item = cache(partial(_of_type, field.element))
    if field.list_type == "map":
        keys = tuple((name, _KEY_DEFAULTS.get(name)) for name in field.list_map_keys)
        return Layout("keyed", keys, item=item)
    return Layout("set", item=item) if field.list_type == "set" else ATOMIC


def _of_type(field: Field) -> Layout:
    if field.shape == "map":
        of_value = _of_type(field.element)
        return Layout("object", member=lambda name: of_value)
    if field.shape == "object":
        return object_layout(field.name, granular=field.map_type == "granular")
    return DEDUCED if field.name in OPEN else ATOMIC
