"""Read-only indexes of every kind a plugin may read besides nodes and pods.

Filled by ingest (or from lists); a plugin sees `Lister`s, never the client.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, Protocol, TypeVar

from moorage.api.coscheduling import CoschedulingGroup
from moorage.api.custom.node_topology import NodeResourceTopology
from moorage.api.devices import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice
from moorage.api.elastic_quota import ElasticQuota
from moorage.api.meta import ObjectMeta
from moorage.api.pod_group import CompositePodGroup, PodGroup
from moorage.api.policy import PodDisruptionBudget, PriorityClass
from moorage.api.volume import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from moorage.api.workloads import (
    Job,
    Namespace,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
)
from moorage.snapshot.key_log import KeyLog


class HasMetadata(Protocol):
    """Anything with object metadata."""

    @property
    def metadata(self) -> ObjectMeta:
        """Name, namespace, uid, labels."""
        ...


K = TypeVar("K", bound=HasMetadata)


class Lister(Generic[K]):
    """Objects of one kind by namespace and name; cluster-scoped kinds use namespace ""."""

    def __init__(self) -> None:
        self._by_namespace: dict[str, dict[str, K]] = {}
        self.generation = 0
        """Rises with every change, so that cached values can be checked."""
        self.log: KeyLog[tuple[str, str]] = KeyLog()
        """(namespace, name) of every object put or removed."""

    def get(self, name: str, namespace: str = "") -> K | None:
        """Return the object, or None."""
        return self._by_namespace.get(namespace, {}).get(name)

    def in_namespace(self, namespace: str) -> Iterable[K]:
        """Return the objects of one namespace, in order of arrival."""
        return self._by_namespace.get(namespace, {}).values()

    def all(self) -> Iterable[K]:
        """Return every object, by namespace and order of arrival."""
        return (obj for objects in self._by_namespace.values() for obj in objects.values())

    def put(self, obj: K) -> None:
        """Add or replace an object."""
        metadata = obj.metadata
        self._by_namespace.setdefault(metadata.namespace, {})[metadata.name] = obj
        self.generation += 1
        self.log.append((metadata.namespace, metadata.name))

    def remove(self, obj: K) -> None:
        """Remove an object; a missing object is no error (a repeated delete)."""
        metadata = obj.metadata
        objects = self._by_namespace.get(metadata.namespace)
        if objects is not None and objects.pop(metadata.name, None) is not None:
            self.generation += 1
            self.log.append((metadata.namespace, metadata.name))
            if not objects:
                del self._by_namespace[metadata.namespace]


class Listers:
    """The listers, one for each kind."""

    def __init__(self) -> None:
        self.namespaces: Lister[Namespace] = Lister()
        self.services: Lister[Service] = Lister()
        self.replication_controllers: Lister[ReplicationController] = Lister()
        self.replica_sets: Lister[ReplicaSet] = Lister()
        self.stateful_sets: Lister[StatefulSet] = Lister()
        self.jobs: Lister[Job] = Lister()
        self.persistent_volumes: Lister[PersistentVolume] = Lister()
        self.persistent_volume_claims: Lister[PersistentVolumeClaim] = Lister()
        self.storage_classes: Lister[StorageClass] = Lister()
        self.csi_nodes: Lister[CSINode] = Lister()
        self.csi_drivers: Lister[CSIDriver] = Lister()
        self.csi_storage_capacities: Lister[CSIStorageCapacity] = Lister()
        self.volume_attachments: Lister[VolumeAttachment] = Lister()
        self.pod_disruption_budgets: Lister[PodDisruptionBudget] = Lister()
        self.priority_classes: Lister[PriorityClass] = Lister()
        self.device_classes: Lister[DeviceClass] = Lister()
        self.resource_slices: Lister[ResourceSlice] = Lister()
        self.device_taint_rules: Lister[DeviceTaintRule] = Lister()
        self.resource_claims: Lister[ResourceClaim] = Lister()
        self.pod_groups: Lister[PodGroup] = Lister()
        self.composite_pod_groups: Lister[CompositePodGroup] = Lister()
        self.coscheduling_groups: Lister[CoschedulingGroup] = Lister()
        self.elastic_quotas: Lister[ElasticQuota] = Lister()
        self.node_topologies: Lister[NodeResourceTopology] = Lister()

    @property
    def changes(self) -> int:
        """The number of changes of all kinds so far."""
        return sum([lister.generation for lister in vars(self).values()])
