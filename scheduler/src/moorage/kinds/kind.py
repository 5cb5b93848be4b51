"""The words in which the verbs of the server and the rules of its kinds speak to each other.

Place in the flow: `moorage.kinds.served.ServedKind` is made of these parts. Objects are
plain ``dict`` trees decoded from JSON.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import msgspec

from moorage.api.resources import ResourceType
from moorage.base.clock import Clock
from moorage.base.rng import Random
from moorage.kinds.users import User

Obj = dict[str, Any]
"""One API object as decoded JSON."""

Numbers = Callable[[Obj], Iterable[int]]
"""The numbers that an object has of some sort, such as its node ports."""

# Kinds of field error (apimachinery v1.36 util/validation/field) and the text for each.
FIELD_ERROR_TEXT: Mapping[str, str] = {
    "FieldValueNotFound": "Not found",
    "FieldValueRequired": "Required value",
    "FieldValueDuplicate": "Duplicate value",
    "FieldValueInvalid": "Invalid value",
    "FieldValueNotSupported": "Unsupported value",
    "FieldValueForbidden": "Forbidden",
    "FieldValueTooLong": "Too long",
    "FieldValueTooMany": "Too many",
    "FieldValueTypeInvalid": "Invalid value",
    "InternalError": "Internal error",
}
_WITHOUT_VALUE = frozenset(
    {"FieldValueRequired", "FieldValueForbidden", "FieldValueTooLong", "InternalError"}
)


class FieldError(msgspec.Struct, frozen=True):
    """One error in an object; becomes a cause of a 422 ``Status``.

    Parameters
    ----------
    type
        One of `FIELD_ERROR_TEXT`, for example ``FieldValueRequired``.
    field
        Path such as ``spec.containers[0].name``.
    value
        The bad value, as decoded JSON; shown except for required, forbidden and too long.
    detail
        Description of valid values; may be empty.
    """

    type: str
    field: str
    value: Any = None
    detail: str = ""

    @property
    def body(self) -> str:
        """Text without the path, as in a cause's message: ``Invalid value: "x": must be ...``."""
        text = FIELD_ERROR_TEXT[self.type]
        if self.type not in _WITHOUT_VALUE:
            shown = json.dumps(self.value, ensure_ascii=False, separators=(",", ":"))
            text = f"{text}: {shown}"
        return f"{text}: {self.detail}" if self.detail else text

    @property
    def message(self) -> str:
        """Whole text: ``spec.replicas: Invalid value: -1: must be ...``."""
        return f"{self.field}: {self.body}"


def required(field: str, detail: str = "") -> FieldError:
    """Build the error for a required field that is missing."""
    return FieldError("FieldValueRequired", field, "", detail)


def invalid(field: str, value: Any, detail: str = "") -> FieldError:
    """Build the error for a value that breaks a rule."""
    return FieldError("FieldValueInvalid", field, value, detail)


def forbidden(field: str, detail: str) -> FieldError:
    """Build the error for a field that may not be set, or not be changed."""
    return FieldError("FieldValueForbidden", field, None, detail)


def duplicate(field: str, value: Any) -> FieldError:
    """Build the error for a duplicate value."""
    return FieldError("FieldValueDuplicate", field, value)


def too_long(field: str, most: int) -> FieldError:
    """Build the error for a value of more bytes than allowed."""
    return FieldError("FieldValueTooLong", field, "", f"may not be more than {most} bytes")


def not_supported(field: str, value: Any, supported: Iterable[str]) -> FieldError:
    """Build the error for a value outside a closed list; the list is shown sorted."""
    listed = ", ".join(f'"{each}"' for each in sorted(supported))
    return FieldError("FieldValueNotSupported", field, value, f"supported values: {listed}")


def too_many(field: str, count: int, most: int) -> FieldError:
    """Build the error for a list that is too long; the number of items stands for the list."""
    noun = "item" if most == 1 else "items"
    return FieldError("FieldValueTooMany", field, count, f"must have at most {most} {noun}")


LayoutForm = Literal["atomic", "object", "keyed", "set"]
"""The ownership of a value: as a whole, field by field, as a list of objects with keys, or as a
list of scalars with separate owners."""


