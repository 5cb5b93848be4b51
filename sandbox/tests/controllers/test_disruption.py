"""The disruption controller in a cluster in virtual time: what it sees, writes and corrects.

Single rules are in test_disruption_steps.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from moorage.api.resources import (
    POD_DISRUPTION_BUDGETS,
    PODS,
    REPLICATION_CONTROLLERS,
)
from moorage.base.clock import ManualClock
from moorage.client.requests import MERGE_PATCH, patch_body
from moorage_sandbox.controllers.disruption import DisruptionController
from moorage_sandbox.testing.builders import node_manifest, pod_manifest
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from moorage_sandbox.testing.virtual_loop import run_virtual

APP = {"app": "a"}
Scenario = Callable[["Budgets"], Awaitable[None]]


def budget(name: str = "b", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"matchLabels": APP}, **spec},
    }


def workload(kind: str, name: str, *, replicas: int, owner: Any = None) -> dict[str, Any]:
    template = {"metadata": {"labels": APP}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    selector: Any = APP if kind == "ReplicationController" else {"matchLabels": APP}
    return {
        "apiVersion": "v1" if kind == "ReplicationController" else "apps/v1",
        "kind": kind,
        "metadata": {
            "name": name,
            "namespace": "default",
            "ownerReferences": [] if owner is None else [owner],
        },
        "spec": {"replicas": replicas, "selector": selector, "template": template},
    }


class Budgets:
    """A cluster with the controller beside it."""

    def __init__(self, cluster: VirtualCluster) -> None:
        self.cluster = cluster

    async def own(self, obj: dict[str, Any]) -> dict[str, Any]:
        """Create a workload and return a reference of its pods to it."""
        await self.cluster.create_objects(obj)
        plural = obj["kind"].lower() + "s"
        shelf = plural if obj["apiVersion"] == "v1" else f"{plural}.apps"
        record = self.cluster.server.store.shelf(shelf).get(("default", obj["metadata"]["name"]))
        assert record is not None
        return {
            "apiVersion": obj["apiVersion"],
            "kind": obj["kind"],
            "name": record.name,
            "uid": record.uid,
            "controller": True,
        }

    async def add_pods(self, count: int, *, owner: Any = None, prefix: str = "p") -> None:
        for index in range(count):
            manifest = pod_manifest(f"{prefix}{index}", labels=APP)
            if owner is not None:
                manifest["metadata"]["ownerReferences"] = [owner]
            await self.cluster.create_objects(manifest)

    def status(self, name: str = "b") -> dict[str, Any]:
        shelf = self.cluster.server.store.shelf("poddisruptionbudgets.policy")
        record = shelf.get(("default", name))
        assert record is not None
        status: dict[str, Any] = record.decode()["status"]
        return status

    def counts(self, name: str = "b") -> tuple[int, ...]:
        """Return (expected, desired, healthy, allowed)."""
        names = ("expectedPods", "desiredHealthy", "currentHealthy", "disruptionsAllowed")
        return tuple(self.status(name).get(each, 0) for each in names)

    def condition(self) -> tuple[str, str]:
        (found,) = self.status().get("conditions") or [{}]
        return found.get("reason", ""), found.get("message", "")

    async def counted(self, *wanted: int) -> None:
        await self.cluster.until(lambda: self.counts() == wanted, seconds=200)


def run(scenario: Scenario) -> None:
    clock = ManualClock()

    async def main() -> None:
        async with VirtualCluster(
            clock, nodes=[node_manifest("n1")], controllers=(DisruptionController,)
        ) as cluster:
            await scenario(Budgets(cluster))

    run_virtual(main(), clock)


def test_a_budget_follows_its_pods():
    async def scenario(budgets: Budgets) -> None:
        await budgets.cluster.create_objects(budget(minAvailable=1))
        await budgets.counted(0, 1, 0, 0)
        await budgets.add_pods(3)
        await budgets.counted(3, 1, 3, 2)
        await budgets.cluster.client.delete(PODS, "p0", namespace="default", grace_seconds=0)
        await budgets.counted(2, 1, 2, 1)
        changes = {"metadata": {"labels": {"app": "other"}}}
        await budgets.cluster.patch_object(PODS, "p1", changes, namespace="default")
        await budgets.counted(1, 1, 1, 0)
        assert budgets.status()["observedGeneration"] == 1
        assert budgets.condition() == ("InsufficientPods", "")

    run(scenario)


def test_a_budget_that_is_changed_is_counted_anew():
    async def scenario(budgets: Budgets) -> None:
        await budgets.add_pods(3)
        await budgets.cluster.create_objects(budget(minAvailable=1))
        await budgets.counted(3, 1, 3, 2)
        changes = {"spec": {"minAvailable": 3, "selector": {}}}
        await budgets.cluster.patch_object(
            POD_DISRUPTION_BUDGETS, "b", changes, namespace="default"
        )
        await budgets.counted(3, 3, 3, 0)
        assert budgets.status()["observedGeneration"] == 2

    run(scenario)


@pytest.mark.parametrize("kind", ["ReplicationController", "ReplicaSet", "StatefulSet"])
def test_a_budget_counts_the_scale_of_the_pods_owner(kind):
    async def scenario(budgets: Budgets) -> None:
        owner = await budgets.own(workload(kind, "w", replicas=4))
        await budgets.add_pods(2, owner=owner)
        await budgets.cluster.create_objects(budget(maxUnavailable=3))
        await budgets.counted(4, 1, 2, 1)

    run(scenario)


def test_scale_of_a_deployment_counts_where_it_owns_the_replica_set():
    async def scenario(budgets: Budgets) -> None:
        above = await budgets.own(workload("Deployment", "d", replicas=4))
        owner = await budgets.own(workload("ReplicaSet", "w", replicas=2, owner=above))
        await budgets.add_pods(2, owner=owner)
        await budgets.cluster.create_objects(budget(minAvailable="25%"))
        await budgets.counted(4, 1, 2, 1)

    run(scenario)


def test_a_change_of_scale_is_followed():
    async def scenario(budgets: Budgets) -> None:
        owner = await budgets.own(workload("ReplicationController", "w", replicas=2))
        await budgets.add_pods(2, owner=owner)
        await budgets.cluster.create_objects(budget(maxUnavailable=1))
        await budgets.counted(2, 1, 2, 1)
        changes = {"spec": {"replicas": 5}}
        cluster = budgets.cluster
        await cluster.patch_object(REPLICATION_CONTROLLERS, "w", changes, namespace="default")
        await budgets.counted(5, 4, 2, 0)

    run(scenario)


@pytest.mark.parametrize(
    ("owner", "why"),
    [
        pytest.param(
            {"apiVersion": "example.com/v1", "kind": "Game", "name": "g", "uid": "u"},
            'no matches for kind "Game" in version "example.com/v1"',
            id="a kind that is not served",
        ),
        pytest.param(
            {"apiVersion": "v1", "kind": "ConfigMap", "name": "g", "uid": "u"},
            "configmaps does not implement the scale subresource",
            id="a kind without a scale",
        ),
    ],
)
def test_an_owner_without_a_scale(owner, why):
    async def scenario(budgets: Budgets) -> None:
        await budgets.add_pods(1, owner=owner | {"controller": True})
        await budgets.cluster.create_objects(budget(maxUnavailable=1))
        await budgets.cluster.until(lambda: budgets.condition() == ("SyncFailed", why))
        assert budgets.counts() == (0, 0, 0, 0)

    run(scenario)


def test_an_eviction_that_is_not_followed_by_a_deletion_is_forgotten_after_two_minutes():
    async def scenario(budgets: Budgets) -> None:
        cluster = budgets.cluster
        await budgets.add_pods(2)
        await cluster.create_objects(budget(minAvailable=1))
        await budgets.counted(2, 1, 2, 1)
        began = cluster.seconds
        # What the eviction subresource of a server writes that fails right afterwards.
        status = {"disruptionsAllowed": 0, "disruptedPods": {"p0": "2026-01-01T00:00:00Z"}}
        await cluster.client.patch(
            POD_DISRUPTION_BUDGETS,
            "b",
            patch_body({"status": status}),
            namespace="default",
            subresource="status",
            content_type=MERGE_PATCH,
        )
        await budgets.counted(2, 1, 1, 0)
        await budgets.counted(2, 1, 2, 1)
        assert 119 < cluster.seconds <= 120.2 + began
        assert not budgets.status()["disruptedPods"]

    run(scenario)


def test_a_pod_that_is_not_deleted_is_no_target_of_disruption_for_ever():
    async def scenario(budgets: Budgets) -> None:
        cluster = budgets.cluster
        await budgets.add_pods(1)
        await cluster.until(lambda: cluster.phase_of("p0") == "Running")
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "Tested",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        await cluster.client.patch(
            PODS,
            "p0",
            patch_body({"status": {"conditions": [condition]}}),
            namespace="default",
            subresource="status",
        )

        def found() -> dict[str, Any]:
            conditions = (cluster.stored_pod("p0") or {})["status"]["conditions"]
            (one,) = [each for each in conditions if each["type"] == "DisruptionTarget"]
            assert isinstance(one, dict)
            return one

        assert found()["status"] == "True"
        await cluster.until(lambda: found()["status"] == "False", seconds=150)
        assert 120 <= cluster.seconds < 121
        assert "reason" not in found()

    run(scenario)
