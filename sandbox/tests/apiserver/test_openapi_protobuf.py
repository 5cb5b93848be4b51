"""OpenAPI in protobuf: the bytes of a small document, and the answers to clients."""

from __future__ import annotations

import gzip
import struct
from typing import Any

import msgspec
import pytest

from moorage_sandbox.apiserver.documents.openapi_protobuf import in_protobuf
from sandbox.tests.apiserver.crd import DEFINITIONS, definition
from sandbox.tests.apiserver.harness import Cluster

NEW = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf"
OLD = "application/com.github.proto-openapi.spec.v3@v1.0+protobuf"
APPS = "/openapi/v3/apis/apps/v1"
V2 = "/openapi/v2"
V2_NEW = NEW.replace("v3.", "v2.")
V2_OLD = OLD.replace("v3@", "v2@")


def fields(data: bytes) -> dict[int, list[Any]]:
    """Return the fields of a message as they are on the wire, by number."""
    found: dict[int, list[Any]] = {}
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    while at < len(data):
        key = varint()
        number, wire = key >> 3, key & 7
        value: Any
        if wire == 0:
            value = varint()
        elif wire == 1:
            (value,) = struct.unpack("<d", data[at : at + 8])
            at += 8
        else:
            assert wire == 2, "no other type is in use"
            length = varint()
            value = data[at : at + length]
            assert len(value) == length
            at += length
        found.setdefault(number, []).append(value)
    return found


def at(data: bytes, *path: int) -> bytes:
    """Return the first field under a path of numbers."""
    for number in path:
        data = fields(data)[number][0]
    return data


def entries(data: bytes) -> dict[str, bytes]:
    """Return a map from names, as messages of names and values have it."""
    return {at(each, 1).decode(): at(each, 2) for each in fields(data).get(1, ())}


SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["a", "b"],
    "minimum": 0.5,
    "maxLength": 300,
    "nullable": True,
    "enum": ["x", None],
    "additionalProperties": False,
    "default": "d",
    "properties": {
        "list": {"type": "array", "items": {"$ref": "#/components/schemas/b"}},
        "map": {"type": "object", "additionalProperties": {"type": "string"}, "default": {}},
        "flag": {"type": "boolean", "default": False},
        "count": {"type": "integer", "default": 4},
    },
    "x-kubernetes-map-type": "atomic",
}


def test_each_type_of_field_is_encoded_as_gnostic_has_it():
    document = {"openapi": "3.0.0", "components": {"schemas": {"a": SCHEMA}}}
    encoded = in_protobuf(msgspec.json.encode(document), 3)
    assert at(encoded, 1) == b"3.0.0"
    schema = at(entries(at(encoded, 5, 1))["a"], 1)
    found = fields(schema)
    assert (found[25], found[23], found[13]) == ([b"object"], [b"a", b"b"], [0.5])
    assert (found[15], found[1]) == ([300], [1])
    assert [at(each, 2) for each in found[24]] == [b'"x"\n', b"null\n"]
    assert fields(at(schema, 32)) == {2: [0]}
    assert fields(at(schema, 33)) == {3: [b"d"]}
    (extension,) = found[36]
    assert (at(extension, 1), at(extension, 2, 2)) == (b"x-kubernetes-map-type", b'"atomic"\n')
    properties = {name: at(each, 1) for name, each in entries(at(schema, 31)).items()}
    assert at(properties["list"], 30, 1, 2, 1) == b"#/components/schemas/b"
    assert at(properties["map"], 32, 1, 1, 25) == b"string"
    assert fields(at(properties["map"], 33)) == {}, "an object has no form as a default"
    assert fields(at(properties["flag"], 33)) == {2: [0]}
    assert fields(at(properties["count"], 33)) == {1: [4.0]}


@pytest.mark.parametrize(
    ("path", "accept", "media_type"),
    [
        pytest.param(V2, V2_OLD, V2_NEW, id="version 2 by the name of client-go"),
        pytest.param(V2, V2_NEW, V2_NEW, id="version 2 by the name of today"),
        pytest.param(V2, f"{V2_NEW},image/png", V2_NEW, id="version 2 or a picture"),
        pytest.param(V2, f"application/json,{V2_NEW}", "application/json", id="after JSON in 2"),
        pytest.param(V2, "*/*", "application/json", id="anything in version 2"),
        pytest.param(APPS, NEW, NEW, id="the name of today"),
        pytest.param(APPS, OLD, NEW, id="the former name"),
        pytest.param(APPS, f"{OLD},application/json", NEW, id="before JSON"),
        pytest.param(APPS, f"application/json,{NEW}", "application/json", id="after JSON"),
        pytest.param(APPS, f"{NEW};q=0.5,application/json", "application/json", id="by its weight"),
        pytest.param(APPS, "*/*", "application/json", id="anything"),
        pytest.param(APPS, "", "application/json", id="nothing"),
    ],
)
async def test_a_client_gets_the_form_that_it_prefers(path, accept, media_type):
    reply = await Cluster().reply("GET", path, accept=accept)
    assert (reply.status, reply.content_type) == (200, media_type)


async def test_all_forms_of_a_document_have_the_same_tag_and_address():
    cluster = Cluster()
    index = await cluster.ok("GET", "/openapi/v3")
    address, _, query = index["paths"]["apis/apps/v1"]["serverRelativeURL"].partition("?")
    asked = dict([query.split("=")])
    replies = [
        await cluster.reply("GET", address, query=asked, accept=accept)
        for accept in (NEW, "application/json")
    ]
    assert [each.status for each in replies] == [200, 200]
    first, second = (dict(each.headers) for each in replies)
    assert first == second
    body = replies[0].body
    assert isinstance(body, bytes)
    names = entries(at(body, 5, 1))
    assert "io.k8s.api.apps.v1.Deployment" in names
    assert "/apis/apps/v1/namespaces/{namespace}/deployments" in entries(at(body, 4))


