"""Names of earlier Kubernetes versions, and their replacements.

`load` and `merge` add the advice to their faults, so that an old file tells how to renew it.

Source: kubernetes v1.20 to v1.36 ``pkg/scheduler/apis/config`` and the notes on migrating scheduler
configurations that came with v1beta2, v1beta3 and v1.
"""

from __future__ import annotations

import re
from typing import Final

_STRATEGY: Final = (
    "it became a strategy of NodeResourcesFit: set scoringStrategy.type to {} in its args"
)
_CSI: Final = "NodeVolumeLimits has its part, since these volumes are served by CSI drivers"

PAST_PLUGINS: Final[dict[str, str]] = {
    "AzureDiskLimits": _CSI,
    "CinderLimits": _CSI,
    "DefaultPodTopologySpread": "PodTopologySpread has its part, by its defaultingType System",
    "EBSLimits": _CSI,
    "GCEPDLimits": _CSI,
    "NodeLabel": "use NodeAffinity, with addedAffinity in its args",
    "NodePreferAvoidPods": "use taints of nodes",
    "NodeResourcesLeastAllocated": _STRATEGY.format("LeastAllocated"),
    "NodeResourcesMostAllocated": _STRATEGY.format("MostAllocated"),
    "RequestedToCapacityRatio": _STRATEGY.format("RequestedToCapacityRatio"),
    "SelectorSpread": "PodTopologySpread has its part, by its defaultingType System",
    "ServiceAffinity": "use InterPodAffinity",
}
"""By plugin: its replacement."""

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

PAST_VERSIONS: Final[dict[str, str]] = {
    "v1alpha1": "the file was made anew with profiles",
    "v1alpha2": "healthzBindAddress and metricsBindAddress became flags",
    "v1beta1": "the plugins NodeResourcesLeastAllocated, NodeResourcesMostAllocated and "
    "RequestedToCapacityRatio became strategies of NodeResourcesFit",
    "v1beta2": "default weights of InterPodAffinity (2), NodeAffinity (2) and TaintToleration (3) "
    "are higher, healthzBindAddress and metricsBindAddress became flags",
    "v1beta3": "SelectorSpread is gone, PodTopologySpread has its part",
}
"""By version of ``kubescheduler.config.k8s.io``: the later changes, besides this line."""

POLICY: Final = (
    "the Policy file went with Kubernetes 1.23: predicates and priorities are plugins of a "
    "profile, extenders stand beside the profiles"
)


def instead_of(plugin: str) -> str:
    """Return ``: advice`` for a plugin of the past, "" for any other name."""
    advice = PAST_PLUGINS.get(plugin)
    return f": {advice}" if advice else ""


def with_advice(fault: str) -> str:
    """Return the fault of an unknown field, with advice for a field of an earlier version."""
    found = _UNKNOWN.match(fault)
    advice = PAST_FIELDS.get(found[1]) if found else None
    return f"{fault.partition(' (did you mean')[0]}: {advice}" if advice else fault


_UNKNOWN: Final = re.compile(r'unknown field "([A-Za-z]+)"')
