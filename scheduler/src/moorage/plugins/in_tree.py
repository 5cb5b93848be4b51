"""The map of in-tree plugins: the only module that names all plugins.

The registry of `framework` is built from this map. No plugin registers itself on import. `config`
decides which plugins are enabled, at which extension points and with which weight.

Rules mirrored: kubernetes v1.36 ``pkg/scheduler/framework/plugins/registry.go``.
"""

from __future__ import annotations

from typing import Any, Final

from moorage.config.args import args_type
from moorage.framework.containment import Containment
from moorage.framework.registry import PluginEntry, Registry
from moorage.plugins.affinity.inter_pod_affinity import InterPodAffinity
from moorage.plugins.binding.default_binder import DefaultBinder
from moorage.plugins.claims.dynamic_resources import DynamicResources
from moorage.plugins.gangs.coscheduling import Coscheduling
from moorage.plugins.gangs.gang_scheduling import GangScheduling
from moorage.plugins.gangs.pod_group_pods_count import PodGroupPodsCount
from moorage.plugins.gangs.topology_placement_generator import TopologyPlacementGenerator
from moorage.plugins.gpu_share.gpu_best_fit import GpuBestFit
from moorage.plugins.gpu_share.gpu_clustering import GpuClustering
from moorage.plugins.gpu_share.gpu_dot_product import GpuDotProduct
from moorage.plugins.gpu_share.gpu_fragmentation import GpuFragmentation
from moorage.plugins.gpu_share.gpu_lookahead import GpuLookahead
from moorage.plugins.gpu_share.gpu_packing import GpuPacking
from moorage.plugins.gpu_share.gpu_random import GpuRandom
from moorage.plugins.gpu_share.gpu_share import GpuShare
from moorage.plugins.load.load_variation_risk_balancing import LoadVariationRiskBalancing
from moorage.plugins.load.target_load_packing import TargetLoadPacking
from moorage.plugins.nodes.image_locality import ImageLocality
from moorage.plugins.nodes.node_affinity import NodeAffinity
from moorage.plugins.nodes.node_declared_features import NodeDeclaredFeatures
from moorage.plugins.nodes.node_name import NodeName
from moorage.plugins.nodes.node_ports import NodePorts
from moorage.plugins.nodes.node_unschedulable import NodeUnschedulable
from moorage.plugins.nodes.taint_toleration import TaintToleration
from moorage.plugins.numa.node_resource_topology_match import NodeResourceTopologyMatch
from moorage.plugins.preemption.default_preemption import DefaultPreemption
from moorage.plugins.preemption.preemption_toleration import PreemptionToleration
from moorage.plugins.queue.priority_sort import PrioritySort
from moorage.plugins.queue.qos_sort import QOSSort
from moorage.plugins.queue.scheduling_gates import SchedulingGates
from moorage.plugins.quotas.capacity_scheduling import CapacityScheduling
from moorage.plugins.resources.node_resources_allocatable import NodeResourcesAllocatable
from moorage.plugins.resources.node_resources_balanced_allocation import (
    NodeResourcesBalancedAllocation,
)
from moorage.plugins.resources.node_resources_fit import NodeResourcesFit
from moorage.plugins.spread.pod_topology_spread import PodTopologySpread
from moorage.plugins.volumes.node_volume_limits import NodeVolumeLimits
from moorage.plugins.volumes.volume_binding import VolumeBinding
from moorage.plugins.volumes.volume_restrictions import VolumeRestrictions
from moorage.plugins.volumes.volume_zone import VolumeZone
from moorage.snapshot.group_labels import CUSTOM_SOURCE, LABEL_SOURCE
from moorage.snapshot.group_sources import API_SOURCE

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


_GPU_SHARING: Final = (
    GpuShare,
    GpuRandom,
    GpuDotProduct,
    GpuClustering,
    GpuPacking,
    GpuBestFit,
    GpuFragmentation,
    GpuLookahead,
)
_GROUP_SOURCES: Final[dict[type[Any], tuple[str, ...]]] = {
    GangScheduling: (API_SOURCE,),
    Coscheduling: (CUSTOM_SOURCE, LABEL_SOURCE),
}


def _entry(plugin: type[Any]) -> PluginEntry:
    return PluginEntry(
        name=plugin.name,
        plugin_class=plugin,
        args_type=args_type(plugin.name),
        group_sources=_GROUP_SOURCES.get(plugin, ()),
        family="gpu-sharing" if plugin in _GPU_SHARING else "",
    )


IN_TREE: Final[tuple[PluginEntry, ...]] = tuple(_entry(plugin) for plugin in _PLUGINS)
"""The plugins of the default profile and the plugins that feature gates add, in their order."""

OPTIONAL: Final[tuple[PluginEntry, ...]] = tuple(
    _entry(plugin)
    for plugin in (
        QOSSort,
        Coscheduling,
        NodeResourcesAllocatable,
        CapacityScheduling,
        PreemptionToleration,
        NodeResourceTopologyMatch,
        TargetLoadPacking,
        LoadVariationRiskBalancing,
        *_GPU_SHARING,
    )
)
"""In-tree plugins that a profile has only if its configuration enables them."""


def in_tree_registry(containment: Containment | None = None) -> Registry:
    """Return a new registry of the in-tree plugins; other plugins can be added.

    Parameters
    ----------
    containment
        How other plugins are called; without a time budget when None.
    """
    return Registry((*IN_TREE, *OPTIONAL), containment=containment)