async def test_every_document_is_encoded_with_all_its_schemas_and_paths():
    cluster = Cluster()
    await cluster.ok("POST", DEFINITIONS, definition())
    index = await cluster.ok("GET", "/openapi/v3")
    for path in index["paths"]:
        document = await cluster.ok("GET", f"/openapi/v3/{path}")
        reply = await cluster.reply("GET", f"/openapi/v3/{path}", accept=NEW)
        assert isinstance(reply.body, bytes)
        schemas = entries(at(reply.body, 5, 1))
        assert list(schemas) == list(document["components"]["schemas"])
        assert list(entries(at(reply.body, 4))) == list(document["paths"])
        for name, schema in document["components"]["schemas"].items():
            found = fields(at(schemas[name], 1))
            wanted = list(schema.get("properties") or {})
            assert list(entries(found[31][0]) if 31 in found else {}) == wanted


def schema_2(**schema: Any) -> dict[int, list[Any]]:
    document = {"swagger": "2.0", "definitions": {"a": schema}}
    encoded = in_protobuf(msgspec.json.encode(document), 2)
    assert at(encoded, 1) == b"2.0"
    return fields(entries(at(encoded, 9))["a"])


def test_each_type_of_field_of_version_2_is_encoded_as_gnostic_has_it():
    found = schema_2(
        type="object",
        required=["a", "b"],
        minimum=0.5,
        enum=["x", None],
        default={},
        additionalProperties=False,
        properties={
            "list": {"type": "array", "items": {"$ref": "#/definitions/b"}},
            "map": {"type": "object", "additionalProperties": {"type": "string"}},
        },
        **{"x-kubernetes-map-type": "atomic"},
    )
    assert (at(found[22][0], 1), found[19], found[9]) == (b"object", [b"a", b"b"], [0.5])
    assert [at(each, 2) for each in found[20]] == [b'"x"\n', b"null\n"]
    assert (fields(found[21][0]), at(found[5][0], 2)) == ({2: [0]}, b"{}\n")
    properties = entries(found[25][0])
    assert at(properties["list"], 23, 1, 1) == b"#/definitions/b"
    assert at(properties["map"], 21, 1, 22, 1) == b"string"
    (extension,) = found[31]
    assert (at(extension, 1), at(extension, 2, 2)) == (b"x-kubernetes-map-type", b'"atomic"\n')


def test_a_parameter_of_version_2_lies_in_the_messages_of_its_place():
    parameters = [
        {"name": "body", "in": "body", "schema": {"$ref": "#/definitions/b"}},
        {"name": "q", "in": "query", "type": "boolean", "uniqueItems": True},
        {"name": "p", "in": "path", "type": "string", "uniqueItems": True, "required": True},
    ]
    answer = {"description": "OK", "schema": {"$ref": "#/definitions/c"}}
    operation = {"parameters": parameters, "responses": {"200": answer}, "produces": ["x", "y"]}
    document = {"swagger": "2.0", "paths": {"/a": {"get": operation}}}
    encoded = in_protobuf(msgspec.json.encode(document), 2)
    assert at(encoded, 8, 2, 1) == b"/a"
    get = at(encoded, 8, 2, 2, 2)
    body, query, path = fields(get)[8]
    assert (at(body, 1, 1, 2), at(body, 1, 1, 5, 1)) == (b"body", b"#/definitions/b")
    assert fields(at(query, 1, 2, 3)) == {4: [b"q"], 2: [b"query"], 6: [b"boolean"], 20: [1]}
    assert fields(at(path, 1, 2, 4)) == {
        4: [b"p"],
        2: [b"path"],
        5: [b"string"],
        19: [1],
        1: [1],
    }
    assert fields(get)[6] == [b"x", b"y"]
    assert at(get, 9, 1, 1) == b"200"
    assert at(get, 9, 1, 2, 1, 2, 1, 1) == b"#/definitions/c"


async def test_version_2_is_encoded_with_all_its_definitions_and_paths():
    cluster = Cluster()
    await cluster.ok("POST", DEFINITIONS, definition())
    document = await cluster.ok("GET", V2)
    reply = await cluster.reply("GET", V2, accept=V2_OLD)
    assert isinstance(reply.body, bytes)
    definitions = entries(at(reply.body, 9))
    assert list(definitions) == list(document["definitions"])
    assert "com.example.v1.Car" in definitions
    paths = [at(each, 1).decode() for each in fields(at(reply.body, 8))[2]]
    assert paths == list(document["paths"])


async def test_version_2_is_compressed_for_a_client_that_asks_for_it():
    cluster = Cluster()
    for form in (V2_OLD, "application/json"):
        plain = await cluster.reply("GET", V2, accept=form, accept_encoding="gzip;q=0")
        packed = await cluster.reply("GET", V2, accept=form, accept_encoding="br, gzip")
        assert isinstance(packed.body, bytes)
        assert gzip.decompress(packed.body) == plain.body
        assert set(packed.headers) - set(plain.headers) == {("Content-Encoding", "gzip")}
        known = dict(plain.headers)["ETag"]
        again = await cluster.reply(
            "GET", V2, accept=form, accept_encoding="gzip", if_none_match=known
        )
        assert (again.status, again.body) == (304, b"")