VERBS = frozenset(
    {"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
)
"""Every verb of discovery that a resource can have."""


class Column(msgspec.Struct, frozen=True):
    """One column of Table output (``meta.k8s.io/v1 TableColumnDefinition``).

    Parameters
    ----------
    name, type, format, description
        As shown; ``type`` is an OpenAPI type, ``format`` is ``name`` for the name column.
    priority
        0 is always shown, anything higher only by ``kubectl get -o wide``.
    cell
        The column's cell of an object, at a time in nanoseconds; None where a function of the kind
        returns the whole row.
    """

    name: str
    type: str = "string"
    format: str = ""
    description: str = ""
    priority: int = 0
    cell: Callable[[Obj, int], Any] | None = None


class ScalePaths(msgspec.Struct, frozen=True):
    """The fields of an object that ``autoscaling/v1 Scale`` shows.

    Parameters
    ----------
    spec_replicas, status_replicas
        Path of the desired and of the actual number: ``("spec", "replicas")``.
    selector
        Path of the label selector, an object or a text; None for a kind without selector.
    """

    spec_replicas: tuple[str, ...] = ("spec", "replicas")
    status_replicas: tuple[str, ...] = ("status", "replicas")
    selector: tuple[str, ...] | None = ("spec", "selector")


class Translation(msgspec.Struct, frozen=True):
    """The stored form of a kind that is stored in another version.

    Parameters
    ----------
    stored
        The version stored.
    to_stored, from_stored
        Convert from this form to the stored form, and back; the argument stays, parts may be
        shared.
    renamed
        Top-level fields with another name in the stored form; for field selectors.
    stored_rules
        An object is validated, defaulted and compared with its old state in its stored form, by the
        rules of the stored version: one field there may be several fields here.
    """

    stored: ResourceType
    to_stored: Callable[[Obj], Obj]
    from_stored: Callable[[Obj], Obj]
    renamed: Mapping[str, str] = {}
    stored_rules: bool = False


@dataclass(frozen=True, slots=True)
class Layout:
    """The merge layout of one value under server-side apply (structured-merge-diff v6).

    Parameters
    ----------
    form
        The form in which the value is taken apart into fields.
    keys
        Keys of the items of a ``keyed`` list, each with its default (None without one).
    member
        Returns the layout of a field of an object, or of a value of a map.
    item
        Returns the layout of the items of a list.
    implied
        Members that are never absent: upstream they are structs, or lists that are always written.
    """

    form: LayoutForm
    keys: tuple[tuple[str, Any], ...] = ()
    member: Callable[[str], Layout] = lambda name: ATOMIC
    item: Callable[[], Layout] = lambda: ATOMIC
    implied: frozenset[str] = frozenset()


ATOMIC: Layout = Layout("atomic")
"""A value owned as a whole."""
DEDUCED: Layout = Layout("object", member=lambda name: DEDUCED)
"""A value without a schema: objects field by field, everything else whole."""


class Context(Protocol):
    """The state of the server that a kind may read while an object is created or changed."""

    @property
    def clock(self) -> Clock:
        """The server's clock."""
        ...

    @property
    def rng(self) -> Random:
        """The server's random stream (addresses, ports)."""
        ...

    @property
    def caller(self) -> User:
        """The user of the current call."""
        ...

    def lookup(self, plural: str, namespace: str | None, name: str) -> Obj | None:
        """Return a stored object, None when there is none; read-only.

        ``namespace`` is None for kinds without namespaces.
        """
        ...

    def stored_objects(self, plural: str, namespace: str | None = None) -> Iterable[Obj]:
        """All stored objects of a resource, in (namespace, name) order; read-only."""
        ...

    def keys_with(self, plural: str, numbers: Numbers, number: int) -> Collection[tuple[str, str]]:
        """Return (namespace, name) of the stored objects of a resource that have a number.

        The time that it takes does not depend on how many objects there are. ``numbers`` has to be
        the same function at each call.
        """
        ...


class Shape(Protocol):
    """The form of a kind's objects, without the meaning of values."""

    @property
    def merges_strategically(self) -> bool:
        """Whether strategic merge patches are served; custom resources have none."""
        ...

    @property
    def list_kind(self) -> str:
        """Kind of the list of these objects."""
        ...

    def fits(self, obj: Obj) -> bool:
        """Whether the quick check finds no error; False means that the full check must run."""
        ...

    def type_errors(self, obj: Obj) -> list[str]:
        """Return the type errors, in the words of the API server's JSON decoder."""
        ...

    def unknown_fields(self, obj: Obj) -> list[str]:
        """Return the paths of the fields the kind does not have."""
        ...

    def prune(self, obj: Obj) -> None:
        """Drop fields that the kind does not have, and nulls without meaning, in place."""
        ...

    def layout(self) -> Layout:
        """Return how server-side apply merges an object."""
        ...

    def schema(self, *, v3: bool) -> dict[str, Any] | None:
        """Return the OpenAPI schema; None when it is rendered from the facts."""
        ...
