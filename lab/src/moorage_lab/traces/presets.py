"""Maps of columns that are known by name.

``openb``: the lists of nodes and pods of a production GPU cluster that Alibaba published
(cluster-trace-gpu-v2023). GPUs are told by annotations of pods, and by resources and a label of
nodes. The thousandths of GPUs are requested as a resource too, so that no node gets more than it
has; which device a pod shares is a matter of plugins.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from moorage.base.errors import UsageError
from moorage_lab.traces.columns import Coming
from moorage_lab.traces.scenario import Column

GPU_COUNT: Final = "alibabacloud.com/gpu-count"
GPU_MILLI: Final = "alibabacloud.com/gpu-milli"
GPU_MODEL: Final = "alibabacloud.com/gpu-card-model"
_DEVICE_MILLI: Final = 1000
_OPENB_PODS_MOST: Final = "1001"

NODES: Final[dict[str, dict[str, str | Column]]] = {
    "openb": {
        "name": "sn",
        "cpu": Column("cpu_milli", "m"),
        "memory": Column("memory_mib", "Mi"),
        f"resources.{GPU_COUNT}": "gpu",
        f"labels.{GPU_MODEL}": "model",
    }
}
PODS: Final[dict[str, dict[str, str | Column]]] = {
    "openb": {
        "name": "name",
        "cpu": Column("cpu_milli", "m"),
        "memory": Column("memory_mib", "Mi"),
        f"annotations.{GPU_COUNT}": "num_gpu",
        f"annotations.{GPU_MILLI}": "gpu_milli",
        f"annotations.{GPU_MODEL}": "gpu_spec",
        "arrival": "creation_time",
        "start": "scheduled_time",
        "end": "deletion_time",
    }
}
OPTIONAL: Final[Mapping[str, tuple[str, ...]]] = {
    "openb": ("gpu_spec", "creation_time", "scheduled_time", "deletion_time", "model")
}
"""Columns that a file may lack."""


def preset(known: Mapping[str, dict[str, str | Column]], name: str) -> dict[str, str | Column]:
    """Return the map of a preset; an empty one for "".

    Raises
    ------
    UsageError
        There is no such preset.
    """
    if not name:
        return {}
    found = known.get(name)
    if found is None:
        raise UsageError(f"there is no preset {name!r}; there is {', '.join(sorted(known))}")
    return found


def finished_node(name: str, manifest: dict[str, Any]) -> dict[str, Any]:
    """Return a node of a preset with what follows from its columns."""
    if name == "openb":
        for amounts in (manifest["status"]["capacity"], manifest["status"]["allocatable"]):
            amounts["pods"] = _OPENB_PODS_MOST
            amounts[GPU_MILLI] = str(int(amounts.get(GPU_COUNT, "0")) * _DEVICE_MILLI)
    return manifest


def finished_pod(name: str, pod: Coming) -> Coming:
    """Return a pod of a preset with what follows from its columns.

    Raises
    ------
    ValueError
        The GPUs of a pod are no whole numbers, or there is nothing of them.
    """
    if name != "openb":
        return pod
    annotations = pod.manifest["metadata"].get("annotations", {})
    try:
        count = int(annotations.get(GPU_COUNT, "0"))
        milli = int(annotations.get(GPU_MILLI, "0"))
    except ValueError:
        raise ValueError("num_gpu and gpu_milli have to be whole numbers") from None
    if count <= 0:
        for key in (GPU_COUNT, GPU_MILLI, GPU_MODEL):
            annotations.pop(key, None)
    else:
        milli = min(_DEVICE_MILLI, milli)
        if milli < 1:
            raise ValueError(f"num_gpu is {count}, so gpu_milli has to be above 0")
        annotations[GPU_MILLI] = str(milli)
        resources = pod.manifest["spec"]["containers"][0].setdefault("resources", {})
        for part in ("requests", "limits"):
            resources.setdefault(part, {})[GPU_MILLI] = str(count * milli)
    return pod
