"""Canonical form of the quantities of built-in kinds: texts, as the API server stores them.

Place in the flow: `served` puts this before the defaults of a kind, so that every rule and every
reader finds texts, also where a client sent a number. The facts say which fields are quantities.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

from moorage.api.quantity import canonical
from moorage.api.resources import ResourceType
from moorage.kinds.facts import SCHEMA_PROPS, Field, definition, definition_name
from moorage.kinds.fields import Default
from moorage.kinds.kind import Obj
from moorage.kinds.values.quantities import canonical_quantity

_Change = Callable[[Any], Any]
_Entries = tuple[tuple[str, _Change], ...]
# The quantities of devices are no resource lists, so upstream does not round them to thousandths.
_UNROUNDED = "io.k8s.api.resource."


def canonical_first(resource: ResourceType, fill_in: Default, *, part: str = "") -> Default:
    """Return defaults that set an object's quantities to canonical form before all else.

    Parameters
    ----------
    resource
        A built-in kind.
    fill_in
        The other defaults of the kind.
    part
        The only field of the object to look at; empty for the whole object.

    Notes
    -----
    kubernetes v1.36: quantities are texts as soon as they are decoded. Those of a resource list are
    rounded up to a thousandth (pkg/apis/core/v1/defaults.go, SetDefaults_ResourceList).
    """
    entries: _Entries | None = None

    def set_defaults(obj: Obj) -> None:
        nonlocal entries
        if entries is None:
            # Only now: the facts are large, and most kinds are never used.
            found = _entries(definition_name(resource))
            entries = tuple(entry for entry in found if part in ("", entry[0]))
        _in_object(entries, obj)
        fill_in(obj)

    return set_defaults


@cache
def _entries(name: str) -> _Entries:
    """Return the fields of a definition that hold quantities, each with its change."""
    entries = []
    for key, field in definition(name).fields.items():
        change = _change(field, name)
        if change is not None:
            entries.append((key, change))
    return tuple(entries)


def _change(field: Field, owner: str) -> _Change | None:
    """Return the change of a value that holds quantities; None where it holds none."""
    if field.shape == "scalar":
        return canonical if field.name == "Quantity" else None
    if field.shape == "object":
        entries = () if field.name == SCHEMA_PROPS else _entries(field.name)
        return partial(_in_object, entries) if entries else None
    change = _change(field.element, owner)
    if change is None:
        return None
    if field.shape == "list":
        return partial(_in_list, change)
    if change is canonical and not owner.startswith(_UNROUNDED):
        change = canonical_quantity
    return partial(_in_map, change)


def _in_object(entries: _Entries, obj: Any) -> Any:
    for key, change in entries:
        value = obj.get(key)
        if value is not None:
            obj[key] = change(value)
    return obj


def _in_list(change: _Change, values: list[Any]) -> list[Any]:
    return [None if value is None else change(value) for value in values]


def _in_map(change: _Change, values: dict[str, Any]) -> dict[str, Any]:
    for key, value in values.items():
        if value is not None:
            values[key] = change(value)
    return values
