"""One NodeResourceTopology in numbers: the NUMA nodes of a node, and the rules of its kubelet.

Rules mirrored: scheduler-plugins v0.35 ``pkg/noderesourcetopology/nodeconfig`` and
``pluginhelpers.go``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from moorage.api.custom.node_topology import NodeResourceTopology, TopologyZone
from moorage.api.names import CPU
from moorage.api.quantity import NANO, parse_quantity

SINGLE_NUMA_NODE: Final = "single-numa-node"
CONTAINER: Final = "container"
POD: Final = "pod"

_MILLI: Final = NANO // 1000
_NUMA_NODE: Final = "Node"
_NAME: Final = re.compile(r"node-([0-9]{1,3})")
_NUMBER_MOST: Final = 63  # the topology manager's masks have 64 bits
_ZONES_MOST: Final = 8  # of the topology manager, unless the node says otherwise
_ZONES_LIMIT: Final = 1024
_SCOPES: Final = (CONTAINER, POD)
_POLICIES: Final = ("none", "best-effort", "restricted", SINGLE_NUMA_NODE)
_OLD_POLICIES: Final[Mapping[str, tuple[str, str]]] = {
    "SingleNUMANodePodLevel": (SINGLE_NUMA_NODE, POD),
    "SingleNUMANodeContainerLevel": (SINGLE_NUMA_NODE, CONTAINER),
    "BestEffortPodLevel": ("best-effort", POD),
    "BestEffortContainerLevel": ("best-effort", CONTAINER),
    "RestrictedPodLevel": ("restricted", POD),
    "RestrictedContainerLevel": ("restricted", CONTAINER),
}
"""Values of the field ``topologyPolicies``, which attributes replace: policy and scope."""

Amounts = tuple[tuple[str, int], ...]
"""Sorted by resource name; cpu in millicores, everything else in whole units."""


class TopologyManager(msgspec.Struct, frozen=True):
    """The settings of a kubelet's topology manager.

    Parameters
    ----------
    policy, scope
        As the kubelet's configuration names them.
    zones_max
        The most NUMA nodes that it handles.
    """

    policy: str = "none"
    scope: str = CONTAINER
    zones_max: int = _ZONES_MOST


class NumaNode(msgspec.Struct, frozen=True):
    """One NUMA node.

    Parameters
    ----------
    number
        0 to 63.
    available
        What running pods leave, of each resource that the NUMA node has.
    costs
        Distances, by number of the other NUMA node.
    """

    number: int
    available: Amounts
    costs: tuple[tuple[int, int], ...]


class NodeZones(msgspec.Struct, frozen=True):
    """The NUMA nodes of one node, by number, and the settings of its topology manager."""

    manager: TopologyManager
    numa_nodes: tuple[NumaNode, ...]


def zones_of(topology: NodeResourceTopology) -> NodeZones:
    """Return a topology in numbers.

    Zones of another type, and zones whose name has no usable number, are left out. So are amounts
    that cannot be read.
    """
    numa_nodes = {}
    for zone in topology.zones:
        number = _number_of(zone.name) if zone.type == _NUMA_NODE else None
        if number is not None:
            numa_nodes[number] = NumaNode(number, _available(zone), _costs(zone))
    ordered = tuple(numa_nodes[number] for number in sorted(numa_nodes))
    return NodeZones(manager_of(topology), ordered)


def manager_of(topology: NodeResourceTopology) -> TopologyManager:
    """Return the settings of the kubelet: the first policy, then attributes, which win."""
    settings = TopologyManager()
    old = _OLD_POLICIES.get(topology.topology_policies[0]) if topology.topology_policies else None
    if old is not None:
        settings = TopologyManager(*old)
    for attribute in topology.attributes:
        value = attribute.value
        if attribute.name == "topologyManagerScope" and value in _SCOPES:
            settings = msgspec.structs.replace(settings, scope=value)
        elif attribute.name == "topologyManagerPolicy" and value in _POLICIES:
            settings = msgspec.structs.replace(settings, policy=value)
        elif attribute.name == "topologyManagerMaxNUMANodes" and _is_count(value):
            most = min(int(value), _ZONES_LIMIT)
            settings = msgspec.structs.replace(settings, zones_max=most)
    return settings


def without(zones: NodeZones, assumed: Mapping[str, int]) -> NodeZones:
    """Return the zones with amounts taken from every NUMA node, down to 0.

    Which NUMA node a pod will get is the kubelet's choice, so its request counts on each of them.
    """
    numa_nodes = tuple(
        NumaNode(each.number, tuple(_remaining(each.available, assumed)), each.costs)
        for each in zones.numa_nodes
    )
    return NodeZones(zones.manager, numa_nodes)


def _remaining(available: Amounts, assumed: Mapping[str, int]) -> Iterable[tuple[str, int]]:
    for name, amount in available:
        yield name, max(amount - assumed.get(name, 0), 0)


def _number_of(name: str) -> int | None:
    match = _NAME.fullmatch(name)
    number = int(match[1]) if match else _NUMBER_MOST + 1
    return number if number <= _NUMBER_MOST else None


def _available(zone: TopologyZone) -> Amounts:
    amounts = {}
    for resource in zone.resources:
        try:
            nano = parse_quantity(resource.available)
        except ValueError:
            continue
        amounts[resource.name] = nano // (_MILLI if resource.name == CPU else NANO)
    return tuple(sorted(amounts.items()))


def _costs(zone: TopologyZone) -> tuple[tuple[int, int], ...]:
    numbers = {_number_of(cost.name): cost.value for cost in zone.costs}
    return tuple((number, value) for number, value in numbers.items() if number is not None)


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdecimal() and int(text[:5]) > 1
