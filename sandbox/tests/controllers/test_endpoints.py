"""Services in a whole cluster under the virtual clock: which pods their slices and lists tell."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.resources import ENDPOINT_SLICES, ENDPOINTS, PODS, SERVICES
from moorage.base import aio
from moorage_sandbox.testing.builders import node_manifest, pod_manifest
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from sandbox.tests.controllers.cluster import every, play, stored, workload

ZONE = "topology.kubernetes.io/zone"


def service(name: str = "web", **spec: Any) -> dict[str, Any]:
    content = {"selector": {"app": "web"}, "ports": [{"port": 80}], **spec}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": "default", "labels": {"tier": "front"}},
        "spec": content,
    }


def behind(cluster: VirtualCluster, name: str = "web") -> dict[str, bool]:
    """The pods in the slices of a service, and whether each is ready."""
    return {
        point["targetRef"]["name"]: point["conditions"]["ready"]
        for each in every(cluster, ENDPOINT_SLICES)
        if each["metadata"]["labels"]["kubernetes.io/service-name"] == name
        for point in each["endpoints"]
    }


def listed(cluster: VirtualCluster, part: str = "addresses", name: str = "web") -> list[str]:
    """The pods in the Endpoints of a service."""
    subsets = stored(cluster, ENDPOINTS, name).get("subsets") or []
    return [each["targetRef"]["name"] for one in subsets for each in one.get(part, [])]


def web(name: str, **more: Any) -> dict[str, Any]:
    return pod_manifest(name, labels={"app": "web"}, **more)


def test_a_service_follows_its_pods_and_its_objects_go_with_it():
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(service())
        await cluster.until(lambda: len(every(cluster, ENDPOINT_SLICES)) == 1)
        await cluster.create_objects(
            web("a"), web("b"), pod_manifest("other", labels={"app": "db"})
        )
        await cluster.until(lambda: behind(cluster) == {"a": True, "b": True})
        (found,) = every(cluster, ENDPOINT_SLICES)
        meta = found["metadata"]
        assert meta["name"].startswith("web-")
        assert meta["labels"] == {
            "tier": "front",
            "kubernetes.io/service-name": "web",
            "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
        }
        (owner,) = meta["ownerReferences"]
        assert (owner["kind"], owner["name"], owner["controller"]) == ("Service", "web", True)
        assert found["addressType"] == "IPv4"
        assert found["ports"] == [{"name": "", "port": 80, "protocol": "TCP"}]
        assert {each["zone"] for each in found["endpoints"]} <= {"z1", "z2"}
        await cluster.until(lambda: sorted(listed(cluster)) == ["a", "b"])
        await cluster.client.delete(PODS, "a", namespace="default", grace_seconds=0)
        await cluster.until(lambda: behind(cluster) == {"b": True})
        await cluster.until(lambda: listed(cluster) == ["b"])
        await cluster.client.delete(SERVICES, "web", namespace="default")
        await cluster.until(lambda: not every(cluster, ENDPOINT_SLICES))
        await cluster.until(lambda: not stored(cluster, ENDPOINTS, "web"))

    play(scenario, nodes=[node_manifest(f"n{i}", labels={ZONE: f"z{i}"}) for i in (1, 2)])


def named(cluster: VirtualCluster, service: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The hostname of each pod in the slices of a service, and in its Endpoints."""
    label = "kubernetes.io/service-name"
    told = [
        point
        for each in every(cluster, ENDPOINT_SLICES)
        if each["metadata"]["labels"][label] == service
        for point in each["endpoints"]
    ]
    subsets = stored(cluster, ENDPOINTS, service).get("subsets") or []
    addresses = [each for one in subsets for each in one.get("addresses", [])]
    slices, older = (
        {each["targetRef"]["name"]: each.get("hostname") for each in found}
        for found in (told, addresses)
    )
    return slices, older


def test_pods_of_a_stateful_set_have_their_hostnames_in_its_own_service_only():
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(service(clusterIP="None"), service("all"))
        await cluster.create_objects(workload("StatefulSet", "web", replicas=2, serviceName="web"))
        own, other = {"web-0": "web-0", "web-1": "web-1"}, {"web-0": None, "web-1": None}
        await cluster.until(lambda: named(cluster, "web") == (own, own))
        await cluster.until(lambda: named(cluster, "all") == (other, other))

    play(scenario)


def test_a_pod_that_is_replaced_with_another_hostname_stays_in_its_slice():
    async def scenario(cluster: VirtualCluster) -> None:
        def told(**expected: str | None) -> bool:
            return named(cluster, "web") == (expected, expected)

        await cluster.create_objects(service(), web("a", hostname="x", subdomain="web"), web("b"))
        await cluster.until(lambda: told(a="x", b=None))
        before = [each["metadata"]["uid"] for each in every(cluster, ENDPOINT_SLICES)]
        await cluster.client.delete(PODS, "a", namespace="default", grace_seconds=0)
        await cluster.create_objects(web("a", hostname="y", subdomain="web"))
        await cluster.until(lambda: told(a="y", b=None))
        assert [each["metadata"]["uid"] for each in every(cluster, ENDPOINT_SLICES)] == before

    play(scenario)


