"""Scope: JSON forms to messages and back; every message of the API, and what is special of some."""

from __future__ import annotations

import contextlib
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage_sandbox.apiserver.protobuf import facts
from moorage_sandbox.apiserver.protobuf.bounds import FIELDS_MAX, PARTS_MAX, check_parts, walk
from moorage_sandbox.apiserver.protobuf.codec import ProtobufError, decode, encode
from moorage_sandbox.apiserver.protobuf.special import SPECIAL
from sandbox.tests.apiserver.protobuf.messages import random_object

CORE = "k8s.io.api.core.v1"
META = facts.META
SCHEMAS = "k8s.io.apiextensions_apiserver.pkg.apis.apiextensions.v1"
QUANTITY = "k8s.io.apimachinery.pkg.api.resource.Quantity"


def has_fields(message: str) -> bool:
    """Whether the JSON form of a message is an object of its fields."""
    choice = message.rpartition(".")[2].startswith("JSONSchemaPropsOr")
    return message not in SPECIAL and not choice and message != f"{facts.RUNTIME}.Unknown"


@pytest.mark.parametrize("package", facts.packages())
@settings(max_examples=5, deadline=None)
@given(rng=st.randoms(use_true_random=True))
def test_an_object_survives_encoding_and_decoding(package, rng):
    for name in facts.package(package):
        message = f"{package}.{name}"
        if has_fields(message):
            obj = random_object(message, rng)
            written = encode(message, obj)
            read = decode(message, written)
            assert read == obj, message
            assert encode(message, read) == written
            walk(message, written)


@pytest.mark.parametrize("package", facts.packages())
@settings(max_examples=3, deadline=None)
@given(rng=st.randoms(use_true_random=True))
def test_changed_bytes_are_read_or_refused(package, rng):
    for name in facts.package(package):
        message = f"{package}.{name}"
        if not has_fields(message):
            continue
        changed = bytearray(encode(message, random_object(message, rng)))
        for _ in range(min(3, len(changed))):
            changed[rng.randrange(len(changed))] = rng.randrange(256)
        with contextlib.suppress(ProtobufError):
            read = decode(message, bytes(changed))
            assert msgspec.json.decode(msgspec.json.encode(read)) == read
            encode(message, read)


def field(number: int, data: bytes) -> bytes:
    """Write one field that holds bytes, fewer than 128."""
    return bytes([number << 3 | 2, len(data)]) + data


@pytest.mark.parametrize(
    ("message", "obj", "written"),
    [
        pytest.param(
            f"{CORE}.ServicePort",
            {"port": 80, "targetPort": 0},
            b"\x0a\x00\x12\x00\x18\x50\x22\x06\x08\x00\x10\x00\x1a\x00\x28\x00",
            id="values are written when they are zero, pointers are not",
        ),
        pytest.param(
            f"{META}.ObjectMeta",
            {"deletionGracePeriodSeconds": 0},
            b"\x0a\x00\x12\x00\x1a\x00\x22\x00\x2a\x00\x32\x00\x38\x00\x42\x00\x50\x00",
            id="a pointer to zero is written, a zero time is empty",
        ),
        pytest.param(
            f"{CORE}.ConfigMap",
            {"metadata": {}, "data": {"b": "", "a": "1"}},
            field(1, b"\x0a\x00\x12\x00\x1a\x00\x22\x00\x2a\x00\x32\x00\x38\x00\x42\x00")
            + field(2, b"\x0a\x01a\x12\x011")
            + field(2, b"\x0a\x01b\x12\x00"),
            id="a map is in the order of its keys",
        ),
        pytest.param(
            f"{CORE}.SecretKeySelector",
            {"name": "s", "key": "k"},
            field(1, field(1, b"s")) + field(2, b"k"),
            id="fields of an embedded struct are a message of their own",
        ),
        pytest.param(
            "k8s.io.api.coordination.v1.LeaseSpec",
            {"renewTime": "1970-01-01T00:00:01.000002Z"},
            b"\x22\x05\x08\x01\x10\xd0\x0f",
            id="a time with microseconds",
        ),
        pytest.param(
            f"{CORE}.ResourceRequirements",
            {"limits": {"cpu": "500m"}},
            field(1, b"\x0a\x03cpu" + field(2, field(1, b"500m"))),
            id="a quantity",
        ),
        pytest.param(
            "k8s.io.api.apps.v1.RollingUpdateDeployment",
            {"maxSurge": "25%", "maxUnavailable": -1},
            b"\x0a\x0f\x08\x00\x10" + b"\xff" * 9 + b"\x01\x1a\x00"
            b"\x12\x09\x08\x01\x10\x00\x1a\x0325%",
            id="numbers or texts",
        ),
        pytest.param(
            "k8s.io.api.authorization.v1.SubjectAccessReviewSpec",
            {"extra": {"a": ["x", "y"]}},
            b"\x1a\x00"
            + field(5, b"\x0a\x01a" + field(2, field(1, b"x") + field(1, b"y")))
            + b"\x32\x00",
            id="lists of texts in a map",
        ),
    ],
)
def test_objects_are_written_in_the_expected_bytes(message, obj, written):
    assert encode(message, obj) == written
    assert decode(message, written) == obj


