"""Scope: the APIServices of the groups of custom resources."""

from __future__ import annotations

from sandbox.tests.apiserver.crd import DEFINITIONS, definition
from sandbox.tests.apiserver.harness import MERGE, Cluster

SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
CARS = "v1.example.com"


async def _custom(cluster: Cluster) -> list[str]:
    names = await cluster.names(SERVICES, labelSelector="kube-aggregator.kubernetes.io/automanaged")
    return [each for each in names if each.endswith(".example.com")]


async def test_a_served_version_has_an_api_service():
    cluster = Cluster()
    await cluster.ok("POST", DEFINITIONS, definition())
    found = await cluster.ok("GET", f"{SERVICES}/{CARS}")
    assert found["metadata"]["labels"] == {"kube-aggregator.kubernetes.io/automanaged": "true"}
    assert found["spec"] == {
        "group": "example.com",
        "groupPriorityMinimum": 1000,
        "version": "v1",
        "versionPriority": 100,
    }
    (told,) = found["status"]["conditions"]
    assert (told["type"], told["status"], told["reason"]) == ("Available", "True", "Local")


async def test_an_api_service_goes_with_the_last_definition_of_its_version():
    cluster = Cluster()
    first = await cluster.ok("POST", DEFINITIONS, definition())
    names = {"plural": "bikes", "singular": "bike", "kind": "Bike", "listKind": "BikeList"}
    other = definition()
    other["metadata"]["name"], other["spec"]["names"] = "bikes.example.com", names
    await cluster.ok("POST", DEFINITIONS, other)
    before = await _custom(cluster)
    assert CARS in before
    await cluster.ok("DELETE", f"{DEFINITIONS}/{first['metadata']['name']}")
    assert await _custom(cluster) == before
    await cluster.ok("DELETE", f"{DEFINITIONS}/bikes.example.com")
    assert await _custom(cluster) == []


async def test_a_deleted_api_service_of_a_definition_comes_back():
    cluster = Cluster()
    await cluster.ok("POST", DEFINITIONS, definition())
    before = await _custom(cluster)
    await cluster.ok("DELETE", f"{SERVICES}/{CARS}")
    assert await _custom(cluster) == before


async def test_an_api_service_of_a_client_stays():
    cluster = Cluster()
    made = await cluster.ok("POST", DEFINITIONS, definition())
    own = {"metadata": {"labels": {"kube-aggregator.kubernetes.io/automanaged": None}}}
    await cluster.ok("PATCH", f"{SERVICES}/{CARS}", own, content_type=MERGE)
    await cluster.ok("DELETE", f"{DEFINITIONS}/{made['metadata']['name']}")
    assert CARS in await cluster.names(SERVICES)
