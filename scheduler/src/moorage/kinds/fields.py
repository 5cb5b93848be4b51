"""The vocabulary in which a kind states its fields: rules, changes, defaults, field selectors.

Place in the flow: each module of a kind builds its rows from these functions. A path is dotted and
read from the object that the statement is about. Code in a kind is left for what no entry can say.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

from moorage.api.names import dns_subdomain_faults
from moorage.kinds.kind import (
    FieldError,
    Obj,
    duplicate,
    invalid,
    not_supported,
    required,
    too_long,
    too_many,
)
from moorage.kinds.metadata import immutable
from moorage.kinds.tree import Json, text
from moorage.kinds.values.name_rules import port_name, port_number
from moorage.kinds.values.quantities import NOT_NEGATIVE

Rule = Callable[[Any, str], list[FieldError]]
"""The errors of a value, which is None where the object lacks it; the text is the value's path."""
PROTOCOLS = ("SCTP", "TCP", "UDP")
Change = Callable[[Obj, Obj], list[FieldError]]
"""The errors of a change: the new object, the stored object."""
Default = Callable[[Json], None]
"""Fills in defaults, in place."""
Empty = Literal["refused", "accepted", "required", "absent"]
"""The meaning of an empty text or a missing value: as any other text, accepted, a missing required
value; or ``absent``: accepted only where it is missing."""


def rules(*entries: Rule | tuple[str, Rule]) -> Rule:
    """Return the rule of an object: the entries' errors, in order.

    Parameters
    ----------
    entries
        A rule of the object itself, or paths with spaces between them and the rule of each value.
    """
    steps: list[tuple[tuple[str, ...], str, Rule]] = []
    for entry in entries:
        if isinstance(entry, tuple):
            steps += [(tuple(path.split(".")), path, entry[1]) for path in entry[0].split()]
        else:
            steps.append(((), "", entry))

    def check(obj: Any, where: str) -> list[FieldError]:
        obj = {} if obj is None else obj
        prefix = f"{where}." if where else ""
        errors: list[FieldError] = []
        for path, shown, rule in steps:
            errors += rule(value_at(obj, path), prefix + shown) if path else rule(obj, where)
        return errors

    return check


def value_at(obj: Any, path: Iterable[str]) -> Any:
    """Return the value at a path, None where there is none."""
    for key in path:
        if obj is None:
            return None
        obj = obj.get(key)
    return obj


def if_present(rule: Rule) -> Rule:
    """Return a rule that accepts an absent value."""
    return lambda value, where: [] if value is None else rule(value, where)


def each(rule: Rule, *, unique: str = "", key: Rule | None = None, most: int = 0) -> Rule:
    """Return the rule of a list of objects.

    Parameters
    ----------
    rule
        Rule of one object.
    unique
        Field whose values must differ; empty for none.
    key
        Rule of that field.
    most
        Greatest number of objects, 0 for any number; of more, only the number is an error.
    """

    def check(listed: Any, where: str) -> list[FieldError]:
        errors: list[FieldError] = []
        names: set[str] = set()
        if most and len(listed or ()) > most:
            return [too_many(where, len(listed), most)]
        for index, entry in enumerate([each for each in listed or () if isinstance(each, dict)]):
            place = f"{where}[{index}]"
            name = text(entry, unique) if unique else ""
            errors += key(name, f"{place}.{unique}") if key else ()
            if name and name in names:
                errors.append(duplicate(f"{place}.{unique}", name))
            names.add(name)
            errors += rule(entry, place)
        return errors

    return check


def duplicates(values: Iterable[Any], field: Callable[[int], str]) -> list[FieldError]:
    """Return an error for each value that came before.

    Parameters
    ----------
    values
        Values that can be members of a set.
    field
        Returns the path of a value by its place.
    """
    errors, seen = [], set[Any]()
    for place, value in enumerate(values):
        if value in seen:
            errors.append(duplicate(field(place), value))
        seen.add(value)
    return errors


def each_value(rule: Rule) -> Rule:
    """Return the rule of a map, by the rule of its values."""

    def check(values: Any, where: str) -> list[FieldError]:
        errors: list[FieldError] = []
        for name, value in (values or {}).items():
            errors += rule(value, f"{where}[{name}]")
        return errors

    return check


def needed(detail: str = "") -> Rule:
    """Return the rule of a value that must not be empty."""
    return lambda value, where: [] if value else [required(where, detail)]


def one_of(*allowed: str, empty: Empty = "refused") -> Rule:
    """Return the rule of a text out of a closed list."""

    def check(value: Any, where: str) -> list[FieldError]:
        if value in allowed or (value is None and empty == "absent"):
            return []
        if not value and empty in ("accepted", "required"):
            return [] if empty == "accepted" else [required(where)]
        return [not_supported(where, value or "", allowed)]

    return check


def each_one_of(*allowed: str, by_index: bool = False) -> Rule:
    """Return the rule of a list of texts out of a closed list; ``by_index`` names the place."""

    def check(value: Any, where: str) -> list[FieldError]:
        return [
            not_supported(f"{where}[{index}]" if by_index else where, entry, allowed)
            for index, entry in enumerate(value or ())
            if entry not in allowed
        ]

    return check


def name_rule(
    *faults: Callable[[Any], list[str]], empty: Empty = "accepted", detail: str = ""
) -> Rule:
    """Return the rule of a name; ``refused`` puts an empty name to the name rule as well."""

    def check(value: Any, where: str) -> list[FieldError]:
        if not value and empty != "refused":
            return [required(where, detail)] if empty == "required" else []
        name = value or ""
        return [invalid(where, name, fault) for rule in faults for fault in rule(name)]

    return check


