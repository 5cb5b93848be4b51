"""Topologies of nodes on a whole cluster: the definition is installed, exporters write objects.

What single decisions choose is for the tests of the plugin.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from moorage.api.resources import CUSTOM_RESOURCE_DEFINITIONS, NODE_RESOURCE_TOPOLOGIES
from moorage.base import aio
from moorage.base.clock import Clock
from moorage.config.load import parse_config
from moorage.framework.handle import MERGE_PATCH
from moorage.plugins.numa.fingerprints import fingerprint
from moorage_sandbox.testing.builders import Manifest, node_manifest, pod_manifest
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from scheduler.tests.plugins.numa.definition import DEFINITION, topology_manifest
from tests.scenarios.over_https import run_scenario

CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins:
    multiPoint: {{enabled: [{{name: NodeResourceTopologyMatch}}]}}
  pluginConfig:
  - name: NodeResourceTopologyMatch
    args: {{{args}}}
"""


def play(
    scenario: Callable[[VirtualCluster], Awaitable[None]], *nodes: str, args: str = ""
) -> None:
    """Run a scenario on nodes of 8 cpus, where the definition is installed."""
    config = parse_config(CONFIG.format(args=args))
    made = [node_manifest(name, cpu="8", memory="16Gi") for name in nodes]

    async def main(clock: Clock) -> None:
        async with VirtualCluster(clock, nodes=made, config=config) as cluster:
            await cluster.client.create(CUSTOM_RESOURCE_DEFINITIONS, DEFINITION)
            await scenario(cluster)

    run_scenario(main, https=False)


async def tell(cluster: VirtualCluster, name: str, *cpus: str, **attributes: str) -> None:
    """Write the topology of a node, and wait until the scheduler knows it."""
    body: Any = topology_manifest(name, *cpus)
    body["attributes"] += [{"name": key, "value": each} for key, each in attributes.items()]
    listed = cluster.scheduler.core.snapshot.listers.node_topologies
    before = listed.generation
    if listed.get(name) is None:
        await cluster.client.create(NODE_RESOURCE_TOPOLOGIES, body)
    else:
        patch = msgspec.json.encode(body)
        await cluster.client.patch(NODE_RESOURCE_TOPOLOGIES, name, patch, content_type=MERGE_PATCH)
    await cluster.until(lambda: listed.generation > before, seconds=120)


def guaranteed(name: str, cpu: str) -> Manifest:
    pod = pod_manifest(name)
    amounts = {"cpu": cpu, "memory": "1Gi"}
    pod["spec"]["containers"][0]["resources"] = {"requests": amounts, "limits": amounts}
    return pod


def test_a_pod_waits_for_a_numa_node_with_room_and_wakes_with_it():
    async def scenario(cluster: VirtualCluster) -> None:
        await tell(cluster, "n1", "3", "3")  # 6 cpus are left, 3 on either NUMA node
        await cluster.create_objects(guaranteed("p", "4"))
        await cluster.until(lambda: cluster.condition_of("p")[0] == "False")
        assert "1 cannot align container" in cluster.condition_of("p")[2]
        await tell(cluster, "n1", "3", "5")
        await cluster.until(lambda: cluster.node_of("p") == "n1", seconds=20)

    play(scenario, "n1")


def test_a_node_without_a_topology_is_taken_for_a_pod_that_no_numa_node_has_room_for():
    async def scenario(cluster: VirtualCluster) -> None:
        await tell(cluster, "n1", "3", "3")
        await cluster.create_objects(guaranteed("p", "4"))
        await cluster.until(lambda: cluster.node_of("p") == "n2")

    play(scenario, "n1", "n2")


CACHE = "cacheResyncPeriodSeconds: 5"
SIGNED = "nodeTopologyPodsFingerprint"


def test_pods_placed_since_the_topology_was_written_count_on_every_numa_node():
    async def scenario(cluster: VirtualCluster) -> None:
        await tell(cluster, "n1", "4", "4")
        await cluster.create_objects(guaranteed("a", "3"), guaranteed("b", "3"))
        await cluster.until(lambda: cluster.phase_of("a") == "Running")
        await aio.sleep(30)
        assert cluster.node_of("b") == ""  # upstream's choice: which NUMA node a got is not known
        await tell(cluster, "n1", "1", "4", **{SIGNED: fingerprint([("default", "other")])})
        await aio.sleep(30)
        assert cluster.node_of("b") == ""
        await tell(cluster, "n1", "1", "4", **{SIGNED: fingerprint([("default", "a")])})
        await cluster.until(lambda: cluster.node_of("b") == "n1", seconds=60)

    play(scenario, "n1", args=CACHE)


def test_without_the_cache_a_topology_is_believed_as_it_is():
    async def scenario(cluster: VirtualCluster) -> None:
        await tell(cluster, "n1", "4", "4")
        await cluster.create_objects(guaranteed("a", "3"), guaranteed("b", "3"))
        await cluster.until(lambda: cluster.node_of("b") == "n1")

    play(scenario, "n1")
