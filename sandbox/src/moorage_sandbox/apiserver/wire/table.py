"""Table output, which ``kubectl get`` requests and prints.

Place in the flow: lists, gets and watches whose Accept header asks for ``as=Table`` are rendered
here from the stored objects, with the columns of their kind.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from moorage.kinds.kind import Column, Obj
from moorage.kinds.served import ServedKind

_FINISHED = {
    "Succeeded": "The pod has completed successfully.",
    "Failed": "The pod failed.",
}


META_V1 = "meta.k8s.io/v1"


def to_table(
    kind: ServedKind,
    objs: Iterable[Obj],
    now_ns: int,
    include_object: str = "Metadata",
    api_version: str = META_V1,
) -> dict[str, Any]:
    """Render objects as a Table.

    Parameters
    ----------
    kind
        Kind of all the objects.
    objs
        Objects, one row each.
    now_ns
        Wall-clock time from which ages are computed.
    include_object
        Part of the object in each row: ``None``, ``Metadata`` or ``Object``.
    api_version
        ``meta.k8s.io/v1`` or ``meta.k8s.io/v1beta1``.

    Returns
    -------
    dict
        The Table; its ``metadata`` is empty, because only the caller knows the list's
        resourceVersion.

    Raises
    ------
    ValueError
        `include_object` is not one of these three.
    """
    if include_object not in ("None", "Metadata", "Object"):
        raise ValueError(f'unrecognized includeObject value: "{include_object}"')
    return {
        "kind": "Table",
        "apiVersion": api_version,
        "metadata": {},
        "columnDefinitions": [_definition(column) for column in kind.columns],
        "rows": [table_row(kind, obj, now_ns, include_object, api_version) for obj in objs],
    }


def table_row(
    kind: ServedKind, obj: Obj, now_ns: int, include_object: str, api_version: str
) -> dict[str, Any]:
    """Render one object as a row of a Table."""
    row: dict[str, Any] = {"cells": kind.row(obj, now_ns)}
    phase = obj.get("status", {}).get("phase") if kind.resource.kind == "Pod" else None
    if phase in _FINISHED:
        row["conditions"] = [
            {
                "type": "Completed",
                "status": "True",
                "reason": phase,
                "message": _FINISHED[phase],
            }
        ]
    if include_object == "Metadata":
        row["object"] = partial_metadata(obj, api_version)
    elif include_object == "Object":
        row["object"] = obj
    return row


def partial_metadata(obj: Obj, api_version: str = META_V1) -> dict[str, Any]:
    """Render only the metadata of an object, as ``PartialObjectMetadata``."""
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": api_version,
        "metadata": obj.get("metadata", {}),
    }


def _definition(column: Column) -> dict[str, Any]:
    return {
        "name": column.name,
        "type": column.type,
        "format": column.format,
        "description": column.description,
        "priority": column.priority,
    }
