"""Deployments and replica sets in a whole cluster under the virtual clock.

Single rules of the arithmetic are in test_deployment_steps.
"""

from __future__ import annotations

from typing import Any

from moorage.api.resources import DEPLOYMENTS, PODS, REPLICA_SETS
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from sandbox.tests.controllers.cluster import every, play, pods, running, stored, workload


def complete(cluster: VirtualCluster, replicas: int, name: str = "web") -> bool:
    """Whether `kubectl rollout status` would say that it is rolled out."""
    found = stored(cluster, DEPLOYMENTS, name)
    status = found.get("status", {})
    return (
        status.get("observedGeneration") == found["metadata"]["generation"]
        and [status.get(each, 0) for each in ("replicas", "updatedReplicas", "availableReplicas")]
        == [replicas] * 3
    )


def test_a_deployment_gets_its_pods():
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(workload("Deployment", replicas=50))
        await cluster.until(lambda: complete(cluster, 50))
        (found,) = every(cluster, REPLICA_SETS)
        hashed = found["metadata"]["labels"]["pod-template-hash"]
        assert found["metadata"]["name"] == f"web-{hashed}"
        assert found["status"] == {
            "replicas": 50,
            "fullyLabeledReplicas": 50,
            "readyReplicas": 50,
            "availableReplicas": 50,
            "observedGeneration": 1,
        }
        for each in pods(cluster):
            assert each["metadata"]["labels"] == {
                "app": "web",
                "pod-template-hash": hashed,
                "topology.kubernetes.io/region": "sandbox",
            }
            assert each["metadata"]["name"].startswith(f"web-{hashed}-")
            assert each["metadata"]["generateName"] == f"web-{hashed}-"
        status = stored(cluster, DEPLOYMENTS, "web")["status"]
        assert {
            each["type"]: (each["status"], each["reason"]) for each in status["conditions"]
        } == {
            "Available": ("True", "MinimumReplicasAvailable"),
            "Progressing": ("True", "NewReplicaSetAvailable"),
        }

    play(scenario)


def unavailable_most(cluster: VirtualCluster, seen: list[tuple[int, int]]) -> Any:
    """Note how many pods there are and how many of them are ready, each time it is asked."""

    def note() -> None:
        ready = sum(
            any(
                c["type"] == "Ready" and c["status"] == "True" for c in each["status"]["conditions"]
            )
            for each in pods(cluster)
            if each.get("status", {}).get("conditions")
        )
        seen.append((len(pods(cluster)), ready))

    return note


async def change(cluster: VirtualCluster, spec: dict[str, Any]) -> None:
    await cluster.patch_object(DEPLOYMENTS, "web", {"spec": spec}, namespace="default")


def image(name: str) -> dict[str, Any]:
    containers = [{"name": "main", "image": name, "resources": {"requests": {"cpu": "10m"}}}]
    return {"template": {"spec": {"containers": containers}}}


def images(cluster: VirtualCluster) -> set[str]:
    return {each["spec"]["containers"][0]["image"] for each in pods(cluster)}


def test_a_roll_out_keeps_within_surge_and_unavailable():
    async def scenario(cluster: VirtualCluster) -> None:
        rolling = {"maxSurge": 2, "maxUnavailable": 1}
        strategy = {"type": "RollingUpdate", "rollingUpdate": rolling}
        await cluster.create_objects(workload("Deployment", replicas=10, strategy=strategy))
        await cluster.until(lambda: complete(cluster, 10))
        seen: list[tuple[int, int]] = []
        note = unavailable_most(cluster, seen)
        await change(cluster, image("nginx:2"))

        def done() -> bool:
            note()
            return complete(cluster, 10)

        await cluster.until(done, seconds=120)
        assert images(cluster) == {"nginx:2"}
        assert max(total for total, _ in seen) == 12
        assert min(ready for _, ready in seen) == 9
        revisions = {
            each["metadata"]["annotations"]["deployment.kubernetes.io/revision"]: each["spec"][
                "replicas"
            ]
            for each in every(cluster, REPLICA_SETS)
        }
        assert revisions == {"1": 0, "2": 10}

    play(scenario)


