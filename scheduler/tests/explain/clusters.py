"""Small clusters in memory, made of manifests, for the tests of explanations."""

from __future__ import annotations

import json
from typing import Any

from moorage.api.pod import Pod
from moorage.config.own import LoadedConfiguration
from moorage.explain.answer import Explanation
from moorage.explain.explaining import QUICK, Effort, explain
from moorage.plugins.in_tree import in_tree_registry
from moorage.virtual.deciding_half import ClusterInputs
from moorage.virtual.objects import read_objects
from moorage_sandbox.testing.builders import Manifest, pod_manifest


def waiting(name: str, **fields: Any) -> Manifest:
    """Return a pod without a node, as an API server would show it."""
    manifest = pod_manifest(name, **fields)
    manifest["metadata"]["uid"] = f"uid-{manifest['metadata']['namespace']}-{name}"
    manifest["spec"].setdefault("schedulerName", "default-scheduler")
    return manifest


def bound(name: str, node_name: str, **fields: Any) -> Manifest:
    """Return a pod on a node."""
    return waiting(name, node_name=node_name, **fields)


def inputs_of(*manifests: Manifest, config: LoadedConfiguration | None = None) -> ClusterInputs:
    """Return a model of these objects; an unreadable one fails the test."""
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(manifests)})
    objects = read_objects(text.encode(), "the test")
    assert not objects.unreadable, objects.unreadable
    return ClusterInputs(
        objects=objects, registry=in_tree_registry(), config=config or LoadedConfiguration()
    )


def pod_of(inputs: ClusterInputs, name: str) -> Pod:
    """Return a pod of the namespace default."""
    return inputs.objects.pods["default", name]


def explained(
    *manifests: Manifest,
    name: str = "p",
    effort: Effort = QUICK,
    config: LoadedConfiguration | None = None,
) -> Explanation:
    """Explain the pod of this name in a cluster of these objects."""
    inputs = inputs_of(*manifests, config=config)
    return explain(inputs.fill().core, pod_of(inputs, name), effort)
