"""Scope: the options of a delete in protobuf, as generated Go clients send them."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.apiserver.protobuf import PROTOBUF, read_delete_options
from moorage.apiserver.status import StatusError
from tests.apiserver.harness import PODS, Cluster, pod


def field(number: int, value: int | bytes) -> bytes:
    """Encode one field; numbers and lengths below 128 only."""
    if isinstance(value, int):
        return bytes([number << 3, value])
    return bytes([number << 3 | 2, len(value)]) + value


def envelope(raw: bytes, kind: bytes = b"DeleteOptions", version: bytes = b"v1") -> bytes:
    return b"k8s\0" + field(1, field(1, version) + field(2, kind)) + field(2, raw) + field(3, b"")


MINUS_ONE = bytes([1 << 3]) + b"\xff" * 9 + b"\x01"


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        pytest.param(b"", {}, id="nothing"),
        pytest.param(field(1, 0), {"gracePeriodSeconds": 0}, id="at once"),
        pytest.param(field(1, 30), {"gracePeriodSeconds": 30}, id="half a minute"),
        pytest.param(MINUS_ONE, {"gracePeriodSeconds": -1}, id="a negative number"),
        pytest.param(
            field(2, field(1, b"u") + field(2, b"7")),
            {"preconditions": {"uid": "u", "resourceVersion": "7"}},
            id="preconditions",
        ),
        pytest.param(
            field(4, b"Background") + field(5, b"All"),
            {"propagationPolicy": "Background", "dryRun": ["All"]},
            id="a policy, and only for show",
        ),
        pytest.param(field(3, 1) + field(9, b"x"), {}, id="fields that mean nothing here"),
    ],
)
def test_what_is_read(raw, expected):
    assert read_delete_options(envelope(raw)) == expected


async def test_a_pod_is_deleted():
    cluster = Cluster()
    await cluster.ok("POST", PODS, pod())
    body = envelope(field(1, 0))
    await cluster.ok("DELETE", f"{PODS}/a", body, content_type=PROTOBUF)
    assert await cluster.names(PODS) == []


async def test_a_precondition_holds_a_delete_back():
    cluster = Cluster()
    await cluster.ok("POST", PODS, pod())
    body = envelope(field(2, field(1, b"another")))
    status, found = await cluster.call("DELETE", f"{PODS}/a", body, content_type=PROTOBUF)
    assert (status, found["reason"]) == (409, "Conflict")


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"{}", id="JSON"),
        pytest.param(b"k8s\0", id="an empty envelope"),
        pytest.param(envelope(b"", b"Pod"), id="another kind"),
        pytest.param(envelope(b"\x08"), id="a tag without its number"),
        pytest.param(envelope(b"\x12\x7f"), id="a length beyond the end"),
        pytest.param(envelope(b"\x0b"), id="a group"),
        pytest.param(envelope(field(4, b"\xff")), id="no UTF-8"),
        pytest.param(envelope(field(2, 1)), id="a number for a message"),
        pytest.param(b"k8s\0" + b"\xff" * 20, id="a number without end"),
    ],
)
async def test_what_cannot_be_read(body):
    cluster = Cluster()
    await cluster.ok("POST", PODS, pod())
    status, found = await cluster.call("DELETE", f"{PODS}/a", body, content_type=PROTOBUF)
    assert (status, found["reason"]) == (400, "BadRequest")


@given(st.binary(max_size=40))
def test_no_bytes_are_a_crash(data):
    for body in (data, b"k8s\0" + data, envelope(data)):
        with contextlib.suppress(StatusError):
            assert isinstance(read_delete_options(body), dict)
