"""The shape of a built-in kind.

Place in the flow: `kinds.served` gives this shape to the verbs as `moorage.kinds.kind.Shape`.
Custom resources have a shape from the schema of their definition.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from moorage.api.resources import ResourceType
from moorage.kinds.facts import Definition
from moorage.kinds.kind import Layout, Obj
from moorage.kinds.schema import check
from moorage.kinds.schema.catalog import kind_definition
from moorage.kinds.schema.layout import object_layout
from moorage.kinds.schema.shape import fits


class BuiltinShape:
    """The shape that the facts give one kind; implements `moorage.kinds.kind.Shape`.

    Parameters
    ----------
    resource
        The kind.
    """

    merges_strategically = True

    def __init__(self, resource: ResourceType) -> None:
        self._resource = resource
        self.list_kind = f"{resource.kind}List"

    @property
    def _definition(self) -> Definition:
        # Looked up with each call: only the definitions in use are built.
        return kind_definition(self._resource)

    def fits(self, obj: Obj) -> bool:
        """Whether the quick check finds an object without error."""
        return fits(self._resource, obj)

    def type_errors(self, obj: Obj) -> list[str]:
        """Return the type errors of an object."""
        return check.type_errors(self._definition, obj)

    def unknown_fields(self, obj: Obj) -> list[str]:
        """Return the paths of the fields that the kind does not have."""
        return check.unknown_fields(self._definition, obj)

    def prune(self, obj: Obj) -> None:
        """Drop nulls, and fields that the kind does not have, in place."""
        check.prune(self._definition, obj)

    def layout(self) -> Layout:
        """Return how server-side apply merges an object."""
        return object_layout(self._definition.name)

    def schema(self, *, v3: bool) -> dict[str, Any] | None:
        """Return None: `openapi` renders the facts."""
        return None


@cache
def builtin_shape(resource: ResourceType) -> BuiltinShape:
    """Return the shape of a built-in kind."""
    return BuiltinShape(resource)
