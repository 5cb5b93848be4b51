"""A small cluster of three nodes for tests of changes, with the objects that own its pods."""

from __future__ import annotations

import json
from typing import Any

from moorage.plugins.in_tree import in_tree_registry
from moorage.virtual.deciding_half import ClusterInputs
from moorage.virtual.objects import read_objects
from moorage_sandbox.testing.builders import Manifest, node_manifest, pod_manifest

COSCHEDULING = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    multiPoint:
      enabled: [{name: Coscheduling}]
    queueSort:
      enabled: [{name: Coscheduling}]
      disabled: [{name: "*"}]
"""
"""The configuration of a scheduler that places Coscheduling's groups."""


def replica_set(name: str, replicas: int, cpu: str = "2") -> Manifest:
    """Return a ReplicaSet of pods with the label ``app``."""
    container = {"name": "main", "image": "app", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [container]},
            },
        },
    }


def pod_of(owner: str, number: int, node_name: str = "", **fields: Any) -> Manifest:
    """Return a pod of a ReplicaSet."""
    fields.setdefault("cpu", "2")
    pod = bare(f"{owner}-{number}", node_name, labels={"app": owner}, **fields)
    pod["metadata"]["ownerReferences"] = [
        {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "name": owner,
            "uid": f"uid-{owner}",
            "controller": True,
        }
    ]
    return pod


def bare(name: str, node_name: str = "", **fields: Any) -> Manifest:
    """Return a pod without an owner."""
    pod = pod_manifest(name, node_name=node_name, schedulerName="default-scheduler", **fields)
    pod["metadata"]["uid"] = f"uid-{name}"
    return pod


def inputs_of(*items: Manifest, nodes: int = 3) -> ClusterInputs:
    """Return a model of nodes ``n1``, ``n2`` and so on, with 4 cores each, and further objects."""
    listed = [node_manifest(f"n{number}") for number in range(1, nodes + 1)]
    text = json.dumps({"kind": "List", "items": [*listed, *items]})
    return ClusterInputs(objects=read_objects(text.encode(), "test"), registry=in_tree_registry())
