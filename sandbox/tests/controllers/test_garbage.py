"""Owner garbage collection in a whole cluster: background, foreground, orphans, custom kinds."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.resources import (
    CONFIG_MAPS,
    CUSTOM_RESOURCE_DEFINITIONS,
    DEPLOYMENTS,
    PODS,
    REPLICA_SETS,
    ResourceType,
)
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from sandbox.tests.controllers.cluster import every, play, running, stored, workload


def config_map(name: str, *owners: dict[str, Any]) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name, "namespace": "default"}
    if owners:
        metadata["ownerReferences"] = list(owners)
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


def owned_by(obj: dict[str, Any], **more: Any) -> dict[str, Any]:
    meta = obj["metadata"]
    return {
        "apiVersion": obj["apiVersion"],
        "kind": obj["kind"],
        "name": meta["name"],
        "uid": meta["uid"],
        **more,
    }


def names(cluster: VirtualCluster, resource: ResourceType) -> list[str]:
    return [each["metadata"]["name"] for each in every(cluster, resource)]


async def delete(cluster: VirtualCluster, resource: ResourceType, name: str, policy: str) -> None:
    await cluster.client.delete(resource, name, namespace="default", propagation=policy)


def test_in_the_background_a_deployment_takes_all_below_it_along():
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(workload("Deployment", replicas=3))
        await cluster.until(lambda: len(running(cluster)) == 3)
        await delete(cluster, DEPLOYMENTS, "web", "Background")
        assert names(cluster, DEPLOYMENTS) == []
        await cluster.until(lambda: not every(cluster, PODS) and not every(cluster, REPLICA_SETS))

    play(scenario)


def test_in_the_foreground_owners_go_after_their_dependents():
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(workload("Deployment", replicas=3))
        await cluster.until(lambda: len(running(cluster)) == 3)
        await delete(cluster, DEPLOYMENTS, "web", "Foreground")
        order: list[tuple[int, int, int]] = []

        def gone() -> bool:
            counts = [len(names(cluster, kind)) for kind in (DEPLOYMENTS, REPLICA_SETS, PODS)]
            order.append((counts[0], counts[1], counts[2]))
            return counts == [0, 0, 0]

        await cluster.until(gone)
        assert all(deployments for deployments, sets, _ in order if sets)
        assert all(sets for _, sets, pods in order if pods)

    play(scenario)


def test_orphans_stay_and_belong_to_nobody():
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(workload("Deployment", replicas=2))
        await cluster.until(lambda: len(running(cluster)) == 2)
        await delete(cluster, DEPLOYMENTS, "web", "Orphan")
        await cluster.until(lambda: not names(cluster, DEPLOYMENTS))
        (left,) = every(cluster, REPLICA_SETS)
        assert not left["metadata"].get("ownerReferences")
        assert len(running(cluster)) == 2
        # A new deployment of the same template takes them over.
        await cluster.create_objects(workload("Deployment", replicas=2))
        await cluster.until(
            lambda: bool(every(cluster, REPLICA_SETS)[0]["metadata"].get("ownerReferences"))
        )
        assert names(cluster, REPLICA_SETS) == [left["metadata"]["name"]]

    play(scenario)


def test_an_object_stays_while_one_of_its_owners_is_left():
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(config_map("a"), config_map("b"))
        first, second = stored(cluster, CONFIG_MAPS, "a"), stored(cluster, CONFIG_MAPS, "b")
        await cluster.create_objects(config_map("c", owned_by(first), owned_by(second)))
        await delete(cluster, CONFIG_MAPS, "a", "Background")

        def owners() -> list[str]:
            found = stored(cluster, CONFIG_MAPS, "c")["metadata"].get("ownerReferences") or []
            return [each["name"] for each in found]

        await cluster.until(lambda: owners() == ["b"])
        await delete(cluster, CONFIG_MAPS, "b", "Background")
        await cluster.until(lambda: not stored(cluster, CONFIG_MAPS, "c"))

    play(scenario)


@pytest.mark.parametrize(
    ("uid", "stays"),
    [
        pytest.param("11111111-1111-4111-8111-111111111111", False, id="another uid is no owner"),
        pytest.param(None, True, id="the owner's own uid keeps it"),
    ],
)
def test_an_owner_is_known_by_its_uid(uid, stays):
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(config_map("a"))
        owner = owned_by(stored(cluster, CONFIG_MAPS, "a"))
        await cluster.create_objects(config_map("b", {**owner, "uid": uid or owner["uid"]}))
        await cluster.create_objects(config_map("probe", {**owner, "uid": "gone"}))
        await cluster.until(lambda: not stored(cluster, CONFIG_MAPS, "probe"))
        assert bool(stored(cluster, CONFIG_MAPS, "b")) is stays

    play(scenario)


def test_an_owner_of_a_custom_kind_takes_its_dependents_along():
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
    }
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "teams.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"kind": "Team", "plural": "teams", "singular": "team"},
            "scope": "Namespaced",
            "versions": [version],
        },
    }
    teams = ResourceType("example.com", "v1", "Team", "teams", "team", True)

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.client.create(CUSTOM_RESOURCE_DEFINITIONS, definition)
        team = {
            "apiVersion": "example.com/v1",
            "kind": "Team",
            "metadata": {"name": "red", "namespace": "default"},
        }
        await cluster.client.create(teams, team, namespace="default")
        made: Any = await cluster.client.get(teams, "red", namespace="default")
        await cluster.create_objects(config_map("c", owned_by(made)))
        await cluster.until(lambda: cluster.seconds > 5)
        assert stored(cluster, CONFIG_MAPS, "c")
        await delete(cluster, teams, "red", "Background")
        await cluster.until(lambda: not stored(cluster, CONFIG_MAPS, "c"))

    play(scenario)
