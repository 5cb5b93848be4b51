"""Paths of calls are resolved against the kinds that are served at that moment."""

from __future__ import annotations

from moorage_sandbox.apiserver.catalog import Routes
from sandbox.tests.apiserver.crd import CARS, DEFINITIONS, definition
from sandbox.tests.apiserver.harness import PODS, Cluster


async def test_a_path_is_resolved_anew_after_its_kind_has_come_or_gone():
    cluster = Cluster()
    routes = Routes(cluster.server._catalog)
    assert routes.find(CARS) is None
    await cluster.ok("POST", DEFINITIONS, definition())
    served = routes.find(CARS)
    assert served is not None
    assert (served.served.kind.resource.kind, served.namespace) == ("Car", "default")
    assert routes.find(CARS) is served
    await cluster.ok("DELETE", f"{DEFINITIONS}/cars.example.com")
    assert routes.find(CARS) is None


async def test_a_document_and_an_unknown_subresource_are_no_resources():
    routes = Routes(Cluster().server._catalog)
    for path in ("/", "/apis", "/healthz", "/openapi/v2", f"{PODS}/a/nosuch", "/api/v1/nosuch"):
        assert routes.find(path) is None
    found = routes.find(f"{PODS}/a/status")
    assert found is not None
    assert (found.namespace, found.name, found.subresource) == ("default", "a", "status")