def within(least: int, most: int | None = None, detail: str = "") -> Rule:
    """Return the rule of an integer between two bounds; an absent integer counts as 0."""
    text = detail or f"must be greater than or equal to {least}"

    def check(value: Any, where: str) -> list[FieldError]:
        found = value or 0
        good = found >= least and (most is None or found <= most)
        return [] if good else [invalid(where, found, text)]

    return check


def bytes_within(most: int) -> Rule:
    """Return the rule of a text of at most so many bytes; an absent text has none."""
    return lambda value, where: (
        [too_long(where, most)] if len((value or "").encode()) > most else []
    )


port_of_service = within(1, 65_535, "must be between 1 and 65535, inclusive")
"""Rule of the number of a port that has no name, such as a service's own."""


def port(value: Any, where: str) -> list[FieldError]:
    """Check the number of a port, or its name."""
    if isinstance(value, str):
        return [invalid(where, value, fault) for fault in port_name(value)]
    if value is None:
        return []
    return [invalid(where, value, fault) for fault in port_number(value)]


_DRIVER_LENGTH_MAX = 63


def driver_name(value: Any, where: str) -> list[FieldError]:
    """Check the name of a driver, of volumes or of devices; capital letters are accepted."""
    name = value or ""
    errors = [] if name else [required(where)]
    if len(name) > _DRIVER_LENGTH_MAX:
        errors.append(too_long(where, _DRIVER_LENGTH_MAX))
    return errors + [invalid(where, name, fault) for fault in dns_subdomain_faults(name.lower())]


_PERCENT = re.compile("[0-9]+%")
_PERCENT_DETAIL = (
    "a valid percent string must be a numeric string followed by an ending '%' "
    "(e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
)


def count_or_percent(value: Any, where: str) -> list[FieldError]:
    """Check a number of pods or a percentage."""
    if value is None:
        return []
    if isinstance(value, int):
        return [invalid(where, value, NOT_NEGATIVE)] if value < 0 else []
    return [] if _PERCENT.fullmatch(value) else [invalid(where, value, _PERCENT_DETAIL)]


def amount(value: Any, where: str) -> list[FieldError]:
    """Check a number of pods or a percentage of them."""
    errors = count_or_percent(value, where)
    if errors or not isinstance(value, str) or int(value[:-1]) <= 100:
        return errors
    return [invalid(where, value, "must not be greater than 100%")]


def unchanging(paths: str, error: Callable[[str, Any], FieldError] = immutable) -> Change:
    """Return the errors of the fields that never change; spaces between the paths."""
    listed = [(path, tuple(path.split("."))) for path in paths.split()]

    def check(new: Obj, old: Obj) -> list[FieldError]:
        return [
            error(path, value_at(new, keys))
            for path, keys in listed
            if value_at(new, keys) != value_at(old, keys)
        ]

    return check


def defaults(
    *steps: Default, unset: Mapping[str, Any] | None = None, empty: Mapping[str, Any] | None = None
) -> Default:
    """Return the function that fills in the defaults of a kind: ``empty``, ``unset``, the steps.

    Parameters
    ----------
    steps
        Functions, for what follows from other fields.
    unset, empty
        Path -> value for an absent value, or for an absent value, empty text or empty list (a
        field without a pointer in Go). ``a.b`` adds a missing ``a``, ``a?.b`` does not, ``a[].b``
        means every object of a list.
    """
    # Values of one object are together, so that a path is followed once.
    groups: dict[tuple[tuple[str, ...], int], Json] = {}
    for kind, found in enumerate((empty or {}, unset or {})):
        for path, value in found.items():
            *holder, key = path.split(".")
            groups.setdefault((tuple(holder), kind), {})[key] = value

    def fill_in(obj: Json) -> None:
        for (path, kind), values in groups.items():
            missing = _MISSING[kind]
            for holder in _holders(obj, path) if path else (obj,):
                for key, value in values.items():
                    if holder.get(key) in missing:
                        mutable = isinstance(value, dict | list)
                        holder[key] = copy.copy(value) if mutable else value
        for step in steps:
            step(obj)

    return fill_in


_MISSING: tuple[tuple[Any, ...], ...] = ((None, "", []), (None,))


def _path(path: str) -> tuple[str, ...]:
    return tuple(path.split("."))


def _holders(obj: Json, path: tuple[str, ...]) -> list[Json]:
    holders = [obj]
    for key in path:
        if key.endswith("[]"):
            listed = [entry for each in holders for entry in each.get(key[:-2]) or ()]
            holders = [entry for entry in listed if isinstance(entry, dict)]
        elif key.endswith("?"):
            holders = [each[key[:-1]] for each in holders if each.get(key[:-1]) is not None]
        else:
            for each in holders:
                if each.get(key) is None:
                    each[key] = {}
            holders = [each[key] for each in holders]
    return holders


def name_fields(obj: Json) -> dict[str, str]:
    """Name and namespace, which field selectors know for every kind."""
    return {
        "metadata.name": text(obj, "metadata", "name"),
        "metadata.namespace": text(obj, "metadata", "namespace"),
    }


def selectable(
    *paths: str, more: Mapping[str, Callable[[Obj], str]] | None = None
) -> Callable[[Obj], dict[str, str]]:
    """Return the fields that field selectors know: name, namespace, and the texts at these paths.

    Parameters
    ----------
    paths
        Labels of fields that are paths as well.
    more
        Label -> function, for the fields that are no text.
    """
    listed, others = [(path, _path(path)) for path in paths], dict(more or {})

    def fields(obj: Obj) -> dict[str, str]:
        selectable_fields = name_fields(obj)
        for label, path in listed:
            selectable_fields[label] = text(obj, *path)
        for label, read in others.items():
            selectable_fields[label] = read(obj)
        return selectable_fields

    return fields
