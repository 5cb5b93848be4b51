"""Makes changes in a virtual cluster, as a person with kubectl would, and lists its objects."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from moorage.api.codec import encode
from moorage.api.pod import Pod
from moorage.api.resources import NODES, RESOURCES, by_kind
from moorage.base import aio
from moorage.base.errors import NotFoundError
from moorage.client.transport import Call
from moorage.virtual.objects import ClusterObjects
from moorage.what_if.change import (
    AddNode,
    AddTaint,
    Apply,
    Change,
    Cordon,
    Delete,
    Drain,
    RemoveNode,
    Scale,
    SetPriority,
)
from moorage_sandbox.testing.virtual_cluster import VirtualCluster

REST_SECONDS = 25.0
"""Longer than every backoff, and than the stop of a pod."""
_DRAIN_RETRY_SECONDS = 5.0
# For longer than a model waits for progress.
_DRAIN_TRIES = 40


async def make_change(cluster: VirtualCluster, step: Change) -> list[tuple[str, str]]:
    """Make a change in the cluster, as a person with kubectl would.

    Returns
    -------
    list of tuple
        The pods that a drain has not evicted yet.
    """
    match step:
        case AddNode():
            await cluster.join(dict(step.manifest))
        case RemoveNode():
            await cluster.delete_node(step.name)
        case Cordon():
            await cluster.patch_object(NODES, step.name, {"spec": {"unschedulable": True}})
        case Drain():
            return await _drained(cluster, step.name)
        case AddTaint():
            node: Any = await cluster.client.get(NODES, step.name)
            new = {"key": step.key, "value": step.value, "effect": step.effect}
            taints = [*(node["spec"].get("taints") or []), new]
            await cluster.patch_object(NODES, step.name, {"spec": {"taints": taints}})
        case Apply():
            await cluster.create_objects(dict(step.manifest))
        case Scale():
            resource = by_kind(step.kind)
            assert resource is not None
            changes = {"spec": {"replicas": step.replicas}}
            await cluster.patch_object(resource, step.name, changes, namespace=step.namespace)
        case Delete():
            gone = by_kind(step.kind)
            assert gone is not None
            await cluster.client.delete(gone, step.name, namespace=step.namespace)
        case SetPriority():
            raise AssertionError("a server refuses to change a priority")
    return []


async def _drained(cluster: VirtualCluster, name: str) -> list[tuple[str, str]]:
    """Do what kubectl drain does: send all evictions, and refused ones again every five seconds.

    Returns
    -------
    list of tuple
        The pods that are still there after many tries.
    """
    await cluster.patch_object(NODES, name, {"spec": {"unschedulable": True}})
    await aio.sleep(REST_SECONDS)
    left = sorted(
        pod.key
        for pod in (await listed(cluster)).pods.values()
        if pod.spec.node_name == name and "DaemonSet" not in _owner_kinds(pod)
    )
    for _ in range(_DRAIN_TRIES):
        left = await _refused(cluster, left)
        if not left:
            break
        await aio.sleep(_DRAIN_RETRY_SECONDS)
    await aio.sleep(REST_SECONDS)
    return left


async def _refused(
    cluster: VirtualCluster, pods: Sequence[tuple[str, str]]
) -> list[tuple[str, str]]:
    """Send the evictions of pods at once; return the pods whose budgets refuse."""
    evicted = await asyncio.gather(*(_evicted(cluster, *key) for key in pods))
    return [key for key, gone in zip(pods, evicted, strict=True) if not gone]


def _owner_kinds(pod: Pod) -> list[str]:
    return [each.kind for each in pod.metadata.owner_references]


async def _evicted(cluster: VirtualCluster, namespace: str, name: str) -> bool:
    """Send an eviction; False if a budget refuses it."""
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": name, "namespace": namespace},
    }
    path = f"/api/v1/namespaces/{namespace}/pods/{name}/eviction"
    answer = await cluster.client.transport.request(Call("POST", path, body=encode(body)))
    return answer.status != 429


async def rest(cluster: VirtualCluster, seconds: float, draining: list[tuple[str, str]]) -> None:
    """Sleep, while drains that a budget holds up go on: ``kubectl drain`` ends with its pods."""
    while draining and seconds > _DRAIN_RETRY_SECONDS:
        await aio.sleep(_DRAIN_RETRY_SECONDS)
        left = await _refused(cluster, draining)
        seconds -= _DRAIN_RETRY_SECONDS
        if len(left) < len(draining):
            seconds = max(seconds, 2 * REST_SECONDS)
        draining[:] = left
    await aio.sleep(seconds)


async def listed(cluster: VirtualCluster) -> ClusterObjects:
    found = ClusterObjects()
    served = [each for each in RESOURCES if each.kind not in ("Event", "Lease", "Secret")]
    lists = await asyncio.gather(*(_list(cluster, each) for each in served))
    for resource, items in zip(served, lists, strict=True):
        for item in items:
            found.add_json(
                encode({**item, "apiVersion": resource.api_version, "kind": resource.kind})
            )
    assert not found.unreadable, [each.text for each in found.unreadable]
    return found


async def _list(cluster: VirtualCluster, resource: Any) -> list[Any]:
    try:
        listed: Any = await cluster.client.list(resource)
    except NotFoundError:
        return []
    return list(listed["items"])
