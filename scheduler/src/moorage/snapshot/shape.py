"""The shape of a pod: its fields that plugins read, compiled once and interned by part.

Name and uid do not belong to the shape, so replicas share their parts. A part is found by the bytes
of the spec fields it is made of, so two pods with equal fields share the compiled value. A pod with
its own claim name still reuses the other parts. Parts live as long as a pod that uses them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeAlias, TypeVar
from weakref import WeakSet, WeakValueDictionary

import msgspec

from moorage.api.meta import NodeSelector
from moorage.api.names import CPU
from moorage.api.pod import (
    Container,
    Pod,
    PodSpec,
    PodStatus,
    PreferredSchedulingTerm,
    Toleration,
)
from moorage.api.requests import (
    is_scheduling_resource,
    non_zero_requests,
    pod_requests,
    to_units,
)

T = TypeVar("T")

# Features of the v1.36 registry that a pod can require when it is scheduled
# (kubernetes v1.36 component-helpers/nodedeclaredfeatures).
RESTART_ALL_CONTAINERS = "RestartAllContainersOnContainerExits"
USER_NAMESPACES_HOST_NETWORK = "UserNamespacesHostNetworkSupport"

_encode = msgspec.json.Encoder(order="deterministic").encode


class Part(Generic[T]):
    """A compiled, shared part of a pod's shape; equal parts are the same object.

    Attributes
    ----------
    id
        Never reused, so an id says "equal content" for good.
    value
        The compiled value; not to be changed.
    memo
        Further values compiled from the value, each kept under its maker's key (a plugin uses
        itself).
    """

    __slots__ = ("__weakref__", "id", "memo", "value")

    def __init__(self, part_id: int, value: T) -> None:
        self.id = part_id
        self.value = value
        self.memo: dict[object, Any] = {}


class PartKind(Generic[T]):
    """A kind of part: which fields it is made of, and how it is compiled.

    Parameters
    ----------
    name
        For messages.
    fields
        Pod to the fields the value depends on; anything msgspec can encode.
    compile_value
        Pod to the compiled value.
    beside_volumes
        Whether the fields are among those of `SPEC`, and none is about volumes other than images.
        Pods that differ in their volumes only, such as a claim of their own, then share the part
        without looking. False is always right, and costs one look-up a pod.
    """

    def __init__(
        self,
        name: str,
        fields: Callable[[Pod], object],
        compile_value: Callable[[Pod], T],
        *,
        beside_volumes: bool = False,
    ) -> None:
        self.name = name
        self.beside_volumes = beside_volumes
        self._fields = fields
        self._compile = compile_value
        self._parts: WeakValueDictionary[bytes, Part[T]] = WeakValueDictionary()
        self._next_id = 0
        _kinds.add(self)

    def __repr__(self) -> str:
        return f"PartKind({self.name!r})"

    def part_of(self, pod: Pod) -> Part[T]:
        """Return the shared part of a pod."""
        key = _encode(self._fields(pod))
        return self._parts.get(key) or self._keep_part(key, self._compile(pod))

    def of_fields(self, fields: object, value: T) -> Part[T]:
        """Return the shared part of pods with these fields; the value is for the first of them."""
        key = _encode(fields)
        return self._parts.get(key) or self._keep_part(key, value)

    def _keep_part(self, key: bytes, value: T) -> Part[T]:
        made = self._parts[key] = Part(self._next_id, value)
        self._next_id += 1
        return made

    def forget_memos(self) -> None:
        """Forget the further values that were compiled from the parts; they are made again."""
        for part in list(self._parts.values()):
            part.memo.clear()


KnownParts: TypeAlias = dict[PartKind[Any], Part[Any]]
"""Parts of equal pods that are known so far."""

_kinds: WeakSet[PartKind[Any]] = WeakSet()


def forget_memos() -> None:
    """Forget the values that plugins compiled from parts, and so the plugins that have gone."""
    for kind in list(_kinds):
        kind.forget_memos()


class NodeAffinitySpec(msgspec.Struct, frozen=True):
    """The parts of a pod spec that choose nodes by label or name; None where absent."""

    node_selector: Mapping[str, str] | None
    required: NodeSelector | None
    preferred: list[PreferredSchedulingTerm] | None


class PodRequests(msgspec.Struct, frozen=True):
    """Request vectors of a pod, in scheduling units, by resource name.

    The variants of the scheduling spec, resources section 2.3.

    Parameters
    ----------
    filter
        The request that Filter judges (spec only, pod-level on).
    score
        The request of the Fit score (container sums with defaults, pod-level off).
    balanced
        The request of BalancedAllocation, and the pod's cost to its node (status-based).
    nonzero
        Millicores and bytes the pod adds to the node's non-zero requests.
    """

    filter: Mapping[str, int]
    score: Mapping[str, int]
    balanced: Mapping[str, int]
    nonzero: tuple[int, int]


class PodImages(msgspec.Struct, frozen=True):
    """Image names of a pod, each use listed, and the number of init and regular containers."""

    names: tuple[str, ...]
    containers: int


HostPort = tuple[str, str, int]


def _long_running(pod: Pod) -> list[Container]:
    sidecars = [c for c in pod.spec.init_containers if c.restart_policy == "Always"]
    return [*pod.spec.containers, *sidecars]


def host_ports(pod: Pod) -> tuple[HostPort, ...]:
    """Return the wanted (ip, protocol, port) triples, normalised, in spec order."""
    return tuple(
        (port.host_ip or "0.0.0.0", port.protocol or "TCP", port.host_port)
        for container in _long_running(pod)
        for port in container.ports
        if port.host_port > 0
    )


def normalized_image(name: str) -> str:
    """Append ``:latest`` to an image name that has neither tag nor digest."""
    return name if name.rfind(":") > name.rfind("/") else f"{name}:latest"


_MILLI_PER_CORE = 1000


def amount_of(resource: str, units: int) -> float:
    """Return an amount of the columns as plugins see it: cores for cpu, else bytes or counts."""
    return units / _MILLI_PER_CORE if resource == CPU else units


def _units(nano: Mapping[str, int]) -> dict[str, int]:
    return {
        name: max(0, to_units(name, amount))
        for name, amount in nano.items()
        if is_scheduling_resource(name)
    }


def _requests(pod: Pod) -> PodRequests:
    return PodRequests(
        filter=_units(pod_requests(pod, use_status=False, pod_level=True)),
        score=_units(pod_requests(pod, use_status=False, pod_level=False, non_zero=True)),
        balanced=_units(pod_requests(pod, use_status=True, pod_level=True)),
        nonzero=non_zero_requests(pod),
    )


def _resource_fields(pod: Pod) -> object:
    spec, status = pod.spec, pod.status
    return (
        [c.resources for c in spec.containers],
        [(c.resources, c.restart_policy) for c in spec.init_containers],
        spec.overhead,
        spec.resources,
        [c.name for c in spec.containers] if status.container_statuses else (),
        *_status_fields(pod),
    )


def _status_fields(pod: Pod) -> tuple[object, ...]:
    """Return the part of a status that requests depend on: the resize state."""
    status = pod.status
    if not (status.container_statuses or status.init_container_statuses or status.conditions):
        return (), (), status.resources, status.allocated_resources, ()
    return (
        [(c.name, c.resources, c.allocated_resources) for c in status.container_statuses],
        [(c.name, c.resources, c.allocated_resources) for c in status.init_container_statuses],
        status.resources,
        status.allocated_resources,
        _resizes(status),
    )


def _resizes(status: PodStatus) -> list[tuple[str, str]]:
    return [(c.type, c.reason) for c in status.conditions if c.type == "PodResizePending"]


def _node_affinity(pod: Pod) -> NodeAffinitySpec:
    affinity = pod.spec.affinity
    node = affinity.node_affinity if affinity is not None else None
    return NodeAffinitySpec(
        node_selector=pod.spec.node_selector,
        required=node.required_during_scheduling_ignored_during_execution if node else None,
        preferred=node.preferred_during_scheduling_ignored_during_execution if node else None,
    )


def _images(pod: Pod) -> PodImages:
    containers = [*pod.spec.init_containers, *pod.spec.containers]
    names = [c.image for c in containers]
    names += _image_volumes(pod.spec)
    return PodImages(tuple(normalized_image(name) for name in names), len(containers))


def _image_volumes(spec: PodSpec) -> list[str]:
    """Return the references of the volumes that are images."""
    return [each.image.reference for each in spec.volumes if each.image is not None]


def _features(pod: Pod) -> frozenset[str]:
    wanted = set()
    for container in (*pod.spec.init_containers, *pod.spec.containers):
        if any(rule.action == "RestartAllContainers" for rule in container.restart_policy_rules):
            wanted.add(RESTART_ALL_CONTAINERS)
    if pod.spec.host_network and pod.spec.host_users is False:
        wanted.add(USER_NAMESPACES_HOST_NETWORK)
    return frozenset(wanted)


NODE_NAME: PartKind[str] = PartKind(
    "node name", lambda pod: pod.spec.node_name, lambda pod: pod.spec.node_name
)
TOLERATIONS: PartKind[tuple[Toleration, ...]] = PartKind(
    "tolerations",
    lambda pod: pod.spec.tolerations,
    lambda pod: tuple(pod.spec.tolerations),
    beside_volumes=True,
)
NODE_AFFINITY: PartKind[NodeAffinitySpec] = PartKind(
    "node affinity", _node_affinity, _node_affinity, beside_volumes=True
)
PORTS: PartKind[tuple[HostPort, ...]] = PartKind(
    "host ports", host_ports, host_ports, beside_volumes=True
)
RESOURCES: PartKind[PodRequests] = PartKind(
    "resources", _resource_fields, _requests, beside_volumes=True
)
IMAGES: PartKind[PodImages] = PartKind("images", _images, _images, beside_volumes=True)
FEATURES: PartKind[frozenset[str]] = PartKind(
    "features", lambda p: sorted(_features(p)), _features, beside_volumes=True
)
LABELS: PartKind[tuple[str, Mapping[str, str]]] = PartKind(
    "labels",
    lambda pod: (pod.metadata.namespace, pod.metadata.labels),
    lambda pod: (pod.metadata.namespace, pod.metadata.labels),
    beside_volumes=True,
)


def _spec(pod: Pod, **without: Any) -> object:
    if pod.spec.node_name:
        without["node_name"] = ""
    return (
        pod.metadata.namespace,
        pod.metadata.labels,
        msgspec.structs.replace(pod.spec, **without) if without else pod.spec,
        *_status_fields(pod),
    )


def same_spec(pod: Pod, other: Pod, *, beside_volumes: bool = False) -> bool:
    """Whether two pods agree in all fields of `SPEC`; the node name is not one of these fields.

    Or in all fields of `SPEC_BESIDE_VOLUMES`. The comparison takes a fraction of the time that
    encoding one pod takes.
    """
    mine, others = pod.metadata, other.metadata
    if mine.namespace != others.namespace or mine.labels != others.labels:
        return False
    spec = pod.spec
    if spec is not other.spec:
        if beside_volumes:
            if _image_volumes(spec) != _image_volumes(other.spec):
                return False
            spec = msgspec.structs.replace(spec, volumes=other.spec.volumes)
        if spec.node_name != other.spec.node_name:
            spec = msgspec.structs.replace(spec, node_name=other.spec.node_name)
        if spec != other.spec:
            return False
    return _same_status(pod.status, other.status) or _status_fields(pod) == _status_fields(other)


def _same_status(status: PodStatus, other: PodStatus) -> bool:
    return status is other or (
        status.container_statuses == other.container_statuses
        and status.init_container_statuses == other.init_container_statuses
        and status.resources == other.resources
        and status.allocated_resources == other.allocated_resources
        and _resizes(status) == _resizes(other)
    )


# Replicas usually agree in everything below, so one lookup finds all their parts at once; pods
# that differ in a claim or volume name only need one more to find the other parts.
SPEC: PartKind[KnownParts] = PartKind("spec", _spec, lambda pod: {})
SPEC_BESIDE_VOLUMES: PartKind[KnownParts] = PartKind(
    "spec beside volumes",
    lambda pod: (_spec(pod, volumes=[]), _image_volumes(pod.spec)),
    lambda pod: {},
)


def spec_of(pod: Pod, beside: Part[KnownParts] | None = None) -> Part[KnownParts]:
    """Return the part of everything that replicas share.

    Parameters
    ----------
    pod
        The pod.
    beside
        Its `SPEC_BESIDE_VOLUMES`, where that is known; for pods with volumes.
    """
    if not pod.spec.volumes:
        return SPEC.part_of(pod)
    if beside is None:
        beside = SPEC_BESIDE_VOLUMES.part_of(pod)
    known: KnownParts = {**beside.value, SPEC_BESIDE_VOLUMES: beside}
    return SPEC.of_fields((beside.id, pod.spec.volumes), known)
