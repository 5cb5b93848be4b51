"""Cluster events: what happened to which resource, and what changed between two versions.

Ingest turns watch events into cluster events. The queue asks `matches` which waiting pods an event
may concern. Names and bits are those of kube-scheduler v1.36 (``kube-scheduler/framework/types.go``
and ``pkg/scheduler/framework/events.go``), as they appear in metrics and logs.
"""

from __future__ import annotations

from enum import IntFlag
from typing import Final

import msgspec

from moorage.api.meta import Condition, ResourceList
from moorage.api.node import Node
from moorage.api.pod import Pod, PodStatus
from moorage.api.quantity import milli, parse_quantity
from moorage.api.requests import pod_requests


class Resource:
    """Names of the resources an event may be about."""

    POD: Final = "Pod"
    NODE: Final = "Node"
    PERSISTENT_VOLUME: Final = "PersistentVolume"
    PERSISTENT_VOLUME_CLAIM: Final = "PersistentVolumeClaim"
    CSI_NODE: Final = "storage.k8s.io/CSINode"
    CSI_DRIVER: Final = "storage.k8s.io/CSIDriver"
    VOLUME_ATTACHMENT: Final = "storage.k8s.io/VolumeAttachment"
    CSI_STORAGE_CAPACITY: Final = "storage.k8s.io/CSIStorageCapacity"
    STORAGE_CLASS: Final = "storage.k8s.io/StorageClass"
    RESOURCE_CLAIM: Final = "resource.k8s.io/ResourceClaim"
    RESOURCE_SLICE: Final = "resource.k8s.io/ResourceSlice"
    DEVICE_CLASS: Final = "resource.k8s.io/DeviceClass"
    POD_GROUP: Final = "scheduling.k8s.io/PodGroup"
    COMPOSITE_POD_GROUP: Final = "scheduling.k8s.io/CompositePodGroup"
    COSCHEDULING_GROUP: Final = "podgroups.v1alpha1.scheduling.x-k8s.io"
    ELASTIC_QUOTA: Final = "elasticquotas.v1alpha1.scheduling.x-k8s.io"
    """Custom resources are named ``<plural>.<version>.<group>``, as plugins of Kubernetes do."""
    NODE_RESOURCE_TOPOLOGY: Final = "noderesourcetopologies.v1alpha2.topology.node.k8s.io"
    WILDCARD: Final = "*"
    ASSIGNED_POD: Final = "AssignedPod"
    """Incoming only: a pod that has a node. Plugins register `POD`."""
    UNSCHEDULABLE_POD: Final = "UnschedulablePod"
    """Incoming only: a pod without a node. Plugins register `POD`."""
    NAMESPACE: Final = "Namespace"
    """Moorage's own: the labels that affinity terms with a namespace selector read."""
    RESERVATION: Final = "Reservation"
    """A volume or device that an attempt holds in the scheduler's memory alone; moorage's own."""


class Action(IntFlag):
    """The kind of change; the update bits say which part changed."""

    ADD = 1
    DELETE = 2
    UPDATE_NODE_ALLOCATABLE = 4
    UPDATE_NODE_LABEL = 8
    UPDATE_NODE_TAINT = 16
    UPDATE_NODE_CONDITION = 32
    UPDATE_NODE_ANNOTATION = 64
    UPDATE_NODE_DECLARED_FEATURE = 128
    UPDATE_POD_LABEL = 256
    UPDATE_POD_SCALE_DOWN = 512
    UPDATE_POD_TOLERATION = 1024
    UPDATE_POD_SCHEDULING_GATES_ELIMINATED = 2048
    UPDATE_POD_GENERATED_RESOURCE_CLAIM = 4096
    UPDATE = 8188
    ALL = 8191


