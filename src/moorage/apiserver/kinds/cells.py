"""Parts of table cells: ages, selectors, container lists.

Place in the flow: used by `pod_columns`, `core_columns` and `workload_columns`. The forms are
those of kubernetes v1.36 pkg/printers and apimachinery pkg/util/duration.
"""

from __future__ import annotations

from typing import Any

from moorage.apiserver.kind import Column
from moorage.apiserver.kinds.tree import Json, child, items, objects, text
from moorage.base.clock import NS_PER_SECOND, parse_rfc3339

NONE = "<none>"
UNKNOWN = "<unknown>"
UNSET = "<unset>"

NAME = Column("Name", "string", "name", "Name of the object, unique within its namespace")
AGE = Column("Age", "string", "", "Time since the object was created")
CONTAINERS = Column("Containers", "string", "", "Names of the template's containers", 1)
IMAGES = Column("Images", "string", "", "Images of the template's containers", 1)
SELECTOR = Column("Selector", "string", "", "Label selector of the pods that belong", 1)

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


def template_cells(obj: Json) -> list[Any]:
    """Names and images of the containers of a workload's template."""
    found = objects(obj, "spec", "template", "spec", "containers")
    names = ",".join(text(each, "name") for each in found)
    images = ",".join(text(each, "image") for each in found)
    return [names, images]
