"""Scope: ``format`` in the schemas of definitions (kubernetes v1.36 apiextensions formats.go)."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox.tests.apiserver.crd import CARS, DEFINITIONS, car, definition
from sandbox.tests.apiserver.harness import Cluster

UUID = "2d2b8f8e-33f4-{}1c5-{}9c6-6d3f0d5a1b2c"


def of_format(form: str, kind: str = "string") -> dict[str, Any]:
    spec = {"type": "object", "properties": {"color": {"type": kind, "format": form}}}
    return definition(schema={"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}})


@pytest.mark.parametrize(
    ("form", "good", "bad"),
    [
        ("bsonobjectid", "507f1f77bcf86cd799439011", "507f1f77"),
        ("byte", "aGk=", "a"),
        ("cidr", "10.0.0.0/8", "10.0.0.0"),
        ("date", "2026-11-26", "26.11.2026"),
        ("date-time", "2026-11-26T13:00:00Z", "2026-11-26"),
        ("datetime", "2026-11-26T13:00:00Z", "13:00"),
        ("duration", "1h30m", "soon"),
        ("email", "a@example.com", "a"),
        ("hexcolor", "#fFaA00", "red"),
        ("hostname", "a.example.com", "a_b"),
        ("ipv4", "10.0.0.1", "10.0.0"),
        ("ipv6", "::1", "10.0.0.1"),
        ("k8s-long-name", "a.b-c", "a..b"),
        ("k8s-short-name", "a-b", "a.b"),
        ("mac", "00:11:22:aa:bb:cc", "00:11"),
        ("ssn", "123-45 6789", "12-345-6789"),
        ("uri", "https://example.com/a", "a"),
        ("uuid", UUID.format(1, 1), "2d2b8f8e"),
        ("uuid3", UUID.format(3, 1), UUID.format(4, 1)),
        ("uuid4", UUID.format(4, 8), UUID.format(4, 1)),
        ("uuid5", UUID.format(5, "b"), UUID.format(5, "c")),
        ("quantity", "10Gi", None),
        ("password", "any", None),
    ],
)
async def test_a_value_must_have_the_format(form: str, good: str, bad: str | None):
    cluster = Cluster()
    assert (await cluster.reply("POST", DEFINITIONS, of_format(form))).headers == ()
    assert (await cluster.call("POST", CARS, car("good", color=good)))[0] == 201
    if bad is not None:
        status, found = await cluster.call("POST", CARS, car("bad", color=bad))
        assert (status, found["details"]["causes"][0]["field"]) == (422, "spec.color")


@pytest.mark.parametrize(
    ("form", "kind", "known"),
    [
        ("int32", "integer", True),
        ("int64", "integer", True),
        ("double", "number", True),
        ("int32", "string", False),
        ("double", "integer", False),
        ("nosuch", "string", False),
        ("date", "boolean", False),
    ],
)
async def test_a_new_definition_with_an_unknown_format_is_warned_about(form, kind, known):
    reply = await Cluster().reply("POST", DEFINITIONS, of_format(form, kind))
    told = () if known else (("Warning", f'299 - "unrecognized format \\"{form}\\""'),)
    assert (reply.status, reply.headers) == (201, told)


async def test_a_format_of_a_part_of_a_schema_is_warned_about():
    inner: dict[str, Any] = {"type": "object", "additionalProperties": {"type": "array"}}
    inner["additionalProperties"]["items"] = {
        "type": "string",
        "anyOf": [{"format": "a"}, {"not": {"format": "b"}}],
    }
    body = definition(schema={"openAPIV3Schema": {"type": "object", "properties": {"spec": inner}}})
    reply = await Cluster().reply("POST", DEFINITIONS, body)
    assert [text for _, text in reply.headers] == [
        f'299 - "unrecognized format \\"{form}\\""' for form in "ab"
    ]
