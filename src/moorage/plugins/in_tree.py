"""The map of in-tree plugins: the one module that names them all.

The registry of `framework` is built from this. Nothing registers itself on import. Which of them
are enabled, where and with what weight is `config`'s business.

Rules mirrored: kubernetes v1.36 ``pkg/scheduler/framework/plugins/registry.go``.
"""

from __future__ import annotations

from typing import Any, Final

from moorage.config.args import args_type
from moorage.framework.containment import Containment
from moorage.framework.registry import PluginEntry, Registry
from moorage.plugins.capacity_scheduling import CapacityScheduling
from moorage.plugins.coscheduling import Coscheduling
from moorage.plugins.default_binder import DefaultBinder
from moorage.plugins.default_preemption import DefaultPreemption
from moorage.plugins.dynamic_resources import DynamicResources
from moorage.plugins.gang_scheduling import GangScheduling
from moorage.plugins.image_locality import ImageLocality
from moorage.plugins.inter_pod_affinity import InterPodAffinity
from moorage.plugins.node_affinity import NodeAffinity
from moorage.plugins.node_declared_features import NodeDeclaredFeatures
from moorage.plugins.node_name import NodeName
from moorage.plugins.node_ports import NodePorts
from moorage.plugins.node_resources_allocatable import NodeResourcesAllocatable
from moorage.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from moorage.plugins.node_resources_fit import NodeResourcesFit
from moorage.plugins.node_unschedulable import NodeUnschedulable
from moorage.plugins.node_volume_limits import NodeVolumeLimits
from moorage.plugins.pod_group_pods_count import PodGroupPodsCount
from moorage.plugins.pod_topology_spread import PodTopologySpread
from moorage.plugins.preemption_toleration import PreemptionToleration
from moorage.plugins.priority_sort import PrioritySort
from moorage.plugins.qos_sort import QOSSort
from moorage.plugins.scheduling_gates import SchedulingGates
from moorage.plugins.taint_toleration import TaintToleration
from moorage.plugins.topology_placement import TopologyPlacementGenerator
from moorage.plugins.volume_binding import VolumeBinding
from moorage.plugins.volume_restrictions import VolumeRestrictions
from moorage.plugins.volume_zone import VolumeZone

_PLUGINS: Final[tuple[type[Any], ...]] = (
    SchedulingGates,
    PrioritySort,
    NodeUnschedulable,
    NodeName,
    TaintToleration,
    NodeAffinity,
    NodePorts,
    NodeResourcesFit,
    VolumeRestrictions,
    NodeVolumeLimits,
    VolumeBinding,
    VolumeZone,
    PodTopologySpread,
    InterPodAffinity,
    DynamicResources,
    DefaultPreemption,
    NodeResourcesBalancedAllocation,
    ImageLocality,
    DefaultBinder,
    NodeDeclaredFeatures,
    GangScheduling,
    TopologyPlacementGenerator,
    PodGroupPodsCount,
)


def _entry(plugin: type[Any]) -> PluginEntry:
    return PluginEntry(name=plugin.name, plugin_class=plugin, args_type=args_type(plugin.name))


IN_TREE: Final[tuple[PluginEntry, ...]] = tuple(_entry(plugin) for plugin in _PLUGINS)
"""The plugins of the default profile and those that feature gates add, in their order."""

OPTIONAL: Final[tuple[PluginEntry, ...]] = tuple(
    _entry(plugin)
    for plugin in (
        QOSSort,
        Coscheduling,
        NodeResourcesAllocatable,
        CapacityScheduling,
        PreemptionToleration,
    )
)
"""In-tree plugins that no profile has unless its configuration enables them."""


def in_tree_registry(containment: Containment | None = None) -> Registry:
    """Return a new registry of the in-tree plugins, to which others can be added.

    Parameters
    ----------
    containment
        How those others are called; without a time budget when None.
    """
    return Registry((*IN_TREE, *OPTIONAL), containment=containment)