SCHEMA_ZEROS = encode(f"{SCHEMAS}.JSONSchemaProps", {})


@pytest.mark.parametrize(
    ("field_name", "value"),
    [
        pytest.param("default", {"a": [1, None, "x"]}, id="a default"),
        pytest.param("enum", [None, 1, "x"], id="choices, null among them"),
        pytest.param("items", {"type": "string"}, id="a schema of items"),
        pytest.param("items", [{"type": "string"}, {}], id="a schema for each item"),
        pytest.param("additionalProperties", False, id="nothing more is allowed"),
        pytest.param("additionalProperties", True, id="anything more is allowed"),
        pytest.param("additionalProperties", {"type": "object"}, id="a schema of what is more"),
        pytest.param("dependencies", {"a": ["b"], "c": {"type": "object"}}, id="dependencies"),
        pytest.param("$ref", "#/definitions/x", id="a name that is no word"),
        pytest.param("x-kubernetes-preserve-unknown-fields", False, id="an extension"),
        pytest.param("maximum", 5, id="a whole number"),
        pytest.param("minimum", 0.5, id="a fraction"),
    ],
)
def test_parts_of_a_json_schema_survive_encoding(field_name, value):
    obj = {field_name: value}
    assert decode(f"{SCHEMAS}.JSONSchemaProps", encode(f"{SCHEMAS}.JSONSchemaProps", obj)) == obj


@pytest.mark.parametrize(
    ("message", "obj", "expected"),
    [
        pytest.param(f"{META}.ObjectMeta", {"name": None}, {}, id="null is nothing"),
        pytest.param(f"{META}.ObjectMeta", {"kind": "x", "new": 1}, {}, id="no field for it"),
        pytest.param(
            f"{META}.ObjectMeta",
            {"creationTimestamp": "2026-01-01T02:00:00.9+02:00"},
            {"creationTimestamp": "2026-01-01T00:00:00Z"},
            id="a time in another zone, with a fraction",
        ),
        pytest.param(
            f"{META}.ObjectMeta",
            {"creationTimestamp": "0001-01-01T00:00:00Z"},
            {},
            id="the zero time",
        ),
        pytest.param(
            f"{CORE}.ResourceRequirements",
            {"limits": {"cpu": 2, "memory": 0.5}},
            {"limits": {"cpu": "2", "memory": "0.5"}},
            id="a number for a quantity",
        ),
        pytest.param(
            f"{CORE}.ResourceFieldSelector",
            {"resource": "r"},
            {"resource": "r", "divisor": "0"},
            id="a quantity that is a value",
        ),
    ],
)
def test_some_values_come_back_in_their_normal_form(message, obj, expected):
    assert decode(message, encode(message, obj)) == expected


@pytest.mark.parametrize(
    ("message", "obj"),
    [
        pytest.param(f"{CORE}.ServicePort", {"port": "80"}, id="a text for a number"),
        pytest.param(f"{CORE}.ServicePort", {"port": 2**40}, id="too large for 32 bits"),
        pytest.param(f"{CORE}.Secret", {"data": {"a": "?"}}, id="not base 64"),
        pytest.param(f"{CORE}.Secret", {"data": ["a"]}, id="a list for a map"),
        pytest.param(f"{CORE}.PodSpec", {"containers": {"a": 1}}, id="an object for a list"),
        pytest.param(f"{CORE}.Pod", {"spec": "x"}, id="a text for an object"),
        pytest.param(f"{META}.ObjectMeta", {"creationTimestamp": "x"}, id="no time"),
        pytest.param(f"{META}.ObjectMeta", {"creationTimestamp": 5}, id="a number for a time"),
    ],
)
def test_values_of_a_wrong_type_are_not_encoded(message, obj):
    with pytest.raises(ProtobufError, match=message):
        encode(message, obj)


