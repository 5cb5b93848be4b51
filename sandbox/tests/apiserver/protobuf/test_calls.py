"""Scope: calls with bodies in protobuf, answers in protobuf, and which of the forms is chosen."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pytest

from moorage.api.resources import group_version_path
from moorage.kinds import facts as api
from moorage_sandbox.apiserver.protobuf.codec import encode
from moorage_sandbox.apiserver.protobuf.envelope import read_object, wrap, write_object
from moorage_sandbox.apiserver.protobuf.fields import bytes_field
from moorage_sandbox.apiserver.wire.negotiate import PROTOBUF
from moorage_sandbox.apiserver.wire.requests import Reply
from sandbox.tests.apiserver.crd import car, definition
from sandbox.tests.apiserver.harness import (
    CONFIG_MAPS,
    NODES,
    PODS,
    Cluster,
    config_map,
    failure,
    pod,
)

BOTH = f"{PROTOBUF},application/json"
CARS = "/apis/example.com/v1/namespaces/default/cars"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
METADATA = ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
NONE = ("", "")


def told(reply: Reply) -> dict[str, Any]:
    """Return the object of an answer in protobuf."""
    assert reply.content_type == PROTOBUF, reply
    assert isinstance(reply.body, bytes)
    return read_object(reply.body, NONE)


async def send(cluster: Cluster, method: str, path: str, obj: Any, **options: Any) -> Reply:
    """Make a call with an object in protobuf, and take the answer so."""
    body = write_object(obj) if isinstance(obj, dict) else obj
    return await cluster.reply(
        method, path, body, content_type=PROTOBUF, accept=PROTOBUF, **options
    )


async def test_an_object_is_created_read_changed_and_deleted():
    cluster = Cluster()
    made = told(await send(cluster, "POST", CONFIG_MAPS, config_map("a", k="1")))
    assert made["metadata"]["uid"]
    made["data"] = {"k": "2", "empty": ""}
    changed = told(await send(cluster, "PUT", f"{CONFIG_MAPS}/a", made))
    assert changed["metadata"]["resourceVersion"] != made["metadata"]["resourceVersion"]
    shown = told(await cluster.reply("GET", f"{CONFIG_MAPS}/a", accept=PROTOBUF))
    assert shown == changed == await cluster.ok("GET", f"{CONFIG_MAPS}/a")
    options = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
    gone = told(await send(cluster, "DELETE", f"{CONFIG_MAPS}/a", options))
    assert (gone["kind"], gone["status"], gone["details"]["name"]) == ("Status", "Success", "a")


async def test_a_lease_is_created_and_renewed_in_protobuf():
    cluster = Cluster()
    spec = {
        "holderIdentity": "me",
        "leaseDurationSeconds": 15,
        "acquireTime": "2026-01-01T00:00:00.000001Z",
        "renewTime": "2026-01-01T00:00:00.000001Z",
        "leaseTransitions": 0,
    }
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "a"}}
    made = told(await send(cluster, "POST", LEASES, lease | {"spec": spec}))
    assert made["spec"] == spec
    made["spec"]["renewTime"] = "2026-01-01T00:00:02.000003Z"
    assert told(await send(cluster, "PUT", f"{LEASES}/a", made))["spec"] == made["spec"]


async def test_a_definition_is_created_in_protobuf_and_its_resources_served_in_json():
    cluster = Cluster()
    made = told(await send(cluster, "POST", DEFINITIONS, definition()))
    assert made["spec"]["names"]["plural"] == "cars"
    assert await cluster.ok("GET", f"{DEFINITIONS}/cars.example.com") == told(
        await cluster.reply("GET", f"{DEFINITIONS}/cars.example.com", accept=PROTOBUF)
    )
    reply = await cluster.reply("POST", CARS, car("a"), accept=BOTH)
    assert (reply.status, reply.content_type) == (201, "application/json")
    refused = await cluster.reply("GET", f"{CARS}/a", accept=PROTOBUF)
    # An error has a protobuf form, wherever it comes from.
    assert (refused.status, told(refused)) == failure(
        406,
        "NotAcceptable",
        "only the following media types are accepted: application/json, application/yaml, "
        "application/vnd.kubernetes.protobuf",
    )
    body = wrap("example.com/v1", "Car", b"")
    refused = await cluster.call("POST", CARS, body, content_type=PROTOBUF)
    assert refused == failure(
        415,
        "UnsupportedMediaType",
        "the body of the request was in an unknown format - accepted media types include: "
        "application/json, application/yaml",
    )


async def test_metadata_of_custom_resources_is_shown_in_protobuf():
    cluster = Cluster()
    await cluster.ok("POST", DEFINITIONS, definition())
    await cluster.ok("POST", CARS, car("a"))
    accept = f"{PROTOBUF}{METADATA}"
    found = told(await cluster.reply("GET", f"{CARS}/a", accept=accept))
    assert (found["apiVersion"], found["kind"]) == ("meta.k8s.io/v1", "PartialObjectMetadata")
    assert found["metadata"]["name"] == "a"
    accept = f"{PROTOBUF};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
    listed = told(await cluster.reply("GET", CARS, accept=accept))
    assert [each["metadata"]["name"] for each in listed["items"]] == ["a"]


async def test_options_of_a_delete_hold_for_custom_resources_too():
    cluster = Cluster()
    await cluster.ok("POST", DEFINITIONS, definition())
    await cluster.ok("POST", CARS, car("a"))
    options = wrap("example.com/v1", "DeleteOptions", encode_options({"dryRun": ["All"]}))
    reply = await cluster.reply("DELETE", f"{CARS}/a", options, content_type=PROTOBUF)
    assert reply.status == 200
    assert await cluster.names(CARS) == ["a"]


def encode_options(options: dict[str, Any]) -> bytes:
    return encode("k8s.io.apimachinery.pkg.apis.meta.v1.DeleteOptions", options)


@pytest.mark.parametrize("count", [0, 3, 250])
async def test_a_list_is_served_in_protobuf(count):
    cluster = Cluster()
    for index in range(count):
        await cluster.ok("POST", CONFIG_MAPS, config_map(f"a{index:03}", k=str(index)))
    reply = await cluster.reply("GET", CONFIG_MAPS, accept=BOTH)
    assert (reply.status, reply.content_type) == (200, PROTOBUF)
    body = reply.body
    if not isinstance(body, bytes):
        body = b"".join([piece async for piece in body])
    found = read_object(body, NONE)
    expected = await cluster.ok("GET", CONFIG_MAPS)
    for each in expected["items"]:
        del each["kind"], each["apiVersion"]
    # A list without elements is not on the wire.
    assert {"items": []} | found == expected


async def test_pages_of_a_list_are_served_in_protobuf():
    cluster = Cluster()
    for name in "abc":
        await cluster.ok("POST", CONFIG_MAPS, config_map(name))
    first = told(await cluster.reply("GET", CONFIG_MAPS, query={"limit": "2"}, accept=PROTOBUF))
    assert first["metadata"]["remainingItemCount"] == 1
    query = {"limit": "2", "continue": first["metadata"]["continue"]}
    rest = told(await cluster.reply("GET", CONFIG_MAPS, query=query, accept=PROTOBUF))
    names = [each["metadata"]["name"] for page in (first, rest) for each in page["items"]]
    assert names == ["a", "b", "c"]


async def test_errors_are_served_in_the_accepted_form():
    reply = await Cluster().reply("GET", f"{PODS}/none", accept=BOTH)
    found = told(reply)
    assert (reply.status, found["reason"], found["code"]) == (404, "NotFound", 404)
    assert found["details"] == {"name": "none", "kind": "pods"}


async def test_an_answer_that_cannot_be_written_in_protobuf_stays_json():
    cluster = Cluster()
    with patch(
        "moorage_sandbox.apiserver.protobuf.envelope.write_object", side_effect=KeyError("x")
    ):
        body = config_map("a")
        reply = await cluster.reply("POST", CONFIG_MAPS, body, accept=BOTH)
    assert (reply.status, reply.content_type) == (201, "application/json")
    assert await cluster.names(CONFIG_MAPS) == ["a"]


async def test_tables_and_patches_are_never_protobuf():
    cluster = Cluster()
    await cluster.ok("POST", PODS, pod())
    table = ";as=Table;g=meta.k8s.io;v=v1"
    accept = f"{PROTOBUF}{table},application/json{table}"
    reply = await cluster.reply("GET", PODS, accept=accept)
    assert reply.content_type == "application/json"
    status, found = await cluster.call("GET", PODS, accept=f"{PROTOBUF}{table}")
    assert (status, found["reason"]) == (406, "NotAcceptable")
    body = write_object(config_map("a"))
    status, found = await cluster.call("PATCH", f"{PODS}/a", body, content_type=PROTOBUF)
    assert (status, found["reason"]) == (415, "UnsupportedMediaType")
    change = {"metadata": {"labels": {"a": "b"}}}
    merge = "application/merge-patch+json"
    reply = await cluster.reply("PATCH", f"{PODS}/a", change, content_type=merge, accept=BOTH)
    assert told(reply)["metadata"]["labels"] == {"a": "b"}


@pytest.mark.parametrize(
    ("path", "sent", "expected"),
    [
        pytest.param(
            f"{PODS}/a/binding",
            {
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": {"name": "a"},
                "target": {"kind": "Node", "name": "n"},
            },
            {"status": "Success"},
            id="a binding",
        ),
        pytest.param(
            f"{PODS}/a/eviction",
            {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a"}},
            {"status": "Success"},
            id="an eviction",
        ),
        pytest.param(
            f"{ACCOUNTS}/robot/token",
            {
                "apiVersion": "authentication.k8s.io/v1",
                "kind": "TokenRequest",
                "spec": {"expirationSeconds": 900},
            },
            {"kind": "TokenRequest"},
            id="a token",
        ),
        pytest.param(
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
            {
                "apiVersion": "authorization.k8s.io/v1",
                "kind": "SelfSubjectAccessReview",
                "spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}},
            },
            {"status": {"allowed": True}},
            id="a review",
        ),
    ],
)
async def test_subresources_and_reviews_are_read_from_protobuf(path, sent, expected):
    cluster = Cluster()
    await cluster.ok("POST", PODS, pod())
    await cluster.ok("POST", ACCOUNTS, {"metadata": {"name": "robot"}})
    reply = await send(cluster, "POST", path, {"metadata": {}} | sent)
    found = told(reply)
    assert reply.status == 201
    assert {key: found[key] for key in expected} == expected


async def test_a_scale_is_read_and_written_in_protobuf():
    cluster = Cluster()
    path = "/apis/apps/v1/namespaces/default/replicasets"
    labels = {"app": "a"}
    template = {"metadata": {"labels": labels}, "spec": pod()["spec"]}
    spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
    sets = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "a"}, "spec": spec}
    await cluster.ok("POST", path, sets)
    scale = told(await cluster.reply("GET", f"{path}/a/scale", accept=BOTH))
    assert (scale["kind"], scale["spec"]) == ("Scale", {"replicas": 2})
    scale["spec"] = {}
    await send(cluster, "PUT", f"{path}/a/scale", scale)
    assert (await cluster.ok("GET", f"{path}/a"))["spec"]["replicas"] == 0


async def test_a_body_without_a_kind_has_the_kind_of_the_path():
    cluster = Cluster()
    body = wrap("", "", encode("k8s.io.api.core.v1.ConfigMap", config_map("a")))
    assert (await cluster.reply("POST", CONFIG_MAPS, body, content_type=PROTOBUF)).status == 201
    body = wrap("", "", encode_options({"dryRun": ["All"]}))
    await cluster.reply("DELETE", f"{CONFIG_MAPS}/a", body, content_type=PROTOBUF)
    assert "a" in await cluster.names(CONFIG_MAPS)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        pytest.param(b"{}", "does not appear to be a protobuf message", id="JSON"),
        pytest.param(b"k8s\0\x0b", "the envelope cannot be read", id="a broken envelope"),
        pytest.param(
            wrap("v1", "Node", b"\x0a\x7f"), "Node cannot be read: Error parsing", id="no message"
        ),
        pytest.param(
            wrap("v1", "Pod", b""), 'expected kind "Node" of version "v1"', id="another kind"
        ),
        pytest.param(
            wrap("v1", "Frog", b""), "Frog of version v1 has no protobuf form", id="no kind"
        ),
    ],
)
async def test_an_unreadable_protobuf_body_is_refused_with_the_reason(body, message):
    status, found = await Cluster().call("POST", NODES, body, content_type=PROTOBUF)
    assert (status, found["reason"]) == (400, "BadRequest")
    assert message in found["message"]


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        pytest.param(
            b'{"a":' + b"[" * 201 + b"]" * 201 + b"}", "Raw: nested deeper than 200", id="depth"
        ),
        pytest.param(b"[" + b"[]," * 100_001 + b"0]", "Raw: more than 100000 values", id="values"),
        pytest.param(b'{"a"', "Raw: Input data was truncated", id="no JSON"),
        pytest.param(b'"\xff"', "Raw: 'utf-8' codec can't decode", id="no UTF-8"),
    ],
)
async def test_json_within_a_field_has_the_bounds_of_a_body(fields: bytes, told: str):
    meta = bytes_field(1, b"a") + bytes_field(17, bytes_field(7, bytes_field(1, fields)))
    body = wrap("v1", "ConfigMap", bytes_field(1, meta))
    status, found = await Cluster().call("POST", CONFIG_MAPS, body, content_type=PROTOBUF)
    assert (status, found["reason"]) == (400, "BadRequest")
    assert told in found["message"]


async def test_a_body_above_three_megabytes_is_refused():
    body = wrap("v1", "Node", b"\0" * 3 * 1024 * 1024)
    status, found = await Cluster().call("POST", NODES, body, content_type=PROTOBUF)
    assert (status, found["reason"]) == (413, "RequestEntityTooLarge")


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        pytest.param("/api", "APIVersions", id="versions"),
        pytest.param("/apis", "APIGroupList", id="groups"),
        pytest.param("/apis/apps", "APIGroup", id="one group"),
        pytest.param("/api/v1", "APIResourceList", id="resources"),
    ],
)
async def test_discovery_is_served_in_protobuf(path, kind):
    cluster = Cluster()
    found = told(await cluster.reply("GET", path, accept=BOTH))
    assert found["kind"] == kind
    expected = await cluster.ok("GET", path)
    # What goes without an API version in JSON is of none.
    told_in_json = {key for key in expected if expected[key]} | {"apiVersion"}
    assert set(found) - {"serverAddressByClientCIDRs"} == told_in_json


async def test_a_definition_keeps_every_part_of_its_schema_in_protobuf():
    cluster = Cluster()
    sent = definition()
    schema = sent["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["free"] = {
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": True,
        "additionalProperties": {"type": "string", "enum": ["a", ""], "default": ""},
    }
    made = told(await send(cluster, "POST", DEFINITIONS, sent))
    stored = made["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["free"]
    assert stored["additionalProperties"] == {"type": "string", "enum": ["a", ""], "default": ""}
    assert stored["x-kubernetes-preserve-unknown-fields"] is True


async def _whole(reply: Reply) -> bytes:
    """Return a body, whether it comes at once or in pieces."""
    body = reply.body
    return body if isinstance(body, bytes) else b"".join([piece async for piece in body])


async def test_every_built_in_resource_is_listed_and_watched_in_protobuf():
    cluster = Cluster()
    listed = [each for each in api.resources() if "list" in each.verbs and not each.subresource]
    for each in listed:
        path = f"{group_version_path(each.group, each.version)}/{each.plural}"
        reply = await cluster.reply("GET", path, accept=PROTOBUF)
        assert (reply.status, reply.content_type) == (200, PROTOBUF), path
        assert read_object(await _whole(reply), NONE)["kind"] == f"{each.kind}List"
        query = {"watch": "true", "resourceVersion": "1"}
        reply = await cluster.reply("GET", path, query=query, accept=PROTOBUF)
        assert reply.content_type == f"{PROTOBUF};stream=watch", path
    assert len(listed) > 60
