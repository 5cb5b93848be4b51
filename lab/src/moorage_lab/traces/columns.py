"""Turns the rows of a trace into manifests of nodes and pods, by a map of columns.

A map says which column holds a field: ``{cpu: cpu_milli}``, with the unit that the amounts lack:
``{cpu: {column: cpu_milli, unit: m}}``. `presets` has maps that are known by name.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from moorage.api.names import dns_subdomain_faults
from moorage.api.quantity import parse_quantity
from moorage.base.errors import UsageError
from moorage_lab.traces.scenario import Column

_SECONDS: Final = {"": 1.0, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_TIMES: Final = ("arrival", "start", "end", "runTime")
_PREFIXES: Final = ("resources.", "labels.", "annotations.")
NODE_FIELDS: Final = ("name", "cpu", "memory", "pods")
POD_FIELDS: Final = (
    "name", "namespace", "cpu", "memory", "priority", "priorityClassName", *_TIMES
)  # fmt: skip


class Coming(msgspec.Struct, frozen=True):
    """A pod of a source.

    Parameters
    ----------
    manifest
        As a client would send it.
    at
        Seconds at which it comes; None where the source does not say.
    runs
        Seconds that it runs; None where the source does not say.
    """

    manifest: dict[str, Any]
    at: float | None = None
    runs: float | None = None


class ColumnMap:
    """The columns of a trace by field.

    Parameters
    ----------
    columns
        By field; a text is a column without unit.
    fields
        The fields that there are, besides ``resources.``, ``labels.`` and ``annotations.``.
    path
        Where the map stands in the scenario, for messages.

    Raises
    ------
    UsageError
        A field does not exist, a unit has no meaning, or no column holds the name.
    """

    def __init__(
        self, columns: Mapping[str, str | Column], fields: Iterable[str], path: str
    ) -> None:
        self._columns = {
            field: Column(each) if isinstance(each, str) else each
            for field, each in columns.items()
        }
        known = tuple(fields)
        for field, column in self._columns.items():
            more = field.startswith((*_PREFIXES, "nodeSelector."))
            if field not in known and not more:
                raise UsageError(
                    f"{path}.columns: unknown field {field!r}; there are {', '.join(known)}, "
                    "resources.NAME, labels.KEY, annotations.KEY, nodeSelector.KEY"
                )
            if field in _TIMES and column.unit not in _SECONDS:
                raise UsageError(f"{path}.columns.{field}: unit {column.unit!r}: write ms, s, m, h")
        if "name" not in self._columns:
            raise UsageError(f"{path}.columns: no column holds the name")

    def missing(self, heading: Iterable[str]) -> list[str]:
        """Return the columns that a heading lacks."""
        there = set(heading)
        return sorted({each.column for each in self._columns.values()} - there)

    def optional(self, names: Iterable[str], heading: Iterable[str]) -> None:
        """Do without columns that a preset knows and a heading lacks."""
        there, lean = set(heading), set(names)
        self._columns = {
            field: each
            for field, each in self._columns.items()
            if each.column in there or each.column not in lean
        }

    def field_text(self, row: Mapping[str, str], field: str) -> str:
        """Return the text of a field; "" for a field without column or value."""
        column = self._columns.get(field)
        return "" if column is None else row.get(column.column, "").strip()

    def amount(self, row: Mapping[str, str], field: str) -> str:
        """Return the quantity of a field, with its unit; "" for none.

        Raises
        ------
        ValueError
            It is no quantity, or negative.
        """
        text = self.field_text(row, field)
        if not text:
            return ""
        column = self._columns[field]
        quantity = f"{text}{column.unit}"
        try:
            parsed = parse_quantity(quantity)
        except ValueError:
            raise ValueError(f"column {column.column}: {quantity!r} is no quantity") from None
        if parsed < 0:
            raise ValueError(f"column {column.column}: {quantity!r} is negative")
        return quantity

    def seconds(self, row: Mapping[str, str], field: str) -> float | None:
        """Return the time of a field in seconds; None for none.

        Raises
        ------
        ValueError
            It is no number.
        """
        text = self.field_text(row, field)
        if not text:
            return None
        column = self._columns[field]
        try:
            number = float(text)
        except ValueError:
            number = float("nan")
        if not abs(number) < 1e15:
            raise ValueError(f"column {column.column}: {text!r} is no number")
        return number * _SECONDS[column.unit]

    def below(self, prefix: str) -> list[tuple[str, str]]:
        """Return the fields below a prefix, each with its key."""
        return [
            (field, field.removeprefix(prefix))
            for field in self._columns
            if field.startswith(prefix)
        ]


def node_of(row: Mapping[str, str], columns: ColumnMap) -> dict[str, Any]:
    """Return the manifest of a node.

    Raises
    ------
    ValueError
        The row is bad; the message says in which column.
    """
    name = _name(row, columns)
    amounts = {key: columns.amount(row, key) for key in ("cpu", "memory", "pods")}
    amounts |= {key: columns.amount(row, field) for field, key in columns.below("resources.")}
    amounts["pods"] = amounts["pods"] or "110"
    there = {key: each for key, each in amounts.items() if each}
    labels = {"kubernetes.io/hostname": name, **_texts(row, columns, "labels.")}
    metadata = {"name": name, "labels": labels}
    annotations = _texts(row, columns, "annotations.")
    if annotations:
        metadata["annotations"] = annotations
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": metadata,
        "status": {"capacity": there, "allocatable": dict(there)},
    }


def pod_of(row: Mapping[str, str], columns: ColumnMap, template: Mapping[str, Any]) -> Coming:
    """Return the pod of a row.

    Parameters
    ----------
    template
        A manifest with what rows leave out.

    Raises
    ------
    ValueError
        The row is bad; the message says in which column.
    """
    manifest = bare_pod(template, _name(row, columns))
    metadata, spec = manifest["metadata"], manifest["spec"]
    if columns.field_text(row, "namespace"):
        metadata["namespace"] = columns.field_text(row, "namespace")
    for prefix in ("labels", "annotations"):
        found = _texts(row, columns, f"{prefix}.")
        if found:
            metadata[prefix] = {**metadata.get(prefix, {}), **found}
    selector = _texts(row, columns, "nodeSelector.")
    if selector:
        spec["nodeSelector"] = {**spec.get("nodeSelector", {}), **selector}
    _put_requests(row, columns, spec)
    if columns.field_text(row, "priorityClassName"):
        spec["priorityClassName"] = columns.field_text(row, "priorityClassName")
    priority = columns.seconds(row, "priority")
    if priority is not None:
        spec["priority"] = int(priority)
    return Coming(manifest, *_times(row, columns))


def _times(row: Mapping[str, str], columns: ColumnMap) -> tuple[float | None, float | None]:
    """Return when a pod comes and how long it runs, from the columns that say so."""
    at, start, end = (columns.seconds(row, each) for each in ("arrival", "start", "end"))
    runs = columns.seconds(row, "runTime")
    begin = start if start is not None else at
    if runs is None and end is not None and begin is not None:
        runs = end - begin
    if runs is not None and runs < 0:
        raise ValueError(f"it ends {-runs:g} s before it begins")
    return at, runs


def bare_pod(template: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return a copy of a template with a name, and with a container to hold requests."""
    manifest = copy.deepcopy(dict(template))
    manifest["apiVersion"], manifest["kind"] = "v1", "Pod"
    manifest.setdefault("metadata", {})["name"] = name
    spec = manifest.setdefault("spec", {})
    containers = spec.setdefault("containers", [])
    if not containers:
        containers.append({"name": "main", "image": "app"})
    return manifest


def _put_requests(row: Mapping[str, str], columns: ColumnMap, spec: dict[str, Any]) -> None:
    fields = [("cpu", "cpu"), ("memory", "memory"), *columns.below("resources.")]
    amounts = {key: columns.amount(row, field) for field, key in fields}
    there = {key: each for key, each in amounts.items() if each}
    if there:
        resources = spec["containers"][0].setdefault("resources", {})
        resources["requests"] = {**resources.get("requests", {}), **there}
        extended = {key: each for key, each in there.items() if "/" in key}
        if extended:  # an API server wants limits for them
            resources["limits"] = {**resources.get("limits", {}), **extended}


def _texts(row: Mapping[str, str], columns: ColumnMap, prefix: str) -> dict[str, str]:
    found = {key: columns.field_text(row, field) for field, key in columns.below(prefix)}
    return {key: each for key, each in found.items() if each}


def _name(row: Mapping[str, str], columns: ColumnMap) -> str:
    if "" in row:
        raise ValueError(row[""])
    name = columns.field_text(row, "name")
    if not name or dns_subdomain_faults(name):
        raise ValueError(f"{name!r} is no name of an object" if name else "it has no name")
    return name
