"""Custom resources whose definition changes: defaults when they are read, and kept old values."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox.tests.apiserver.crd import CARS, DEFINITIONS, car, definition
from sandbox.tests.apiserver.harness import Cluster

MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"


async def cluster_with(defined: dict[str, Any]) -> Cluster:
    cluster = Cluster()
    await cluster.ok("POST", DEFINITIONS, defined)
    return cluster


async def test_an_object_gets_the_defaults_of_a_changed_definition_when_it_is_read():
    cluster = await cluster_with(definition())
    made = await cluster.ok("POST", CARS, car())
    changed = definition()
    spec = changed["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    spec["properties"]["note"]["default"] = "new"
    version = {"op": "replace", "path": "/spec/versions", "value": changed["spec"]["versions"]}
    await cluster.ok("PATCH", f"{DEFINITIONS}/cars.example.com", [version], content_type=JSON_PATCH)

    read = await cluster.ok("GET", f"{CARS}/a")
    assert read["spec"] == made["spec"] | {"note": "new"}
    assert read["metadata"] == made["metadata"]
    assert (await cluster.ok("GET", CARS))["items"][0]["spec"]["note"] == "new"

    cluster.server.reload()
    assert (await cluster.ok("GET", f"{CARS}/a"))["spec"]["note"] == "new"

    await cluster.ok("PATCH", f"{CARS}/a", {"spec": {"wheels": 6}}, content_type=MERGE)
    assert (await cluster.ok("GET", f"{CARS}/a"))["spec"]["note"] == "new"


async def test_lists_of_objects_are_preserved_where_unknown_fields_are():
    cluster = await cluster_with(_strict(x={"x-kubernetes-preserve-unknown-fields": True}))
    made = await cluster.ok("POST", CARS, car(extras={"x": [{"a": [{"b": 1}]}]}))
    assert made["spec"]["extras"] == {"x": [{"a": [{"b": 1}]}]}


async def test_the_defaults_of_the_stored_version_are_added_to_another_version():
    other = definition()["spec"]["versions"][0] | {"name": "v2", "storage": False}
    properties = other["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    del properties["wheels"]["default"]
    both = definition()
    both["spec"]["versions"].append(other)
    cluster = await cluster_with(both)
    made = await cluster.ok(
        "POST",
        CARS.replace("v1", "v2"),
        car(api_version="example.com/v2", doors=[{"name": "left"}]),
    )
    assert made["spec"]["wheels"] == 4


def _strict(**properties: Any) -> dict[str, Any]:
    """Return a definition of cars whose ``extras`` have these properties."""
    changed = definition()
    schema = changed["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["properties"]["extras"] = {
        "type": "object",
        "properties": properties,
    }
    return changed


_RED: dict[str, Any] = {"type": "string", "enum": ["red"]}
_PAINTED: dict[str, Any] = {
    "type": "object",
    "properties": {"paint": _RED, "k": {"type": "string"}},
}


@pytest.mark.parametrize(
    ("schema", "stored", "changed", "faults"),
    [
        pytest.param(_RED, "blue", "blue", [], id="an unchanged value"),
        pytest.param(_RED, "blue", "green", ["spec.extras.x"], id="a changed value"),
        pytest.param(
            _PAINTED,
            {"paint": "blue"},
            {"paint": "blue", "k": "new"},
            [],
            id="an unchanged field of an object that is changed",
        ),
        pytest.param(
            {"type": "object", "additionalProperties": _RED},
            {"a": "blue"},
            {"a": "blue", "b": "green"},
            ["spec.extras.x.b"],
            id="an unchanged value of a map, and a new one",
        ),
        pytest.param(
            {
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["k"],
                "items": _PAINTED | {"required": ["k"]},
            },
            [{"k": "a", "paint": "blue"}, {"k": "b", "paint": "red"}],
            [{"k": "b", "paint": "green"}, {"k": "a", "paint": "blue"}],
            ["spec.extras.x[0].paint"],
            id="items are compared by their keys",
        ),
        pytest.param(
            {"type": "array", "items": _RED},
            ["blue"],
            ["blue", "red"],
            ["spec.extras.x[0]"],
            id="items of a list without keys are new where the list is changed",
        ),
        pytest.param(
            {"type": "integer", "maximum": 0}, 1, True, ["spec.extras.x"], id="true is not 1"
        ),
    ],
)
async def test_an_update_may_keep_what_breaks_a_changed_schema(schema, stored, changed, faults):
    cluster = await cluster_with(_strict(x={"x-kubernetes-preserve-unknown-fields": True}))
    made = await cluster.ok("POST", CARS, car(extras={"x": stored}))
    versions = _strict(x=schema)["spec"]["versions"]
    patch = [{"op": "replace", "path": "/spec/versions", "value": versions}]
    await cluster.ok("PATCH", f"{DEFINITIONS}/cars.example.com", patch, content_type=JSON_PATCH)

    new = car(extras={"x": changed})
    new["metadata"] = made["metadata"] | {"labels": {"a": "b"}}
    status, answer = await cluster.call("PUT", f"{CARS}/a", new)
    causes = answer.get("details", {}).get("causes", [])
    assert (status, [each["field"] for each in causes]) == (422 if faults else 200, faults)