def test_a_pod_is_told_as_not_ready_and_as_leaving():
    async def scenario(cluster: VirtualCluster) -> None:
        late = web("late", annotations={"moorage.dev/ready-seconds": "20"})
        await cluster.create_objects(service(), late)
        await cluster.until(lambda: behind(cluster) == {"late": False})
        await cluster.until(lambda: listed(cluster, "notReadyAddresses") == ["late"])
        await cluster.until(lambda: behind(cluster) == {"late": True})
        stop = {"metadata": {"annotations": {"moorage.dev/stop-seconds": "20"}}}
        await cluster.patch_object(PODS, "late", stop, namespace="default")
        await cluster.client.delete(PODS, "late", namespace="default", grace_seconds=20)
        await cluster.until(lambda: behind(cluster) == {"late": False})
        (found,) = every(cluster, ENDPOINT_SLICES)
        assert found["endpoints"][0]["conditions"]["terminating"] is True
        await cluster.until(lambda: stored(cluster, ENDPOINTS, "web").get("subsets", []) == [])

    play(scenario)


def test_a_pod_leaves_a_service_with_its_label_and_a_service_may_choose_others():
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(web("a"), web("b"), service())
        await cluster.until(lambda: behind(cluster) == {"a": True, "b": True})
        await cluster.patch_object(
            PODS, "a", {"metadata": {"labels": {"app": "db"}}}, namespace="default"
        )
        await cluster.until(lambda: behind(cluster) == {"b": True})
        other = {"spec": {"selector": {"app": "db"}}}
        await cluster.patch_object(SERVICES, "web", other, namespace="default")
        await cluster.until(lambda: behind(cluster) == {"a": True})

    play(scenario)


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"selector": None}, id="has no selector"),
        pytest.param({"type": "ExternalName", "externalName": "a.b"}, id="is a name elsewhere"),
    ],
)
def test_nothing_is_written_for_a_service_that(spec):
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(web("a"), service(**spec))
        await cluster.until(lambda: cluster.phase_of("a") == "Running")
        await aio.sleep(5)
        assert every(cluster, ENDPOINT_SLICES) == []
        assert stored(cluster, ENDPOINTS, "web") == {}

    play(scenario)


def test_what_others_change_is_mended_and_a_round_costs_at_most_one_write_a_second():
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(service(), *(web(f"p{number}") for number in range(30)))
        await cluster.until(lambda: list(behind(cluster).values()) == [True] * 30)
        await aio.sleep(5)
        (found,) = every(cluster, ENDPOINT_SLICES)
        assert found["metadata"]["generation"] <= cluster.seconds
        name = found["metadata"]["name"]
        await cluster.patch_object(ENDPOINT_SLICES, name, {"endpoints": []}, namespace="default")
        await cluster.client.delete(ENDPOINTS, "web", namespace="default")
        await cluster.until(lambda: len(behind(cluster)) == len(listed(cluster)) == 30)
        await cluster.client.delete(ENDPOINT_SLICES, name, namespace="default")
        await cluster.until(lambda: len(behind(cluster)) == 30)

    play(scenario)


def custom(*addresses: str, **metadata: Any) -> dict[str, Any]:
    """Endpoints that a user writes; each address has a port of its own."""
    return {
        "apiVersion": "v1",
        "kind": "Endpoints",
        "metadata": {"name": "web", "namespace": "default", **metadata},
        "subsets": [
            {"addresses": [{"ip": address}], "ports": [{"name": f"p{port}", "port": port}]}
            for port, address in enumerate(addresses, start=80)
        ],
    }


def mirrors(cluster: VirtualCluster) -> list[tuple[Any, ...]]:
    """Addresses and ports of the slices that mirror Endpoints."""
    writer = "endpointslicemirroring-controller.k8s.io"
    found = []
    for each in every(cluster, ENDPOINT_SLICES):
        assert each["metadata"]["labels"]["endpointslice.kubernetes.io/managed-by"] == writer
        addresses = [address for point in each["endpoints"] for address in point["addresses"]]
        found.append((*addresses, *(port["port"] for port in each["ports"])))
    return sorted(found)


def test_endpoints_of_a_user_are_mirrored_through_create_update_and_delete():
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(custom("10.1.2.3"))
        await aio.sleep(2)
        assert mirrors(cluster) == []
        await cluster.create_objects(service(selector=None))
        await cluster.until(lambda: mirrors(cluster) == [("10.1.2.3", 80)])
        more = {"subsets": custom("10.2.3.4", "10.1.2.3")["subsets"]}
        await cluster.patch_object(ENDPOINTS, "web", more, namespace="default")
        await cluster.until(lambda: mirrors(cluster) == [("10.1.2.3", 81), ("10.2.3.4", 80)])
        await cluster.patch_object(ENDPOINTS, "web", {"subsets": []}, namespace="default")
        await cluster.until(lambda: mirrors(cluster) == [])
        await cluster.patch_object(ENDPOINTS, "web", more, namespace="default")
        await cluster.until(lambda: len(mirrors(cluster)) == 2)
        await cluster.client.delete(ENDPOINTS, "web", namespace="default")
        await cluster.until(lambda: mirrors(cluster) == [])

    play(scenario)


@pytest.mark.parametrize(
    "metadata",
    [
        pytest.param({"labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}}, id="a label"),
        pytest.param(
            {"annotations": {"control-plane.alpha.kubernetes.io/leader": "{}"}},
            id="an annotation of leader election",
        ),
    ],
)
def test_endpoints_are_kept_out_of_mirroring_by(metadata):
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(service(selector=None), custom("10.1.2.3", **metadata))
        await aio.sleep(5)
        assert mirrors(cluster) == []

    play(scenario)
