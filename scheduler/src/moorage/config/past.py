"""Names of earlier Kubernetes versions and of other projects, and their replacements.

`load` and `merge` add the advice to their faults, so that an old file tells how to renew it.

Names of plugins of kubernetes-sigs/scheduler-plugins v0.35 have advice, too.

Source: kubernetes v1.20 to v1.36 ``pkg/scheduler/apis/config`` and the notes on migrating scheduler
configurations that came with v1beta2, v1beta3 and v1.
"""

from __future__ import annotations

import re
from typing import Final

GROUP: Final = "kubescheduler.config.k8s.io"
"""The API group of scheduler configurations."""

_STRATEGY: Final = (
    "it became a strategy of NodeResourcesFit: set scoringStrategy.type to {} in its args"
)
_CSI: Final = "NodeVolumeLimits has its part, since these volumes are served by CSI drivers"

_PREDICATE: Final = "a predicate of the Policy file; {} has its part"
_PRIORITY: Final = "a priority of the Policy file; {} has its part"
_FIT: Final = "NodeResourcesFit, with scoringStrategy.type {} in its args,"

PREDICATES: Final[dict[str, tuple[str, ...]]] = {
    "CheckNodeUnschedulable": ("NodeUnschedulable",),
    "CheckVolumeBinding": ("VolumeBinding",),
    "EvenPodsSpread": ("PodTopologySpread",),
    "EvenPodsSpreadPred": ("PodTopologySpread",),
    "GeneralPredicates": ("NodeResourcesFit", "NodeName", "NodePorts", "NodeAffinity"),
    "HostName": ("NodeName",),
    "MatchInterPodAffinity": ("InterPodAffinity",),
    "MatchNodeSelector": ("NodeAffinity",),
    "MaxAzureDiskVolumeCount": ("NodeVolumeLimits",),
    "MaxCSIVolumeCount": ("NodeVolumeLimits",),
    "MaxCSIVolumeCountPred": ("NodeVolumeLimits",),
    "MaxCinderVolumeCount": ("NodeVolumeLimits",),
    "MaxEBSVolumeCount": ("NodeVolumeLimits",),
    "MaxGCEPDVolumeCount": ("NodeVolumeLimits",),
    "NoDiskConflict": ("VolumeRestrictions",),
    "NoVolumeZoneConflict": ("VolumeZone",),
    "NodeSelector": ("NodeAffinity",),
    "PodFitsHostPorts": ("NodePorts",),
    "PodFitsPorts": ("NodePorts",),
    "PodFitsResources": ("NodeResourcesFit",),
    "PodToleratesNodeNoExecuteTaints": ("TaintToleration",),
    "PodToleratesNodeTaints": ("TaintToleration",),
    **dict.fromkeys(
        (
            "CheckNodeCondition",
            "CheckNodeDiskPressure",
            "CheckNodeMemoryPressure",
            "CheckNodePIDPressure",
        ),
        ("TaintToleration",),
    ),
}
"""By predicate of a Policy file: the plugins that filter in its place."""

PRIORITIES: Final[dict[str, str]] = {
    "BalancedResourceAllocation": "NodeResourcesBalancedAllocation",
    "EvenPodsSpreadPriority": "PodTopologySpread",
    "ImageLocalityPriority": "ImageLocality",
    "InterPodAffinityPriority": "InterPodAffinity",
    "LeastRequestedPriority": "NodeResourcesLeastAllocated",
    "MostRequestedPriority": "NodeResourcesMostAllocated",
    "NodeAffinityPriority": "NodeAffinity",
    "NodePreferAvoidPodsPriority": "NodePreferAvoidPods",
    "RequestedToCapacityRatioPriority": "RequestedToCapacityRatio",
    "ResourceLimitsPriority": "NodeResourceLimits",
    "SelectorSpreadPriority": "SelectorSpread",
    "ServiceSpreadingPriority": "SelectorSpread",
    "TaintTolerationPriority": "TaintToleration",
}
"""By priority of a Policy file: the plugin that scored in its place in Kubernetes 1.18 to 1.22."""

STRATEGIES: Final[dict[str, str]] = {
    "NodeResourcesLeastAllocated": "LeastAllocated",
    "NodeResourcesMostAllocated": "MostAllocated",
    "RequestedToCapacityRatio": "RequestedToCapacityRatio",
}
"""By plugin of the past: the strategy of NodeResourcesFit that it became."""

PAST_PLUGINS: Final[dict[str, str]] = {
    "AzureDiskLimits": _CSI,
    "CinderLimits": _CSI,
    "DefaultPodTopologySpread": "PodTopologySpread has its part, by its defaultingType System",
    "EBSLimits": _CSI,
    "GCEPDLimits": _CSI,
    "NodeLabel": "use NodeAffinity, with addedAffinity in its args",
    "NodePreferAvoidPods": "use taints of nodes",
    "NodeResourceLimits": "nothing has its part; requests decide where a pod fits",
    "SelectorSpread": "PodTopologySpread has its part, by its defaultingType System",
    "ServiceAffinity": "use InterPodAffinity",
    **{name: _STRATEGY.format(strategy) for name, strategy in STRATEGIES.items()},
}
"""By plugin: its replacement."""

_EXAMPLE: Final = "it is an example of a plugin of your own: --plugin examples/plugins/{}"

