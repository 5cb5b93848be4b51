"""The columns of tables: a column with the path or function of its cell; ages, selectors, lists.

The columns and forms of all kinds are those of kubernetes v1.36
pkg/printers/internalversion/printers.go and apimachinery pkg/util/duration.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moorage.base.clock import NS_PER_SECOND, parse_rfc3339
from moorage.kinds.fields import value_at
from moorage.kinds.kind import Column, Obj
from moorage.kinds.tree import Json, child, condition, items, objects, text

NONE = "<none>"
UNKNOWN = "<unknown>"
UNSET = "<unset>"

# Up to this number texts of a list are shown; more are counted.
_SHOWN_MAX = 3
_MINUTE = 60
_HOUR = 60 * _MINUTE
_DAY = 24 * _HOUR
_YEAR = 365 * _DAY


def human_duration(seconds: int) -> str:
    """Return a duration in the form of kubectl: ``90s``, ``5m30s``, ``3h``, ``2d4h``, ``1y20d``.

    Notes
    -----
    kubernetes v1.36 apimachinery pkg/util/duration, HumanDuration: the smaller unit is shown only
    while the larger one is small. Up to two seconds in the future count as clock skew.
    """
    if seconds < -1:
        return "<invalid>"
    if seconds < 2 * _MINUTE:
        return f"{max(seconds, 0)}s"
    if seconds < 10 * _MINUTE:
        return _two(seconds // _MINUTE, "m", seconds % _MINUTE, "s")
    if seconds < 3 * _HOUR:
        return f"{seconds // _MINUTE}m"
    if seconds < 8 * _HOUR:
        return _two(seconds // _HOUR, "h", seconds % _HOUR // _MINUTE, "m")
    if seconds < 2 * _DAY:
        return f"{seconds // _HOUR}h"
    if seconds < 8 * _DAY:
        return _two(seconds // _DAY, "d", seconds % _DAY // _HOUR, "h")
    if seconds < 2 * _YEAR:
        return f"{seconds // _DAY}d"
    if seconds < 8 * _YEAR:
        return _two(seconds // _YEAR, "y", seconds % _YEAR // _DAY, "d")
    return f"{seconds // _YEAR}y"


def _two(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"


def since(stamp: str, now_ns: int) -> str:
    """Age of a timestamp, ``<unknown>`` when there is none or it cannot be read."""
    if not stamp:
        return UNKNOWN
    try:
        elapsed_ns = now_ns - parse_rfc3339(stamp)
    except ValueError:
        return UNKNOWN
    return human_duration(truncated_seconds(elapsed_ns))


def truncated_seconds(elapsed_ns: int) -> int:
    """Whole seconds, rounded towards zero."""
    seconds = abs(elapsed_ns) // NS_PER_SECOND
    return seconds if elapsed_ns >= 0 else -seconds


def age(obj: Json, now_ns: int) -> str:
    """Age of an object."""
    return since(text(obj, "metadata", "creationTimestamp"), now_ns)


def name_of(obj: Json) -> str:
    """Name of an object."""
    return text(obj, "metadata", "name")


def format_labels(labels: Json) -> str:
    """Return a map of labels as a selector: ``a=b,c=d``."""
    return ",".join(f"{key}={labels[key]}" for key in sorted(labels)) or NONE


def format_selector(selector: Json) -> str:
    """Return a label selector as text: ``a=b,c in (d,e),!f``, parts sorted by key."""
    parts = [(key, f"{key}={value}") for key, value in child(selector, "matchLabels").items()]
    for entry in objects(selector, "matchExpressions"):
        key = text(entry, "key")
        values = ",".join(sorted(str(value) for value in items(entry, "values")))
        shown = {
            "In": f"{key} in ({values})",
            "NotIn": f"{key} notin ({values})",
            "Exists": key,
            "DoesNotExist": f"!{key}",
        }.get(text(entry, "operator"), key)
        parts.append((key, shown))
    return ",".join(shown for _, shown in sorted(parts)) or NONE


Source = str | Callable[[Obj], Any]
"""Path of a value, or function of an object."""


def column(name: str, source: Source, description: str, *, empty: str = "") -> Column:
    """Return a column of texts; ``empty`` stands for an empty text."""
    read = _reader(source)
    return Column(name, "string", "", description, 0, lambda obj, _: str(read(obj) or "") or empty)


def wide(name: str, source: Source, description: str, *, empty: str = "") -> Column:
    """Return a column of texts that only ``kubectl get -o wide`` shows."""
    shown = column(name, source, description, empty=empty)
    return Column(name, "string", "", description, 1, shown.cell)


def count(name: str, source: Source, description: str, *, type_: str = "integer") -> Column:
    """Return a column of integers; upstream declares some of them with another type."""
    read = _reader(source)
    return Column(name, type_, "", description, 0, lambda obj, _: read(obj) or 0)


def flag(name: str, source: Source, description: str, *, type_: str = "boolean") -> Column:
    """Return a column of booleans; upstream declares some of them with another type."""
    read = _reader(source)
    return Column(name, type_, "", description, 0, lambda obj, _: read(obj) is True)


def timed(name: str, cell: Callable[[Obj, int], Any], description: str) -> Column:
    """Return a column whose cells depend on the time."""
    return Column(name, "string", "", description, 0, cell)


def _reader(source: Source) -> Callable[[Obj], Any]:
    if not isinstance(source, str):
        return source
    path = tuple(source.split("."))
    return lambda obj: value_at(obj, path)


def is_true(obj: Obj, kind: str) -> bool:
    """Whether an object has a condition of this type that is true."""
    found = condition(obj, kind)
    return found is not None and found.get("status") == "True"


def duration_between(start: str, end: str, now_ns: int) -> str:
    """Return the time from start to end, or to now; empty text before the start."""
    if not start:
        return ""
    end_ns = parse_rfc3339(end) if end else now_ns
    return human_duration(truncated_seconds(end_ns - parse_rfc3339(start)))


def reference(obj: Json, *path: str) -> str:
    """Return a reference as ``Kind/name``."""
    return f"{text(obj, *path, 'kind')}/{text(obj, *path, 'name')}"


def first_few(values: list[str]) -> str:
    """Return the first few texts, and the number of the others."""
    shown, left = ",".join(values[:_SHOWN_MAX]), len(values) - _SHOWN_MAX
    return f"{shown} + {left} more..." if left > 0 else shown


def _listed(key: str) -> Callable[[Obj], str]:
    return lambda obj: ",".join(text(entry, key) for entry in template_containers(obj))


def template_containers(obj: Json) -> list[Json]:
    """Return the containers of a workload's template; a cron job has its template deeper."""
    spec = child(obj, "spec", "jobTemplate", "spec") or child(obj, "spec")
    return objects(spec, "template", "spec", "containers")


NAME = Column(
    "Name",
    "string",
    "name",
    "Name of the object, unique within its namespace",
    cell=lambda obj, _: name_of(obj),
)
AGE = Column("Age", "string", "", "Time since the object was created", cell=age)
CREATED_AT = Column(
    "Created At",
    "date",
    "",
    "When the object was created",
    cell=lambda obj, _: text(obj, "metadata", "creationTimestamp"),
)
CONTAINERS = wide("Containers", _listed("name"), "Names of the template's containers")
IMAGES = wide("Images", _listed("image"), "Images of the template's containers")
SELECTOR = wide(
    "Selector",
    lambda obj: format_selector(child(obj, "spec", "selector")),
    "Label selector of the pods that belong",
)
