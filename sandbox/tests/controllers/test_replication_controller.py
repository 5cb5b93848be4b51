"""Scope: replication controllers keep their pods, by a selector that is a plain map of labels."""

from __future__ import annotations

from functools import partial
from typing import Any

from moorage.api.resources import PODS, REPLICATION_CONTROLLERS
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from sandbox.tests.controllers.cluster import every, play, pods, running, stored, template


def controller(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ReplicationController",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"replicas": 2, "selector": {"app": "web"}, "template": template(), **spec},
    }


def has_pods(cluster: VirtualCluster, count: int) -> bool:
    return len(pods(cluster)) == count


def test_as_many_pods_as_wanted_run_and_the_status_counts_them():
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(controller())
        await cluster.until(lambda: len(running(cluster)) == 2)
        await cluster.until(
            lambda: (
                stored(cluster, REPLICATION_CONTROLLERS, "web")["status"].get("readyReplicas") == 2
            )
        )
        [owner] = pods(cluster)[0]["metadata"]["ownerReferences"]
        assert (owner["apiVersion"], owner["kind"], owner["name"]) == (
            "v1",
            "ReplicationController",
            "web",
        )

    play(scenario)


def test_scaling_adds_and_removes_pods():
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(controller())
        for wanted in (4, 1):
            change = {"spec": {"replicas": wanted}}
            await cluster.patch_object(REPLICATION_CONTROLLERS, "web", change, namespace="default")
            await cluster.until(partial(has_pods, cluster, wanted))

    play(scenario)


def test_a_matching_pod_is_adopted_and_one_with_other_labels_is_released():
    async def scenario(cluster: VirtualCluster) -> None:
        lone = {"apiVersion": "v1", "kind": "Pod", **template()}
        lone["metadata"] = {"name": "lone", "namespace": "default", "labels": {"app": "web"}}
        await cluster.create_objects(lone)
        await cluster.create_objects(controller(replicas=1))
        await cluster.until(
            lambda: bool(stored(cluster, PODS, "lone")["metadata"].get("ownerReferences"))
        )
        change = {"metadata": {"labels": {"app": "other"}}}
        await cluster.patch_object(PODS, "lone", change, namespace="default")
        await cluster.until(lambda: len(every(cluster, PODS)) == 2)
        assert not stored(cluster, PODS, "lone")["metadata"].get("ownerReferences")

    play(scenario)
