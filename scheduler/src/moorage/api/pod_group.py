"""scheduling.k8s.io PodGroup and CompositePodGroup: pods that are scheduled together.

PodGroup is that of 1.36 and of 1.37. CompositePodGroup came with 1.37 (v1alpha3).

Source: kubernetes v1.36 ``staging/src/k8s.io/api/scheduling/v1alpha2/types.go``, and v1.37
``staging/src/k8s.io/api/scheduling/v1beta1/types.go``. Of the fields that a scheduler of 1.36
reads, v1beta1 changed ``disruptionMode`` only. Workload, the template of groups, is not read.
"""

# ruff: noqa: RUF012  (the codec library gives every struct its own copy of [] and {})
from __future__ import annotations

from typing import Final

from moorage.api.meta import ApiObject, ApiStruct, Condition

DISRUPTED_WHOLE = "PodGroup"
"""The ``disruptionMode`` of v1alpha2 of groups whose pods are evicted together or not at all."""

GROUP_SCHEDULING: Final = "moorage.dev/GroupScheduling"
"""Condition of a pod, and of a PodGroup of scheduling.x-k8s.io: whether groups are scheduled."""
GROUPS_NOT_SCHEDULED: Final = "GroupsNotScheduled"
"""Reason of conditions and Events while the configuration does not schedule a group as one."""


class WorkloadPodGroupTemplateReference(ApiStruct, frozen=True, kw_only=True):
    """The template of a Workload that a group was made from."""

    workload_name: str = ""
    pod_group_template_name: str = ""


class PodGroupTemplateReference(ApiStruct, frozen=True, kw_only=True):
    """The origin of a group."""

    workload: WorkloadPodGroupTemplateReference | None = None


class BasicSchedulingPolicy(ApiStruct, frozen=True, kw_only=True):
    """Pods are placed one by one."""


class GangSchedulingPolicy(ApiStruct, frozen=True, kw_only=True):
    """At least this many pods are placed, or none."""

    min_count: int = 0


class PodGroupSchedulingPolicy(ApiStruct, frozen=True, kw_only=True):
    """The scheduling policy of a group; exactly one of the two fields is set."""

    basic: BasicSchedulingPolicy | None = None
    gang: GangSchedulingPolicy | None = None


class TopologyConstraint(ApiStruct, frozen=True, kw_only=True):
    """A node label whose values are the domains; all pods go to one of them."""

    key: str = ""


class PodGroupSchedulingConstraints(ApiStruct, frozen=True, kw_only=True):
    """The topologies to which the pods of a group are confined; only the first counts."""

    topology: list[TopologyConstraint] = []


class AnyDisruptionMode(ApiStruct, frozen=True, kw_only=True):
    """A mode without settings."""


class DisruptionMode(ApiStruct, frozen=True, kw_only=True):
    """The ``disruptionMode`` of v1beta1; exactly one of the two fields is set."""

    single: AnyDisruptionMode | None = None
    all: AnyDisruptionMode | None = None


def _topology_key(constraints: PodGroupSchedulingConstraints | None) -> str:
    return constraints.topology[0].key if constraints is not None and constraints.topology else ""


def _disrupted_whole(mode: str | DisruptionMode) -> bool:
    return mode == DISRUPTED_WHOLE if isinstance(mode, str) else mode.all is not None


class PodGroupSpec(ApiStruct, frozen=True, kw_only=True):
    """Wanted state of a group. ``priority`` None is read as 0.

    ``parentCompositePodGroupName`` is the group of groups that it belongs to; "" for none.
    """

    parent_composite_pod_group_name: str = ""
    pod_group_template_ref: PodGroupTemplateReference | None = None
    scheduling_policy: PodGroupSchedulingPolicy = PodGroupSchedulingPolicy()
    scheduling_constraints: PodGroupSchedulingConstraints | None = None
    disruption_mode: str | DisruptionMode = ""
    priority_class_name: str = ""
    priority: int | None = None

    @property
    def topology_key(self) -> str:
        """The topology key that confines the pods; "" for none."""
        return _topology_key(self.scheduling_constraints)

    @property
    def disrupted_whole(self) -> bool:
        """Whether the pods of the group are evicted together or not at all."""
        return _disrupted_whole(self.disruption_mode)


class PodGroupStatus(ApiStruct, frozen=True, kw_only=True):
    """Observed state of a group."""

    conditions: list[Condition] = []


class PodGroup(ApiObject, frozen=True, kw_only=True):
    """scheduling.k8s.io PodGroup."""

    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()


class CompositeGangPolicy(ApiStruct, frozen=True, kw_only=True):
    """At least so many of the groups below are placed, or none."""

    min_group_count: int = 0


class CompositePodGroupSchedulingPolicy(ApiStruct, frozen=True, kw_only=True):
    """The scheduling policy of a composite group; exactly one of the two fields is set."""

    basic: BasicSchedulingPolicy | None = None
    gang: CompositeGangPolicy | None = None


class CompositePodGroupSpec(ApiStruct, frozen=True, kw_only=True):
    """Wanted state of a composite group. ``priority`` None is read as 0.

    ``parentCompositePodGroupName`` is the composite group that it belongs to; "" for none.
    """

    parent_composite_pod_group_name: str = ""
    scheduling_policy: CompositePodGroupSchedulingPolicy = CompositePodGroupSchedulingPolicy()
    scheduling_constraints: PodGroupSchedulingConstraints | None = None
    disruption_mode: str | DisruptionMode = ""
    priority: int | None = None

    @property
    def topology_key(self) -> str:
        """The topology key that confines the pods; "" for none."""
        return _topology_key(self.scheduling_constraints)

    @property
    def disrupted_whole(self) -> bool:
        """Whether the pods of all its groups are evicted together or not at all."""
        return _disrupted_whole(self.disruption_mode)


class CompositePodGroup(ApiObject, frozen=True, kw_only=True):
    """scheduling.k8s.io CompositePodGroup: a group of PodGroups, or of composite groups."""

    spec: CompositePodGroupSpec = CompositePodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()
