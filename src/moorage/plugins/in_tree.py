"""The map of in-tree plugins: the one module that names them all.

The registry of `framework` is built from this. Nothing registers itself on import.

Rules mirrored: kubernetes v1.36 ``pkg/scheduler/framework/plugins/registry.go`` and
``pkg/scheduler/apis/config/v1/default_plugins.go``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from moorage.config import plugin_args as args
from moorage.framework.handle import Handle
from moorage.framework.points import Plugin
from moorage.plugins import not_built
from moorage.plugins.default_binder import DefaultBinder
from moorage.plugins.dynamic_resources import DynamicResources
from moorage.plugins.image_locality import ImageLocality
from moorage.plugins.node_affinity import NodeAffinity
from moorage.plugins.node_declared_features import NodeDeclaredFeatures
from moorage.plugins.node_name import NodeName
from moorage.plugins.node_ports import NodePorts
from moorage.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from moorage.plugins.node_resources_fit import NodeResourcesFit
from moorage.plugins.node_unschedulable import NodeUnschedulable
from moorage.plugins.priority_sort import PrioritySort
from moorage.plugins.scheduling_gates import SchedulingGates
from moorage.plugins.taint_toleration import TaintToleration


class Factory(msgspec.Struct, frozen=True):
    """How one plugin is made.

    Parameters
    ----------
    args_type
        Type of its arguments; made without arguments it holds the defaults.
    make
        The plugin class: ``make(args, handle)``.
    """

    args_type: type[args.Args]
    make: Callable[[Any, Handle], Plugin]


IN_TREE: Final[Mapping[str, Factory]] = {
    "SchedulingGates": Factory(args.NoArgs, SchedulingGates),
    "PrioritySort": Factory(args.NoArgs, PrioritySort),
    "NodeUnschedulable": Factory(args.NoArgs, NodeUnschedulable),
    "NodeName": Factory(args.NoArgs, NodeName),
    "TaintToleration": Factory(args.NoArgs, TaintToleration),
    "NodeAffinity": Factory(args.NodeAffinityArgs, NodeAffinity),
    "NodePorts": Factory(args.NoArgs, NodePorts),
    "NodeResourcesFit": Factory(args.NodeResourcesFitArgs, NodeResourcesFit),
    "VolumeRestrictions": Factory(args.NoArgs, not_built.VolumeRestrictions),
    "NodeVolumeLimits": Factory(args.NoArgs, not_built.NodeVolumeLimits),
    "VolumeBinding": Factory(args.VolumeBindingArgs, not_built.VolumeBinding),
    "VolumeZone": Factory(args.NoArgs, not_built.VolumeZone),
    "PodTopologySpread": Factory(args.PodTopologySpreadArgs, not_built.PodTopologySpread),
    "InterPodAffinity": Factory(args.InterPodAffinityArgs, not_built.InterPodAffinity),
    "DynamicResources": Factory(args.DynamicResourcesArgs, DynamicResources),
    "DefaultPreemption": Factory(args.DefaultPreemptionArgs, not_built.DefaultPreemption),
    "NodeResourcesBalancedAllocation": Factory(
        args.NodeResourcesBalancedAllocationArgs, NodeResourcesBalancedAllocation
    ),
    "ImageLocality": Factory(args.NoArgs, ImageLocality),
    "DefaultBinder": Factory(args.NoArgs, DefaultBinder),
    "NodeDeclaredFeatures": Factory(args.NoArgs, NodeDeclaredFeatures),
}
"""By name, in the order of the default profile."""

_WEIGHTS: Final = {
    "TaintToleration": 3,
    "NodeAffinity": 2,
    "NodeResourcesFit": 1,
    "PodTopologySpread": 2,
    "InterPodAffinity": 2,
    "DynamicResources": 2,
    "NodeResourcesBalancedAllocation": 1,
    "ImageLocality": 1,
}

DEFAULT_MULTI_POINT: Final[tuple[tuple[str, int], ...]] = tuple(
    (name, _WEIGHTS.get(name, 0)) for name in IN_TREE
)
"""The default profile: (name, weight) in order; weight 0 where none is set."""

NOT_BUILT: Final[frozenset[str]] = frozenset(
    name for name, factory in IN_TREE.items() if getattr(factory.make, "not_built", False)
)
"""Names whose plugin only guards: it holds the pods that need the real one."""
