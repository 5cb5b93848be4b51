"""Arguments of NodeResourceTopologyMatch; `args` uses this module.

Mirrors scheduler-plugins v0.35 ``apis/config/v1`` (types.go, defaults.go) and
``apis/config/validation``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from moorage.config.plugin_args import (
    LEAST_ALLOCATED,
    MOST_ALLOCATED,
    Args,
    ArgsKind,
    ResourceSpec,
)
from moorage.config.strict import invalid, unsupported

__all__ = [
    "ALL",
    "AUTODETECT",
    "BALANCED_ALLOCATION",
    "DEDICATED",
    "LEAST_ALLOCATED",
    "LEAST_NUMA_NODES",
    "MOST_ALLOCATED",
    "NONE",
    "NUMA_ARGS_KINDS",
    "ONLY_EXCLUSIVE",
    "NodeResourceTopologyMatchArgs",
    "TopologyCache",
    "TopologyScoring",
    "validate_node_resource_topology_match_args",
    "with_numa_defaults",
]

BALANCED_ALLOCATION: Final = "BalancedAllocation"
LEAST_NUMA_NODES: Final = "LeastNUMANodes"

ALL: Final = "All"
AUTODETECT: Final = "Autodetect"
DEDICATED: Final = "Dedicated"
NONE: Final = "None"
ONLY_EXCLUSIVE: Final = "OnlyExclusiveResources"

_CACHE_VALUES: Final[Mapping[str, tuple[str, ...]]] = {
    "foreign_pods_detect": (ALL, NONE, ONLY_EXCLUSIVE),
    "resync_method": (ALL, AUTODETECT, ONLY_EXCLUSIVE),
    "informer_mode": (DEDICATED, "Shared"),
    "resync_scope": (ALL, "OnlyResources"),
}
_STRATEGIES: Final = (LEAST_ALLOCATED, MOST_ALLOCATED, BALANCED_ALLOCATION, LEAST_NUMA_NODES)
_CPU_AND_MEMORY: Final = (ResourceSpec(name="cpu", weight=1), ResourceSpec(name="memory", weight=1))


class TopologyScoring(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True
):
    """How the NUMA nodes of a node score."""

    type: str = ""
    """Needed. LeastAllocated: much left first; MostAllocated: little left first;
    BalancedAllocation: like shares of all resources first; LeastNUMANodes: few NUMA nodes first."""
    resources: tuple[ResourceSpec, ...] = _CPU_AND_MEMORY
    """Weights of resources for LeastAllocated and MostAllocated; of any other resource 1."""


class TopologyCache(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True
):
    """How the cache of assumed use behaves; ignored without `cache_resync_period_seconds`."""

    foreign_pods_detect: str = "All"
    """The pods of other schedulers that make a node's topology uncertain: All,
    OnlyExclusiveResources, or None."""
    resync_method: str = "Autodetect"
    """The pods in a node's fingerprint: All, OnlyExclusiveResources, or Autodetect, as the topology
    says."""
    informer_mode: str = "Dedicated"
    """The pods that count in a fingerprint: Dedicated, all that left Pending; Shared, those that
    are Running."""
    resync_scope: str = "All"
    """The changes that renew a topology: All, also of the kubelet's settings; OnlyResources."""


class NodeResourceTopologyMatchArgs(Args, frozen=True, kw_only=True):
    """How nodes score, and how the scheduler treats topologies that lag behind its decisions."""

    scoring_strategy: TopologyScoring = TopologyScoring(type=LEAST_ALLOCATED)
    """The strategy, LeastAllocated by default."""
    cache_resync_period_seconds: int = 0
    """More than 0: the requests of pods that the scheduler placed count on every NUMA node of their
    node, until the topology has taken them in; this is looked at after so many seconds."""
    discard_reserved_nodes: bool = False
    """Whether a node is left out while a pod is being bound to it; comes before the cache."""
    cache: TopologyCache = TopologyCache()
    """Further settings of the cache."""


def with_numa_defaults(args: Args) -> Args:
    """Return arguments with what a file may leave open filled in: resources, and weights."""
    if not isinstance(args, NodeResourceTopologyMatchArgs):
        return args
    strategy = args.scoring_strategy
    resources = tuple(
        msgspec.structs.replace(each, weight=each.weight or 1)
        for each in strategy.resources or _CPU_AND_MEMORY
    )
    strategy = msgspec.structs.replace(strategy, resources=resources)
    return msgspec.structs.replace(args, scoring_strategy=strategy)


def validate_node_resource_topology_match_args(
    args: NodeResourceTopologyMatchArgs, path: str
) -> list[str]:
    """Return the faults of the arguments as field errors."""
    at = f"{path}." if path else ""
    faults = []
    strategy = args.scoring_strategy.type
    if strategy not in _STRATEGIES:
        rule = f"invalid ScoringStrategyType: one of {', '.join(_STRATEGIES)}"
        faults.append(invalid(f"{at}scoringStrategy.type", strategy, rule))
    for name, accepted in _CACHE_VALUES.items():
        value = getattr(args.cache, name)
        if value not in accepted:
            written = msgspec.structs.fields(args.cache)
            field = next(each.encode_name for each in written if each.name == name)
            faults.append(unsupported(f"{at}cache.{field}", value, accepted))
    return faults


NUMA_ARGS_KINDS: Final[Mapping[str, ArgsKind]] = {
    "NodeResourceTopologyMatch": ArgsKind(
        NodeResourceTopologyMatchArgs, validate_node_resource_topology_match_args
    ),
}
"""By plugin name."""
