"""Generated pending pods: the planted cause is named first, and every way out binds the pod.

In memory a few of each cause run with every suite. The slow test takes twenty of each: each
is explained by a running scheduler's own state, and each way out is applied to a cluster of its
own, through the API. ``PLANTED=5000`` takes more.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from moorage.api.resources import ELASTIC_QUOTAS, NODES, PODS, RESOURCE_CLAIMS
from moorage.base.clock import Clock, ManualClock
from moorage.client.requests import MERGE_PATCH, patch_body
from moorage.config.own import LoadedConfiguration
from moorage.explain.answer import Explanation, WayOut
from moorage.explain.explaining import explain
from moorage.snapshot.pod_info import PodInfo
from moorage.testing.builders import Manifest
from moorage.testing.virtual_cluster import NotReachedError, VirtualCluster
from moorage.testing.virtual_loop import run_virtual
from moorage.what_if.rehearsal import Rehearsal
from tests.explain.applying import applied, changed
from tests.explain.clusters import explained, pod_of, world_of
from tests.explain.plan import Case
from tests.explain.planted import PLANTED, names_first, planted
from tests.scenarios.gangs import controllers
from tests.scenarios.over_https import OverHttps, run_scenario

MANY = int(os.environ.get("PLANTED", str(20 * len(PLANTED))))
ENOUGH = 0.99
# Some hints of kube-scheduler pass over a new node; the pod is tried again after five minutes.
_SECONDS = 400.0
_DEFAULT = "default-scheduler"
OVER_HTTPS = (
    "too_large",
    "no_room",
    "taint",
    "cordon",
    "selector",
    "host_port",
    "claim_of_one_pod",
    "disk_in_use",
    "too_many_volumes",
)


@pytest.mark.parametrize("plant", range(len(PLANTED)), ids=[each.__name__ for each in PLANTED])
def test_in_memory_the_cause_is_named_and_each_way_out_works(plant: int) -> None:
    for seed in (plant, plant + len(PLANTED), plant + 2 * len(PLANTED)):
        case = planted(seed)
        found = explained(*case.manifests, config=case.config)
        assert names_first(case, found), (seed, found.sentence)
        for way in found.ways_out:
            assert _place(applied(way, case.manifests), case.config), (seed, way.text)


def test_every_default_plugin_that_may_hold_a_pod_has_a_planted_cause() -> None:
    """A plugin that joins the default profile needs a family of its own."""
    profile = world_of(planted(0).manifests[0]).fill().core.profiles[_DEFAULT]
    asked = (*profile.pre_enqueue, *profile.pre_filters, *profile.filters)
    left = {str(getattr(each, "name", "")) for each in asked}
    for plant in range(len(PLANTED)):
        case = planted(plant)
        found = explained(*case.manifests, config=case.config)
        for plugin in sorted(left):
            first = found.causes and plugin in found.causes[0].plugins
            if first or f"by plugin {plugin}:" in found.sentence:
                left.remove(plugin)
    # A pod that names its node is not queued; preemption holds a pod while it evicts for it.
    assert left == {"NodeName", "DefaultPreemption"}


def _place(manifests: list[Manifest], config: LoadedConfiguration) -> str:
    """Return the node that pod ``p`` gets, its victims gone; "" for none."""
    world = world_of(*manifests, config=config)
    if world.fill().core.snapshot.groups.terms_of(pod_of(world, "p")) is not None:
        rehearsal = Rehearsal(world)
        rehearsal.settle()  # members are placed together
        return rehearsal.objects.pods["default", "p"].spec.node_name
    decision = world.fill().core.cycles[_DEFAULT].decide(PodInfo(pod_of(world, "p")))
    gone = {victim.full_name for victim in decision.victims}
    if decision.node_name or not gone:
        return decision.node_name
    left = [
        each
        for each in manifests
        if f"{each['metadata'].get('namespace')}/{each['metadata']['name']}" not in gone
    ]
    return _place(left, config)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_through_the_api_the_cause_is_named_and_each_way_out_binds_the_pod() -> None:
    named, misses, failed = 0, [], []
    ways: Counter[str] = Counter()
    for seed in range(MANY):
        case = planted(seed)
        found = _live(case)
        named += names_first(case, found)
        if not names_first(case, found):
            misses.append((seed, case.kind, found.sentence))
        for way in found.ways_out:
            ways[way.kind] += 1
            if not _binds(case, way):
                failed.append((seed, case.kind, way.text))
    told = f"{named} of {MANY} named first; ways out applied: {dict(sorted(ways.items()))}"
    sys.stdout.write(f"\n{told}\n")
    assert failed == []
    assert named >= ENOUGH * MANY, misses
    assert sum(ways.values()) > MANY // 2, ways


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", OVER_HTTPS)
def test_over_https_each_way_out_binds_the_pod(kind: str) -> None:
    """A smaller number, because time is real here."""
    case = planted([each.__name__ for each in PLANTED].index(kind))
    found = explained(*case.manifests)
    assert found.ways_out
    for way in found.ways_out:
        assert _binds_over_https(case, way), way.text


def _binds_over_https(case: Case, way: WayOut) -> bool:
    """Whether the pod is bound after a way out was applied over HTTPS."""

    async def main(clock: Clock) -> bool:
        async with _Started(case, clock, OverHttps) as cluster:
            await _apply(cluster, case, way)
            await cluster.until(lambda: bool(cluster.node_of("p")))
            return True

    return run_scenario(main, https=True)


def _live(case: Case) -> Explanation:
    """Explain the pod from the state of a running scheduler."""
    clock = ManualClock()

    async def main() -> Explanation:
        async with _Started(case, clock) as cluster:
            core = cluster.scheduler.core
            pod = core.store.get("default", "p")
            assert pod is not None
            return explain(core, pod)

    return run_virtual(main(), clock)


def _binds(case: Case, way: WayOut) -> bool:
    """Whether the pod is bound after a way out was applied through the API."""
    clock = ManualClock()

    async def main() -> bool:
        async with _Started(case, clock) as cluster, _controllers(cluster, case):
            await _apply(cluster, case, way)
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


class _Started:
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
    if manifest["kind"] == "ElasticQuota":  # a custom resource
        namespace = manifest["metadata"]["namespace"]
        await cluster.client.create(ELASTIC_QUOTAS, manifest, namespace=namespace)
        return
    await cluster.create(manifest)


async def _give_devices(cluster: VirtualCluster, claim: Manifest) -> None:
    """Write the status of a claim, with the uids that the server gave to its pods."""
    users = []
    for user in claim["status"].get("reservedFor", ()):
        pod = cluster.pod(user["name"])
        users.append({**user, "uid": pod["metadata"]["uid"]} if pod else user)
    await cluster.client.patch(
        RESOURCE_CLAIMS,
        claim["metadata"]["name"],
        patch_body({"status": {**claim["status"], "reservedFor": users}}),
        namespace=claim["metadata"]["namespace"],
        content_type=MERGE_PATCH,
        subresource="status",
    )


async def _apply(cluster: VirtualCluster, case: Case, way: WayOut) -> None:
    """Do what a way out says."""
    if way.delete:
        namespace, name = way.delete.split("/")
        await cluster.client.delete(PODS, name, namespace=namespace)
    if way.kind == "uncordon":
        await cluster.patch(NODES, way.node, {"spec": {"unschedulable": False}})
    if way.kind == "node":
        await cluster.play(way.create)
    if way.kind == "member":
        await cluster.create(*way.create)
    if way.patch:
        pod = next(each for each in case.manifests if each["metadata"]["name"] == "p")
        await cluster.client.delete(PODS, "p", namespace="default")
        await cluster.until(lambda: cluster.pod("p") is None)
        await cluster.create(*_with_class(changed(pod, way)))


def _with_class(pod: Manifest) -> list[Manifest]:
    """Return a pod with a PriorityClass of its priority: the API takes no bare number."""
    priority = pod["spec"].pop("priority", None)
    if priority is None:
        return [pod]
    made = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "higher"},
        "value": priority,
    }
    pod["spec"]["priorityClassName"] = "higher"
    return [made, pod]
