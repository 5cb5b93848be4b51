"""Pod groups of kubernetes-sigs/scheduler-plugins: the PodGroup resource, and the labels of pods.

Source: scheduler-plugins ``apis/scheduling/v1alpha1/types.go`` of 2026-08, and the label form that
came before it (September 2020).
"""

# ruff: noqa: RUF012  (the codec library gives every struct its own copy of [] and {})
from __future__ import annotations

from typing import Final

from moorage.api.meta import ApiObject, ApiStruct, ResourceList
from moorage.api.pod import Pod
from moorage.api.resources import ResourceType

GROUP_LABEL: Final = "scheduling.x-k8s.io/pod-group"
"""Names the PodGroup a pod belongs to."""
OLD_GROUP_LABEL: Final = "pod-group.scheduling.sigs.k8s.io"
"""The label of this meaning until 2022; where a pod has both, `GROUP_LABEL` counts."""
NAME_LABEL: Final = "pod-group.scheduling.sigs.k8s.io/name"
"""Names a group that has no object; used together with `MIN_AVAILABLE_LABEL`."""
MIN_AVAILABLE_LABEL: Final = "pod-group.scheduling.sigs.k8s.io/min-available"
"""Number of pods of a group without an object that have to fit; an integer of at least 1."""

SCHEDULING_GROUP: Final = "spec.schedulingGroup"
"""The field by which pods name a PodGroup of Kubernetes."""
VOLCANO_GROUP: Final = "scheduling.k8s.io/group-name"
"""Annotation by which pods name a PodGroup of Volcano, which nothing here reads."""

REQUIRED_TOPOLOGY: Final = "moorage.dev/required-topology"
"""Annotation: the node label that has one value for all pods of the group, or none is bound."""
PREFERRED_TOPOLOGY: Final = "moorage.dev/preferred-topology"
"""Annotation: the node label that has one value for all pods of the group where they fit so."""

SUB_GROUPS: Final = "moorage.dev/sub-groups"
"""Annotation: the sub-groups of the group, each with a minimum (`snapshot.sub_groups`)."""

COSCHEDULING_POD_GROUPS: Final = ResourceType(
    group="scheduling.x-k8s.io",
    version="v1alpha1",
    kind="PodGroup",
    plural="podgroups",
    singular="podgroup",
    namespaced=True,
    short_names=("pg", "pgs"),
)


class CoschedulingGroupSpec(ApiStruct, frozen=True, kw_only=True):
    """Wanted state of a group."""

    min_member: int = 0
    min_resources: ResourceList = {}
    schedule_timeout_seconds: int | None = None


class CoschedulingGroupStatus(ApiStruct, frozen=True, kw_only=True):
    """Observed state of a group; kept by a controller, not by the scheduler."""

    phase: str = ""
    occupied_by: str = ""
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    schedule_start_time: str | None = None


class CoschedulingGroup(ApiObject, frozen=True, kw_only=True):
    """scheduling.x-k8s.io/v1alpha1 PodGroup."""

    spec: CoschedulingGroupSpec = CoschedulingGroupSpec()
    status: CoschedulingGroupStatus = CoschedulingGroupStatus()


def group_naming(pod: Pod) -> tuple[str, str] | None:
    """Return what names a pod's group, and the group's name; None for a pod without a group.

    The first of the field, the label, the two labels of 2020 and the annotation of Volcano counts.
    `GROUP_LABEL` stands for `OLD_GROUP_LABEL` too.
    """
    named = pod.spec.scheduling_group
    if named is not None and named.pod_group_name:
        return SCHEDULING_GROUP, named.pod_group_name
    labels, annotations = pod.metadata.labels, pod.metadata.annotations
    if name := labels.get(GROUP_LABEL) or labels.get(OLD_GROUP_LABEL):
        return GROUP_LABEL, name
    if (name := labels.get(NAME_LABEL)) and minimum_of(pod) is not None:
        return NAME_LABEL, name
    if annotations and (name := annotations.get(VOLCANO_GROUP)):
        return VOLCANO_GROUP, name
    return None


def minimum_of(pod: Pod) -> int | None:
    """Return the number the label ``min-available`` says; None without a number of at least 1."""
    text = pod.metadata.labels.get(MIN_AVAILABLE_LABEL, "")
    if not (text.isascii() and text.removeprefix("+").isdigit()):
        return None
    number = int(text)
    return number if 1 <= number < 1 << 31 else None