_ACTION_NAMES: Final[dict[int, str]] = {
    Action.ADD: "Add",
    Action.DELETE: "Delete",
    Action.UPDATE_NODE_ALLOCATABLE: "UpdateNodeAllocatable",
    Action.UPDATE_NODE_LABEL: "UpdateNodeLabel",
    Action.UPDATE_NODE_TAINT: "UpdateNodeTaint",
    Action.UPDATE_NODE_CONDITION: "UpdateNodeCondition",
    Action.UPDATE_NODE_ANNOTATION: "UpdateNodeAnnotation",
    Action.UPDATE_NODE_DECLARED_FEATURE: "UpdateNodeDeclaredFeature",
    Action.UPDATE_POD_LABEL: "UpdatePodLabel",
    Action.UPDATE_POD_SCALE_DOWN: "UpdatePodScaleDown",
    Action.UPDATE_POD_TOLERATION: "UpdatePodToleration",
    Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED: "UpdatePodSchedulingGatesEliminated",
    Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM: "UpdatePodGeneratedResourceClaim",
    Action.UPDATE: "Update",
    Action.ALL: "All",
}


def action_name(action: int) -> str:
    """Return the name of a single action, of Update or of All; "" for other combinations."""
    return _ACTION_NAMES.get(int(action), "")


def action_names(action: int) -> tuple[str, ...]:
    """Return the name of an action; for a combination, the names of its parts.

    A combination with every kind of update has the part Update, not each kind.
    """
    name = action_name(action)
    if name:
        return (name,)
    update = int(Action.UPDATE)
    every = action & update == update
    singles = action & ~update if every else action
    found = [name for bit, name in _ACTION_NAMES.items() if bit.bit_count() == 1 and singles & bit]
    return (*found, _ACTION_NAMES[update]) if every else tuple(found)


class ClusterEvent(msgspec.Struct, frozen=True, cache_hash=True):
    """Something happened to a resource; registered by plugins and reported by ingest.

    ``action`` holds bits of `Action`. ``label`` is the text in metrics and logs; left out, it
    becomes resource + action name.
    """

    resource: str
    action: int
    label: str = ""

    def __post_init__(self) -> None:
        # A plain int: flag arithmetic is slow, and `matches` runs for every waiting pod.
        msgspec.structs.force_setattr(self, "action", int(self.action))
        if not self.label:
            msgspec.structs.force_setattr(self, "label", self.resource + action_name(self.action))

    @property
    def is_wildcard(self) -> bool:
        """Whether the event is about everything, so that it matches every registration."""
        return self.resource == Resource.WILDCARD and self.action == Action.ALL


WILDCARD: Final = ClusterEvent(Resource.WILDCARD, Action.ALL)
"""As a registration: everything may cure the rejection."""
UNSCHEDULABLE_TIMEOUT: Final = ClusterEvent(
    Resource.WILDCARD, Action.ALL, label="UnschedulableTimeout"
)
"""The periodic flush of pods that waited too long."""
FORCE_ACTIVATE: Final = ClusterEvent(Resource.WILDCARD, Action.ALL, label="ForceActivate")
"""A plugin asked for pods to be tried again at once."""
RELOAD: Final = ClusterEvent(Resource.WILDCARD, Action.ALL, label="ConfigurationReload")
"""Another configuration is in force: its plugins may judge any pod otherwise."""
RESERVATION_DELETE: Final = ClusterEvent(Resource.RESERVATION, Action.DELETE)
"""A binding failed, or a nomination ended: others may have what the pod (the old object) held."""

_POD_FORMS: Final = frozenset({Resource.ASSIGNED_POD, Resource.UNSCHEDULABLE_POD})


def matches(registered: ClusterEvent, incoming: ClusterEvent) -> bool:
    """Whether an event concerns a plugin that registered another event.

    A generic Update never matches a registration for one specific part, because Update has more
    bits. A specific part matches a registration for Update.
    """
    if registered.is_wildcard:
        return True
    same_resource = (
        registered.resource in (Resource.WILDCARD, incoming.resource)
        or (registered.resource == Resource.POD and incoming.resource in _POD_FORMS)
    )  # fmt: skip
    return (
        same_resource
        and (registered.action & incoming.action) != 0
        and incoming.action <= registered.action
    )


