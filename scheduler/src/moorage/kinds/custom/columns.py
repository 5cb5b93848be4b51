"""Table output of custom resources, from ``additionalPrinterColumns``.

Place in the flow: `kinds` builds the columns once for each version of a definition. Mirrors
kubernetes v1.36 apiextensions-apiserver pkg/registry/customresource/tableconvertor.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from moorage.base.clock import NS_PER_SECOND, parse_rfc3339
from moorage.kinds.cells import NAME, UNKNOWN, human_duration
from moorage.kinds.custom.json_path import find
from moorage.kinds.kind import Column, Obj

_AGE: Mapping[str, Any] = {
    "name": "Age",
    "type": "date",
    "jsonPath": ".metadata.creationTimestamp",
    "description": "Time since the object was created",
}


def table_columns(
    version: Mapping[str, Any],
) -> tuple[tuple[Column, ...], Callable[[Obj, int], list[Any]]]:
    """Return the columns of one version of a definition, and the function that fills them."""
    defined: Sequence[Mapping[str, Any]] = version.get("additionalPrinterColumns") or (_AGE,)
    columns = [
        Column(
            each["name"],
            each["type"],
            each.get("format") or "",
            each.get("description") or "",
            each.get("priority") or 0,
        )
        for each in defined
    ]

    def cells(obj: Obj, now_ns: int) -> list[Any]:
        row = [obj.get("metadata", {}).get("name", "")]
        for each in defined:
            found = find(each["jsonPath"], obj)
            row.append(_cell(each["type"], found[0], now_ns) if found else None)
        return row

    return (NAME, *columns), cells


def _cell(kind: str, value: Any, now_ns: int) -> Any:
    if kind == "string":
        return _text(value)
    if kind == "date":
        return _age(value, now_ns)
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if kind == "integer":
        return int(value) if number else None
    if kind == "number":
        return float(value) if number else None
    return value if kind == "boolean" and isinstance(value, bool) else None


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _age(value: Any, now_ns: int) -> str:
    if not isinstance(value, str):
        return "<invalid>"
    if not value:
        return UNKNOWN
    try:
        then_ns = parse_rfc3339(value)
    except ValueError:
        return "<invalid>"
    return human_duration((now_ns - then_ns) // NS_PER_SECOND)
