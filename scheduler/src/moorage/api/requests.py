"""The total requests of a pod; the arithmetic under NodeResourcesFit and the cache's accounting.

Sums are exact, in nano units; round once for each pod total with `to_units`. Mirrors kubernetes
v1.36 ``component-helpers/resource/helpers.go`` and ``pkg/scheduler/framework/types.go``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from moorage.api.meta import ResourceList
from moorage.api.names import CPU, MEMORY, is_pod_level_resource, is_scheduling_resource
from moorage.api.pod import Container, ContainerStatus, Pod, Resources
from moorage.api.quantity import NANO, milli, parse_quantity, value

__all__ = [
    "DEFAULT_CPU_NANO",
    "DEFAULT_MEMORY_NANO",
    "is_scheduling_resource",
    "non_zero_requests",
    "pod_requests",
    "qos_class",
    "qos_of",
    "to_units",
]

DEFAULT_CPU_NANO: Final = NANO // 10
"""The cpu that scoring assumes for a container without a cpu request: 100m."""
DEFAULT_MEMORY_NANO: Final = 200 * 2**20 * NANO
"""The memory that scoring assumes for a container without a memory request: 200 MiB."""

_DEFAULTS: Final[Mapping[str, int]] = {CPU: DEFAULT_CPU_NANO, MEMORY: DEFAULT_MEMORY_NANO}
_NO_DEFAULTS: Final[Mapping[str, int]] = {}

Amounts = dict[str, int]


def pod_requests(
    pod: Pod, *, use_status: bool, pod_level: bool, non_zero: bool = False
) -> dict[str, int]:
    """Return what a pod requests in total, by resource name, in nano units.

    Parameters
    ----------
    pod
        The pod. Quantities were checked on admission; a bad one raises ValueError.
    use_status
        Count resources in force after an in-place resize as well (pods on a node).
    pod_level
        Let requests of the pod as a whole replace requests of its containers.
    non_zero
        Count a default for containers that request no cpu or no memory.

    Notes
    -----
    Init containers run one after another and before the regular ones, so the total is the maximum
    of both phases; restartable init containers ("sidecars") run in both. Overhead comes on top.
    """
    defaults = _DEFAULTS if non_zero else _NO_DEFAULTS
    return _requests(pod, use_status=use_status, pod_level=pod_level, defaults=defaults)


def non_zero_requests(pod: Pod) -> tuple[int, int]:
    """Return (cpu in milli, memory in bytes) of a pod on a node, as the scorers count it.

    Without pod-level requests every container gets the defaults. With pod-level requests, a default
    applies only to a resource that is missing from the total. An explicit 0 counts as present.
    """
    defaults = _DEFAULTS
    if _has_pod_level_requests(pod):
        total = _requests(pod, use_status=True, pod_level=True, defaults=_NO_DEFAULTS)
        defaults = {name: nano for name, nano in _DEFAULTS.items() if name not in total}
    total = _requests(pod, use_status=True, pod_level=True, defaults=defaults)
    return milli(total.get(CPU, 0)), value(total.get(MEMORY, 0))


def to_units(name: str, nano: int) -> int:
    """Return nano units in the unit the scheduler stores: cpu in milli, all else whole units.

    Rounds up, so apply it once to a pod's total, not to each container.
    """
    return milli(nano) if name == CPU else value(nano)


def qos_of(pod: Pod) -> str:
    """Return the quality of service class that the status has, or else compute it."""
    return pod.status.qos_class or qos_class(pod)


def qos_class(pod: Pod) -> str:
    """Compute the quality of service class: Guaranteed, Burstable or BestEffort.

    Notes
    -----
    kubernetes v1.36 ``pkg/apis/core/v1/helper/qos``: only cpu and memory count, zeros are ignored,
    and pod-level resources, if any, stand in for the containers'.
    """
    whole = pod.spec.resources
    if whole is not None and (
        any(map(is_pod_level_resource, whole.requests))
        or any(map(is_pod_level_resource, whole.limits))
    ):
        parts: list[Resources] = [whole]
    else:
        parts = [c.resources for c in (*pod.spec.containers, *pod.spec.init_containers)]
    requests: Amounts = {}
    limits: Amounts = {}
    all_limited = True
    for part in parts:
        _add(requests, _positive(part.requests))
        limited = _positive(part.limits)
        _add(limits, limited)
        all_limited = all_limited and len(limited) == len(_DEFAULTS)
    if not requests and not limits:
        return "BestEffort"
    if all_limited and requests == limits:
        return "Guaranteed"
    return "Burstable"


def _requests(
    pod: Pod, *, use_status: bool, pod_level: bool, defaults: Mapping[str, int]
) -> Amounts:
    total = _container_requests(pod, use_status=use_status, defaults=defaults)
    if pod_level and _has_pod_level_requests(pod):
        total.update(_pod_level_requests(pod, use_status=use_status))
    if pod.spec.overhead:
        _add(total, _amounts(pod.spec.overhead))
    return total


def _container_requests(pod: Pod, *, use_status: bool, defaults: Mapping[str, int]) -> Amounts:
    statuses = _statuses(pod) if use_status else {}
    infeasible = bool(statuses) and _resize_infeasible(pod)
    total: Amounts = {}
    for container in pod.spec.containers:
        status = statuses.get(container.name)
        _add(total, _one(container, status, infeasible=infeasible, defaults=defaults))
    if not pod.spec.init_containers:
        return total
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in pod.spec.init_containers:
        if container.is_restartable_init:
            status = statuses.get(container.name)
            own = _one(container, status, infeasible=infeasible, defaults=defaults)
            _add(total, own)
            _add(sidecars, own)
            _raise_to(peak, sidecars)
        else:
            own = _one(container, None, infeasible=False, defaults=defaults)
            _add(own, sidecars)
            _raise_to(peak, own)
    _raise_to(total, peak)
    return total


def _one(
    container: Container,
    status: ContainerStatus | None,
    *,
    infeasible: bool,
    defaults: Mapping[str, int],
) -> Amounts:
    """Return a fresh map of the requests that one container counts with."""
    own = _amounts(container.resources.requests)
    if status is not None and status.resources is not None:
        own = _in_force(own, status.resources, status.allocated_resources, infeasible=infeasible)
    for name, nano in defaults.items():
        own.setdefault(name, nano)
    return own


def _in_force(
    wanted: Amounts, actuated: Resources, allocated: ResourceList, *, infeasible: bool
) -> Amounts:
    """Return the maximum of the wanted, actuated and allocated requests during an in-place resize.

    A resize the node called infeasible will not happen, so its wanted requests do not count.
    """
    result = {} if infeasible else wanted
    _raise_to(result, _amounts(actuated.requests))
    _raise_to(result, _amounts(allocated))
    return result


def _pod_level_requests(pod: Pod, *, use_status: bool) -> Amounts:
    assert pod.spec.resources is not None
    requests = pod.spec.resources.requests
    effective = _amounts(requests)
    if use_status and pod.status.resources is not None:
        effective = _in_force(
            effective,
            pod.status.resources,
            pod.status.allocated_resources,
            infeasible=_resize_infeasible(pod),
        )
    # Only names the spec requests: a status alone never makes a resource pod-level.
    names = [name for name in requests if is_pod_level_resource(name)]
    return {name: effective[name] for name in names if name in effective}


def _has_pod_level_requests(pod: Pod) -> bool:
    resources = pod.spec.resources
    return resources is not None and any(map(is_pod_level_resource, resources.requests))


def _resize_infeasible(pod: Pod) -> bool:
    """Whether the first pending-resize condition, the only one looked at, says Infeasible."""
    for condition in pod.status.conditions:
        if condition.type == "PodResizePending":
            return condition.reason == "Infeasible"
    return False


def _statuses(pod: Pod) -> dict[str, ContainerStatus]:
    status = pod.status
    return {s.name: s for s in (*status.container_statuses, *status.init_container_statuses)}


def _amounts(resources: ResourceList) -> Amounts:
    return {name: parse_quantity(quantity) for name, quantity in resources.items()}


def _positive(resources: ResourceList) -> Amounts:
    """Return the cpu and memory of a list that are more than zero."""
    amounts = _amounts(resources)
    return {name: amounts[name] for name in _DEFAULTS if amounts.get(name, 0) > 0}


def _add(total: Amounts, more: Mapping[str, int]) -> None:
    for name, nano in more.items():
        total[name] = total.get(name, 0) + nano


def _raise_to(total: Amounts, floor: Mapping[str, int]) -> None:
    for name, nano in floor.items():
        if name not in total or nano > total[name]:
            total[name] = nano
