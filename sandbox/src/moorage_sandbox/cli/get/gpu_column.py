"""The column of a table of pods that names the GPUs that GpuShare chose for each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from moorage.config.plugin_args_gpu import GpuShareArgs

_COLUMN: Final = {"name": "GPUs", "type": "string", "priority": 1}
_ANNOTATION: Final = GpuShareArgs().index_annotation


def has_gpus(table: Mapping[str, Any]) -> bool:
    """Whether GPUs were chosen for a pod of a server's table, by the annotation's default name."""
    return any(map(_gpus, table.get("rows") or []))


def with_gpus(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return a server's table of pods with one more column of ``-o wide``: the indexes of GPUs."""
    return {
        **table,
        "columnDefinitions": [*table["columnDefinitions"], _COLUMN],
        "rows": [{**row, "cells": [*row["cells"], _gpus(row)]} for row in table.get("rows") or []],
    }


def _gpus(row: Mapping[str, Any]) -> str:
    metadata = (row.get("object") or {}).get("metadata") or {}
    return str((metadata.get("annotations") or {}).get(_ANNOTATION, ""))
