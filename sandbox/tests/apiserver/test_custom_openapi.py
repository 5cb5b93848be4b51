"""Custom resources in the OpenAPI documents."""

from __future__ import annotations

from sandbox.tests.apiserver.crd import DEFINITIONS, definition
from sandbox.tests.apiserver.harness import Cluster
from sandbox.tests.apiserver.test_custom_resources import cluster_with


async def test_openapi_v2_shows_no_field_of_a_kind_that_preserves_unknown_fields():
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    known = schema | {"description": "Cars.", "properties": {"spec": {"type": "object"}}}
    for given in (schema, known):
        cluster = await cluster_with(definition(schema={"openAPIV3Schema": given}))
        found = (await cluster.ok("GET", "/openapi/v2"))["definitions"]["com.example.v1.Car"]
        gvk = [{"group": "example.com", "kind": "Car", "version": "v1"}]
        assert found == {"type": "object", "x-kubernetes-group-version-kind": gvk}


async def test_openapi_describes_the_fields_that_every_kind_has():
    cluster = await cluster_with(definition())
    document = await cluster.ok("GET", "/openapi/v3/apis/example.com/v1")
    schemas = document["components"]["schemas"]
    fields = schemas["com.example.v1.Car"]["properties"]
    assert [fields[name]["description"].split()[:3] for name in ("apiVersion", "metadata")] == [
        ["APIVersion", "defines", "the"],
        ["Standard", "object's", "metadata,"],
    ]
    meta = schemas["io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"]["properties"]
    assert all(meta[name].get("description") for name in meta if name != "selfLink")


async def test_openapi_of_other_groups_keeps_its_address_when_a_definition_comes():
    cluster = Cluster()
    before = (await cluster.ok("GET", "/openapi/v3"))["paths"]
    await cluster.ok("POST", DEFINITIONS, definition())
    after = (await cluster.ok("GET", "/openapi/v3"))["paths"]
    assert {key: after[key] for key in before} == before
    assert set(after) - set(before) == {"apis/example.com/v1"}
