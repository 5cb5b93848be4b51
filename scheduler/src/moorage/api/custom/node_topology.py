"""topology.node.k8s.io/v1alpha2 NodeResourceTopology: the NUMA nodes of one node.

A custom resource: a server serves it only where its definition is installed. An exporter on each
node writes the object, which has the name of the node. Source:
``k8stopologyawareschedwg/noderesourcetopology-api`` v0.1, ``pkg/apis/topology/v1alpha2``.
"""

# ruff: noqa: RUF012  (the codec library gives every struct its own copy of [] and {})
from __future__ import annotations

from moorage.api.meta import ApiObject, ApiStruct, Quantity


class TopologyAttribute(ApiStruct, frozen=True, kw_only=True):
    """A property of a node or of a zone, by name."""

    name: str = ""
    value: str = ""


class ZoneCost(ApiStruct, frozen=True, kw_only=True):
    """The distance of a zone to the zone of this name."""

    name: str = ""
    value: int = 0


class ZoneResource(ApiStruct, frozen=True, kw_only=True):
    """A resource of one zone; ``available`` is what running pods leave of ``allocatable``."""

    name: str = ""
    capacity: Quantity = "0"
    allocatable: Quantity = "0"
    available: Quantity = "0"


class TopologyZone(ApiStruct, frozen=True, kw_only=True):
    """A part of a node: a NUMA node has the type ``Node`` and a name such as ``node-0``."""

    name: str = ""
    type: str = ""
    parent: str = ""
    costs: list[ZoneCost] = []
    attributes: list[TopologyAttribute] = []
    resources: list[ZoneResource] = []


class NodeResourceTopology(ApiObject, frozen=True, kw_only=True):
    """topology.node.k8s.io/v1alpha2 NodeResourceTopology."""

    topology_policies: list[str] = []
    zones: list[TopologyZone] = []
    attributes: list[TopologyAttribute] = []