@pytest.mark.parametrize(
    ("message", "data", "why"),
    [
        pytest.param(f"{CORE}.Pod", b"\x0a", "Error parsing", id="a tag without its value"),
        pytest.param(f"{CORE}.Pod", b"\x0a\x7f", "Error parsing", id="a length beyond the end"),
        pytest.param(f"{CORE}.Pod", b"\x0b", "Error parsing", id="a group"),
        pytest.param(f"{CORE}.Pod", b"\x08\x01", "wrong wire type", id="a number for a message"),
        pytest.param(f"{META}.ObjectMeta", b"\x0a\x01\xff", "UTF-8", id="a text of other bytes"),
        pytest.param(
            f"{META}.ObjectMeta",
            field(8, b"\x08" + b"\xff" * 8 + b"\x7f"),
            "outside the years",
            id="a time beyond the calendar",
        ),
        pytest.param(
            f"{META}.ObjectMeta",
            field(17, b"")[:0] + b"\x8a\x01\x05" + field(7, b"\x0a\x01x"),
            "malformed",
            id="managed fields that are no JSON",
        ),
        pytest.param(
            f"{CORE}.ServicePort", field(4, b"\x08\x02"), "impossible", id="neither number nor text"
        ),
        pytest.param(
            f"{SCHEMAS}.JSONSchemaProps",
            b"\x49" + b"\x00" * 6 + b"\xf0\x7f",
            "unsupported value",
            id="an infinite number",
        ),
    ],
)
def test_damaged_bytes_are_not_decoded(message, data, why):
    with pytest.raises(ProtobufError, match=why):
        decode(message, data)


def test_a_field_of_a_newer_api_is_left_out():
    assert decode(f"{CORE}.LocalObjectReference", field(1, b"a") + field(9, b"new")) == {
        "name": "a"
    }


def test_the_depth_of_nested_messages_is_bounded():
    data = b""
    for _ in range(200):
        size = len(data)
        data = b"\xe2\x01" + bytes([size & 0x7F | 0x80, size >> 7]) + data
    with pytest.raises(ProtobufError, match="cannot be read"):
        decode(f"{SCHEMAS}.JSONSchemaProps", data)
    obj: dict[str, Any] = {}
    for _ in range(100_000):
        obj = {"not": obj}
    with pytest.raises(ProtobufError, match="cannot be written"):
        encode(f"{SCHEMAS}.JSONSchemaProps", obj)


ENTRY = field(1, b"k") + field(2, field(1, b"1"))


@pytest.mark.parametrize(
    ("message", "part"),
    [
        pytest.param(f"{CORE}.PodSpec", field(2, b""), id="empty containers"),
        pytest.param(f"{META}.ObjectMeta", field(14, b""), id="empty finalizers"),
        pytest.param(f"{CORE}.ResourceRequirements", field(1, ENTRY), id="quantities in a map"),
        pytest.param(f"{CORE}.PodSpec", field(2, field(7, b"") * 30), id="messages in messages"),
        pytest.param(f"{CORE}.LinuxContainerUser", field(3, b"\x01" * 100), id="packed numbers"),
        pytest.param(f"{CORE}.PodSpec", b"\x9a\x06\x00" * 2, id="unknown fields"),
        pytest.param(f"{CORE}.PodSpec", b"\xf8\x3f\x00", id="unknown numbers"),
    ],
)
def test_the_number_of_messages_elements_and_entries_is_bounded(message, part):
    assert isinstance(decode(message, part), dict)
    with pytest.raises(ProtobufError, match="more than 20000 messages, elements and entries"):
        decode(message, part * (PARTS_MAX + 1))


def test_the_number_of_fields_is_bounded():
    data = b"\x18\x01" * (FIELDS_MAX + 1)
    with pytest.raises(ProtobufError, match="more than 200000 fields"):
        decode(f"{CORE}.ServicePort", data)


def test_a_long_body_of_few_parts_is_read():
    data = {str(index): "x" * 1000 for index in range(1000)}
    message = f"{CORE}.ConfigMap"
    assert decode(message, encode(message, {"data": data}))["data"] == data


@pytest.mark.parametrize(
    ("end", "why"),
    [
        pytest.param(b"\x0a", "unexpected end", id="no length"),
        pytest.param(b"\x0a\x05a", "unexpected end", id="too short"),
        pytest.param(b"\x0b", "unknown wire type", id="a group"),
        pytest.param(b"\xff" * 11, "unexpected end", id="a number without end"),
    ],
)
def test_a_long_body_that_is_no_message_is_refused_while_it_is_walked(end, why):
    data = field(1, b"a") * PARTS_MAX + end
    with pytest.raises(ValueError, match=why):
        check_parts(f"{CORE}.LocalObjectReference", data)


@given(st.binary(max_size=60))
def test_random_bytes_are_decoded_or_refused(data):
    for message in (f"{CORE}.Pod", f"{SCHEMAS}.CustomResourceDefinition", f"{CORE}.Event"):
        with contextlib.suppress(ProtobufError):
            assert isinstance(decode(message, data), dict)
