"""Situations in a virtual cluster with controllers: asked about, and changed as suggested.

A cluster is built anew for each suggestion, from the same seed, so that pods have the same names.
"""

from __future__ import annotations

import gc
from contextlib import AsyncExitStack
from typing import Any, Final, NamedTuple

import jsonpatch
import msgspec

from moorage.api import resources
from moorage.api.coscheduling import COSCHEDULING_POD_GROUPS
from moorage.api.resources import PODS, ResourceType, by_kind
from moorage.base import aio
from moorage.base.clock import ManualClock
from moorage.client.requests import Selection
from moorage.config.own import LoadedConfiguration
from moorage.explain.workloads.answer import (
    ObjectExplanation,
    ObjectQuery,
    ObjectSuggestion,
)
from moorage.explain.workloads.asking import answer_query
from moorage.explain.workloads.explaining import complete
from moorage.snapshot.pod_info import forget_shared_parts
from moorage_sandbox.controllers.volumes import VolumeControllers
from moorage_sandbox.controllers.workloads import WorkloadControllers
from moorage_sandbox.testing.builders import Manifest
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from moorage_sandbox.testing.virtual_loop import run_virtual
from scheduler.tests.explain.workloads.kubectl_lines import carry_out

_REST_SECONDS: Final = 40.0
"""Longer than every backoff of the queue, and than a few turns of a controller."""
_AFTER_SECONDS: Final = 400.0
"""Some hints of kube-scheduler pass over a change; pods are tried again after five minutes."""
_READ: Final = (
    resources.DEPLOYMENTS,
    resources.REPLICA_SETS,
    resources.STATEFUL_SETS,
    resources.DAEMON_SETS,
    resources.JOBS,
    resources.RESOURCE_QUOTAS,
    resources.LIMIT_RANGES,
)


class Situation(NamedTuple):
    """A cluster in which something keeps pods of an object from running.

    Attributes
    ----------
    kind
        The planted cause.
    nodes, objects
        The nodes, and what is created on them in this order; pods get nodes in between.
    type_, name
        The object that is asked about.
    start, about
        The beginning of the sentence, and a text that is in it.
    config
        The scheduler's configuration.
    """

    kind: str
    nodes: list[Manifest]
    objects: list[list[Manifest]]
    type_: str
    name: str
    start: str
    about: str
    config: LoadedConfiguration = LoadedConfiguration()

    @property
    def pods(self) -> str:
        """How the keys of the object's pods begin."""
        return "default/m" if self.type_ == "podgroup" else "default/w-"


def explained_live(situation: Situation) -> ObjectExplanation:
    """Ask about the object in a cluster that has come to rest."""
    # Each scheduler freezes what is there when it is ready: hundreds would fill the memory.
    forget_shared_parts()
    gc.unfreeze()
    gc.collect()
    clock = ManualClock()

    async def main() -> ObjectExplanation:
        async with AsyncExitStack() as opened:
            cluster = await _at_rest(situation, clock, opened)
            return await _explained(cluster, situation)

    return run_virtual(main(), clock)


def helps_as_said(situation: Situation, suggestion: ObjectSuggestion) -> str:
    """Carry a suggestion out; return what is wrong with it, "" for nothing."""
    clock = ManualClock()

    async def main() -> str:
        async with AsyncExitStack() as opened:
            cluster = await _at_rest(situation, clock, opened)
            before = _placed(cluster, situation)
            await _carry_out(cluster, situation, suggestion)
            await aio.sleep(_AFTER_SECONDS)
            after = _placed(cluster, situation)
            if after - before >= suggestion.helps:
                return ""
            return f"{after - before} more pods have a node, not {suggestion.helps}"

    return run_virtual(main(), clock)


async def _at_rest(
    situation: Situation, clock: ManualClock, opened: AsyncExitStack
) -> VirtualCluster:
    cluster = await opened.enter_async_context(
        VirtualCluster(
            clock,
            nodes=situation.nodes,
            config=situation.config,
            controllers=(WorkloadControllers, VolumeControllers),
            renew_seconds=3600,
        )
    )
    for part in situation.objects:
        for each in part:
            await _create(cluster, each)
        await aio.sleep(_REST_SECONDS)
    return cluster


