"""Cases in a virtual cluster: a scheduler explains the pod, the API applies suggestions."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from moorage.api.coscheduling import COSCHEDULING_POD_GROUPS
from moorage.api.resources import ELASTIC_QUOTAS, NODES, PODS, RESOURCE_CLAIMS, ResourceType
from moorage.base.clock import Clock, ManualClock
from moorage.client.requests import MERGE_PATCH, patch_body
from moorage.explain.answer import Explanation, Suggestion
from moorage.explain.explaining import explain
from moorage_sandbox.testing.builders import Manifest
from moorage_sandbox.testing.virtual_cluster import NotReachedError, VirtualCluster
from moorage_sandbox.testing.virtual_loop import run_virtual
from scheduler.tests.explain.applying import changed
from scheduler.tests.explain.plan import Case
from tests.scenarios.gangs import controllers

# Some hints of kube-scheduler pass over a new node; the pod is tried again after five minutes.
_SECONDS = 400.0
_RUNTIME_CLASSES: Final = ResourceType(
    "node.k8s.io", "v1", "RuntimeClass", "runtimeclasses", "runtimeclass", namespaced=False
)
_OTHERS: Final = {
    f"{each.api_version} {each.kind}": each
    for each in (ELASTIC_QUOTAS, COSCHEDULING_POD_GROUPS, _RUNTIME_CLASSES)
}


def live(case: Case) -> Explanation:
    """Explain the pod from the state of a running scheduler."""
    clock = ManualClock()

    async def main() -> Explanation:
        async with Started(case, clock) as cluster:
            core = cluster.scheduler.core
            pod = core.store.get("default", "p")
            assert pod is not None
            return explain(core, pod)

    return run_virtual(main(), clock)


def binds(case: Case, way: Suggestion) -> bool:
    """Whether the pod is bound after a suggestion was applied through the API."""
    clock = ManualClock()

    async def main() -> bool:
        async with Started(case, clock) as cluster, _controllers(cluster, case):
            await apply(cluster, case, way)
            try:
                await cluster.until(lambda: bool(cluster.node_of("p")), seconds=_SECONDS)
            except NotReachedError:
                return False
            return True

    return run_virtual(main(), clock)


@asynccontextmanager
async def _controllers(cluster: VirtualCluster, case: Case) -> AsyncIterator[None]:
    """Run the controllers where claims have devices: they give those of deleted pods back."""
    if not any(each["kind"] == "ResourceClaim" for each in case.manifests):
        yield
        return
    async with controllers(cluster):
        yield


class Started:
    """A cluster with the objects of a case, whose pod the scheduler has looked at."""

    def __init__(
        self, case: Case, clock: Clock, made_by: type[VirtualCluster] = VirtualCluster
    ) -> None:
        nodes = [each for each in case.manifests if each["kind"] == "Node"]
        self._others = [each for each in case.manifests if each["kind"] != "Node"]
        self._cluster = made_by(clock, nodes=nodes, config=case.config, renew_seconds=3600)

    async def __aenter__(self) -> VirtualCluster:
        cluster = await self._cluster.__aenter__()
        *others, pod = self._others
        for each in others:
            await _create(cluster, each)
        for each in others:
            if each["kind"] == "ResourceClaim" and "status" in each:
                await _give_devices(cluster, each)
        await _create(cluster, pod)
        await cluster.until(lambda: cluster.scheduler.core.store.get("default", "p") is not None)
        queue = cluster.scheduler.core.queue
        await cluster.until(lambda: not queue.counts().active and not queue.counts().in_flight)
        return cluster

    async def __aexit__(self, *raised: object) -> None:
        await self._cluster.__aexit__(None, None, None)


async def _create(cluster: VirtualCluster, manifest: Manifest) -> None:
    """Create an object; the server takes no status."""
    other = _OTHERS.get(f"{manifest['apiVersion']} {manifest['kind']}")
    if other is None:
        await cluster.create_objects(manifest)
    else:
        namespace = manifest["metadata"].get("namespace", "")
        await cluster.client.create(other, manifest, namespace=namespace)


async def _give_devices(cluster: VirtualCluster, claim: Manifest) -> None:
    """Write the status of a claim, with the uids that the server gave to its pods."""
    users = []
    for user in claim["status"].get("reservedFor", ()):
        pod = cluster.stored_pod(user["name"])
        users.append({**user, "uid": pod["metadata"]["uid"]} if pod else user)
    await cluster.client.patch(
        RESOURCE_CLAIMS,
        claim["metadata"]["name"],
        patch_body({"status": {**claim["status"], "reservedFor": users}}),
        namespace=claim["metadata"]["namespace"],
        content_type=MERGE_PATCH,
        subresource="status",
    )


async def apply(cluster: VirtualCluster, case: Case, way: Suggestion) -> None:
    """Do what a suggestion says."""
    for key in (*([way.delete] if way.delete else []), *way.also_delete):
        namespace, name = key.split("/")
        await cluster.client.delete(PODS, name, namespace=namespace)
    for change in way.changes:
        assert change.kind == "Node"
        await cluster.patch_object(NODES, change.name, change.patch)
    await cluster.play([each for each in way.create if each["kind"] == "Node"])
    await cluster.create_objects(*(each for each in way.create if each["kind"] != "Node"))
    if way.patch:
        pod = next(each for each in case.manifests if each["metadata"]["name"] == "p")
        await cluster.client.delete(PODS, "p", namespace="default")
        await cluster.until(lambda: cluster.stored_pod("p") is None)
        await cluster.create_objects(changed(pod, way))
