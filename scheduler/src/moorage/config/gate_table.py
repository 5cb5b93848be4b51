"""The feature gates of kube-scheduler by Kubernetes version: a table, and nothing that decides.

Each gate has its state in each version that moorage plays: default, stage, whether it is locked. A
gate without a state in a version does not exist in that version. `feature_gates` reads the table.

Source: kubernetes v1.36 ``pkg/features/kube_features.go``; v1.37 the scheduler's versioned list of
gates. Gates that are missing in that list belong to other parts of Kubernetes, and are taken to
have their state of v1.36.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

V1_36: Final = "1.36"
V1_37: Final = "1.37"
VERSIONS: Final = (V1_36, V1_37)
"""The versions that can be emulated, the oldest first."""


class GateState(msgspec.Struct, frozen=True):
    """A gate in one version.

    Parameters
    ----------
    default
        The gate's value if nobody sets it.
    stage
        ``ALPHA``, ``BETA`` or ``GA``.
    locked
        Whether kube-scheduler refuses another value.
    min_compatibility
        The default is off for an older ``--min-compatibility-version``; "" for none.
    """

    default: bool
    stage: str
    locked: bool = False
    min_compatibility: str = ""


class Gate(msgspec.Struct, frozen=True):
    """A known feature gate.

    Parameters
    ----------
    name
        As in ``--feature-gates``.
    states
        The gate's state by version.
    effect
        The behaviour that the gate switches.
    built
        The values that moorage implements.
    requires
        The gate that must be on as well.
    plugin
        The plugin that decides otherwise with the gate; "" for several or none.
    argument
        The argument that only works with the gate, as ``Plugin.field``; "" for none.
    merged_into
        The gate that replaces this one in the versions without it; "" for none.
    decision
        The decision that differs between two versions because of the gate, as a sentence; "" for
        none.
    """

    name: str
    states: Mapping[str, GateState]
    effect: str
    built: tuple[bool, ...]
    requires: str = ""
    plugin: str = ""
    argument: str = ""
    merged_into: str = ""
    decision: str = ""


COMPONENT_FLAGZ: Final = "ComponentFlagz"
COMPONENT_STATUSZ: Final = "ComponentStatusz"
DEVICE_TAINT_RULES: Final = "DRADeviceTaintRules"
FRACTIONAL_CAPACITY: Final = "DRAFractionalCapacityRange"
GENERIC_WORKLOAD: Final = "GenericWorkload"
GANG_SCHEDULING: Final = "GangScheduling"
NODE_DECLARED_FEATURES: Final = "NodeDeclaredFeatures"
STORAGE_CAPACITY_SCORING: Final = "StorageCapacityScoring"
COMPOSITE_POD_GROUP: Final = "CompositePodGroup"
TOPOLOGY_AWARE: Final = "TopologyAwareWorkloadScheduling"
VOLUME_LIMIT_SCALING: Final = "VolumeLimitScaling"
WORKLOAD_PREEMPTION: Final = "WorkloadAwarePreemption"

_ALPHA = GateState(default=False, stage="ALPHA")
_BETA_OFF = GateState(default=False, stage="BETA")
_BETA = GateState(default=True, stage="BETA")
_GA = GateState(default=True, stage="GA")
_LOCKED = GateState(default=True, stage="GA", locked=True)

_ON, _OFF, _BOTH = (True,), (False,), (False, True)


def _always(state: GateState) -> dict[str, GateState]:
    return dict.fromkeys(VERSIONS, state)


def _changed(before: GateState, now: GateState) -> dict[str, GateState]:
    return {V1_36: before, V1_37: now}


def _until_1_36(state: GateState) -> dict[str, GateState]:
    return {V1_36: state}


def _since_1_37(state: GateState) -> dict[str, GateState]:
    return {V1_37: state}


_G = Gate

GATES: Final[tuple[Gate, ...]] = (
    _G(COMPONENT_FLAGZ, _always(_BETA), "the page /flagz", _BOTH),
    _G(COMPONENT_STATUSZ, _always(_BETA), "the page /statusz", _BOTH),
    _G(COMPOSITE_POD_GROUP, _since_1_37(_ALPHA), "groups of groups", _BOTH, TOPOLOGY_AWARE),
    _G("DRAAdminAccess", _always(_LOCKED), "devices with admin access", _ON),
    _G("DRAConsumableCapacity", _always(_BETA), "devices shared by capacity", _BOTH),
    _G("DRADerivedAttributes", _since_1_37(_ALPHA), "attributes computed from others", _OFF),
    _G("DRADeviceBindingConditions", _always(_BETA), "waiting for devices before binding", _BOTH),
    _G(
        "DRADeviceCompatibilityGroups",
        _since_1_37(_ALPHA),
        "parts of a device that exclude each other",
        _OFF,
        "DRAPartitionableDevices",
    ),
    _G(
        DEVICE_TAINT_RULES,
        _changed(_BETA_OFF, _GA),
        "taints of devices by rule",
        _BOTH,
        "DRADeviceTaints",
        plugin="DynamicResources",
        decision="A claim that does not tolerate the taint of a DeviceTaintRule gets no device "
        "that the rule selects.",
    ),
    _G("DRADeviceTaints", _changed(_BETA, _GA), "taints of devices", _BOTH),
    _G(
        "DRAExtendedResource",
        _changed(_BETA, _LOCKED),
        "extended resources backed by devices",
        _BOTH,
    ),
    _G(
        FRACTIONAL_CAPACITY,
        _since_1_37(GateState(default=True, stage="BETA", min_compatibility=V1_37)),
        "ranges of shared capacity in thousandths",
        _BOTH,
        plugin="DynamicResources",
        decision="An amount of shared capacity is rounded to a step in thousandths, not to whole "
        "units, where the range of the device has fractions.",
    ),
    _G("DRAListTypeAttributes", _always(_ALPHA), "attributes of devices that are lists", _OFF),
    _G("DRANodeAllocatableResources", _always(_ALPHA), "devices that take cpu or memory", _OFF),
    _G("DRAOptionalNodeOperations", _since_1_37(_ALPHA), "devices without preparation", _OFF),
    _G("DRAPartitionableDevices", _always(_BETA), "devices cut into parts", _BOTH),
    _G("DRAPrioritizedList", _changed(_GA, _LOCKED), "alternatives in a claim", _BOTH),
    _G("DRASchedulerFilterTimeout", _always(_BETA), "a limit on the search for devices", _BOTH),
    _G("DRAWorkloadResourceClaims", _changed(_ALPHA, _BETA_OFF), "claims of pod groups", _OFF),
    _G("DynamicResourceAllocation", _always(_LOCKED), "resource claims", _ON),
    _G(
        GANG_SCHEDULING,
        _until_1_36(_ALPHA),
        "pod groups are placed all or none",
        _BOTH,
        GENERIC_WORKLOAD,
        merged_into=GENERIC_WORKLOAD,
    ),
    _G(
        GENERIC_WORKLOAD,
        _changed(_ALPHA, _BETA_OFF),
        "pod groups",
        _BOTH,
        plugin="GangScheduling",
        decision="The members of a group are tried by priority, most attempts, longest wait and "
        "name, until those left cannot complete the minimum any more.",
    ),
    _G("ImageVolume", _always(_GA), "images as volumes", _ON),
    _G("InPlacePodLevelResourcesVerticalScaling", _always(_BETA), "resizing of whole pods", _ON),
    _G("InPlacePodVerticalScaling", _always(_LOCKED), "resizing of containers", _ON),
    _G(
        "InPlacePodVerticalScalingSchedulerPreemption",
        _since_1_37(_ALPHA),
        "resizing preempts",
        _OFF,
    ),
    _G("InterPodAffinityHostnameFastPath", _since_1_37(_ALPHA), "a faster affinity by node", _OFF),
    _G("MatchLabelKeysInPodAffinity", _always(_LOCKED), "matchLabelKeys of affinity", _ON),
    _G("MatchLabelKeysInPodTopologySpread", _always(_BETA), "matchLabelKeys of spreading", _ON),
    _G(
        "MatchLabelKeysInPodTopologySpreadSelectorMerge",
        _always(_BETA),
        "keys are merged early",
        _ON,
    ),
    _G("MutableCSINodeAllocatableCount", _always(_GA), "attach limits that change", _ON),
    _G(NODE_DECLARED_FEATURES, _changed(_BETA, _LOCKED), "plugin of that name", _BOTH),
    _G("NodeInclusionPolicyInPodTopologySpread", _always(_LOCKED), "which nodes count", _ON),
    _G("NominatedNodeNameForExpectation", _always(_BETA), "nomination before binding", _ON),
    _G("OpportunisticBatching", _always(_BETA), "reuse of the node list for replicas", _ON),
    _G(
        "PodGroupPreemptionPolicy",
        _since_1_37(_ALPHA),
        "preemptionPolicy of pod groups",
        _OFF,
        GENERIC_WORKLOAD,
    ),
    _G("PodLevelResources", _always(_BETA), "requests of whole pods", _ON),
    _G("PodSchedulingReadiness", _always(_LOCKED), "scheduling gates", _ON),
    _G("SchedulerAsyncAPICalls", _always(_BETA_OFF), "API calls by a dispatcher", _OFF),
    _G(
        "SchedulerAsyncPreemption",
        _always(_BETA),
        "victims are evicted in the background",
        _ON,
    ),
    _G("SchedulerPopFromBackoffQ", _always(_BETA), "backoff is cut short when idle", _ON),
    _G("SchedulerPreQueueingHints", _since_1_37(_ALPHA), "hints that narrow down pods", _OFF),
    _G("SchedulerQueueingHints", _always(_LOCKED), "requeueing by hints", _ON),
    _G("SidecarContainers", _always(_LOCKED), "restartable init containers", _ON),
    _G(
        STORAGE_CAPACITY_SCORING,
        _changed(_ALPHA, _BETA),
        "scores by free storage",
        _BOTH,
        plugin="VolumeBinding",
        argument="VolumeBinding.shape",
        decision="Nodes are scored by the share of their free storage that the claims of the pod "
        "would use.",
    ),
    _G("TaintTolerationComparisonOperators", _always(_ALPHA), "tolerations by Lt and Gt", _OFF),
    _G(
        TOPOLOGY_AWARE,
        _always(_ALPHA),
        "a pod group goes to one topology domain",
        _BOTH,
        GENERIC_WORKLOAD,
    ),
    _G("VolumeAttributesClass", _always(_LOCKED), "classes of volume attributes", _ON),
    _G(
        VOLUME_LIMIT_SCALING,
        _changed(_ALPHA, _BETA),
        "nodes without a driver are left out",
        _BOTH,
        plugin="NodeVolumeLimits",
        decision="A node that lacks a CSI driver gets no pod with volumes of that driver, if the "
        "CSIDriver sets `preventPodSchedulingIfMissing`.",
    ),
    _G(
        WORKLOAD_PREEMPTION,
        _until_1_36(_ALPHA),
        "a pod group preempts, and is preempted, as a whole",
        _BOTH,
        GANG_SCHEDULING,
        merged_into=GENERIC_WORKLOAD,
        plugin="DefaultPreemption",
        decision="A group preempts once as a whole: its members are placed as if all pods of less "
        "priority were gone, and then pods stay if every member keeps its place. A group that is "
        "evicted as a whole is one victim, also for a single pod, and the group's priority counts.",
    ),
)
"""Every gate in the reference of the conformance recordings, in the pages, or new in 1.37."""

BY_NAME: Final = {gate.name: gate for gate in GATES}


def gates_of_version(version: str) -> tuple[Gate, ...]:
    """Return the gates that exist in a version, by name."""
    return tuple(gate for gate in GATES if version in gate.states)
