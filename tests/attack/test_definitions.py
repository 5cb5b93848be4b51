"""Definitions of custom resources whose schema is of the wrong shape, or asks for too much."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox.tests.apiserver.crd import CARS, DEFINITIONS, car, definition
from sandbox.tests.apiserver.harness import Cluster


@pytest.mark.parametrize(
    "wrong",
    [
        {"pattern": 1.5},
        {"pattern": "("},
        {"pattern": "(?=a)"},
        {"pattern": "a{2000}"},
        {"pattern": "a" * 10_001},
        {"properties": []},
        {"properties": {"a": 1}},
        {"items": 5},
        {"required": "x"},
        {"required": [5]},
        {"enum": 5},
        {"maximum": "a"},
        {"allOf": {"a": 1}},
        {"not": 5},
        {"format": 5},
        {"default": []},
        {"additionalProperties": 5},
        {"x-kubernetes-list-map-keys": 5},
        {"x-kubernetes-validations": 5},
        {"x-kubernetes-validations": [{"rule": 5}]},
        {"x-kubernetes-validations": [{"rule": "self != ''" + " " * 5000}]},
        {"x-kubernetes-validations": [{"rule": "true", "messageExpression": "'" + "a" * 5000}]},
    ],
    ids=str,
)
async def test_a_schema_of_the_wrong_shape_is_refused(wrong: dict[str, Any]):
    made = definition()
    schema = made["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["properties"]["color"] = {"type": "string", **wrong}
    status, found = await Cluster().call("POST", DEFINITIONS, made)
    assert status in (400, 422), found


@pytest.mark.parametrize("wrong", [1.5, 5, True, "x", [1.5], {"properties": 1.5}, {"type": 1.5}])
@pytest.mark.parametrize("holder", ["doors", "limits"])
async def test_a_schema_of_the_wrong_type_inside_another_is_refused(holder: str, wrong: Any):
    made = definition()
    spec = made["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    inside = "items" if holder == "doors" else "additionalProperties"
    schema = spec["properties"][holder]
    schema[inside] = wrong
    status, found = await Cluster().call("POST", DEFINITIONS, made)
    allowed = inside == "additionalProperties" and wrong is True
    assert (status == 201) if allowed else (status in (400, 422)), found


@pytest.mark.parametrize(
    ("pattern", "text", "fits"),
    [
        ("^[a-z]+$", "abc", True),
        ("^[a-z]+$", "abc\n", False),
        (r"^\d$", "5", True),
        (r"^\d$", "\u0661", False),  # Digits are those of ASCII in Go.
        (r"^a\z", "a", True),
        (r"^\pL+$", "\u00e9", True),
        ("(?i)^abc$", "ABC", True),
        ("^(a+)+$", "a" * 50 + "b", False),
    ],
)
async def test_a_schema_pattern_matches_as_in_go(pattern: str, text: str, fits: bool):
    cluster = Cluster()
    made = definition()
    schema = made["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["properties"]["plate"] = {"type": "string", "pattern": pattern}
    await cluster.ok("POST", DEFINITIONS, made)
    status, found = await cluster.call("POST", CARS, car(color="red", plate=text))
    assert status == (201 if fits else 422), found
