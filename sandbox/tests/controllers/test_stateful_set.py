"""Stateful sets in a whole cluster under the virtual clock: order, claims, roll-outs, history."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.resources import (
    CONTROLLER_REVISIONS,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    STATEFUL_SETS,
)
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from sandbox.tests.controllers.cluster import every, play, pods, running, stored, workload

CLAIM = {
    "metadata": {"name": "data"},
    "spec": {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
    },
}


def names(objects: list[Any]) -> list[str]:
    return [each["metadata"]["name"] for each in objects]


def image(name: str) -> dict[str, Any]:
    containers = [{"name": "main", "image": name, "resources": {"requests": {"cpu": "10m"}}}]
    return {"template": {"spec": {"containers": containers}}}


def images(cluster: VirtualCluster) -> list[str]:
    return [each["spec"]["containers"][0]["image"] for each in pods(cluster)]


async def change(cluster: VirtualCluster, spec: dict[str, Any]) -> None:
    await cluster.patch_object(STATEFUL_SETS, "web", {"spec": spec}, namespace="default")


def settled(cluster: VirtualCluster, replicas: int) -> bool:
    found = stored(cluster, STATEFUL_SETS, "web")
    status = found.get("status", {})
    return [
        status.get("observedGeneration"),
        status.get("readyReplicas", 0),
        status.get("replicas", 0),
        status.get("currentRevision"),
    ] == [found["metadata"]["generation"], replicas, replicas, status.get("updateRevision")]


def test_pods_with_claims_come_in_order_and_keep_their_claims():
    async def scenario(cluster: VirtualCluster) -> None:
        made = workload("StatefulSet", replicas=3, serviceName="web", volumeClaimTemplates=[CLAIM])
        await cluster.create_objects(made)
        most_pending = 0

        def done() -> bool:
            nonlocal most_pending
            most_pending = max(most_pending, len(pods(cluster)) - len(running(cluster)))
            return settled(cluster, 3)

        await cluster.until(done, seconds=60)
        assert most_pending == 1
        assert names(pods(cluster)) == ["web-0", "web-1", "web-2"]
        claims = every(cluster, PERSISTENT_VOLUME_CLAIMS)
        assert names(claims) == ["data-web-0", "data-web-1", "data-web-2"]
        assert {each["status"]["phase"] for each in claims} == {"Bound"}
        assert [each["metadata"]["labels"] for each in claims] == [{"app": "web"}] * 3
        first = pods(cluster)[0]
        assert first["spec"]["hostname"] == "web-0"
        assert first["spec"]["subdomain"] == "web"
        revision = stored(cluster, STATEFUL_SETS, "web")["status"]["currentRevision"]
        assert first["metadata"]["labels"] == {
            "app": "web",
            "apps.kubernetes.io/pod-index": "0",
            "controller-revision-hash": revision,
            "statefulset.kubernetes.io/pod-name": "web-0",
            "topology.kubernetes.io/region": "sandbox",
        }
        volume = stored(cluster, PERSISTENT_VOLUME_CLAIMS, "data-web-1")["spec"]["volumeName"]
        await cluster.client.delete(PODS, "web-1", namespace="default")
        await cluster.until(lambda: "web-1" not in running(cluster))
        await cluster.until(lambda: settled(cluster, 3))
        again = stored(cluster, PERSISTENT_VOLUME_CLAIMS, "data-web-1")
        assert again["spec"]["volumeName"] == volume

    play(scenario, volumes=True)


def test_a_smaller_set_loses_its_highest_ordinals_one_by_one_but_no_claims():
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(
            workload("StatefulSet", replicas=3, volumeClaimTemplates=[CLAIM])
        )
        await cluster.until(lambda: settled(cluster, 3), seconds=60)
        await change(cluster, {"replicas": 1})
        left: list[int] = []

        def done() -> bool:
            left.append(len(pods(cluster)))
            return names(every(cluster, PODS)) == ["web-0"]

        await cluster.until(done)
        assert 2 in left
        assert len(every(cluster, PERSISTENT_VOLUME_CLAIMS)) == 3

    play(scenario, volumes=True)


def test_parallel_pod_management_creates_all_pods_at_once():
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(
            workload("StatefulSet", replicas=5, podManagementPolicy="Parallel")
        )
        await cluster.until(lambda: len(pods(cluster)) == 5, seconds=1)
        await cluster.until(lambda: settled(cluster, 5))

    play(scenario)


def test_a_roll_out_goes_from_the_highest_ordinal_down_to_the_partition():
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(workload("StatefulSet", replicas=4))
        await cluster.until(lambda: settled(cluster, 4), seconds=60)
        rolling = {"updateStrategy": {"rollingUpdate": {"partition": 2}}}
        await change(cluster, {**rolling, **image("nginx:2")})
        await cluster.until(
            lambda: images(cluster) == ["nginx:1", "nginx:1", "nginx:2", "nginx:2"], seconds=60
        )
        await cluster.until(lambda: len(running(cluster)) == 4)
        status = stored(cluster, STATEFUL_SETS, "web")["status"]
        assert status["updatedReplicas"] == 2
        assert status["currentRevision"] != status["updateRevision"]
        # A pod below the partition comes back as it was.
        await cluster.client.delete(PODS, "web-0", namespace="default")
        await cluster.until(lambda: "web-0" not in running(cluster))
        await cluster.until(lambda: len(running(cluster)) == 4)
        assert images(cluster) == ["nginx:1", "nginx:1", "nginx:2", "nginx:2"]
        await change(cluster, {"updateStrategy": {"rollingUpdate": {"partition": 0}}})
        await cluster.until(lambda: settled(cluster, 4), seconds=60)
        assert images(cluster) == ["nginx:2"] * 4

    play(scenario)


def test_with_on_delete_pods_are_replaced_only_once_they_are_deleted():
    async def scenario(cluster: VirtualCluster) -> None:
        strategy = {"type": "OnDelete"}
        await cluster.create_objects(workload("StatefulSet", replicas=2, updateStrategy=strategy))
        await cluster.until(lambda: settled(cluster, 2), seconds=60)
        await change(cluster, image("nginx:2"))
        await cluster.until(lambda: len(every(cluster, CONTROLLER_REVISIONS)) == 2)
        await cluster.client.delete(PODS, "web-1", namespace="default")
        await cluster.until(lambda: images(cluster) == ["nginx:1", "nginx:2"])

    play(scenario)


def test_a_rollback_makes_the_old_revision_the_newest():
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(workload("StatefulSet", replicas=1, revisionHistoryLimit=1))
        await cluster.until(lambda: settled(cluster, 1))
        for name in ("nginx:2", "nginx:1"):
            await change(cluster, image(name))
            await cluster.until(lambda: settled(cluster, 1))
        found = {
            each["data"]["spec"]["template"]["spec"]["containers"][0]["image"]: each["revision"]
            for each in every(cluster, CONTROLLER_REVISIONS)
        }
        assert found == {"nginx:1": 3, "nginx:2": 2}
        await change(cluster, image("nginx:3"))
        await cluster.until(lambda: settled(cluster, 1))
        await cluster.until(lambda: len(every(cluster, CONTROLLER_REVISIONS)) == 2)
        assert sorted(each["revision"] for each in every(cluster, CONTROLLER_REVISIONS)) == [3, 4]

    play(scenario)


@pytest.mark.parametrize(
    ("policy", "after_scaling", "after_deletion"),
    [
        pytest.param({}, 2, 2, id="claims stay unless asked otherwise"),
        pytest.param({"whenScaled": "Delete"}, 1, 1, id="claims are deleted with surplus pods"),
        pytest.param({"whenDeleted": "Delete"}, 2, 0, id="claims are deleted with the set"),
        pytest.param({"whenDeleted": "Delete", "whenScaled": "Delete"}, 1, 0, id="both"),
    ],
)
def test_the_retention_policy_decides_which_claims_are_deleted(
    policy, after_scaling, after_deletion
):
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(
            workload(
                "StatefulSet",
                replicas=2,
                volumeClaimTemplates=[CLAIM],
                persistentVolumeClaimRetentionPolicy=policy,
            )
        )
        await cluster.until(lambda: settled(cluster, 2), seconds=60)
        await change(cluster, {"replicas": 1})
        await cluster.until(lambda: names(every(cluster, PODS)) == ["web-0"])
        await cluster.until(lambda: len(every(cluster, PERSISTENT_VOLUME_CLAIMS)) == after_scaling)
        await cluster.client.delete(
            STATEFUL_SETS, "web", namespace="default", propagation="Background"
        )
        await cluster.until(lambda: not every(cluster, PODS))
        await cluster.until(lambda: len(every(cluster, PERSISTENT_VOLUME_CLAIMS)) == after_deletion)

    play(scenario, volumes=True)


def test_a_claim_that_a_quota_refuses_holds_up_its_own_pod_only():
    async def scenario(cluster: VirtualCluster) -> None:
        quota = {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "q", "namespace": "default"},
            "spec": {"hard": {"persistentvolumeclaims": "2"}},
        }
        made = workload(
            "StatefulSet",
            replicas=3,
            serviceName="web",
            volumeClaimTemplates=[CLAIM],
            podManagementPolicy="Parallel",
        )
        await cluster.create_objects(quota, made)
        await cluster.until(lambda: names(pods(cluster)) == ["web-0", "web-1"], seconds=60)
        claims = every(cluster, PERSISTENT_VOLUME_CLAIMS)
        assert names(claims) == ["data-web-0", "data-web-1"]

    play(scenario)
