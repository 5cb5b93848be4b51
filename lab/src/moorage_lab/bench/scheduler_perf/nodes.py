"""createNodes: nodes from a template, prepared by one of three strategies.

Every node has its name as the label ``kubernetes.io/hostname``, as the kubelet sets it. Templates
of the suite count on that: without the label no rule about hosts applies to a node.

Source: kubernetes v1.36 test/integration/scheduler_perf (``makeBaseNode``,
``IntegrationTestNodePreparer``), test/utils/runners.go (the strategies). Each node is prepared
before it is created, where the suite patches it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from moorage.api.resources import NODES
from moorage.base.errors import ConflictError
from moorage.base.ids import name_suffix, new_uid
from moorage.base.rng import Random
from moorage.client.requests import MERGE_PATCH, patch_body
from moorage_lab.bench.manifests import HOSTNAME
from moorage_lab.bench.scheduler_perf.objects import several
from moorage_lab.bench.scheduler_perf.operations import CreateNodes, NodeAllocatableStrategy
from moorage_lab.bench.scheduler_perf.scene import Scene
from moorage_lab.bench.scheduler_perf.templates import Manifest

_ROOM: Final = {"pods": "110", "cpu": "4", "memory": "32Gi"}
_NOT_READY: Final = "node.kubernetes.io/not-ready"
_MIGRATED: Final = "storage.alpha.kubernetes.io/migrated-plugins"


async def create_nodes(scene: Scene, op: CreateNodes, index: int) -> None:
    """Create the nodes of an operation.

    Parameters
    ----------
    index
        Index of the operation, part of the names of default nodes.
    """
    if op.node_template_path:
        nodes = scene.manifests(op.node_template_path, op.count, op.template_params)
    else:
        nodes = [_default(f"node-{index}-") for _ in range(op.count)]
    for number, node in enumerate(nodes):
        _prepare(node, op, number, scene.rng)
    strategy = op.node_allocatable_strategy

    async def create(node: Manifest) -> None:
        await _create(scene, node)
        if strategy is not None:
            await scene.objects.create_object(_csi_node(node["metadata"]["name"], strategy))

    await several(nodes, create)


async def _create(scene: Scene, node: Manifest) -> None:
    """Create a node under its name, or under a new one if the name it was given is taken."""
    metadata = node.setdefault("metadata", {})
    prefix = "" if metadata.get("name") else metadata.get("generateName", "")
    while True:
        if prefix:
            metadata["name"] = f"{prefix}{name_suffix(scene.rng)}"
        _label(node, HOSTNAME, metadata.get("name", ""))
        try:
            created = await scene.objects.create_object(node)
        except ConflictError:
            if not prefix:
                raise
        else:
            await _untaint(scene, node, created)
            return


async def _untaint(scene: Scene, node: Manifest, created: Manifest) -> None:
    """Take back the taint that admission gives to new nodes.

    A controller of a whole cluster would do it. The suite's own server runs without that plugin
    (``TaintNodesByCondition``).
    """
    wanted, found = (each.get("spec", {}).get("taints") or [] for each in (node, created))
    if _NOT_READY not in {taint["key"] for taint in found} - {taint["key"] for taint in wanted}:
        return
    await scene.objects.client.patch(
        NODES,
        created["metadata"]["name"],
        patch_body({"spec": {"taints": wanted or None}}),
        content_type=MERGE_PATCH,
    )


def _default(prefix: str) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"generateName": prefix},
        "status": {
            "capacity": dict(_ROOM),
            "allocatable": dict(_ROOM),
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def _prepare(node: Manifest, op: CreateNodes, number: int, rng: Random) -> None:
    """Change a node as its strategy asks; the first strategy that is given counts."""
    if op.node_allocatable_strategy is not None:
        status = node.setdefault("status", {})
        status["allocatable"] = {
            **status.get("capacity", {}),
            **status.get("allocatable", {}),
            **op.node_allocatable_strategy.node_allocatable,
        }
    elif op.label_node_prepare_strategy is not None:
        values = op.label_node_prepare_strategy.label_values
        _label(node, op.label_node_prepare_strategy.label_key, values[number % len(values)])
    elif op.unique_node_label_strategy is not None:
        _label(node, op.unique_node_label_strategy.label_key, new_uid(rng))


def _label(node: Manifest, key: str, value: str) -> None:
    labels = node.setdefault("metadata", {}).get("labels")
    node["metadata"]["labels"] = {**(labels or {}), key: value}


def _csi_node(name: str, strategy: NodeAllocatableStrategy) -> Manifest:
    drivers: list[Mapping[str, Any]] = [
        {"name": driver, "nodeID": name, "allocatable": limits}
        for driver, limits in strategy.csi_node_allocatable.items()
    ]
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {
            "name": name,
            "annotations": {_MIGRATED: ",".join(strategy.migrated_plugins)},
        },
        "spec": {"drivers": drivers},
    }
