"""Scope: objects in protobuf, as ``kubectl create`` sends them, to their JSON form.

What a real kubectl sends is in tests/kubectl; the options of a delete are in test_protobuf.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.api import resources as r
from moorage.apiserver import facts
from moorage.apiserver.protobuf import PROTOBUF
from moorage.apiserver.protobuf_fields import KINDS, MESSAGES
from moorage.apiserver.protobuf_objects import read_object, reads_protobuf
from moorage.apiserver.schema import catalog
from moorage.apiserver.status import StatusError
from tests.apiserver.harness import Cluster


def varint(value: int) -> bytes:
    value &= 2**64 - 1
    result = b""
    while value > 0x7F:
        result += bytes([value & 0x7F | 0x80])
        value >>= 7
    return result + bytes([value])


def field(number: int, value: int | bytes | str) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def envelope(raw: bytes, kind: str, version: str) -> bytes:
    return b"k8s\0" + field(1, field(1, version) + field(2, kind)) + field(2, raw)


def entry(key: str, value: bytes | str) -> bytes:
    return field(1, key) + field(2, value)


META = field(1, field(1, "web") + field(2, "") + field(8, b"") + field(11, entry("app", "web")))
PORT = field(1, "") + field(2, 0) + field(3, 80) + field(4, "") + field(5, "")
REQUESTS = field(2, entry("cpu", field(1, "100m")))
CONTAINER = (
    field(1, "nginx") + field(2, "nginx") + field(6, PORT) + field(8, REQUESTS) + field(16, 0)
)
TEMPLATE = META + field(2, field(2, CONTAINER) + field(4, 0) + field(11, 0))
SELECTOR = field(1, entry("app", "web"))
ROLLING = field(2, field(1, field(1, 1) + field(2, 0) + field(3, "25%")) + field(2, field(2, 2)))
DEPLOYMENT = (
    META
    + field(2, field(1, 0) + field(2, SELECTOR) + field(3, TEMPLATE) + field(4, ROLLING))
    + field(3, field(1, 0) + field(2, 0))
)
JSON_META = {"name": "web", "labels": {"app": "web"}}


def test_a_deployment():
    body = envelope(DEPLOYMENT, "Deployment", "apps/v1")
    assert read_object(body, r.DEPLOYMENTS) == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": JSON_META,
        "spec": {
            # Zero counts where a pointer says it, and means nothing elsewhere.
            "replicas": 0,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": JSON_META,
                "spec": {
                    "containers": [
                        {
                            "name": "nginx",
                            "image": "nginx",
                            "ports": [{"containerPort": 80}],
                            "resources": {"requests": {"cpu": "100m"}},
                        }
                    ],
                    "terminationGracePeriodSeconds": 0,
                },
            },
            "strategy": {"rollingUpdate": {"maxUnavailable": "25%", "maxSurge": 2}},
        },
    }


@pytest.mark.parametrize(
    ("resource", "raw", "expected"),
    [
        pytest.param(
            r.SECRETS,
            field(2, entry("k", b"\x00\x01")) + field(3, "Opaque"),
            {"data": {"k": "AAE="}, "type": "Opaque"},
            id="bytes become base64",
        ),
        pytest.param(
            r.PRIORITY_CLASSES,
            field(2, -5) + field(3, 0) + field(4, "low"),
            {"value": -5, "description": "low"},
            id="a negative number",
        ),
        pytest.param(
            r.CONFIG_MAPS,
            field(2, entry("a", "")) + field(2, entry("b", "2")),
            {"data": {"a": "", "b": "2"}},
            id="empty values of a map stay",
        ),
        pytest.param(
            r.JOBS,
            field(2, field(6, field(2, field(1, field(1, "v") + field(2, field(2, b"")))))),
            {"spec": {"template": {"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}}}},
            id="the source of a volume belongs to the volume",
        ),
    ],
)
def test_what_fields_mean(resource, raw, expected):
    found = read_object(envelope(raw, resource.kind, resource.api_version), resource)
    assert found == {"apiVersion": resource.api_version, "kind": resource.kind, **expected}


async def test_a_created_object_is_like_one_in_json():
    cluster = Cluster()
    path = "/apis/apps/v1/namespaces/default/deployments"
    body = envelope(DEPLOYMENT, "Deployment", "apps/v1")
    created = await cluster.ok("POST", path, body, content_type=PROTOBUF)
    sent = read_object(body, r.DEPLOYMENTS)
    sent["metadata"]["name"] = "other"
    other = await cluster.ok("POST", path, sent)
    assert created["spec"] == other["spec"]
    assert created["metadata"]["labels"] == other["metadata"]["labels"]


async def test_a_field_that_is_not_read_is_refused_rather_than_dropped():
    cluster = Cluster()
    raw = field(1, field(1, "m")) + field(9, "new")
    body = envelope(raw, "ConfigMap", "v1")
    path = "/api/v1/namespaces/default/configmaps"
    status, found = await cluster.call("POST", path, body, content_type=PROTOBUF)
    assert (status, found["message"]) == (
        415,
        "field 9 of ConfigMap is not read in protobuf here; send application/json",
    )
    # What a newer client leaves at its zero value says nothing.
    body = envelope(field(1, field(1, "m")) + field(9, b"") + field(10, 0), "ConfigMap", "v1")
    await cluster.ok("POST", path, body, content_type=PROTOBUF)


def schema_of(message: str) -> Iterator[Any]:
    named = [name for name in facts.definitions() if name.endswith(f".{message}")]
    yield from (catalog.definition(name) for name in sorted(named))


@pytest.mark.parametrize("message", sorted(MESSAGES))
def test_every_field_of_the_table_is_one_of_the_schema(message):
    found = list(schema_of(message))
    for each in MESSAGES[message].values():
        if each.inline:
            assert each.name in MESSAGES
        elif found:
            assert any(each.name in definition.fields for definition in found)
        else:
            assert message in {"IngressRuleValue", "ProbeHandler", "VolumeSource"}


def test_every_kind_is_read_whole_or_not_at_all():
    assert set(MESSAGES) >= KINDS
    assert {each.kind for each in r.RESOURCES if reads_protobuf(each)} == KINDS


@given(st.binary(max_size=60))
def test_no_bytes_are_a_crash(data):
    for resource in (r.DEPLOYMENTS, r.SECRETS):
        with contextlib.suppress(StatusError):
            body = envelope(data, resource.kind, resource.api_version)
            assert isinstance(read_object(body, resource), dict)
