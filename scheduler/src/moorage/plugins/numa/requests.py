"""What the containers of a pod request of a NUMA node, and which resources a NUMA node has.

Rules mirrored: scheduler-plugins v0.35 ``pkg/util/resource.go``,
``pkg/noderesourcetopology/numaresources.go`` and ``resourcerequests``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

import msgspec

from moorage.api.meta import ResourceList
from moorage.api.names import (
    CPU,
    EPHEMERAL_STORAGE,
    MEMORY,
    is_hugepages_resource,
    is_native_resource,
)
from moorage.api.pod import Container, Pod
from moorage.api.quantity import parse_quantity
from moorage.api.requests import qos_of, to_units
from moorage.snapshot.shape import PartKind

GUARANTEED: Final = "Guaranteed"
BEST_EFFORT: Final = "BestEffort"
_MILLI_IN_CORE: Final = 1000

Request = Mapping[str, int]
"""By resource name, zeros included; cpu in millicores, everything else in whole units."""


class PodRequests(msgspec.Struct, frozen=True):
    """The requests of one pod, container by container and as a whole.

    Parameters
    ----------
    qos
        Quality of service class.
    init, regular
        The requests of init containers and of the others, in their order.
    whole
        Of each resource the sum of the containers, or what an init container requests if that is
        more. Overhead does not count.
    has_devices
        Whether a container requests a resource that is not Kubernetes' own.
    """

    qos: str
    init: tuple[Request, ...]
    regular: tuple[Request, ...]
    whole: Request
    has_devices: bool

    @property
    def guaranteed(self) -> bool:
        """Whether the kubelet gives the pod cpu and memory of its own."""
        return self.qos == GUARANTEED

    @property
    def is_free(self) -> bool:
        """Whether a NUMA node has nothing to give to the pod."""
        return self.qos == BEST_EFFORT and not self.has_devices


def _requests_of(pod: Pod) -> PodRequests:
    init, regular = _of_each(pod.spec.init_containers), _of_each(pod.spec.containers)
    return PodRequests(
        qos=qos_of(pod),
        init=init,
        regular=regular,
        whole=_whole(init, regular),
        has_devices=any(
            not is_native_resource(name) for each in (*init, *regular) for name in each
        ),
    )


def _fields(pod: Pod) -> object:
    """Return what the requests are made of."""
    phases = (pod.spec.init_containers, pod.spec.containers)
    return qos_of(pod), *([each.resources.requests for each in phase] for phase in phases)


NUMA_REQUESTS: Final[PartKind[PodRequests]] = PartKind("NUMA requests", _fields, _requests_of)
"""The requests of a pod; equal pods share them."""


def has_exclusive_resources(pod: Pod, devices: Collection[str]) -> bool:
    """Whether a container that goes on running has something of a NUMA node for itself.

    Whole cpus, memory and huge pages of a Guaranteed pod, and devices that NUMA nodes report.
    Sidecars count, other init containers do not.
    """
    guaranteed = qos_of(pod) == GUARANTEED
    sidecars = [each for each in pod.spec.init_containers if each.is_restartable_init]
    return any(
        _is_exclusive(name, amount, guaranteed=guaranteed, devices=devices)
        for request in _of_each((*sidecars, *pod.spec.containers))
        for name, amount in request.items()
    )


def _is_exclusive(name: str, amount: int, *, guaranteed: bool, devices: Collection[str]) -> bool:
    if not is_native_resource(name):
        return name in devices
    if not guaranteed or amount <= 0:
        return False
    return amount % _MILLI_IN_CORE == 0 if name == CPU else is_numa_affine(name)


def is_numa_affine(name: str) -> bool:
    """Whether every NUMA node has to report the resource: cpu, memory and huge pages."""
    return name in (CPU, MEMORY) or is_hugepages_resource(name)


def is_host_level(name: str) -> bool:
    """Whether a node may have the resource without any NUMA node: storage and devices."""
    return name in (EPHEMERAL_STORAGE, "storage") or not is_native_resource(name)


def _of_each(containers: Iterable[Container]) -> tuple[Request, ...]:
    return tuple(_amounts(each.resources.requests) for each in containers)


def _amounts(requests: ResourceList) -> Request:
    return {name: to_units(name, parse_quantity(text)) for name, text in requests.items()}


def _whole(init: Iterable[Request], regular: Iterable[Request]) -> Request:
    total: dict[str, int] = {}
    for request in regular:
        for name, amount in request.items():
            total[name] = total.get(name, 0) + amount
    for request in init:
        for name, amount in request.items():
            total[name] = max(total.get(name, 0), amount)
    return total
