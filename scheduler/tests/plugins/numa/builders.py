"""Topologies, nodes that offer what their zones have, and pods of several containers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from moorage.api.codec import from_dict
from moorage.api.custom.node_topology import NodeResourceTopology
from moorage.api.meta import ResourceList
from moorage.api.pod import Pod
from moorage.api.quantity import parse_quantity
from moorage.snapshot.snapshot import Snapshot
from scheduler.tests.plugins.builders import cluster, node
from scheduler.tests.plugins.builders import pod as one_container

Zone = Mapping[str, Any]
"""Available amounts by resource; under "costs" the distances by zone."""


def topology(
    name: str, zones: Mapping[str, Zone], *, policy: str = "", attributes: Mapping[str, str] = {}
) -> NodeResourceTopology:
    """Return the topology of a node; `policy` is a value of the old field."""
    return from_dict(
        NodeResourceTopology,
        {
            "metadata": {"name": name},
            "topologyPolicies": [policy] if policy else [],
            "attributes": [{"name": key, "value": each} for key, each in attributes.items()],
            "zones": [
                {
                    "name": zone,
                    "type": "Node",
                    "costs": [
                        {"name": other, "value": value}
                        for other, value in contents.get("costs", {}).items()
                    ],
                    "resources": [
                        {"name": key, "capacity": each, "allocatable": each, "available": each}
                        for key, each in contents.items()
                        if key != "costs"
                    ],
                }
                for zone, contents in zones.items()
            ],
        },
    )


def offered(of: NodeResourceTopology, more: ResourceList | None = None) -> ResourceList:
    """Return what all zones of a topology offer together, and more."""
    total: dict[str, int] = {}
    for zone in of.zones:
        for resource in zone.resources:
            nano = parse_quantity(resource.available)
            total[resource.name] = total.get(resource.name, 0) + nano
    amounts = {name: f"{nano}n" for name, nano in total.items()}
    return {"pods": "110", **amounts, **(more or {})}


def nodes_of(
    topologies: Iterable[NodeResourceTopology],
    *,
    without: Sequence[str] = (),
    more: Mapping[str, ResourceList] = {},
) -> Snapshot:
    """Return a cluster with a node for each topology; nodes `without` have no topology."""
    topologies = list(topologies)
    snapshot = cluster(
        *(node(each.name, allocatable=offered(each, more.get(each.name))) for each in topologies)
    )
    for each in topologies:
        if each.name not in without:
            snapshot.listers.node_topologies.put(each)
    return snapshot


def pod_of(
    containers: Sequence[Mapping[str, str]],
    *,
    init: Sequence[Mapping[str, str]] = (),
    limits: Sequence[Mapping[str, str]] | None = None,
) -> Pod:
    """Return a pod; the limits of a container are its requests where not given."""
    limits = containers if limits is None else limits
    return one_container(
        initContainers=[_container(f"i{at}", each, each) for at, each in enumerate(init)],
        containers=[
            _container(f"c{at}", *both)
            for at, both in enumerate(zip(containers, limits, strict=True))
        ],
    )


def _container(name: str, requests: Mapping[str, str], limits: Mapping[str, str]) -> dict[str, Any]:
    return {"name": name, "resources": {"requests": dict(requests), "limits": dict(limits)}}
