"""Schemas as rules see them: a form is built once and gives types, values and fields.

Place in the flow: `compiled` builds one form for each schema with rules. Mirrors kubernetes v1.36
apiserver pkg/cel/common/schemas.go. A value without a declared type does not exist for a rule. Of
an object's metadata a rule sees only the names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from moorage.apiserver.custom.pruning import EMBEDDED, PRESERVE, Schema
from moorage.apiserver.custom.rules.escaping import escaped
from moorage.apiserver.custom.validation import INT_OR_STRING

FormKind = Literal[
    "object", "map", "list", "set", "keyed", "string", "bytes", "date", "date-time", "duration",
    "int", "double", "bool", "any", "carried",
]  # fmt: skip

LISTS: Final = frozenset({"list", "set", "keyed"})
MOMENTS: Final[Mapping[FormKind, str]] = {
    "date": "timestamp",
    "date-time": "timestamp",
    "duration": "duration",
}
"""Forms that are text in CEL, and the function of CEL that parses the text."""

_TEXTS: Final[Mapping[str, FormKind]] = {
    "byte": "bytes",
    "date": "date",
    "date-time": "date-time",
    "duration": "duration",
}
_SCALARS: Final[Mapping[str, FormKind]] = {"integer": "int", "number": "double", "boolean": "bool"}
_LIST_KINDS: Final[Mapping[str, FormKind]] = {"map": "keyed", "set": "set"}
_STRING: Final[Schema] = {"type": "string"}
_NAMES: Final[Schema] = {
    "apiVersion": _STRING,
    "kind": _STRING,
    "metadata": {"type": "object", "properties": {"name": _STRING, "generateName": _STRING}},
}


@dataclass(frozen=True, slots=True)
class Form:
    """One value as a rule sees it.

    Parameters
    ----------
    kind
        ``any`` is an integer or a string; ``set`` and ``keyed`` are lists; ``carried`` is the
        result of a function for which CEL has no type, such as a URL.
    nullable
        Null is a valid value.
    fields
        Of an object: name in JSON -> (name in rules, form), for the fields rules can name.
    element
        Of a map or list: the form of its elements.
    keys
        Of a keyed list: the names of its key fields, each with its default.
    """

    kind: FormKind
    nullable: bool = False
    fields: Mapping[str, tuple[str, Form]] = field(default_factory=dict)
    element: Form | None = None
    keys: tuple[tuple[str, Any], ...] = ()

    def member(self, name: str) -> Form | None:
        """Return the form of a field by its name in rules."""
        return next((form for known, form in self.fields.values() if known == name), None)


def form_of(schema: Schema, *, whole: bool = False) -> Form | None:
    """Return the form of a value with a schema; None for a value that no rule can see.

    Parameters
    ----------
    schema
        A node of a structural schema.
    whole
        The value is an object with ``apiVersion``, ``kind`` and ``metadata``.
    """
    nullable = schema.get("nullable") is True
    if schema.get(INT_OR_STRING):
        return Form("any", nullable)
    kind: str = schema.get("type") or ""
    if kind == "object":
        return _object_form(schema, nullable, whole=whole or schema.get(EMBEDDED) is True)
    if kind == "array":
        return _list_form(schema, nullable)
    if kind == "string":
        return Form(_TEXTS.get(schema.get("format") or "", "string"), nullable)
    return Form(_SCALARS[kind], nullable) if kind in _SCALARS else None


def _object_form(schema: Schema, nullable: bool, *, whole: bool) -> Form | None:
    rest = schema.get("additionalProperties")
    if isinstance(rest, dict):
        element = form_of(rest)
        return element and Form("map", nullable, element=element)
    properties = {**(schema.get("properties") or {}), **(_NAMES if whole else {})}
    if not properties and not schema.get(PRESERVE):
        return Form("object", nullable)
    fields = {}
    for name, sub in properties.items():
        spelt, form = escaped(name), form_of(sub)
        if spelt is not None and form is not None:
            fields[name] = (spelt, form)
    return Form("object", nullable, fields)


def _list_form(schema: Schema, nullable: bool) -> Form | None:
    items: Schema = schema.get("items") or {}
    element = form_of(items)
    if element is None:
        return None
    kind = _LIST_KINDS.get(schema.get("x-kubernetes-list-type") or "", "list")
    properties = items.get("properties") or {}
    names = schema.get("x-kubernetes-list-map-keys") or ()
    keys = tuple((name, properties.get(name, {}).get("default")) for name in names)
    return Form(kind, nullable, element=element, keys=keys if kind == "keyed" else ())


def cel_type(form: Form) -> str:
    """Return the name of a form's type in CEL.

    Objects are maps to the runtime; `checking` knows their fields. A number may be compared with
    an integer, which only an undeclared type allows here.
    """
    if form.kind in MOMENTS:
        return MOMENTS[form.kind]
    if form.kind in ("string", "bytes", "int", "bool"):
        return form.kind
    if form.kind == "object":
        return "map(string, dyn)"
    if form.element is None:
        return "dyn"
    inner = "dyn" if form.element.nullable else cel_type(form.element)
    return f"map(string, {inner})" if form.kind == "map" else f"list({inner})"
