"""The kinds that are watched besides nodes and pods: one row a kind, and what takes them in.

Pods and nodes have handlers of their own (`ingest`); the rest goes to its lister, and to the queue
where some plugin may wait for it. An API server of an older version may lack a kind; the kind is
then taken for empty (`moorage.client.reflector`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from moorage.api import resources
from moorage.api.changes import Action, ClusterEvent, Resource
from moorage.api.coscheduling import COSCHEDULING_POD_GROUPS, CoschedulingGroup
from moorage.api.custom.node_topology import NodeResourceTopology
from moorage.api.devices import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice
from moorage.api.elastic_quota import ElasticQuota
from moorage.api.pod_group import CompositePodGroup, PodGroup
from moorage.api.policy import PodDisruptionBudget, PriorityClass
from moorage.api.resources import ResourceType
from moorage.api.taints import concerns_slice, with_rule_taints
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
from moorage.framework.profile import Profile
from moorage.service.intake.ingest import ListerIngest
from moorage.service.process.facts import Facts
from moorage.snapshot.listers import Listers
from moorage.snapshot.snapshot import Snapshot
from moorage.state.queue import SchedulingQueue


class WatchedKind(msgspec.Struct, frozen=True):
    """A kind that is watched for plugins to look at.

    Parameters
    ----------
    resource
        The resource that is listed and watched, in all namespaces.
    type_
        The struct its objects are decoded into.
    lister
        The attribute of `moorage.snapshot.listers.Listers` that keeps the objects.
    since
        The first Kubernetes version that serves this API version of the kind by default.
    event
        Name of the kind in cluster events; None where no plugin ever waits for it.
    """

    resource: ResourceType
    type_: type[Any]
    lister: str
    since: str
    event: str | None = None

    def served_by(self, version: str) -> bool:
        """Whether an API server of a Kubernetes version, ``1.36``, serves the kind by default."""
        return _number(self.since) <= _number(version)


def _number(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


SERVER_VERSIONS: Final = tuple(f"1.{minor}" for minor in range(28, 38))
"""The versions of API servers that the scheduler works with."""

_K = WatchedKind

WATCHED: Final[tuple[WatchedKind, ...]] = (
    _K(resources.NAMESPACES, Namespace, "namespaces", "1.0", Resource.NAMESPACE),
    _K(resources.SERVICES, Service, "services", "1.0"),
    _K(resources.REPLICATION_CONTROLLERS, ReplicationController, "replication_controllers", "1.0"),
    _K(resources.REPLICA_SETS, ReplicaSet, "replica_sets", "1.9"),
    _K(resources.STATEFUL_SETS, StatefulSet, "stateful_sets", "1.9"),
    _K(
        resources.PERSISTENT_VOLUMES,
        PersistentVolume,
        "persistent_volumes",
        "1.0",
        Resource.PERSISTENT_VOLUME,
    ),
    _K(
        resources.PERSISTENT_VOLUME_CLAIMS,
        PersistentVolumeClaim,
        "persistent_volume_claims",
        "1.0",
        Resource.PERSISTENT_VOLUME_CLAIM,
    ),
    _K(resources.STORAGE_CLASSES, StorageClass, "storage_classes", "1.6", Resource.STORAGE_CLASS),
    _K(resources.CSI_NODES, CSINode, "csi_nodes", "1.17", Resource.CSI_NODE),
    _K(resources.CSI_DRIVERS, CSIDriver, "csi_drivers", "1.18", Resource.CSI_DRIVER),
    _K(
        resources.CSI_STORAGE_CAPACITIES,
        CSIStorageCapacity,
        "csi_storage_capacities",
        "1.24",
        Resource.CSI_STORAGE_CAPACITY,
    ),
    _K(
        resources.VOLUME_ATTACHMENTS,
        VolumeAttachment,
        "volume_attachments",
        "1.13",
        Resource.VOLUME_ATTACHMENT,
    ),
    _K(resources.DEVICE_CLASSES, DeviceClass, "device_classes", "1.34", Resource.DEVICE_CLASS),
    _K(
        resources.RESOURCE_SLICES,
        ResourceSlice,
        "resource_slices",
        "1.34",
        Resource.RESOURCE_SLICE,
    ),
    _K(
        resources.RESOURCE_CLAIMS,
        ResourceClaim,
        "resource_claims",
        "1.34",
        Resource.RESOURCE_CLAIM,
    ),
    _K(resources.POD_DISRUPTION_BUDGETS, PodDisruptionBudget, "pod_disruption_budgets", "1.21"),
    _K(resources.PRIORITY_CLASSES, PriorityClass, "priority_classes", "1.14"),
)

POD_GROUP: Final = _K(resources.POD_GROUPS, PodGroup, "pod_groups", "1.36", Resource.POD_GROUP)
"""Watched only with the feature gate GenericWorkload; a server needs its own gate to serve it. 1.36
serves v1alpha2, 1.37 v1beta1 (`moorage.client.served_version`)."""

COMPOSITE_POD_GROUP: Final = _K(
    resources.COMPOSITE_POD_GROUPS,
    CompositePodGroup,
    "composite_pod_groups",
    "1.37",
    Resource.COMPOSITE_POD_GROUP,
)
"""Watched only with the feature gate CompositePodGroup; a server needs its own gate to serve it."""

DEVICE_TAINT_RULE: Final = _K(
    resources.DEVICE_TAINT_RULES, DeviceTaintRule, "device_taint_rules", "1.37"
)
"""Watched only with the feature gate DRADeviceTaintRules. A server without v1 is asked for v1beta2.
A change of a rule is an event of the slices that it concerns (`TaintRuleIngest`)."""

CUSTOM: Final[tuple[WatchedKind, ...]] = (
    _K(resources.ELASTIC_QUOTAS, ElasticQuota, "elastic_quotas", "1.16", Resource.ELASTIC_QUOTA),
    _K(
        COSCHEDULING_POD_GROUPS,
        CoschedulingGroup,
        "coscheduling_groups",
        "1.16",
        Resource.COSCHEDULING_GROUP,
    ),
    _K(
        resources.NODE_RESOURCE_TOPOLOGIES,
        NodeResourceTopology,
        "node_topologies",
        "1.16",
        Resource.NODE_RESOURCE_TOPOLOGY,
    ),
)
"""Watched only where a plugin of some profile waits for their events; `since` is that of custom
resources."""


JOB: Final = _K(resources.JOBS, Job, "jobs", "1.21")
"""Watched only where room is held back for groups: the deadline of a Job is an end of its pods."""


def watched(
    profiles: Iterable[Profile],
    *,
    pod_groups: bool,
    composite_groups: bool = False,
    taint_rules: bool = False,
    jobs: bool = False,
) -> list[WatchedKind]:
    """Return the kinds to watch for these profiles.

    Parameters
    ----------
    profiles
        The profiles whose plugins look at the kinds.
    pod_groups
        Whether pods may be in groups.
    composite_groups
        Whether groups may be parts of composite groups.
    taint_rules
        Whether rules may taint devices.
    jobs
        Whether the deadlines of Jobs matter.
    """
    awaited = {
        registration.event.resource
        for profile in profiles
        for registrations in profile.registrations().values()
        for registration in registrations
    }
    return [
        *WATCHED,
        *((POD_GROUP,) if pod_groups else ()),
        *((COMPOSITE_POD_GROUP,) if composite_groups else ()),
        *((DEVICE_TAINT_RULE,) if taint_rules else ()),
        *((JOB,) if jobs else ()),
        *(kind for kind in CUSTOM if kind.event in awaited),
    ]


# --- what takes their objects in -----------------------------------------------------------------

_SLICE_UPDATE = ClusterEvent(Resource.RESOURCE_SLICE, Action.UPDATE)


def lister_ingest(
    kind: WatchedKind, snapshot: Snapshot, *, queue: SchedulingQueue, facts: Facts
) -> ListerIngest[Any]:
    """Return what takes in the objects of a kind."""
    listers = snapshot.listers
    if kind is DEVICE_TAINT_RULE:
        return TaintRuleIngest(listers, queue=queue, facts=facts)
    if kind is POD_GROUP or kind is COMPOSITE_POD_GROUP:
        return GroupIngest(kind, snapshot, queue=queue, facts=facts)
    return ListerIngest(
        kind.resource.kind,
        getattr(listers, kind.lister),
        resource=kind.event,
        queue=queue,
        facts=facts,
    )


class GroupIngest(ListerIngest[Any]):
    """PodGroups and CompositePodGroups: their members may be in another composite group now.

    Parameters
    ----------
    kind
        Which of the two.
    snapshot
        Receives the objects, and has the members.
    queue, facts
        As for other kinds.
    """

    def __init__(
        self, kind: WatchedKind, snapshot: Snapshot, *, queue: SchedulingQueue, facts: Facts
    ) -> None:
        lister = getattr(snapshot.listers, kind.lister)
        super().__init__(kind.resource.kind, lister, resource=kind.event, queue=queue, facts=facts)
        self._groups = snapshot.groups
        self._composites = snapshot.composites

    def _move_pods(self, action: Action, old: Any, new: Any, *, began_ns: int) -> None:
        if self._composites is not None:
            self._groups.regroup(self._composites.take_moved())
        super()._move_pods(action, old, new, began_ns=began_ns)


class TaintRuleIngest(ListerIngest[DeviceTaintRule]):
    """DeviceTaintRules to their lister, and the slices that they change to the queue.

    The queue gets an update of each slice whose taints change, and no event of the rule, as from
    kubernetes v1.37 ``resourceslice/tracker/tracker.go``.

    Parameters
    ----------
    listers
        Receives the rules, and has the slices.
    queue, facts
        As for other kinds.
    """

    def __init__(self, listers: Listers, *, queue: SchedulingQueue, facts: Facts) -> None:
        lister = listers.device_taint_rules
        super().__init__("DeviceTaintRule", lister, resource=None, queue=queue, facts=facts)
        self._slices = listers.resource_slices

    def on_add(self, obj: DeviceTaintRule) -> None:
        """Take in a rule that appeared."""
        super().on_add(obj)
        self._move_by_slices(None, obj)

    def on_update(self, old: DeviceTaintRule, new: DeviceTaintRule) -> None:
        """Take in a changed rule."""
        super().on_update(old, new)
        self._move_by_slices(old, new)

    def on_delete(self, obj: DeviceTaintRule, *, missed: bool) -> None:
        """Take in that a rule is gone."""
        super().on_delete(obj, missed=missed)
        self._move_by_slices(obj, None)

    def _move_by_slices(self, old: DeviceTaintRule | None, new: DeviceTaintRule | None) -> None:
        """Report each slice whose taints differ between two versions of a rule."""
        changed = [rule for rule in (old, new) if rule is not None]
        names = {rule.name for rule in changed}
        others = [rule for rule in self._lister.all() if rule.name not in names]
        for slice_ in self._slices.all():
            if not any(concerns_slice(rule, slice_) for rule in changed):
                continue
            before = with_rule_taints(slice_, others if old is None else [*others, old])
            after = with_rule_taints(slice_, others if new is None else [*others, new])
            if before != after:
                began_ns = self._events.now_ns()
                self._queue.move_all(_SLICE_UPDATE, before, after)
                self._events.handled(_SLICE_UPDATE.label, since_ns=began_ns)