def node_changes(old: Node, new: Node) -> list[ClusterEvent]:
    """Return one event for each part of a node that changed, in kube-scheduler's order.

    Only a change from unschedulable to schedulable counts as a taint change; the reverse change
    cures no rejection. Heartbeats change no condition's status, so they give an empty list.
    """
    before, after = old.status, new.status
    changed = (
        (old.spec.unschedulable and not new.spec.unschedulable, Action.UPDATE_NODE_TAINT),
        (
            not _same_quantities(before.allocatable, after.allocatable),
            Action.UPDATE_NODE_ALLOCATABLE,
        ),
        (old.metadata.labels != new.metadata.labels, Action.UPDATE_NODE_LABEL),
        (old.spec.taints != new.spec.taints, Action.UPDATE_NODE_TAINT),
        (_statuses(before.conditions) != _statuses(after.conditions), Action.UPDATE_NODE_CONDITION),
        (old.metadata.annotations != new.metadata.annotations, Action.UPDATE_NODE_ANNOTATION),
        (
            before.declared_features != after.declared_features,
            Action.UPDATE_NODE_DECLARED_FEATURE,
        ),
    )
    return [ClusterEvent(Resource.NODE, action) for happened, action in changed if happened]


def pod_changes(old: Pod, new: Pod) -> list[ClusterEvent]:
    """Return one event for each part of a pod that changed; a generic Update if no part did.

    Never empty: every update of a pod is reported.
    """
    resource = Resource.ASSIGNED_POD if new.spec.node_name else Resource.UNSCHEDULABLE_POD
    same_labels = old.metadata.labels == new.metadata.labels
    same_claims = _same_claims(old.status, new.status)
    same_rest = same_labels and same_claims and _same_spec(old, new)
    if same_rest and _same_resize_state(old.status, new.status):
        return [_POD_UPDATED[resource]]  # most updates are about phases and nominations
    changed = (
        (not same_labels, Action.UPDATE_POD_LABEL),
        (_scaled_down(old, new), Action.UPDATE_POD_SCALE_DOWN),
        (
            bool(old.spec.scheduling_gates) and not new.spec.scheduling_gates,
            Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED,
        ),
        (len(old.spec.tolerations) != len(new.spec.tolerations), Action.UPDATE_POD_TOLERATION),
        (not same_claims, Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM),
    )
    events = [ClusterEvent(resource, action) for happened, action in changed if happened]
    return events or [_POD_UPDATED[resource]]


_POD_UPDATED: Final = {form: ClusterEvent(form, Action.UPDATE) for form in sorted(_POD_FORMS)}


def _same_quantities(old: ResourceList, new: ResourceList) -> bool:
    """Compare by value: ``1`` and ``1000m`` are the same amount."""
    if old == new:
        return True
    if old.keys() != new.keys():
        return False
    return all(parse_quantity(old[name]) == parse_quantity(new[name]) for name in old)


def _statuses(conditions: list[Condition]) -> dict[str, str]:
    return {condition.type: condition.status for condition in conditions}


def _scaled_down(old: Pod, new: Pod) -> bool:
    if _same_spec(old, new) and _same_resize_state(old.status, new.status):
        return False
    before = pod_requests(old, use_status=True, pod_level=True)
    after = pod_requests(new, use_status=True, pod_level=True)
    return any(
        name not in after or milli(nano) > milli(after[name]) for name, nano in before.items()
    )


def _same_claims(old: PodStatus, new: PodStatus) -> bool:
    """Whether the claims made for a pod are the same, also those for extended resources."""
    return (
        old.resource_claim_statuses == new.resource_claim_statuses
        and old.extended_resource_claim_status == new.extended_resource_claim_status
    )


def _same_spec(old: Pod, new: Pod) -> bool:
    # Versions made in this process share what did not change: comparing takes a microsecond.
    return old.spec is new.spec or old.spec == new.spec


def _same_resize_state(old: PodStatus, new: PodStatus) -> bool:
    """Whether all fields that requests depend on, besides the spec, are the same."""
    return (
        old.container_statuses == new.container_statuses
        and old.init_container_statuses == new.init_container_statuses
        and old.resources == new.resources
        and old.allocated_resources == new.allocated_resources
        and old.conditions == new.conditions
    )
