"""Devices and claims: createResourceDriver, createResourceClaims and allocResourceClaims.

Source: kubernetes v1.36 test/integration/scheduler_perf/dra.go.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Any, Final

from moorage.api.codec import from_dict, to_dict
from moorage.api.devices import DeviceClass, ResourceClaim, ResourceSlice
from moorage.api.resources import (
    DEVICE_CLASSES,
    NODES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    ResourceType,
)
from moorage.base.errors import MoorageError
from moorage.client.requests import MERGE_PATCH, Selection, patch_body
from moorage.client.writes import Client
from moorage.config.feature_gates import FeatureGates
from moorage.plugins.claims.books import features_of
from moorage.plugins.claims.devices.allocated import AllocatedState
from moorage.plugins.claims.devices.allocator import Allocator
from moorage.plugins.claims.devices.contract import NodeFacts
from moorage.plugins.claims.devices.inventory import Inventory
from moorage_lab.bench.scheduler_perf.objects import several
from moorage_lab.bench.scheduler_perf.operations import AllocResourceClaims, CreateResourceDriver
from moorage_lab.bench.scheduler_perf.scene import Scene

_MODEL: Final = {
    "model": {"string": "A100"},
    "family": {"string": "GPU"},
    "driverVersion": {"version": "1.2.3"},
}


async def create_driver(scene: Scene, op: CreateResourceDriver) -> None:
    """Publish a slice of devices for every node whose name matches the operation's pattern."""
    nodes = await _items(scene.objects.client, NODES)
    names = [node["metadata"]["name"] for node in nodes]

    async def publish(name: str) -> None:
        await scene.objects.create_object(_slice(op, name))

    await several([name for name in names if fnmatchcase(name, op.nodes)], publish)


def _slice(op: CreateResourceDriver, node_name: str) -> dict[str, Any]:
    devices = [
        {
            "name": f"instance-{number}",
            "attributes": {**_MODEL, "dra.example.com/numa": {"int": number}},
            "capacity": {"memory": {"value": "1Gi"}},
        }
        for number in range(op.max_claims_per_node)
    ]
    return {
        "apiVersion": RESOURCE_SLICES.api_version,
        "kind": "ResourceSlice",
        "metadata": {"name": node_name},
        "spec": {
            "driver": op.driver_name,
            "nodeName": node_name,
            "pool": {"name": node_name, "generation": 0, "resourceSliceCount": 1},
            "devices": devices,
        },
    }


async def give_devices(scene: Scene, op: AllocResourceClaims, gates: FeatureGates) -> None:
    """Give devices to every claim of a namespace that has none, each on a random node.

    Raises
    ------
    MoorageError
        No node has the devices for a claim.
    """
    client = scene.objects.client
    found = await _items(client, RESOURCE_CLAIMS)
    claims = [from_dict(ResourceClaim, each) for each in found]
    slices = await _items(client, RESOURCE_SLICES)
    classes = {
        each["metadata"]["name"]: from_dict(DeviceClass, each)
        for each in await _items(client, DEVICE_CLASSES)
    }
    nodes = [
        NodeFacts(each["metadata"]["name"], each["metadata"].get("labels") or {})
        for each in await _items(client, NODES)
    ]
    features = features_of(gates)
    state = AllocatedState(consumable_capacity=features.consumable_capacity)
    for claim in claims:
        if claim.status.allocation is not None:
            state.add(claim.status.allocation)
    inventory = Inventory((from_dict(ResourceSlice, each) for each in slices), features=features)
    due = [
        claim
        for claim in claims
        if claim.status.allocation is None and op.namespace in ("", claim.namespace)
    ]
    written = []
    for claim in due:
        allocator = Allocator(state, inventory, classes.get, rng=scene.rng, clock=scene.clock)
        scene.rng.shuffle(nodes)
        results = next(filter(None, (allocator.allocate(node, [claim]) for node in nodes)), None)
        if results is None:
            raise MoorageError(f"no node has the devices for claim {claim.namespace}/{claim.name}")
        state.add(results[0])
        written.append((claim, to_dict(results[0])))

    async def write(item: tuple[ResourceClaim, dict[str, Any]]) -> None:
        claim, allocation = item
        await client.patch(
            RESOURCE_CLAIMS,
            claim.name,
            patch_body({"status": {"allocation": allocation}}),
            namespace=claim.namespace,
            subresource="status",
            content_type=MERGE_PATCH,
        )

    await several(written, write)


async def _items(client: Client, resource: ResourceType) -> list[dict[str, Any]]:
    listed: Any = await client.list(resource, Selection())
    return list(listed["items"])
