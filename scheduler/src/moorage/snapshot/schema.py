"""The one place that names a fixed column: its dtype, unit and fill.

Columns made on demand (one for each resource, label key, image or counted selector) follow the
entries of their family.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

ColumnKey = str | tuple[str, str] | tuple[str, int]


class ColumnSpec(msgspec.Struct, frozen=True):
    """The content of a column.

    Parameters
    ----------
    dtype
        NumPy dtype of one value.
    unit
        Unit of one value, for people.
    fill
        Value of a row without a value of its own.
    """

    dtype: type[Any]
    unit: str
    fill: int | float | bool


# Ids are int64, the type of an index: gathering with a smaller one costs NumPy twice the time.
FIXED: dict[str, ColumnSpec] = {
    "pod_count": ColumnSpec(np.int64, "pods on the node", 0),
    "allowed_pods": ColumnSpec(np.int64, "pods", 0),
    "nonzero_cpu": ColumnSpec(np.int64, "millicores, defaults applied", 0),
    "nonzero_memory": ColumnSpec(np.int64, "bytes, defaults applied", 0),
    "unschedulable": ColumnSpec(np.bool_, "spec.unschedulable", False),
    "taints": ColumnSpec(np.int64, "set id", 0),
    "features": ColumnSpec(np.int64, "set id", 0),
    "ports": ColumnSpec(np.int64, "set id", 0),
}

FAMILIES: dict[str, ColumnSpec] = {
    "allocatable": ColumnSpec(np.int64, "millicores, bytes or units", 0),
    "allocatable_float": ColumnSpec(np.float64, "the same, for division", 0.0),
    "requested": ColumnSpec(np.int64, "millicores, bytes or units", 0),
    "label": ColumnSpec(np.int64, "value id, -1 = label absent", -1),
    "image": ColumnSpec(np.bool_, "image present", False),
    "count": ColumnSpec(np.int64, "pods of one selector", 0),
}


def spec_of(key: ColumnKey) -> ColumnSpec:
    """Return the specification of a fixed column or of a column's family."""
    return FIXED[key] if isinstance(key, str) else FAMILIES[key[0]]
