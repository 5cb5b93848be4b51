"""Feature gates of kubernetes v1.36 that a scheduler looks at, and which of them can be switched.

A gate is switched by ``--feature-gates``; every one has the default it has in kube-scheduler.
Moorage refuses to switch a gate to a value that is not built, instead of ignoring the switch.

Source: kubernetes v1.36 ``pkg/features/kube_features.go``, scheduling spec, plugin index section 5.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from moorage.base.errors import ConfigError


class Gate(msgspec.Struct, frozen=True):
    """A known feature gate.

    Parameters
    ----------
    name
        As in ``--feature-gates``.
    default
        The gate's value in v1.36.
    stage
        ``ALPHA``, ``BETA`` or ``GA``.
    effect
        The behaviour that the gate switches.
    requires
        The gate that must be on as well.
    switchable
        Whether moorage implements both values.
    locked
        Whether kube-scheduler itself refuses to switch it.
    """

    name: str
    default: bool
    stage: str
    effect: str = ""
    requires: str = ""
    switchable: bool = False
    locked: bool = False


COMPONENT_FLAGZ: Final = "ComponentFlagz"
COMPONENT_STATUSZ: Final = "ComponentStatusz"
GENERIC_WORKLOAD: Final = "GenericWorkload"
GANG_SCHEDULING: Final = "GangScheduling"
NODE_DECLARED_FEATURES: Final = "NodeDeclaredFeatures"
TOPOLOGY_AWARE: Final = "TopologyAwareWorkloadScheduling"
WORKLOAD_PREEMPTION: Final = "WorkloadAwarePreemption"

_ON, _OFF = True, False

GATES: Final[tuple[Gate, ...]] = (
    Gate(COMPONENT_FLAGZ, _ON, "BETA", "the page /flagz", switchable=True),
    Gate(COMPONENT_STATUSZ, _ON, "BETA", "the page /statusz", switchable=True),
    Gate("DRAAdminAccess", _ON, "GA", "devices with admin access", locked=True),
    Gate("DRAConsumableCapacity", _ON, "BETA", "devices shared by capacity", switchable=True),
    Gate(
        "DRADeviceBindingConditions",
        _ON,
        "BETA",
        "waiting for devices before binding",
        switchable=True,
    ),
    Gate("DRADeviceTaintRules", _OFF, "BETA", "taints of devices by rule"),
    Gate("DRADeviceTaints", _ON, "BETA", "taints of devices", switchable=True),
    Gate(
        "DRAExtendedResource", _ON, "BETA", "extended resources backed by devices", switchable=True
    ),
    Gate("DRAListTypeAttributes", _OFF, "ALPHA", "attributes of devices that are lists"),
    Gate("DRANodeAllocatableResources", _OFF, "ALPHA", "devices that take cpu or memory"),
    Gate("DRAPartitionableDevices", _ON, "BETA", "devices cut into parts", switchable=True),
    Gate("DRAPrioritizedList", _ON, "GA", "alternatives in a claim", switchable=True),
    Gate(
        "DRASchedulerFilterTimeout",
        _ON,
        "BETA",
        "a limit on the search for devices",
        switchable=True,
    ),
    Gate("DRAWorkloadResourceClaims", _OFF, "ALPHA", "claims of pod groups"),
    Gate("DynamicResourceAllocation", _ON, "GA", "resource claims", locked=True),
    Gate(
        GANG_SCHEDULING,
        _OFF,
        "ALPHA",
        "pod groups are placed all or none",
        GENERIC_WORKLOAD,
        switchable=True,
    ),
    Gate(GENERIC_WORKLOAD, _OFF, "ALPHA", "pod groups", switchable=True),
    Gate("ImageVolume", _ON, "GA", "images as volumes"),
    Gate("InPlacePodLevelResourcesVerticalScaling", _ON, "BETA", "resizing of whole pods"),
    Gate("InPlacePodVerticalScaling", _ON, "GA", "resizing of containers", locked=True),
    Gate("MatchLabelKeysInPodAffinity", _ON, "GA", "matchLabelKeys of affinity", locked=True),
    Gate("MatchLabelKeysInPodTopologySpread", _ON, "BETA", "matchLabelKeys of spreading"),
    Gate("MatchLabelKeysInPodTopologySpreadSelectorMerge", _ON, "BETA", "keys are merged early"),
    Gate("MutableCSINodeAllocatableCount", _ON, "GA", "attach limits that change"),
    Gate(NODE_DECLARED_FEATURES, _ON, "BETA", "plugin of that name", switchable=True),
    Gate("NodeInclusionPolicyInPodTopologySpread", _ON, "GA", "which nodes count", locked=True),
    Gate("NominatedNodeNameForExpectation", _ON, "BETA", "nomination before binding"),
    Gate("OpportunisticBatching", _ON, "BETA", "reuse of the node list for replicas"),
    Gate("PodLevelResources", _ON, "BETA", "requests of whole pods"),
    Gate("PodSchedulingReadiness", _ON, "GA", "scheduling gates", locked=True),
    Gate("SchedulerAsyncAPICalls", _OFF, "BETA", "API calls by a dispatcher"),
    Gate("SchedulerAsyncPreemption", _ON, "BETA", "victims are evicted in the background"),
    Gate("SchedulerPopFromBackoffQ", _ON, "BETA", "backoff is cut short when idle"),
    Gate("SchedulerQueueingHints", _ON, "GA", "requeueing by hints", locked=True),
    Gate("SidecarContainers", _ON, "GA", "restartable init containers", locked=True),
    Gate("StorageCapacityScoring", _OFF, "ALPHA", "scores by free storage"),
    Gate("TaintTolerationComparisonOperators", _OFF, "ALPHA", "tolerations by Lt and Gt"),
    Gate(
        TOPOLOGY_AWARE,
        _OFF,
        "ALPHA",
        "a pod group goes to one topology domain",
        GENERIC_WORKLOAD,
        switchable=True,
    ),
    Gate("VolumeAttributesClass", _ON, "GA", "classes of volume attributes", locked=True),
    Gate("VolumeLimitScaling", _OFF, "ALPHA", "nodes without a driver are left out"),
    Gate(
        WORKLOAD_PREEMPTION,
        _OFF,
        "ALPHA",
        "a pod group preempts, and is preempted, as a whole",
        GANG_SCHEDULING,
        switchable=True,
    ),
)
"""Every gate in the reference of the conformance recordings or in the pages, by name."""

_BY_NAME: Final = {gate.name: gate for gate in GATES}


class FeatureGates(msgspec.Struct, frozen=True):
    """The feature gates that are on.

    Parameters
    ----------
    switched
        The gates that were set by hand; the others have their default.
    """

    switched: Mapping[str, bool] = {}

    def __call__(self, name: str) -> bool:
        """Whether a gate is on; the name must be a known one."""
        return self.switched.get(name, _BY_NAME[name].default)

    def as_text(self) -> str:
        """Return the gates that were set, as the flag spells them, sorted."""
        return ",".join(f"{name}={str(on).lower()}" for name, on in sorted(self.switched.items()))


DEFAULT_GATES: Final = FeatureGates()


def feature_gates(values: Mapping[str, bool]) -> FeatureGates:
    """Return gates that were set by name.

    Raises
    ------
    ConfigError
        A gate is unknown, cannot be switched, or needs a gate that is off; every fault is listed.
    """
    gates = FeatureGates(dict(values))
    faults = [fault for name, on in sorted(values.items()) for fault in _faults(name, on)]
    if not faults:
        faults = [
            f"featureGates.{gate.name}: Invalid value: true: needs {gate.requires}=true"
            for gate in GATES
            if gate.requires and gates(gate.name) and not gates(gate.requires)
        ]
    if faults:
        raise ConfigError(faults)
    return gates


def parse_feature_gates(text: str) -> FeatureGates:
    """Read gates as the flag spells them: ``A=true,B=false``.

    Raises
    ------
    ConfigError
        As `feature_gates`; also for text other than ``name=true`` or ``name=false``.
    """
    values: dict[str, bool] = {}
    faults = []
    for each in filter(None, (part.strip() for part in text.split(","))):
        name, equals, value = (piece.strip() for piece in each.partition("="))
        if not equals:
            faults.append(f"featureGates: missing bool value for {name}")
        elif value.lower() not in _BOOLEANS:
            faults.append(f"featureGates.{name}: Invalid value: {value}: must be true or false")
        else:
            values[name] = _BOOLEANS[value.lower()]
    if faults:
        raise ConfigError(faults)
    return feature_gates(values)


_BOOLEANS: Final = {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}


def _faults(name: str, on: bool) -> Iterable[str]:
    gate = _BY_NAME.get(name)
    if gate is None:
        yield f"featureGates.{name}: unrecognized feature gate: {name}"
    elif on == gate.default:
        return
    elif gate.locked:
        locked = str(gate.default).lower()
        yield (
            f"featureGates.{name}: cannot set feature gate {name} to {str(on).lower()}, "
            f"feature is locked to {locked}"
        )
    elif not gate.switchable:
        yield (
            f"featureGates.{name}: moorage does not implement {name}={str(on).lower()} yet; "
            "leave the gate out"
        )
