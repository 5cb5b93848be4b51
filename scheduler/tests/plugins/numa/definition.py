"""The definition of NodeResourceTopology, as an operator installs it, and objects of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moorage_sandbox.testing.builders import Manifest

_AMOUNT = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
_TEXT = {"type": "string"}


def _list_of(**fields: Any) -> dict[str, Any]:
    return {"type": "array", "items": {"type": "object", "properties": fields}}


DEFINITION: Manifest = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {
        "name": "noderesourcetopologies.topology.node.k8s.io",
        "annotations": {"api-approved.kubernetes.io": "https://example.com/approved"},
    },
    "spec": {
        "group": "topology.node.k8s.io",
        "scope": "Cluster",
        "names": {
            "kind": "NodeResourceTopology",
            "listKind": "NodeResourceTopologyList",
            "plural": "noderesourcetopologies",
            "singular": "noderesourcetopology",
            "shortNames": ["node-res-topo"],
        },
        "versions": [
            {
                "name": "v1alpha2",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "required": ["zones"],
                        "properties": {
                            "topologyPolicies": {"type": "array", "items": _TEXT},
                            "attributes": _list_of(name=_TEXT, value=_TEXT),
                            "zones": _list_of(
                                name=_TEXT,
                                type=_TEXT,
                                costs=_list_of(name=_TEXT, value={"type": "integer"}),
                                resources=_list_of(
                                    name=_TEXT,
                                    capacity=_AMOUNT,
                                    allocatable=_AMOUNT,
                                    available=_AMOUNT,
                                ),
                            ),
                        },
                    }
                },
            }
        ],
    },
}


def topology_manifest(name: str, *cpus: str, **attributes: str) -> Mapping[str, Any]:
    """Return the topology of a node with 8Gi on each NUMA node, one for each amount of cpu."""
    settings = {"Policy": "single-numa-node", "Scope": "container", **attributes}
    return {
        "apiVersion": "topology.node.k8s.io/v1alpha2",
        "kind": "NodeResourceTopology",
        "metadata": {"name": name},
        "attributes": [
            {"name": f"topologyManager{key}", "value": value} for key, value in settings.items()
        ],
        "zones": [
            {
                "name": f"node-{number}",
                "type": "Node",
                "resources": [
                    {"name": key, "capacity": each, "allocatable": each, "available": each}
                    for key, each in (("cpu", cpu), ("memory", "8Gi"))
                ],
            }
            for number, cpu in enumerate(cpus)
        ],
    }