ELSEWHERE: Final[dict[str, str]] = {
    "CrossNodePreemption": "a plugin of scheduler-plugins that tries every set of victims; use "
    "DefaultPreemption, which evicts on one node",
    "LowRiskOverCommitment": "a plugin of scheduler-plugins; set requests to what the pods use, "
    "and use LoadVariationRiskBalancing",
    "NetworkOverhead": "a plugin of scheduler-plugins; use InterPodAffinity with the topology keys "
    "of zone and region, so that pods that speak with each other are near",
    "NodeMetadata": _EXAMPLE.format("node_metadata.py:NodeMetadata"),
    "Peaks": "a plugin of scheduler-plugins; moorage knows no power models: prefer nodes by "
    "NodeAffinity, or score them by a plugin of your own",
    "PodState": _EXAMPLE.format("pod_state.py:PodState"),
    "SySched": "a plugin of scheduler-plugins; moorage reads no seccomp profiles: keep such pods "
    "apart by InterPodAffinity or taints",
    "TopologicalSort": "a plugin of scheduler-plugins; use PrioritySort, and scheduling gates for "
    "pods that have to start after others",
}
"""By plugin of scheduler-plugins that moorage does not have: the means to use instead."""

PAST_FIELDS: Final[dict[str, str]] = {
    "algorithmSource": "its providers and policies became profiles",
    "bindTimeoutSeconds": "it moved into the args of VolumeBinding",
    "disablePreemption": "disable the plugin DefaultPreemption in a profile",
    "hardPodAffinitySymmetricWeight": "it is hardPodAffinityWeight in the args of InterPodAffinity",
    "healthzBindAddress": "the flags --bind-address and --secure-port say where to listen",
    "metricsBindAddress": "the flags --bind-address and --secure-port say where to listen",
    "plugins": "plugins belong to a profile",
    "schedulerName": "the name belongs to a profile",
}
"""By field at the top of the file: the place of its present meaning."""

PAST_ARGS: Final[dict[str, str]] = {
    "functionShape": "it is requestedToCapacityRatio.shape in the scoringStrategy of "
    "NodeResourcesFit",
    "functionshape": "it is requestedToCapacityRatio.shape in the scoringStrategy of "
    "NodeResourcesFit",
    "kubeConfigPath": "plugins use the scheduler's own connection",
    "kubeMaster": "plugins use the scheduler's own connection",
    "podGroupExpirationTimeSeconds": "groups are forgotten when their last pod is gone",
    "podGroupGCIntervalSeconds": "groups are forgotten when their last pod is gone",
    "resourceToWeightMap": "it is resources, a list of name and weight, in the scoringStrategy of "
    "NodeResourcesFit",
    "resourcetoweightmap": "it is resources, a list of name and weight, in the scoringStrategy of "
    "NodeResourcesFit",
}
"""By argument of a plugin: the place of its present meaning."""

_CHANGES: Final[tuple[tuple[str, str], ...]] = (
    ("v1alpha1", "the file was made anew with profiles"),
    ("v1alpha2", "the plugins of Policy files and the point unreserve are gone"),
    (
        "v1beta1",
        "the plugins NodeResourcesLeastAllocated, NodeResourcesMostAllocated and "
        "RequestedToCapacityRatio became strategies of NodeResourcesFit",
    ),
    (
        "v1beta2",
        "default weights of InterPodAffinity (2), NodeAffinity (2) and TaintToleration (3) "
        "are higher, healthzBindAddress and metricsBindAddress became flags",
    ),
    ("v1beta3", "SelectorSpread is gone, PodTopologySpread has its part"),
)
"""Versions of ``kubescheduler.config.k8s.io``, oldest first: what the next version changed."""

PAST_VERSIONS: Final = tuple(version for version, _ in _CHANGES)
"""The versions before v1, oldest first."""

POLICY: Final = (
    "the Policy file went with Kubernetes 1.23: predicates and priorities are plugins of a "
    "profile, extenders stand beside the profiles; `moorage config convert FILE` writes it anew"
)


def is_past(api_version: object) -> bool:
    """Whether an ``apiVersion`` is one of scheduler configurations before v1."""
    group, _, version = str(api_version).rpartition("/")
    return group == GROUP and version in PAST_VERSIONS


def changes_since(api_version: object) -> str:
    """Return what changed since an ``apiVersion`` of the past, "" for any other."""
    if not is_past(api_version):
        return ""
    oldest = PAST_VERSIONS.index(str(api_version).rpartition("/")[2])
    changes = "; ".join(change for _, change in _CHANGES[oldest:])
    return f"; what changed since: {changes}; `moorage config convert FILE` writes the file anew"


def instead_of(plugin: str) -> str:
    """Return ``: advice`` for a plugin of the past or of scheduler-plugins, "" for others."""
    if plugin in PREDICATES:
        advice = _PREDICATE.format(" and ".join(PREDICATES[plugin]))
    elif plugin in PRIORITIES:
        advice = _of_priority(PRIORITIES[plugin])
    else:
        advice = PAST_PLUGINS.get(plugin) or ELSEWHERE.get(plugin, "")
    return f": {advice}" if advice else ""


def _of_priority(plugin: str) -> str:
    if plugin in STRATEGIES:
        return _PRIORITY.format(_FIT.format(STRATEGIES[plugin]))
    later = PAST_PLUGINS.get(plugin)
    return f"a priority of the Policy file: {later}" if later else _PRIORITY.format(plugin)


def with_advice(fault: str) -> str:
    """Return the fault of an unknown field, with advice for a field of an earlier version."""
    found = _UNKNOWN.match(fault)
    if found is None:
        return fault
    advice = PAST_ARGS.get(found[2]) if found[1] else PAST_FIELDS.get(found[2])
    return f"{fault.partition(' (did you mean')[0]}: {advice}" if advice else fault


_UNKNOWN: Final = re.compile(
    r'unknown field "(profiles\[\d+\]\.pluginConfig\[\d+\]\.args\.)?([A-Za-z]+)"'
)
