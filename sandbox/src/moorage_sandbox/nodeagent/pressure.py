"""Node pressure, set by annotations: conditions, refusals and evictions; pure.

A kubelet measures its machine; here the node's annotation ``moorage.dev/memory-pressure: "true"``
sets the pressure. ``node_bodies`` writes the conditions, ``admission`` refuses pods, ``pod_life``
evicts them. Taints come from the node lifecycle controller, as upstream.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from moorage.api.node import Node, Taint
from moorage.api.pod import Container, Pod
from moorage.api.quantity import from_nano, parse_quantity
from moorage.api.requests import qos_class
from moorage.api.taints import NO_SCHEDULE, tolerated
from moorage.api.usage import container_usage

EVICT_SECONDS: Final = 10
"""Time between two evictions of a node under pressure; a kubelet's monitoring interval."""

# kubernetes v1.36 pkg/apis/scheduling/types.go, SystemCriticalPriority.
_CRITICAL_PRIORITY: Final = 2_000_000_000
_BEST_EFFORT: Final = "BestEffort"


class Pressure(msgspec.Struct, frozen=True):
    """A kind of pressure.

    Parameters
    ----------
    condition
        Type of the node's condition.
    annotation
        The annotation that puts a node under this pressure.
    resource
        A kubelet's name of the scarce resource.
    healthy, pressed
        Reason and message of the condition without and with the pressure
        (kubernetes v1.36 pkg/kubelet/nodestatus/setters.go).
    """

    condition: str
    annotation: str
    resource: str
    healthy: tuple[str, str]
    pressed: tuple[str, str]


MEMORY: Final = Pressure(
    "MemoryPressure",
    "moorage.dev/memory-pressure",
    "memory",
    ("KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("KubeletHasInsufficientMemory", "kubelet has insufficient memory available"),
)
PRESSURES: Final = (
    MEMORY,
    Pressure(
        "DiskPressure",
        "moorage.dev/disk-pressure",
        "ephemeral-storage",
        ("KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        ("KubeletHasDiskPressure", "kubelet has disk pressure"),
    ),
    Pressure(
        "PIDPressure",
        "moorage.dev/pid-pressure",
        "pids",
        ("KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        ("KubeletHasInsufficientPID", "kubelet has insufficient PID available"),
    ),
)
"""Every kind of pressure, in a kubelet's order of evictions."""


def pressures_of(node: Node) -> list[Pressure]:
    """Return the pressures a node is under."""
    told = node.metadata.annotations
    return [each for each in PRESSURES if told.get(each.annotation) == "true"]


def why_not_admitted(pod: Pod, node: Node) -> str:
    """Return why a node under pressure does not take a pod; "" if the node takes it.

    Notes
    -----
    kubernetes v1.36 pkg/kubelet/eviction/eviction_manager.go, Admit.
    """
    pressures = pressures_of(node)
    if not pressures or _is_critical(pod):
        return ""
    if pressures == [MEMORY]:
        taint = Taint(key="node.kubernetes.io/memory-pressure", effect=NO_SCHEDULE)
        if qos_class(pod) != _BEST_EFFORT or tolerated(taint, pod.spec.tolerations):
            return ""
    return f"The node had condition: [{', '.join(each.condition for each in pressures)}]. "


def victim_of(pressure: Pressure, pods: Iterable[Pod]) -> Pod | None:
    """Return the pod that a node evicts first; None if the node evicts no pod.

    Notes
    -----
    kubernetes v1.36 pkg/kubelet/eviction/helpers.go, rankMemoryPressure: pods that use more memory
    than they request come first, then those of less priority, then those that are furthest above
    their request. Usage comes from annotations. Under the other pressures nothing is measured here,
    so only priority counts. Of equal pods the first by namespace and name goes. Critical pods are
    not evicted.
    """
    memory = pressure is MEMORY

    def rank(pod: Pod) -> tuple[bool, int, int, tuple[str, str]]:
        above = _memory_above_requests(pod) if memory else 0
        return (above <= 0, pod.priority, -above, pod.key)

    return min((each for each in pods if not _is_critical(each)), key=rank, default=None)


def eviction_text(pressure: Pressure, pod: Pod) -> str:
    """Return the message of an evicted pod, in a kubelet's words."""
    text = f"The node was low on resource: {pressure.resource}. "
    if pressure is MEMORY:
        for container in pod.spec.containers:
            used, requested = _memory(pod, container)
            if used > requested:
                text += (
                    f"Container {container.name} was using {from_nano(used, binary=True)}, "
                    f"request is {from_nano(requested, binary=True)}, "
                    "has larger consumption of memory. "
                )
    return text


def _is_critical(pod: Pod) -> bool:
    return pod.priority >= _CRITICAL_PRIORITY


def _memory_above_requests(pod: Pod) -> int:
    found = [_memory(pod, each) for each in pod.spec.containers]
    return sum(used - requested for used, requested in found)


def _memory(pod: Pod, container: Container) -> tuple[int, int]:
    """Return the memory use and the memory request of a container, nano bytes."""
    requests = container.resources.requests
    used = container_usage(pod.metadata.annotations, container.name, requests, "memory")
    try:
        return used, parse_quantity(requests.get("memory", 0))
    except ValueError:
        return used, 0
