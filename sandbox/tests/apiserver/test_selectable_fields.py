"""The fields of custom resources that field selectors may name."""

from __future__ import annotations

from sandbox.tests.apiserver.crd import CARS, car, definition
from sandbox.tests.apiserver.test_custom_resources import cluster_with


async def test_a_selectable_field_selects():
    changes = {"selectableFields": [{"jsonPath": ".spec.color"}]}
    cluster = await cluster_with(definition(**changes))
    await cluster.ok("POST", CARS, car("a"))
    await cluster.ok("POST", CARS, car("b", color="blue"))
    assert await cluster.names(CARS, fieldSelector="spec.color=blue") == ["b"]
    code, body = await cluster.call("GET", CARS, query={"fieldSelector": "spec.wheels=4"})
    assert (code, body["message"]) == (400, "field label not supported: spec.wheels")


async def test_each_version_has_selectable_fields_of_its_own():
    versions = definition(selectableFields=[{"jsonPath": ".spec.color"}])["spec"]["versions"]
    wheels = [{"jsonPath": ".spec.wheels"}]
    versions.append(versions[0] | {"name": "v2", "storage": False, "selectableFields": wheels})
    cluster = await cluster_with(definition(spec__versions=versions))
    await cluster.ok("POST", CARS, car("a"))
    await cluster.ok("POST", CARS, car("b", color="blue", wheels=6))
    other = CARS.replace("/v1/", "/v2/")
    assert await cluster.names(CARS, fieldSelector="spec.color=blue") == ["b"]
    assert await cluster.names(other, fieldSelector="spec.wheels=4") == ["a"]
    for path, field in ((CARS, "spec.wheels"), (other, "spec.color")):
        code, body = await cluster.call("GET", path, query={"fieldSelector": f"{field}=4"})
        assert (code, body["message"]) == (400, f"field label not supported: {field}")
