"""Scope: fields that a body gives twice are told, and refused under strict field validation."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage_sandbox.apiserver.wire.bodies import duplicate_fields
from sandbox.tests.apiserver.harness import CONFIG_MAPS, MERGE, Cluster

TWICE = b'{"metadata":{"name":"a","name":"m"},"data":{"k":"1","k":"2"}}'
APPLY = "application/apply-patch+yaml"
TOLD = ['duplicate field "metadata.name"', 'duplicate field "data.k"']


@pytest.mark.parametrize(
    ("body", "paths"),
    [
        pytest.param('{"a":1,"b":{"a":2}}', [], id="one name in two objects"),
        pytest.param('{"a":1,"a":1}', ["a"], id="equal values count, too"),
        pytest.param('{"a":1,"a":2,"a":3}', ["a"], id="three times is told once"),
        pytest.param('{"a": [{"b" : 1, "b": 2}]}', ["a[0].b"], id="inside a list"),
        pytest.param('{"a":{"b":1},"a":{"c":1,"c":2}}', ["a", "a.c"], id="inside a duplicate"),
        pytest.param('{"a":"\\"a\\":1","b":"\\u0041"}', [], id="texts that look like fields"),
    ],
)
def test_duplicate_fields_are_found_with_their_paths(body, paths):
    assert duplicate_fields(body.encode(), json.loads(body)) == paths


JSON_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)


@given(JSON_VALUES, st.booleans())
def test_no_field_of_a_proper_body_is_a_duplicate(value, spaced):
    body = json.dumps(value, indent=2 if spaced else None, ensure_ascii=spaced)
    assert duplicate_fields(body.encode(), json.loads(body)) == []


async def test_a_duplicate_comes_with_a_warning_and_the_last_value_counts():
    cluster = Cluster()
    reply = await cluster.reply("POST", CONFIG_MAPS, TWICE)
    assert [text for _, text in reply.headers] == [
        '299 - "duplicate field \\"metadata.name\\""',
        '299 - "duplicate field \\"data.k\\""',
    ]
    assert (await cluster.ok("GET", f"{CONFIG_MAPS}/m"))["data"] == {"k": "2"}


@pytest.mark.parametrize(
    ("method", "path", "body", "content_type"),
    [
        pytest.param("POST", CONFIG_MAPS, TWICE, "application/json", id="create"),
        pytest.param("PUT", f"{CONFIG_MAPS}/m", TWICE, "application/json", id="update"),
        pytest.param("PATCH", f"{CONFIG_MAPS}/m", TWICE, MERGE, id="patch"),
    ],
)
async def test_strict_validation_refuses_duplicates(method, path, body, content_type):
    cluster = Cluster()
    if method != "POST":
        await cluster.ok("POST", CONFIG_MAPS, {"metadata": {"name": "m"}})
    strict = {"fieldValidation": "Strict"}
    status, found = await cluster.call(method, path, body, query=strict, content_type=content_type)
    assert (status, found["reason"]) == (400, "BadRequest")
    assert found["message"].endswith(f"strict decoding error: {', '.join(TOLD)}")
    ignore = {"fieldValidation": "Ignore"}
    reply = await cluster.reply(method, path, body, query=ignore, content_type=content_type)
    assert (reply.status in {200, 201}, reply.headers) == (True, ())


async def test_duplicate_fields_of_an_apply_in_yaml_are_reported_with_line_numbers():
    cluster = Cluster()
    lines = ["apiVersion: v1", "kind: ConfigMap", "metadata:", "  name: m", "data:"]
    body = "\n".join([*lines, "  k: a", "  k: b"]).encode()
    query = {"fieldManager": "test"}
    path, told = f"{CONFIG_MAPS}/m", 'line 7: key "k" already set in map'
    strict = query | {"fieldValidation": "Strict"}
    status, found = await cluster.call("PATCH", path, body, query=strict, content_type=APPLY)
    assert (status, told in found["message"]) == (400, True)
    reply = await cluster.reply("PATCH", path, body, query=query, content_type=APPLY)
    shown = told.replace('"', '\\"')
    assert ("Warning", f'299 - "{shown}"') in reply.headers
