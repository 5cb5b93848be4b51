"""The types that the facts of the API describe, in a form for walking over objects.

Place in the flow: `catalog` builds each `Definition` from the facts on its first use. `check`,
`shape`, `layout`, `openapi` and `patch_strategic` walk over objects with definitions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from moorage.apiserver.facts import DefinitionFact, ShapeFact

OPEN: frozenset[str] = frozenset(
    {
        "FieldsV1",
        "JSON",
        "JSONSchemaPropsOrArray",
        "JSONSchemaPropsOrBool",
        "JSONSchemaPropsOrStringArray",
        "RawExtension",
    }
)
"""Scalars that hold any JSON value."""
NAMED_SCALARS: frozenset[str] = OPEN | {"IntOrString", "MicroTime", "Quantity", "Time"}
"""Definitions that clients see as a single value, by the last part of their name."""
# OpenAPI type and format -> name of the scalar.
_SCALARS: Mapping[tuple[str, str], str] = {
    ("string", ""): "string",
    ("string", "byte"): "bytes",
    ("integer", "int32"): "int32",
    ("integer", "int64"): "int64",
    ("number", "double"): "double",
    ("boolean", ""): "boolean",
}

Shape = Literal["scalar", "object", "list", "map"]


class TypeRef(msgspec.Struct, frozen=True):
    """The type of a field.

    Parameters
    ----------
    shape
        Form of the JSON value.
    name
        Name of a scalar (``int32``, ``Quantity``, ...) or full name of a definition; empty for
        lists and maps.
    of
        Element type of a list or map.
    """

    shape: Shape
    name: str = ""
    of: TypeRef | None = None

    @property
    def element(self) -> TypeRef:
        """Type of the elements; only lists and maps have elements."""
        assert self.of is not None, f"{self.shape} {self.name} has no elements"
        return self.of

    @property
    def innermost(self) -> TypeRef:
        """Type of the innermost elements, without the lists and maps around them."""
        return self.of.innermost if self.of is not None else self


class Field(msgspec.Struct, frozen=True):
    """One field of a definition, and how it merges.

    Parameters
    ----------
    name
        JSON name.
    type
        Type of the value.
    required
        Whether a client has to send the field.
    merge_key
        Key of a strategic merge patch for the objects of a list; empty for other fields.
    merges
        A strategic merge patch merges the elements of the list instead of replacing the list.
    retain_keys
        The value obeys ``$retainKeys``.
    replaces
        A strategic merge patch replaces the value whole, though the value is an object.
    list_type
        ``map``, ``set`` or ``atomic`` under server-side apply; empty where the API has no marker.
    list_keys
        Keys that identify the items of a list of type ``map``.
    atomic
        Server-side apply owns the object or map as a whole.
    """

    name: str
    type: TypeRef
    required: bool = False
    merge_key: str = ""
    merges: bool = False
    retain_keys: bool = False
    replaces: bool = False
    list_type: str = ""
    list_keys: tuple[str, ...] = ()
    atomic: bool = False


class Definition(msgspec.Struct, frozen=True):
    """An object type.

    Parameters
    ----------
    name
        Full name, ``io.k8s.api.core.v1.Pod``.
    fields
        Fields by JSON name.
    atomic
        Server-side apply owns the object as a whole.
    """

    name: str
    fields: dict[str, Field]
    atomic: bool = False


def definition_of(name: str, fact: DefinitionFact) -> Definition:
    """Build a definition from the facts about it."""
    required = frozenset(fact.required)
    fields = {
        each: _field(each, shape, required=each in required) for each, shape in fact.fields.items()
    }
    return Definition(name, fields, atomic=fact.map_type == "atomic")


def _field(name: str, fact: ShapeFact, *, required: bool) -> Field:
    strategies = fact.patch_strategy.split(",")
    return Field(
        name=name,
        type=_type(fact),
        required=required,
        merge_key=fact.patch_merge_key if "merge" in strategies else "",
        merges="merge" in strategies,
        retain_keys="retainKeys" in strategies,
        replaces="replace" in strategies,
        list_type=fact.list_type,
        list_keys=fact.list_map_keys,
        atomic=fact.map_type == "atomic",
    )


def _type(fact: ShapeFact) -> TypeRef:
    if fact.list is not None:
        return TypeRef("list", of=_type(fact.list))
    if fact.map is not None:
        return TypeRef("map", of=_type(fact.map))
    if fact.ref:
        short = fact.ref.rpartition(".")[2]
        if short in NAMED_SCALARS:
            return TypeRef("scalar", short)
        return TypeRef("object", fact.ref)
    return TypeRef("scalar", _SCALARS[fact.type, fact.format])
