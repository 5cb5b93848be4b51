"""The interface between the server's verbs and the rules of one kind of object.

The verbs (create, update, patch, ...) know the protocol and no kind; a `Kind` knows one kind and
no protocol. A verb calls, in this order: ``default``, ``prepare_create`` or ``prepare_update``,
``validate``; then it stores the object. ``selectable_fields`` serves field selectors, ``columns``
and ``row`` serve Table output, ``merge_keys`` serve strategic merge patches.

Objects are plain ``dict`` trees decoded from JSON. A kind changes only the object it is told to
change (never ``old``, never what ``lookup`` returned).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, Protocol

import msgspec

from moorage.api.resources import ResourceType
from moorage.apiserver.users import User
from moorage.base.clock import Clock
from moorage.base.rng import Random

Obj = dict[str, Any]
"""One API object as decoded JSON."""

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


def not_supported(field: str, value: Any, supported: Iterable[str]) -> FieldError:
    """Build the error for a value outside a closed list; the list is shown sorted."""
    listed = ", ".join(f'"{each}"' for each in sorted(supported))
    return FieldError("FieldValueNotSupported", field, value, f"supported values: {listed}")


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


class Layout(Protocol):
    """The merge layout of one value under server-side apply (structured-merge-diff v6)."""

    @property
    def form(self) -> LayoutForm:
        """The form in which the value is taken apart into fields."""
        ...

    @property
    def keys(self) -> tuple[tuple[str, Any], ...]:
        """Keys of the items of a ``keyed`` list, each with its default (None without one)."""
        ...

    def member(self, name: str) -> Layout:
        """Return the layout of a field of an object, or of a value of a map."""
        ...

    def item(self) -> Layout:
        """Return the layout of the items of a list."""
        ...


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

    def objects(self, plural: str, namespace: str | None = None) -> Iterable[Obj]:
        """All stored objects of a resource, in (namespace, name) order; read-only."""
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


class Kind(Protocol):
    """The rules of one served resource."""

    @property
    def resource(self) -> ResourceType:
        """Group, version, kind, names and scope."""
        ...

    @property
    def shape(self) -> Shape:
        """Shape of its objects."""
        ...

    @property
    def translation(self) -> Translation | None:
        """Conversion to the stored version; None where objects are stored as served."""
        ...

    @property
    def scale(self) -> ScalePaths | None:
        """Paths of the counts in the subresource ``scale``; None for a kind without it."""
        ...

    @property
    def verbs(self) -> frozenset[str]:
        """Verbs of discovery that the resource itself answers, out of `VERBS`."""
        ...

    @property
    def subresources(self) -> frozenset[str]:
        """Names of the subresources served, such as ``status`` and ``scale``."""
        ...

    @property
    def columns(self) -> tuple[Column, ...]:
        """Columns of Table output."""
        ...

    @property
    def merge_keys(self) -> Mapping[str, str]:
        """Strategic merge keys: path of a list (``spec.containers``) -> key (``name``)."""
        ...

    def default(self, obj: Obj) -> None:
        """Fill in defaults, in place; on create and update, before ``prepare_*``."""
        ...

    def default_status(self, obj: Obj) -> None:
        """Fill in the defaults of the status alone; called where only the status is used.

        The object has been checked against the schema, and unknown fields are gone.
        """
        ...

    def prepare_create(self, obj: Obj, ctx: Context) -> None:
        """Turn a sent object into a stored one, in place: strip status, admission, generation.

        Raises
        ------
        moorage.apiserver.status.StatusError
            Admission refuses the object (403).
        """
        ...

    def prepare_update(self, new: Obj, old: Obj, *, subresource: str | None, ctx: Context) -> None:
        """Restore fields that this call may not change, in place on ``new``; bump the generation.

        ``subresource`` is None for the object itself: status is kept from ``old``. For ``status``
        the rest is kept from ``old``. Any other subresource is a part of the object.
        """
        ...

    def validate(self, obj: Obj, old: Obj | None, *, subresource: str | None) -> list[FieldError]:
        """Return every error; ``old`` is None on create. Includes immutability on update.

        The verbs have checked ``metadata`` (name, generateName, namespace, labels, ...) by
        `moorage.apiserver.metadata` only as far as the URL needs it. The rest is checked here.
        """
        ...

    def warnings(self, obj: Obj) -> list[str]:
        """Return warnings for a client that writes the object; sent as Warning headers."""
        ...

    def selectable_fields(self, obj: Obj) -> Mapping[str, str]:
        """Values for field selectors, including metadata.name and metadata.namespace.

        Must return the same keys for every object, so that an unknown field label can be
        refused; absent values are empty strings.
        """
        ...

    def row(self, obj: Obj, now_ns: int) -> list[Any]:
        """Cells of Table output, one for each of ``columns``."""
        ...
