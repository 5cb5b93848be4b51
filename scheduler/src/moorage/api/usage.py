"""Cpu and memory that a fake container uses, as told by annotations of its pod.

The API server serves it as ``metrics.k8s.io``; the node agent ranks pods by it under pressure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from moorage.api.meta import ResourceList
from moorage.api.quantity import parse_quantity
from moorage.api.resources import ResourceType

Measured: TypeAlias = Literal["cpu", "memory"]
"""Resources with reported usage."""

NODE_METRICS: Final = ResourceType(
    "metrics.k8s.io", "v1beta1", "NodeMetrics", "nodes", "", namespaced=False
)
POD_METRICS: Final = ResourceType(
    "metrics.k8s.io", "v1beta1", "PodMetrics", "pods", "", namespaced=True
)
MEASURED: Final[tuple[Measured, ...]] = ("cpu", "memory")
CPU_USAGE: Final = "moorage.dev/cpu-usage"
MEMORY_USAGE: Final = "moorage.dev/memory-usage"

_ANNOTATIONS: Final[Mapping[Measured, str]] = {"cpu": CPU_USAGE, "memory": MEMORY_USAGE}


def container_usage(
    annotations: Mapping[str, str], container: str, requests: ResourceList, resource: Measured
) -> int:
    """Return what a running container uses of a resource.

    Parameters
    ----------
    annotations
        Annotations of the pod. ``moorage.dev/cpu-usage.NAME`` is about one container; without
        ``.NAME`` the annotation is about each container.
    container
        Name of the container.
    requests
        Requests of the container; without a readable annotation the container uses its requests.

    Returns
    -------
    int
        Nano units of cores or bytes, at least 0.
    """
    annotation = _ANNOTATIONS[resource]
    found = annotations.get(f"{annotation}.{container}", annotations.get(annotation))
    for amount in (found, requests.get(resource)):
        if amount is None:
            continue
        try:
            return max(0, parse_quantity(amount))
        except ValueError:
            continue
    return 0
