"""Extended resources that devices provide: the special claim that the scheduler creates for a pod.

One claim has the devices for all such resources of a pod. Its requests depend on the node: where
a device plugin offers a resource, the claim does not request devices for that resource.

Rules mirrored: kubernetes v1.36
``pkg/scheduler/framework/plugins/dynamicresources/extendeddynamicresources.go``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from moorage.api.claims import ContainerExtendedResourceRequest
from moorage.api.devices import (
    DeviceClaim,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
)
from moorage.api.meta import ObjectMeta, OwnerReference
from moorage.api.pod import Container, Pod
from moorage.api.quantity import parse_quantity
from moorage.api.requests import to_units
from moorage.plugins.claims.pod_claims import ANNOTATION, is_special_claim
from moorage.plugins.resources.device_classes import DeviceClassNames, may_be_devices
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.shape import RESOURCES
from moorage.snapshot.snapshot import Snapshot

RowArray = NDArray[np.int64]

IN_MEMORY: Final = "<extended-resources>"
"""Name of a special claim that is not created yet."""

Mappings = tuple[ContainerExtendedResourceRequest, ...]


class NodeClaim(msgspec.Struct, frozen=True):
    """The special claim on one node, and the container that each request serves."""

    claim: ResourceClaim
    mappings: Mappings


def special_claim(pod: PodInfo, known: Iterable[ResourceClaim]) -> ResourceClaim:
    """Return the special claim that an earlier attempt left behind, or a new one in memory.

    Parameters
    ----------
    pod
        The pod with the extended resources.
    known
        The claims that the pod controls.
    """
    for claim in known:
        if is_special_claim(pod.pod, claim):
            return claim
    owner = OwnerReference(
        api_version="v1", kind="Pod", name=pod.name, uid=pod.uid, controller=True
    )
    return ResourceClaim(
        metadata=ObjectMeta(
            name=IN_MEMORY,
            generate_name=f"{pod.name}-extended-resources-",
            namespace=pod.namespace,
            uid=f"{IN_MEMORY}/{pod.uid}",  # never written; distinguishes pending allocations
            owner_references=[owner],
            annotations={ANNOTATION: "true"},
        )
    )


def is_in_memory(claim: ResourceClaim) -> bool:
    """Whether a special claim is not created yet."""
    return claim.name == IN_MEMORY


class ExtendedPart:
    """A pod's requests of extended resources, and the part that devices provide on each node.

    Parameters
    ----------
    pod
        The pod.
    claim
        The special claim of the pod, in memory.
    classes
        The device classes by extended resource.
    """

    def __init__(self, pod: PodInfo, claim: ResourceClaim, classes: DeviceClassNames) -> None:
        self._pod = pod.pod
        self._claim = claim
        self._classes = classes
        self._device_resources = sorted(
            name
            for name, amount in pod.part(RESOURCES).value.filter.items()
            if amount and may_be_devices(name)
        )
        self._known: dict[tuple[str, ...], NodeClaim] = {}

    def by_resources(
        self, snapshot: Snapshot, rows: RowArray
    ) -> tuple[list[tuple[tuple[str, ...], RowArray]], list[RowArray]]:
        """Group rows by the resources that devices must provide there.

        Devices provide a resource where the node has none of it, or offers 0, and a class names the
        resource. A node without a resource that no class names cannot take the pod. The columns of
        allocatable amounts say where a resource is 0; only such rows are looked at one by one, and
        only for a resource without a class.

        Parameters
        ----------
        snapshot, rows
            int64, (rows,): rows of the snapshot.

        Returns
        -------
        tuple
            The positions of each group, in the order of the groups' first rows, and the positions
            that lack a resource.
        """
        groups: list[tuple[tuple[str, ...], RowArray]] = [((), np.arange(len(rows)))]
        lacking: list[RowArray] = []
        for name in self._device_resources:
            none_n = snapshot.allocatable(name)[rows] == 0
            if self._classes.find(name) is None:
                lacks_n = np.zeros(len(rows), np.bool_)
                for position in none_n.nonzero()[0].tolist():
                    offered = snapshot.node(rows.item(position)).status.allocatable
                    lacks_n[position] = name not in offered
                lacking += [at[lacks_n[at]] for _, at in groups]
                groups = [(names, at[~lacks_n[at]]) for names, at in groups]
            else:
                groups = [
                    part
                    for names, at in groups
                    for part in (((*names, name), at[none_n[at]]), (names, at[~none_n[at]]))
                ]
        there = [(names, at) for names, at in groups if len(at)]
        return sorted(there, key=lambda group: group[1].item(0)), lacking

    def on_node(self, resources: tuple[str, ...]) -> NodeClaim:
        """Return the special claim on nodes where devices must provide these resources."""
        node_claim = self._known.get(resources)
        if node_claim is None:
            requests, mappings = self._requests(resources)
            spec = ResourceClaimSpec(devices=DeviceClaim(requests=requests))
            node_claim = NodeClaim(msgspec.structs.replace(self._claim, spec=spec), tuple(mappings))
            self._known[resources] = node_claim
        return node_claim

    def _requests(
        self, resources: Sequence[str]
    ) -> tuple[list[DeviceRequest], list[ContainerExtendedResourceRequest]]:
        requests: list[DeviceRequest] = []
        mappings: list[ContainerExtendedResourceRequest] = []
        for resource in resources:
            device_class = self._classes.find(resource)
            if device_class is not None:
                _add_requests(self._pod, resource, device_class.name, requests, mappings)
        return sorted(requests, key=lambda request: request.name), mappings


def _add_requests(
    pod: Pod,
    resource: str,
    class_name: str,
    requests: list[DeviceRequest],
    mappings: list[ContainerExtendedResourceRequest],
) -> None:
    """Add the requests for one resource, and the containers that each request serves.

    Long-running containers have separate devices. Init containers that end use the devices of
    containers that start later. If their greatest request is larger, the difference is added once.
    """
    containers = [*pod.spec.init_containers, *pod.spec.containers]
    inits = len(pod.spec.init_containers)
    brief = [i for i in range(inits) if not containers[i].is_restartable_init]
    own: dict[int, DeviceRequest] = {}
    for index in [i for i in range(len(containers)) if i not in brief]:
        wanted = _wanted(containers[index], resource)
        if wanted:
            own[index] = _request(index, containers[index], resource, class_name, count=wanted)
            mappings.append(_mapping(containers[index], resource, own[index].name))
    served: list[tuple[Container, str]] = []
    extra: list[DeviceRequest] = []
    for index in brief:
        container, wanted = containers[index], _wanted(containers[index], resource)
        for reused in [own[i] for i in sorted(own) if i >= index]:
            if wanted > 0:
                served.append((container, reused.name))
                wanted -= _count(reused)
        if wanted > 0:
            made = _request(index, container, resource, class_name, count=wanted)
            served.append((container, made.name))
            extra.append(made)
    greatest = max(extra, key=_count, default=None)
    replaced = {request.name for request in extra}
    for container, name in served:
        final = greatest.name if greatest is not None and name in replaced else name
        mappings.append(_mapping(container, resource, final))
    requests += own.values() if greatest is None else [greatest, *own.values()]


def _wanted(container: Container, resource: str) -> int:
    """Return the number of devices that a container requests; fractions are not possible."""
    asked = container.resources.requests.get(resource)
    return 0 if asked is None else to_units(resource, parse_quantity(asked))


def _count(request: DeviceRequest) -> int:
    assert request.exactly is not None, "requests for extended resources ask for a count"
    return request.exactly.count


def _request(
    index: int, container: Container, resource: str, class_name: str, *, count: int
) -> DeviceRequest:
    place = sorted(container.resources.requests).index(resource)
    return DeviceRequest(
        name=f"container-{index}-request-{place}",
        exactly=ExactDeviceRequest(
            device_class_name=class_name, allocation_mode="ExactCount", count=count
        ),
    )


def _mapping(container: Container, resource: str, request: str) -> ContainerExtendedResourceRequest:
    return ContainerExtendedResourceRequest(
        container_name=container.name, resource_name=resource, request_name=request
    )
