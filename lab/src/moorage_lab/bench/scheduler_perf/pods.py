"""createPods and deletePods: pods at once, in a steady state, and pods that go again.

Source: kubernetes v1.36 test/integration/scheduler_perf (``createPodsOp``, ``createPodsSteadily``,
``deletePodsOp``), test/utils/runners.go (``CreatePodWithPersistentVolume``).
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from moorage.api.meta import ObjectReference
from moorage.api.resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES
from moorage.api.schedules.durations import parse_duration
from moorage.base import aio
from moorage.base.errors import MoorageError
from moorage.client.requests import MERGE_PATCH, patch_body
from moorage_lab.bench.scheduler_perf.objects import several
from moorage_lab.bench.scheduler_perf.operations import CreatePods, DeletePods
from moorage_lab.bench.scheduler_perf.pod_tallies import CountedPod
from moorage_lab.bench.scheduler_perf.scene import Scene
from moorage_lab.bench.scheduler_perf.templates import Manifest
from moorage_lab.bench.workload import default_pod


def pod_manifests(scene: Scene, op: CreatePods, count: int) -> list[Manifest]:
    """Return the pods of an operation, before it measures."""
    template = op.pod_template_path or scene.default_pod
    if not template:
        return [_default() for _ in range(count)]
    pods = scene.manifests(template, count, op.template_params)
    if op.signature_batch_size:
        for index, pod in enumerate(pods):
            labels = pod.setdefault("metadata", {}).get("labels") or {}
            value = f"signature-label-{index // op.signature_batch_size}"
            pod["metadata"]["labels"] = {**labels, "signature": value}
    return pods


async def create_pods(scene: Scene, op: CreatePods, namespace: str, pods: list[Manifest]) -> None:
    """Create pods, each with its volume if the operation has templates of volumes."""

    async def create(item: tuple[int, Manifest]) -> None:
        index, pod = item
        if op.persistent_volume_claim_template_path:
            await _create_volume(scene, op, namespace, index)
            source = {"claimName": f"pvc-{index}"}
            pod["spec"]["volumes"] = [{"name": "vol", "persistentVolumeClaim": source}]
        await scene.objects.create_object(pod, namespace)

    await several(enumerate(pods), create)


async def keep_steady(scene: Scene, op: CreatePods, namespace: str) -> None:
    """Create pods, delete them once all of them have nodes, and start again, for a duration.

    Raises
    ------
    MoorageError
        No pod got a node in that time.
    """
    scheduled: list[CountedPod] = []
    batch_is_scheduled = asyncio.Event()
    count = 0

    def on_scheduled(pod: CountedPod) -> None:
        nonlocal count
        if pod.namespace == namespace:
            count += 1
            scheduled.append(pod)
            if len(scheduled) == op.count:
                batch_is_scheduled.set()

    scene.tallies.on_scheduled.append(on_scheduled)
    try:
        async with asyncio.timeout(parse_duration(op.duration) / 1e9):
            while True:
                await create_pods(scene, op, namespace, pod_manifests(scene, op, op.count))
                await batch_is_scheduled.wait()
                batch_is_scheduled.clear()
                batch, scheduled[:] = list(scheduled), []
                await several(batch, partial(_delete_at_once, scene))
    except TimeoutError:
        pass
    finally:
        scene.tallies.on_scheduled.remove(on_scheduled)
    if not count:
        raise MoorageError(f"namespace {namespace}: no pod got a node within {op.duration}")


async def _delete_at_once(scene: Scene, pod: CountedPod) -> None:
    key = ObjectReference(namespace=pod.namespace, name=pod.name)
    await scene.objects.client.delete_pod(key, grace_seconds=0)


async def delete_pods(scene: Scene, op: DeletePods) -> None:
    """Delete the pods of an operation that exist now."""
    pods = scene.tallies.selected_pods(op.namespace, op.label_selector)

    async def delete(pod: CountedPod) -> None:
        key = ObjectReference(namespace=op.namespace, name=pod.name)
        await scene.objects.client.delete_pod(key)

    if not op.delete_pods_per_second:
        await several(pods, delete)
        return
    for pod in pods:
        await aio.sleep(1 / op.delete_pods_per_second)
        await delete(pod)


def _default() -> Manifest:
    spec = default_pod("pod")(0)["spec"]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"generateName": "pod-"},
        "spec": spec,
    }


async def _create_volume(scene: Scene, op: CreatePods, namespace: str, index: int) -> None:
    """Create a volume and a claim that are bound to each other."""
    claim = scene.templates.manifest(op.persistent_volume_claim_template_path)
    volume = scene.templates.manifest(op.persistent_volume_template_path)
    claim_name, name = f"pvc-{index}", f"{namespace}-vol-{index}"
    claim["metadata"] = {**claim.get("metadata", {}), "name": claim_name}
    claim["spec"]["volumeName"] = name
    volume["metadata"] = {**volume.get("metadata", {}), "name": name}
    volume["spec"]["claimRef"] = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": namespace,
        "name": claim_name,
    }
    if "csi" in volume["spec"]:
        volume["spec"]["csi"]["volumeHandle"] = name
    elif "awsElasticBlockStore" in volume["spec"]:
        volume["spec"]["awsElasticBlockStore"]["volumeID"] = f"vol-{index}"
    bound: dict[str, Any] = {"status": {"phase": "Bound"}}
    client = scene.objects.client
    await scene.objects.create_object(claim, namespace)
    await client.patch(
        PERSISTENT_VOLUME_CLAIMS,
        claim_name,
        patch_body(bound),
        namespace=namespace,
        subresource="status",
        content_type=MERGE_PATCH,
    )
    await scene.objects.create_object(volume)
    await client.patch(
        PERSISTENT_VOLUMES,
        name,
        patch_body(bound),
        subresource="status",
        content_type=MERGE_PATCH,
    )