async def _create(cluster: VirtualCluster, manifest: Manifest) -> None:
    if manifest["apiVersion"] == COSCHEDULING_POD_GROUPS.api_version:
        await cluster.client.create(COSCHEDULING_POD_GROUPS, manifest, namespace="default")
    else:
        await cluster.create_objects(manifest)


async def _explained(cluster: VirtualCluster, situation: Situation) -> ObjectExplanation:
    objects: list[Any] = []
    for resource in _READ:
        objects += await _listed(cluster, resource)
    objects += await _listed(cluster, resources.CORE_EVENTS, "reason=FailedCreate")
    query = ObjectQuery(type_=situation.type_, name=situation.name, objects=tuple(objects))
    return complete(answer_query(cluster.scheduler.core, query))


async def _listed(cluster: VirtualCluster, resource: ResourceType, fields: str = "") -> list[Any]:
    found: Any = await cluster.client.list(resource, Selection(field_selector=fields))
    meta = {"apiVersion": resource.api_version, "kind": resource.kind}
    return [{**meta, **each} for each in found["items"]]


def _placed(cluster: VirtualCluster, situation: Situation) -> int:
    """Return how many of the pods have a node, or had one and have ended."""
    placements = cluster.placements().items()
    return sum(bool(node) for name, node in placements if name.startswith(situation.pods))


async def _carry_out(
    cluster: VirtualCluster, situation: Situation, suggestion: ObjectSuggestion
) -> None:
    if suggestion.command:
        await carry_out(cluster, suggestion.command)
        return  # the command creates what has to be created
    if suggestion.patch:
        await _patch_pods(cluster, situation, suggestion)
    for each in suggestion.create:
        for number in range(suggestion.copies):
            name = f"{each['metadata']['name']}{f'-{number}' * bool(number)}"
            made = {**each, "metadata": {**each["metadata"], "name": name}}
            if each["kind"] == "Node":
                labels = {**made["metadata"].get("labels", {}), "kubernetes.io/hostname": name}
                made["metadata"]["labels"] = labels
                await cluster.play([made])
            else:
                await _create(cluster, made)


async def _patch_pods(
    cluster: VirtualCluster, situation: Situation, suggestion: ObjectSuggestion
) -> None:
    """Make the object anew with the change in its template, or pods without an owner."""
    flat = [each for part in situation.objects for each in part]
    owners = [each for each in flat if each["metadata"]["name"] == situation.name]
    owner = next((each for each in owners if "template" in each["spec"]), None)
    if owner is None:
        for pod in (each for each in flat if each["kind"] == "Pod"):
            name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
            if cluster.node_of(name, namespace):
                continue
            await cluster.client.delete(PODS, name, namespace=namespace)
            await cluster.until(lambda name=name: cluster.stored_pod(name) is None)  # type: ignore[misc]
            await cluster.create_objects(_patched(pod, suggestion))
        return
    resource = by_kind(owner["kind"], owner["apiVersion"])
    assert resource is not None
    await cluster.client.delete(resource, situation.name, namespace="default")
    await aio.sleep(_REST_SECONDS)
    template = _patched(owner["spec"]["template"], suggestion)
    await _create(cluster, {**owner, "spec": {**owner["spec"], "template": template}})


def _patched(pod: Manifest, suggestion: ObjectSuggestion) -> Manifest:
    """Return a pod, or a template, with a patch; lists that only stored pods have begin empty."""
    operations = [dict(each) for each in suggestion.patch if each["op"] != "test"]
    operations = [each for each in operations if each["path"] != "/spec/priority"]
    made: Any = msgspec.json.decode(msgspec.json.encode(pod))
    for each in operations:
        for path in ("/spec/tolerations", "/spec/nodeSelector"):
            if each["path"].startswith(f"{path}/"):
                made["spec"].setdefault(path.rpartition("/")[2], [] if "tol" in path else {})
    patched: Any = jsonpatch.JsonPatch(operations).apply(made)
    return dict(patched)