def test_a_rollback_reuses_the_old_replica_set_under_a_new_revision():
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(workload("Deployment", replicas=3))
        await cluster.until(lambda: complete(cluster, 3))
        first = every(cluster, REPLICA_SETS)[0]["metadata"]["name"]
        await change(cluster, image("nginx:2"))
        await cluster.until(lambda: complete(cluster, 3))
        await change(cluster, image("nginx:1"))
        await cluster.until(lambda: complete(cluster, 3))
        assert images(cluster) == {"nginx:1"}
        assert len(every(cluster, REPLICA_SETS)) == 2
        annotations = stored(cluster, REPLICA_SETS, first)["metadata"]["annotations"]
        assert annotations["deployment.kubernetes.io/revision"] == "3"
        assert annotations["deployment.kubernetes.io/revision-history"] == "1"
        deployment = stored(cluster, DEPLOYMENTS, "web")
        assert deployment["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "3"

    play(scenario)


def test_recreate_never_mixes_old_and_new_pods():
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(
            workload("Deployment", replicas=4, strategy={"type": "Recreate"})
        )
        await cluster.until(lambda: complete(cluster, 4))
        await change(cluster, image("nginx:2"))
        mixed: list[set[str]] = []

        def done() -> bool:
            mixed.append({each["spec"]["containers"][0]["image"] for each in every(cluster, PODS)})
            return complete(cluster, 4)

        await cluster.until(done)
        assert images(cluster) == {"nginx:2"}
        assert {"nginx:1", "nginx:2"} not in mixed

    play(scenario)


def test_a_paused_deployment_changes_its_size_but_not_its_pods():
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(workload("Deployment", replicas=3))
        await cluster.until(lambda: complete(cluster, 3))
        await change(cluster, {"paused": True, **image("nginx:2")})
        await change(cluster, {"replicas": 5})
        await cluster.until(lambda: len(running(cluster)) == 5)
        assert images(cluster) == {"nginx:1"}
        conditions = stored(cluster, DEPLOYMENTS, "web")["status"]["conditions"]
        assert "DeploymentPaused" in [each["reason"] for each in conditions]
        await change(cluster, {"paused": None})
        await cluster.until(lambda: complete(cluster, 5))
        assert images(cluster) == {"nginx:2"}

    play(scenario)


def test_a_roll_out_that_does_not_get_on_says_so_after_its_deadline():
    async def scenario(cluster: VirtualCluster) -> None:
        huge = workload("Deployment", replicas=1, progressDeadlineSeconds=60)
        container = huge["spec"]["template"]["spec"]["containers"][0]
        container["resources"] = {"requests": {"cpu": "100"}}
        await cluster.create_objects(huge)

        def reasons() -> list[str]:
            status = stored(cluster, DEPLOYMENTS, "web").get("status", {})
            return [each["reason"] for each in status.get("conditions") or []]

        await cluster.until(lambda: "ReplicaSetUpdated" in reasons())
        began = cluster.seconds
        await cluster.until(lambda: "ProgressDeadlineExceeded" in reasons(), seconds=70)
        assert cluster.seconds - began > 58

    play(scenario)


def test_history_is_kept_as_long_as_asked_for():
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(workload("Deployment", replicas=1, revisionHistoryLimit=2))
        await cluster.until(lambda: complete(cluster, 1))
        for number in range(2, 6):
            await change(cluster, image(f"nginx:{number}"))
            await cluster.until(lambda: complete(cluster, 1))
        await cluster.until(lambda: len(every(cluster, REPLICA_SETS)) == 3)
        kept = {
            each["spec"]["template"]["spec"]["containers"][0]["image"]
            for each in every(cluster, REPLICA_SETS)
        }
        assert kept == {"nginx:3", "nginx:4", "nginx:5"}

    play(scenario)


def test_pods_that_die_or_leave_are_replaced():
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(workload("Deployment", replicas=3))
        await cluster.until(lambda: complete(cluster, 3))
        first, second, third = running(cluster)
        await cluster.client.delete(PODS, first, namespace="default")
        await cluster.patch_object(
            PODS, second, {"metadata": {"labels": {"app": "x"}}}, namespace="default"
        )
        await cluster.until(lambda: len(running(cluster)) == 4)
        left = stored(cluster, PODS, second)
        assert not left["metadata"].get("ownerReferences")
        assert third in running(cluster)

    play(scenario)


def test_a_replica_set_adopts_pods_that_match_before_it_makes_any():
    async def scenario(cluster: VirtualCluster) -> None:
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "mine", "namespace": "default", "labels": {"app": "web"}},
            "spec": {"containers": [{"name": "main", "image": "nginx:1"}]},
        }
        await cluster.create_objects(pod)
        await cluster.create_objects(workload("ReplicaSet", replicas=2))
        await cluster.until(lambda: len(running(cluster)) == 2)
        (owner,) = stored(cluster, PODS, "mine")["metadata"]["ownerReferences"]
        assert owner["uid"] == stored(cluster, REPLICA_SETS, "web")["metadata"]["uid"]
        assert owner["controller"] is True

    play(scenario)


def test_a_deployment_adopts_its_replica_set_before_it_makes_one():
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(workload("Deployment", replicas=2))
        await cluster.until(lambda: complete(cluster, 2))
        (orphan,) = every(cluster, REPLICA_SETS)
        await cluster.client.delete(DEPLOYMENTS, "web", namespace="default", propagation="Orphan")
        await cluster.until(lambda: not every(cluster, DEPLOYMENTS))
        other = workload("Deployment", replicas=2)
        other["metadata"]["name"] = "other"
        await cluster.create_objects(other)
        await cluster.until(lambda: complete(cluster, 2, "other"))
        (adopted,) = every(cluster, REPLICA_SETS)
        assert adopted["metadata"]["uid"] == orphan["metadata"]["uid"]
        assert adopted["metadata"]["ownerReferences"][0]["name"] == "other"

    play(scenario)
