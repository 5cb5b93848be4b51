"""Creating objects: what the server adds, what it refuses and in which words."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox.tests.apiserver.harness import (
    CONFIG_MAPS,
    NODES,
    PODS,
    Cluster,
    config_map,
    failure,
    pod,
    unowned,
)


async def test_a_created_object_carries_what_only_the_server_writes():
    cluster = Cluster()
    body = config_map("a", k="v")
    body["metadata"] |= {
        "uid": "mine",
        "resourceVersion": "0",
        "creationTimestamp": "2020-01-01T00:00:00Z",
        "selfLink": "/x",
        "managedFields": [{"manager": "kubectl"}],
    }
    status, created = await cluster.call("POST", CONFIG_MAPS, body)
    uid = created["metadata"].pop("uid")
    assert (status, created) == (
        201,
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": "a",
                "namespace": "default",
                "creationTimestamp": "2026-01-01T00:00:00Z",
                "resourceVersion": str(cluster.server.store.version),
                "managedFields": [
                    {
                        "manager": "unknown",
                        "operation": "Update",
                        "apiVersion": "v1",
                        "time": "2026-01-01T00:00:00Z",
                        "fieldsType": "FieldsV1",
                        "fieldsV1": {"f:data": {".": {}, "f:k": {}}},
                    }
                ],
            },
            "data": {"k": "v"},
        },
    )
    assert len(uid) == 36
    assert uid != "mine"


async def test_a_created_object_is_read_back_unchanged():
    cluster = Cluster()
    created = await cluster.ok("POST", PODS, pod())
    assert unowned(await cluster.ok("GET", f"{PODS}/a")) == unowned(created)


async def test_names_are_generated_from_a_prefix_and_differ():
    cluster = Cluster()
    body = config_map()
    body["metadata"] = {"generateName": "job-"}
    names = [(await cluster.ok("POST", CONFIG_MAPS, body))["metadata"]["name"] for _ in range(20)]
    assert len(set(names)) == 20
    assert all(name.startswith("job-") and len(name) == 9 for name in names)


async def test_a_dry_run_answers_like_a_create_and_stores_nothing():
    cluster = Cluster()
    before = cluster.server.store.version
    status, shown = await cluster.call("POST", CONFIG_MAPS, config_map(), query={"dryRun": "All"})
    assert status == 201
    assert "resourceVersion" not in shown["metadata"]
    assert cluster.server.store.version == before
    assert await cluster.names(CONFIG_MAPS) == []


async def test_kind_and_version_may_be_left_out():
    created = await Cluster().ok("POST", CONFIG_MAPS, {"metadata": {"name": "a"}})
    assert (created["apiVersion"], created["kind"]) == ("v1", "ConfigMap")


def _pod_with(**spec: Any) -> dict[str, Any]:
    body = pod()
    body["spec"] |= spec
    return body


CANNOT = 'Pod in version "v1" cannot be handled as a Pod: '

REFUSED = [
    pytest.param(
        PODS,
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {}},
        failure(
            422,
            "Invalid",
            'Pod "a" is invalid: spec.containers: Required value',
            {
                "name": "a",
                "kind": "Pod",
                "causes": [
                    {
                        "reason": "FieldValueRequired",
                        "message": "Required value",
                        "field": "spec.containers",
                    }
                ],
            },
        ),
        id="an object that breaks a rule, with the fault as a cause",
    ),
    pytest.param(
        "/api/v1/namespaces/nowhere/configmaps",
        config_map(),
        failure(
            404,
            "NotFound",
            'namespaces "nowhere" not found',
            {"name": "nowhere", "kind": "namespaces"},
        ),
        id="an object in a namespace that does not exist",
    ),
    pytest.param(
        CONFIG_MAPS,
        config_map() | {"metadata": {"name": "a", "namespace": "other"}},
        failure(
            400,
            "BadRequest",
            "the namespace of the provided object does not match the namespace sent on the request",
        ),
        id="an object that names another namespace than the path",
    ),
    pytest.param(
        CONFIG_MAPS,
        pod(),
        failure(
            400,
            "BadRequest",
            'Pod in version "v1" cannot be handled as a ConfigMap: '
            'expected kind "ConfigMap" of version "v1"',
        ),
        id="an object of another kind",
    ),
    pytest.param(
        PODS,
        _pod_with(hostNetwork="yes"),
        failure(
            400,
            "BadRequest",
            CANNOT + "json: cannot unmarshal string into Go struct field "
            "PodSpec.spec.hostNetwork of type bool",
        ),
        id="a value of the wrong type",
    ),
    pytest.param(
        PODS,
        [1, 2],
        failure(
            400,
            "BadRequest",
            "the object provided is unrecognized (must be of type Pod): couldn't get "
            "version/kind; expected a JSON object, not list",
        ),
        id="JSON that is not an object",
    ),
    pytest.param(
        PODS,
        pod() | {"metadata": 5},
        failure(400, "BadRequest", CANNOT + "json: cannot unmarshal metadata: not an object"),
        id="metadata that is not an object",
    ),
    pytest.param(
        "/api/v1/pods",
        pod(),
        failure(
            405,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
            {},
        ),
        id="a namespaced object without a namespace in the path",
    ),
    pytest.param(
        "/api/v1/widgets",
        {},
        failure(404, "NotFound", "the server could not find the requested resource", {}),
        id="a resource that is not served",
    ),
]


@pytest.mark.parametrize(("path", "body", "expected"), REFUSED)
async def test_a_faulty_object_is_refused(path, body, expected):
    assert await Cluster().call("POST", path, body) == expected


async def test_a_create_with_a_taken_name_is_refused():
    cluster = Cluster()
    await cluster.ok("POST", NODES, {"kind": "Node", "metadata": {"name": "n1"}})
    assert await cluster.call("POST", NODES, {"metadata": {"name": "n1"}}) == failure(
        409, "AlreadyExists", 'nodes "n1" already exists', {"name": "n1", "kind": "nodes"}
    )


async def test_a_body_that_is_not_json_is_refused_with_its_beginning():
    status, body = await Cluster().call("POST", PODS, b"kind: Pod")
    assert status == 400
    assert body["message"].startswith(
        "the object provided is unrecognized (must be of type Pod): couldn't get version/kind; "
        "json parse error: "
    )
    assert body["message"].endswith("(6b696e643a20506f64)")


@pytest.mark.parametrize(
    "content_type",
    [
        pytest.param("text/plain", id="text"),
        pytest.param("application/cbor", id="CBOR"),
    ],
)
async def test_a_body_of_an_unknown_media_type_is_refused(content_type):
    found = await Cluster().call("POST", NODES, b"k8s\x00", content_type=content_type)
    assert found == failure(
        415,
        "UnsupportedMediaType",
        "the body of the request was in an unknown format - accepted media types include: "
        "application/json, application/yaml, application/vnd.kubernetes.protobuf",
    )


async def test_a_body_above_three_megabytes_is_refused():
    body = config_map("a", big="x" * (3 * 1024 * 1024))
    status, found = await Cluster().call("POST", CONFIG_MAPS, body)
    assert (status, found["reason"]) == (413, "RequestEntityTooLarge")


async def test_a_deeply_nested_array_is_refused():
    status, found = await Cluster().call("POST", PODS, b"[" * 100_000)
    assert (status, found["reason"]) == (400, "BadRequest")


class TestFieldValidation:
    """Unknown fields: refused, warned about, or dropped in silence."""

    BODY = _pod_with(foo=1)

    async def test_strict_field_validation_refuses_unknown_fields(self):
        found = await Cluster().call("POST", PODS, self.BODY, query={"fieldValidation": "Strict"})
        text = CANNOT + 'strict decoding error: unknown field "spec.foo"'
        assert found == failure(400, "BadRequest", text)

    async def test_unknown_fields_cause_a_warning_by_default(self):
        reply = await Cluster().reply("POST", PODS, self.BODY)
        assert reply.status == 201
        assert reply.headers == (("Warning", '299 - "unknown field \\"spec.foo\\""'),)

    async def test_ignoring_field_validation_gives_no_warning(self):
        query = {"fieldValidation": "Ignore"}
        reply = await Cluster().reply("POST", PODS, self.BODY, query=query)
        assert (reply.status, reply.headers) == (201, ())


async def test_an_object_with_a_resource_version_is_not_created():
    cluster = Cluster()
    made = await cluster.ok("POST", CONFIG_MAPS, config_map("a"))
    again = made | {"metadata": made["metadata"] | {"name": "b"}}
    assert await cluster.call("POST", CONFIG_MAPS, again) == (
        500,
        {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": "resourceVersion should not be set on objects to be created",
            "code": 500,
        },
    )
    again["metadata"]["resourceVersion"] = "0"
    await cluster.ok("POST", CONFIG_MAPS, again)
