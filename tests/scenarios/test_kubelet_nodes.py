"""What Kubernetes' own scheduling suite relies on in kubelets, on a whole cluster.

Scheduler, server and nodes run under the virtual clock. The suite is kubernetes v1.36
test/e2e/scheduling; each test here names the part it follows.
"""

from __future__ import annotations

from typing import Any

from moorage.api.resources import NODES, PODS
from moorage.base import aio
from moorage.base.clock import ManualClock
from moorage.client.requests import patch_body
from moorage_sandbox.testing.builders import node_manifest, pod_manifest
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from moorage_sandbox.testing.virtual_loop import run_virtual
from tests.scenarios.test_preemption import Scenario, priority

FOO = "scheduling.k8s.io/foo"
CLASSES = [priority("low", 1), priority("medium", 100), priority("high", 1000)]


def play(scenario: Scenario, *, nodes: int) -> None:
    clock = ManualClock()
    names = [f"n{number}" for number in range(1, nodes + 1)]

    async def main() -> None:
        given = [node_manifest(name) for name in names]
        async with VirtualCluster(clock, nodes=given) as cluster:
            await cluster.create_objects(*CLASSES)
            await scenario(cluster)

    run_virtual(main(), clock)


def pod(name: str, level: str, *, foo: str, node: str = "", **fields: Any) -> dict[str, Any]:
    """A pod that requests an extended resource, perhaps of one node only."""
    resources = {"requests": {FOO: foo}, "limits": {FOO: foo}}
    container = {"name": "main", "image": "pause", "resources": resources, **fields}
    selector = {"kubernetes.io/hostname": node} if node else None
    return pod_manifest(
        name,
        priorityClassName=level,
        containers=[container],
        node_selector=selector,
        terminationGracePeriodSeconds=80,
    )


async def offer(cluster: VirtualCluster, node: str, amount: str | None) -> None:
    """Write an extended resource into the capacity of a node, as the suite does."""
    body = patch_body({"status": {"capacity": {FOO: amount}}})
    await cluster.client.patch(NODES, node, body, subresource="status")


async def allocatable(cluster: VirtualCluster, node: str) -> Any:
    found: Any = await cluster.client.get(NODES, node)
    return found["status"]["allocatable"].get(FOO)


def test_basic_preemption_by_a_resource_that_the_suite_adds_to_nodes():
    """preemption.go, "validates basic preemption works"."""

    async def scenario(cluster: VirtualCluster) -> None:
        for node in ("n1", "n2", "n3"):
            await offer(cluster, node, "3")
        victims = [
            pod("victim-1", "low", foo="2", node="n1"),
            pod("victim-2", "medium", foo="2", node="n2"),
            pod("victim-3", "medium", foo="2", node="n3"),
        ]
        await cluster.create_objects(*victims)
        names = [each["metadata"]["name"] for each in victims]
        await cluster.until(lambda: all(cluster.phase_of(name) == "Running" for name in names))
        await cluster.create_objects(pod("preemptor", "high", foo="2"))
        await cluster.until(lambda: cluster.phase_of("preemptor") == "Running")
        assert cluster.placements() == {
            "default/preemptor": "n1",
            "default/victim-2": "n2",
            "default/victim-3": "n3",
        }
        await offer(cluster, "n1", None)
        await aio.sleep(1)
        assert await allocatable(cluster, "n1") is None
        assert await allocatable(cluster, "n2") == "3"

    play(scenario, nodes=3)


def test_a_victim_with_a_hook_keeps_its_node_for_its_grace_period():
    """A preStop hook of 79 seconds and a grace period of 80: the preemptor waits that long."""

    async def scenario(cluster: VirtualCluster) -> None:
        await offer(cluster, "n1", "1")
        hook = {"preStop": {"sleep": {"seconds": 79}}}
        await cluster.create_objects(pod("victim", "low", foo="1", lifecycle=hook))
        await cluster.until(lambda: cluster.phase_of("victim") == "Running")
        began = cluster.seconds
        await cluster.create_objects(pod("preemptor", "high", foo="1"))

        def nominated() -> bool:
            found = cluster.stored_pod("preemptor") or {}
            return bool(found.get("status", {}).get("nominatedNodeName") == "n1")

        await cluster.until(nominated)
        await aio.sleep(70)
        assert cluster.phase_of("victim") == "Running"
        assert cluster.node_of("preemptor") == ""
        await cluster.until(lambda: cluster.phase_of("preemptor") == "Running")
        assert 80 <= cluster.seconds - began < 83

    play(scenario, nodes=1)


def test_a_victim_with_a_finalizer_gives_its_room_back_when_it_has_stopped():
    """preemption.go, "validates pod disruption condition is added to the preempted pod"."""

    async def scenario(cluster: VirtualCluster) -> None:
        await offer(cluster, "n1", "1")
        victim = pod("victim", "low", foo="1")
        victim["metadata"]["finalizers"] = ["example.com/test-finalizer"]
        await cluster.create_objects(victim)
        await cluster.until(lambda: cluster.phase_of("victim") == "Running")
        await cluster.create_objects(pod("preemptor", "high", foo="1"))
        await cluster.until(lambda: cluster.phase_of("preemptor") == "Running")
        left: Any = await cluster.client.get(PODS, "victim", namespace="default")
        assert left["metadata"]["deletionTimestamp"]
        assert left["status"]["phase"] == "Failed"
        target = [c for c in left["status"]["conditions"] if c["type"] == "DisruptionTarget"]
        assert [(c["status"], c["reason"]) for c in target] == [("True", "PreemptionByScheduler")]

    play(scenario, nodes=1)
