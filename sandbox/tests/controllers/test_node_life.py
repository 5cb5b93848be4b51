"""Nodes that fall silent or are tainted, and their pods; namespaces and what belongs in each."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.resources import (
    CONFIG_MAPS,
    LEASES,
    NAMESPACES,
    NODES,
    PODS,
    SERVICE_ACCOUNTS,
)
from moorage.base import aio
from moorage.base.clock import rfc3339_micro
from moorage.client.requests import MERGE_PATCH, patch_body
from moorage_sandbox.testing.builders import node_manifest, pod_manifest
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from sandbox.tests.controllers.cluster import every, play, stored, workload

HEARTBEATS = "kube-node-lease"


def taints(cluster: VirtualCluster, name: str) -> list[tuple[str, str]]:
    found = stored(cluster, NODES, name)["spec"].get("taints") or []
    return [(each["key"].removeprefix("node.kubernetes.io/"), each["effect"]) for each in found]


def ready(cluster: VirtualCluster, name: str) -> str:
    conditions = stored(cluster, NODES, name)["status"].get("conditions") or []
    return next((each["status"] for each in conditions if each["type"] == "Ready"), "")


async def renew(cluster: VirtualCluster) -> None:
    """Renew the lease of the node ``by-hand``."""
    spec = {"renewTime": rfc3339_micro(cluster.clock.now_ns()), "leaseDurationSeconds": 40}
    await cluster.client.patch(
        LEASES,
        "by-hand",
        patch_body({"spec": spec}),
        namespace=HEARTBEATS,
        content_type=MERGE_PATCH,
    )


async def add_node(cluster: VirtualCluster) -> None:
    """Add a node nobody plays, with a lease renewed just now."""
    node = node_manifest("by-hand")
    node["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    await cluster.client.create(NODES, node)
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "by-hand", "namespace": HEARTBEATS},
        "spec": {"holderIdentity": "by-hand"},
    }
    await cluster.client.create(LEASES, lease, namespace=HEARTBEATS)
    await renew(cluster)


async def set_ready(cluster: VirtualCluster, name: str, status: str) -> None:
    body = {"status": {"conditions": [{"type": "Ready", "status": status}]}}
    await cluster.client.patch(NODES, name, patch_body(body), subresource="status")


def test_a_silent_node_is_marked_and_loses_its_pods_after_five_minutes():
    async def scenario(cluster: VirtualCluster) -> None:
        await add_node(cluster)
        await cluster.create_objects(pod_manifest("p", node_name="by-hand"))
        began = cluster.seconds
        await cluster.until(lambda: ready(cluster, "by-hand") == "Unknown", seconds=60)
        assert 49 < cluster.seconds - began < 52
        await cluster.until(lambda: len(taints(cluster, "by-hand")) == 2)
        assert taints(cluster, "by-hand") == [
            ("unreachable", "NoSchedule"),
            ("unreachable", "NoExecute"),
        ]
        marked = cluster.seconds
        await cluster.until(lambda: not stored(cluster, PODS, "p") or leaving(cluster), seconds=320)
        assert 299 < cluster.seconds - marked < 302
        conditions = stored(cluster, PODS, "p")["status"]["conditions"]
        assert [each["reason"] for each in conditions if each["type"] == "DisruptionTarget"] == [
            "DeletionByTaintManager"
        ]

    def leaving(cluster: VirtualCluster) -> bool:
        return "deletionTimestamp" in stored(cluster, PODS, "p")["metadata"]

    play(scenario, nodes=[])


def test_a_node_that_is_heard_of_again_loses_the_taints_and_keeps_its_pods():
    async def scenario(cluster: VirtualCluster) -> None:
        await add_node(cluster)
        await cluster.create_objects(pod_manifest("p", node_name="by-hand"))
        await cluster.until(lambda: len(taints(cluster, "by-hand")) == 2, seconds=60)
        await renew(cluster)
        await set_ready(cluster, "by-hand", "True")
        await cluster.until(lambda: taints(cluster, "by-hand") == [])
        for _ in range(20):
            await aio.sleep(20)
            await renew(cluster)
        assert "deletionTimestamp" not in stored(cluster, PODS, "p")["metadata"]

    play(scenario, nodes=[])


def test_a_node_nobody_ever_heard_of_is_left_alone():
    async def scenario(cluster: VirtualCluster) -> None:
        node = node_manifest("alone")
        node["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
        await cluster.client.create(NODES, node)
        await cluster.until(lambda: cluster.seconds > 120, seconds=130)
        assert ready(cluster, "alone") == "True"
        assert taints(cluster, "alone") == []

    play(scenario, nodes=[])


def test_nodes_are_tainted_by_their_state_and_other_taints_stay():
    async def scenario(cluster: VirtualCluster) -> None:
        mine = {"key": "mine", "value": "x", "effect": "NoSchedule"}
        change = {"spec": {"unschedulable": True, "taints": [mine]}}
        await cluster.patch_object(NODES, "n1", change)
        await cluster.until(lambda: len(taints(cluster, "n1")) == 2)
        assert taints(cluster, "n1") == [("mine", "NoSchedule"), ("unschedulable", "NoSchedule")]
        await cluster.patch_object(NODES, "n1", {"spec": {"unschedulable": None}})
        await cluster.until(lambda: taints(cluster, "n1") == [("mine", "NoSchedule")])
        await set_ready(cluster, "n2", "False")
        await cluster.until(lambda: len(taints(cluster, "n2")) == 2)
        assert taints(cluster, "n2") == [("not-ready", "NoSchedule"), ("not-ready", "NoExecute")]

    play(scenario)


LIMITED = {"effect": "NoExecute", "tolerationSeconds": 20}
NO_EXECUTE = {"key": "gone", "effect": "NoExecute"}


@pytest.mark.parametrize(
    ("tolerations", "seconds"),
    [
        pytest.param([], 0, id="a pod without toleration is evicted at once"),
        pytest.param(
            [{"key": "gone", "operator": "Exists", **LIMITED}],
            20,
            id="a limited toleration: the pod is evicted when it ends",
        ),
        pytest.param(
            [{"key": "gone", "operator": "Exists"}],
            None,
            id="an unlimited toleration: the pod stays",
        ),
    ],
)
def test_a_taint_that_throws_pods_out(tolerations, seconds):
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(pod_manifest("p", tolerations=tolerations))
        await cluster.until(lambda: cluster.phase_of("p") == "Running")
        began = cluster.seconds
        await cluster.patch_object(NODES, "n1", {"spec": {"taints": [NO_EXECUTE]}})
        if seconds is None:
            await cluster.until(lambda: cluster.seconds > began + 60, seconds=61)
            assert cluster.phase_of("p") == "Running"
            return

        def leaving() -> bool:
            return "deletionTimestamp" in stored(cluster, PODS, "p")["metadata"]

        await cluster.until(leaving)
        assert seconds <= cluster.seconds - began < seconds + 1

    play(scenario, nodes=[node_manifest("n1")])


def test_a_limited_toleration_is_forgotten_when_the_taint_goes_in_time():
    async def scenario(cluster: VirtualCluster) -> None:
        toleration = {"key": "gone", "operator": "Exists", **LIMITED}
        await cluster.create_objects(pod_manifest("p", tolerations=[toleration]))
        await cluster.until(lambda: cluster.phase_of("p") == "Running")
        await cluster.patch_object(NODES, "n1", {"spec": {"taints": [NO_EXECUTE]}})
        began = cluster.seconds
        await cluster.until(lambda: cluster.seconds > began + 10)
        await cluster.patch_object(NODES, "n1", {"spec": {"taints": None}})
        await cluster.until(lambda: cluster.seconds > began + 60, seconds=61)
        assert cluster.phase_of("p") == "Running"
        assert "deletionTimestamp" not in stored(cluster, PODS, "p")["metadata"]

    play(scenario, nodes=[node_manifest("n1")])


def test_pods_of_a_node_that_is_gone_are_deleted_and_made_again_elsewhere():
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(workload("Deployment", replicas=2))
        await cluster.until(lambda: len(every(cluster, PODS)) == 2)
        await cluster.until(lambda: "" not in cluster.placements().values())
        lost = sorted(cluster.placements().values())[0]
        began = cluster.seconds
        await cluster.delete_node(lost)
        await cluster.until(
            lambda: lost not in cluster.placements().values() and len(cluster.placements()) == 2,
            seconds=60,
        )
        assert 39 < cluster.seconds - began < 43

    play(scenario, nodes=[node_manifest("n1"), node_manifest("n2")])


def test_every_namespace_has_an_account_and_gets_it_back():
    async def scenario(cluster: VirtualCluster) -> None:
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}
        await cluster.client.create(NAMESPACES, namespace)

        def accounts(name: str) -> list[Any]:
            return [each["metadata"]["name"] for each in every(cluster, SERVICE_ACCOUNTS, name)]

        await cluster.until(lambda: accounts("team") == ["default"] == accounts("default"))
        await cluster.client.delete(SERVICE_ACCOUNTS, "default", namespace="team")
        await cluster.until(lambda: accounts("team") == ["default"])
        await cluster.client.delete(NAMESPACES, "team")
        await cluster.until(lambda: not stored(cluster, NAMESPACES, "team"))

    play(scenario)


def test_every_namespace_has_the_certificate_as_it_is():
    async def scenario(cluster: VirtualCluster) -> None:
        def published() -> dict[str, str]:
            found: dict[str, str] = stored(cluster, CONFIG_MAPS, "kube-root-ca.crt").get("data", {})
            return found

        await cluster.until(lambda: published() == {"ca.crt": "PEM"})
        await cluster.patch_object(
            CONFIG_MAPS, "kube-root-ca.crt", {"data": {"ca.crt": "other"}}, namespace="default"
        )
        await cluster.until(lambda: published() == {"ca.crt": "PEM"})

    play(scenario, authority="PEM")


def test_the_workload_of_a_node_under_pressure_moves_to_another_node():
    async def press(cluster: VirtualCluster, value: str | None) -> None:
        told = {"metadata": {"annotations": {"moorage.dev/memory-pressure": value}}}
        await cluster.client.patch(NODES, "n1", patch_body(told))

    def running_on(cluster: VirtualCluster) -> list[str]:
        return [
            each["spec"]["nodeName"]
            for each in every(cluster, PODS)
            if each["status"].get("phase") == "Running"
        ]

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(workload("ReplicaSet", replicas=1))
        await cluster.until(lambda: running_on(cluster) == ["n1"])
        await cluster.client.create(NODES, node_manifest("n2"))
        await press(cluster, "true")
        await cluster.until(lambda: taints(cluster, "n1") == [("memory-pressure", "NoSchedule")])
        await cluster.until(lambda: len(every(cluster, PODS)) == 2, seconds=20)
        placed = {
            each["spec"].get("nodeName"): each["status"].get("reason", "")
            for each in every(cluster, PODS)
        }
        assert placed == {"n1": "Evicted", "n2": ""}
        await press(cluster, None)
        await cluster.until(lambda: taints(cluster, "n1") == [])

    play(scenario, nodes=[node_manifest("n1")])
