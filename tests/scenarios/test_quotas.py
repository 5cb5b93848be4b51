"""Elastic quotas on a whole cluster: borrowing, giving back, lowering, and none at all.

Told in virtual time and over HTTPS. The scheduler is configured by the example profile, and the
quotas are objects of the API server. What single decisions choose is for the tests of the plugin.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from moorage.api.resources import (
    CUSTOM_RESOURCE_DEFINITIONS,
    ELASTIC_QUOTAS,
    PODS,
)
from moorage.base import aio
from moorage.base.clock import Clock
from moorage.config.load import load_config
from moorage_sandbox.testing.builders import Manifest, node_manifest, pod_manifest
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from scheduler.tests.plugins.quotas.builders import quota_manifest
from tests.scenarios.company import Company, made, replicas
from tests.scenarios.company import play as play_company
from tests.scenarios.gangs import Cluster, coscheduling, of_labels, of_object, play, pod_group
from tests.scenarios.gangs import nodes as nodes_of_gangs
from tests.scenarios.over_https import OverHttps, run_scenario

HOST = "kubernetes.io/hostname"
EXAMPLES = Path(__file__).parents[2] / "examples"
Scenario = Callable[[VirtualCluster], Awaitable[None]]


def tell(scenario: Scenario, *, https: bool, nodes: int = 2) -> None:
    """Run a scenario on nodes of 4 cpus, with namespaces a and b."""
    made_by = OverHttps if https else VirtualCluster
    config = load_config(EXAMPLES / "profiles" / "elastic-quota.yaml")
    made = [node_manifest(f"n{i}", cpu="4") for i in range(nodes)]

    async def main(clock: Clock) -> None:
        async with made_by(clock, nodes=made, config=config) as cluster:
            for name in ("a", "b"):
                namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
                await cluster.create_objects(namespace)
            await scenario(cluster)

    run_scenario(main, https=https)


async def give(cluster: VirtualCluster, namespace: str, *bounds: Mapping[str, Any] | None) -> None:
    manifest = quota_manifest(namespace, *bounds)
    await cluster.client.create(ELASTIC_QUOTAS, manifest, namespace=namespace)
    listed = cluster.scheduler.core.snapshot.listers.elastic_quotas
    await cluster.until(lambda: listed.get("quota", namespace) is not None)


async def start(cluster: VirtualCluster, namespace: str, *names: str, cpu: str = "2") -> None:
    await cluster.create_objects(
        *(pod_manifest(name, namespace=namespace, cpu=cpu) for name in names)
    )


def placed(cluster: VirtualCluster, namespace: str) -> list[str]:
    """Return the names of the pods of a namespace that have a node."""
    start = f"{namespace}/"
    return sorted(
        key.removeprefix(start)
        for key, node in cluster.placements().items()
        if key.startswith(start) and node
    )


def why(cluster: VirtualCluster, namespace: str, name: str) -> str:
    return cluster.condition_of(name, namespace)[2]


ABOVE_MIN = "is rejected in PreFilter because total ElasticQuota used is more than min"
NAMES = ["p0", "p1", "p2", "p3"]
ABOVE_MAX = "is rejected in PreFilter because ElasticQuota b is more than Max"


def test_borrowed_resources_return_to_the_namespace_with_the_guarantee(https: bool):
    async def scenario(cluster: VirtualCluster) -> None:
        await give(cluster, "a", {"cpu": 4})
        await give(cluster, "b", {"cpu": 4})
        await start(cluster, "b", "b1", "b2", "b3", "b4")
        await cluster.until(lambda: len(placed(cluster, "b")) == 4)  # 8 cpus, 4 of them borrowed
        await start(cluster, "b", "b5")
        await cluster.until(lambda: ABOVE_MIN in why(cluster, "b", "b5"))
        await start(cluster, "a", "a1")  # one by one: a victim that still ends counts as used
        await cluster.until(lambda: placed(cluster, "a") == ["a1"])
        await start(cluster, "a", "a2")
        await cluster.until(lambda: placed(cluster, "a") == ["a1", "a2"])
        assert len(placed(cluster, "b")) == 2  # what it is guaranteed stays
        told = await cluster.events("b5", reason="ElasticQuotaExceeded")
        assert told[0]["message"] == (
            "all ElasticQuotas together: cpu 8000m used and 2000m asked, 8000m guaranteed"
        )
        await cluster.client.delete(PODS, "a1", namespace="a")
        await cluster.until(lambda: cluster.node_of("b5", "b") != "")  # and is borrowed again

    tell(scenario, https=https)


def test_pods_that_take_back_a_minimum_at_one_moment_evict_one_pod_each():
    """The victims stop slowly, so those of earlier pods are there when the later ones come."""

    async def scenario(company: Company) -> None:
        for name, least in (("default", 0), ("owner", 6)):
            if name != "default":
                namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
                await company.create(namespace)
            await give(company.cluster, name, {"cpu": least})
        await company.create(replicas(8, made("low", stops=5, cpu="1")))
        await company.run("low-", 6)
        for index in range(4):
            await company.create(made(f"p{index}", high=True, namespace="owner", cpu="1"))
        await company.cluster.until(lambda: placed(company.cluster, "owner") == NAMES)
        await company.sleep(20)
        assert len(company.evicted) == len(NAMES)

    config = load_config(EXAMPLES / "profiles" / "elastic-quota.yaml")
    nodes = [node_manifest(f"n{i}", cpu="3") for i in range(2)]
    play_company(scenario, nodes=nodes, config=config)


def fixed(name: str, node: str, *, stops: float) -> Manifest:
    """Return a low pod that fills a node."""
    return made(name, stops=stops, cpu="1", nodeSelector={HOST: node})


async def share(company: Company, cpu: int) -> None:
    """Let the namespace owner have a minimum, which the default namespace borrows."""
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "owner"}}
    await company.create(namespace)
    await give(company.cluster, "default", {"cpu": 0})
    await give(company.cluster, "owner", {"cpu": cpu})


def small_nodes(count: int) -> list[Manifest]:
    return [node_manifest(f"n{i}", cpu="1", labels={HOST: f"n{i}"}) for i in range(count)]


def test_a_preemptor_waits_for_the_victims_of_others_that_count_in_the_quotas():
    """Its own victim is gone first. It needs the share of the other victim, and no third one."""

    async def scenario(company: Company) -> None:
        await share(company, 3)
        for index, stops in enumerate((1, 5, 5)):
            await company.create(fixed(f"low-{index}", f"n{index}", stops=stops))
        await company.run("low-", 3)
        for index in range(2):
            await company.create(made(f"p{index}", high=True, namespace="owner", cpu="1"))
        await company.cluster.until(lambda: placed(company.cluster, "owner") == NAMES[:2])
        await company.sleep(20)
        assert company.evicted == ["low-0", "low-1"]

    config = load_config(EXAMPLES / "profiles" / "elastic-quota.yaml")
    play_company(scenario, nodes=small_nodes(3), config=config)


@pytest.mark.parametrize("mode", ["trial", "permit"])
def test_a_gang_keeps_its_places_while_victims_of_others_count_in_the_quotas(mode: str):
    """The victims of the gang stop soon, the victim of the single pod later."""

    async def scenario(company: Company) -> None:
        await share(company, 4)
        for index, stops in enumerate((1, 1, 5, 1)):
            await company.create(fixed(f"low-{index}", f"n{index}", stops=stops))
        await company.run("low-", 4)
        for name in NAMES[:2]:
            fields = {"namespace": "owner", "priorityClassName": "high"}
            await company.create(of_labels(name, least=2, **fields))
        await company.create(made("p2", high=True, namespace="owner", cpu="1"))
        await company.cluster.until(lambda: placed(company.cluster, "owner") == NAMES[:3])
        await company.sleep(20)
        assert company.evicted == ["low-0", "low-1", "low-2"]

    config = coscheduling(mode, extra="CapacityScheduling", without="DefaultPreemption")
    play_company(scenario, nodes=small_nodes(4), config=config)


@pytest.mark.parametrize("mode", ["trial", "permit"])
def test_a_gang_evicts_once_where_quotas_preempt(mode: str) -> None:
    """A gang of three finds room for two; a set that makes its pods again wants all room."""

    async def scenario(company: Company) -> None:
        await share(company, 4)
        await company.create(replicas(2, made("low", stops=5, cpu="1")))
        await company.run("low-", 2)
        for name in NAMES[:3]:
            fields = {"namespace": "owner", "priorityClassName": "high"}
            await company.create(of_labels(name, least=3, **fields))
        await company.cluster.until(lambda: placed(company.cluster, "owner") == NAMES[:3])
        await company.sleep(20)
        assert len(company.evicted) == 1

    config = coscheduling(mode, extra="CapacityScheduling", without="DefaultPreemption")
    play_company(scenario, nodes=small_nodes(4), config=config)


@pytest.mark.parametrize("high", [True, False], ids=["of higher priority", "of equal priority"])
def test_a_preemptor_waits_for_the_rest_of_its_victims(high: bool) -> None:
    """Both victims make room on one node; without the second one, nothing is borrowed any more."""

    async def scenario(company: Company) -> None:
        await share(company, 4)
        for index, stops in enumerate((1, 5)):
            await company.create(fixed(f"low-{index}", "n0", stops=stops))
        await company.run("low-", 2)
        await company.create(replicas(2, made("waits", cpu="1")))
        await company.create(made("p0", high=high, namespace="owner", cpu="2"))
        await company.cluster.until(lambda: placed(company.cluster, "owner") == NAMES[:1])
        await company.sleep(20)
        assert company.evicted == ["low-0", "low-1"]

    config = load_config(EXAMPLES / "profiles" / "elastic-quota.yaml")
    nodes = [node_manifest("n0", cpu="2", labels={HOST: "n0"})]
    play_company(scenario, nodes=nodes, config=config)


@pytest.mark.parametrize("high", [True, False], ids=["of higher priority", "of equal priority"])
@pytest.mark.parametrize("mode", ["trial", "permit"])
def test_a_gang_waits_for_the_rest_of_its_victims(mode: str, high: bool) -> None:
    """The first member finds room, the victim of the second stops soon, that of the third later."""

    async def scenario(company: Company) -> None:
        await share(company, 4)
        for index, stops in ((1, 1), (2, 5)):
            await company.create(fixed(f"low-{index}", f"n{index}", stops=stops))
        await company.run("low-", 2)
        for name in NAMES[:3]:
            fields = {"namespace": "owner", **({"priorityClassName": "high"} if high else {})}
            await company.create(of_labels(name, least=3, **fields))
        await company.sleep(0.5)
        await company.create(replicas(4, made("waits", cpu="1")))
        await company.cluster.until(lambda: placed(company.cluster, "owner") == NAMES[:3])
        await company.sleep(20)
        assert company.evicted == ["low-1", "low-2"]

    config = coscheduling(mode, extra="CapacityScheduling", without="DefaultPreemption")
    play_company(scenario, nodes=small_nodes(3), config=config)


def test_a_namespace_above_its_minimum_takes_nothing_from_others(https: bool):
    async def scenario(cluster: VirtualCluster) -> None:
        await give(cluster, "a", {"cpu": 2})
        await give(cluster, "b", {"cpu": 6})
        await start(cluster, "b", "b1", "b2", "b3", "b4")
        await cluster.until(lambda: len(placed(cluster, "b")) == 4)
        await start(cluster, "a", "a1")
        await cluster.until(lambda: placed(cluster, "a") == ["a1"])  # b gives back what it borrowed
        await start(cluster, "a", "a2")
        await cluster.until(lambda: ABOVE_MIN in why(cluster, "a", "a2"))
        await aio.sleep(120)
        assert (placed(cluster, "a"), len(placed(cluster, "b"))) == (["a1"], 3)

    tell(scenario, https=https)


def test_a_quota_lowered_below_its_use_evicts_nobody_and_admits_nobody_until_it_is_raised(
    https: bool,
):
    async def scenario(cluster: VirtualCluster) -> None:
        await give(cluster, "b", {"cpu": 8}, {"cpu": 8, "memory": "8Gi"})
        await start(cluster, "b", "b1", "b2", "b3")
        await cluster.until(lambda: len(placed(cluster, "b")) == 3)
        quotas = cluster.scheduler.core.snapshot.listers.elastic_quotas
        await cluster.patch_object(
            ELASTIC_QUOTAS, "quota", {"spec": {"max": {"cpu": 2}}}, namespace="b"
        )
        await cluster.until(lambda: _max_cpu(quotas.get("quota", "b")) == 2)
        await start(cluster, "b", "b4", cpu="1")
        await cluster.until(lambda: ABOVE_MAX in why(cluster, "b", "b4"))
        await aio.sleep(60)
        assert placed(cluster, "b") == ["b1", "b2", "b3"]
        told = await cluster.events("b4", reason="ElasticQuotaExceeded")
        assert told[0]["message"] == (
            "ElasticQuota b/quota: cpu 6000m used and 1000m asked, 2000m at most"
        )
        await cluster.patch_object(
            ELASTIC_QUOTAS, "quota", {"spec": {"max": {"cpu": 7}}}, namespace="b"
        )
        await cluster.until(lambda: cluster.node_of("b4", "b") != "", seconds=20)

    tell(scenario, https=https)


def _max_cpu(quota: Any) -> object:
    return quota.spec.max["cpu"]


def test_without_the_definition_pods_are_scheduled_as_without_quotas(https: bool):
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.client.delete(
            CUSTOM_RESOURCE_DEFINITIONS, "elasticquotas.scheduling.x-k8s.io"
        )
        await aio.sleep(1)
        await start(cluster, "a", "a1", "a2")
        await start(cluster, "b", "b1", "b2")
        await cluster.until(lambda: all(cluster.placements().values()))

    tell(scenario, https=https)


def test_a_gang_under_a_quota_below_its_use_is_told_so_and_starts_when_it_is_raised():
    async def scenario(live: Cluster) -> None:
        bounds = {"cpu": 3}, {"cpu": 3, "memory": "8Gi"}
        await give(live, "default", *bounds)
        await live.create_objects(pod_manifest("a", cpu="1"))
        await live.until(lambda: live.bound("a") == 1)
        quotas = live.scheduler.core.snapshot.listers.elastic_quotas
        lowered = {"spec": {"max": {"cpu": "500m"}}}
        await live.patch_object(ELASTIC_QUOTAS, "quota", lowered, namespace="default")
        await live.until(lambda: _max_cpu(quotas.get("quota", "default")) == "500m")
        await live.create_objects(pod_group(least=2), of_object("g0"), of_object("g1"))
        await live.until(lambda: "more than Max" in live.message_of("g1"))
        await aio.sleep(2)
        told = [each["message"] for each in await live.events("g", reason="FailedScheduling")]
        assert any("because ElasticQuota default is more than Max" in text for text in told)
        assert live.bound("a", "g0", "g1") == 1
        raised = {"spec": {"max": {"cpu": 3}}}
        await live.patch_object(ELASTIC_QUOTAS, "quota", raised, namespace="default")
        await live.until(lambda: live.bound("a", "g0", "g1") == 3, seconds=30)

    play(scenario, cluster=nodes_of_gangs(3), config=coscheduling(extra="CapacityScheduling"))
