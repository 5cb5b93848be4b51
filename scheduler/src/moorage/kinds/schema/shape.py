"""The shape of a built-in kind, and a quick check of the types of its objects.

Place in the flow: `kinds.served` gives this shape to the verbs as `moorage.kinds.kind.Shape`.
Custom resources have a shape from the schema of their definition. Nearly every body is right, so
`fits` is asked first, and `check` walks the object only to find its errors. The definitions are
compiled to `msgspec` types once, on first use.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any

import msgspec

from moorage.api.resources import ResourceType
from moorage.kinds.facts import (
    OPEN,
    SCHEMA_PROPS,
    Definition,
    Field,
    definition,
    definition_name,
    kind_definition,
)
from moorage.kinds.kind import Layout, Obj
from moorage.kinds.schema import check
from moorage.kinds.schema.layout import object_layout

_MONTH_AND_DAY = (
    "((0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])|(0[13-9]|1[0-2])-(29|30)|(0[13578]|1[02])-31)"
)
_SECOND = rf"[12][0-9]{{3}}-{_MONTH_AND_DAY}T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
_TIME = rf"\A{_SECOND}Z\Z"
_MICRO_TIME = rf"\A{_SECOND}\.[0-9]{{6}}Z\Z"
_QUANTITY = r"\A[0-9]{1,12}(\.[0-9]{1,3})?(m|k|M|G|T|Ki|Mi|Gi|Ti)?\Z"
_BASE64 = r"\A([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?\Z"

_Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
_Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]

_SCALARS: Mapping[str, Any] = {
    "string": str,
    "int32": _Int32,
    "int64": _Int64,
    "double": float,
    "boolean": bool,
    "Time": Annotated[str, msgspec.Meta(pattern=_TIME)],
    "MicroTime": Annotated[str, msgspec.Meta(pattern=_MICRO_TIME)],
    "Quantity": _Int64 | Annotated[str, msgspec.Meta(pattern=_QUANTITY)],
    "IntOrString": _Int32 | str,
    "bytes": Annotated[str, msgspec.Meta(pattern=_BASE64)],
    **dict.fromkeys(sorted(OPEN), bool | int | float | str | list | dict),
}
# No value is of this type: a definition that contains itself needs the close look.
_NOTHING = Annotated[str, msgspec.Meta(min_length=1, max_length=0)]


def fits(resource: ResourceType, obj: Any) -> bool:
    """Whether an object is right beyond doubt; False when it needs a close look.

    True is exact: all types are right, nothing is unknown or null, and times are as the server
    writes them. False may also mean a correct value in a spelling too rare for this check.

    Parameters
    ----------
    resource
        Kind in the object's ``apiVersion`` and ``kind``.
    obj
        Decoded JSON.
    """
    compiled = _struct(definition_name(resource))
    try:
        msgspec.convert(obj, compiled)
    except (msgspec.ValidationError, RecursionError):
        return False
    return True


@cache
def _struct(name: str) -> type[msgspec.Struct]:
    """Compile a definition."""
    fields = definition(name).fields
    # Names such as `default` and `from` cannot be the names of attributes.
    names = {f"f{index}": key for index, key in enumerate(fields)}
    members = [(f"f{index}", _type(field), None) for index, field in enumerate(fields.values())]
    return msgspec.defstruct(
        name.rpartition(".")[2], members, rename=names, forbid_unknown_fields=True, gc=False
    )


def _type(field: Field) -> Any:
    if field.shape == "scalar":
        return _SCALARS[field.name]
    if field.name == SCHEMA_PROPS:
        return _NOTHING
    if field.shape == "object":
        return _struct(field.name)
    container: Any = list if field.shape == "list" else dict
    element = _type(field.element)
    return container[element] if container is list else container[str, element]


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
