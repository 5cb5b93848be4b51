"""The binding subresource: its rules, their order, and what it writes."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox.tests.apiserver.harness import (
    JSON_PATCH,
    MERGE,
    PODS,
    STRATEGIC,
    Cluster,
    binding,
    failure,
    pod,
    unowned,
)

PATH = f"{PODS}/a/binding"
DETAILS = {"name": "a", "kind": "pods/binding"}


async def _with_pod(**spec: Any) -> Cluster:
    cluster = Cluster()
    body = pod()
    body["spec"] |= spec
    await cluster.ok("POST", PODS, body)
    return cluster


def _conflict(why: str) -> tuple[int, dict[str, Any]]:
    message = f'Operation cannot be fulfilled on pods/binding "a": {why}'
    return failure(409, "Conflict", message, DETAILS)


async def test_success_answers_201_with_a_status():
    cluster = await _with_pod()
    assert await cluster.call("POST", PATH, binding()) == (
        201,
        {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201},
    )


ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
NODES = "/api/v1/nodes"


def _node(labels: dict[str, str]) -> dict[str, Any]:
    return {"metadata": {"name": "n1", "labels": labels}}


@pytest.mark.parametrize(
    ("of_node", "sent", "target", "labels"),
    [
        pytest.param({ZONE: "a", REGION: "r"}, {}, "Node", {ZONE: "a", REGION: "r"}, id="both"),
        pytest.param({ZONE: "a", "rack": "7"}, {}, "Node", {ZONE: "a"}, id="no other label"),
        pytest.param({ZONE: "a"}, {ZONE: "b"}, "Node", {ZONE: "b"}, id="the binding's own stays"),
        pytest.param({ZONE: "a"}, {}, "", {}, id="a target without a kind"),
        pytest.param({}, {}, "Node", {}, id="a node without topology"),
    ],
)
async def test_a_bound_pod_has_the_zone_and_region_of_its_node(of_node, sent, target, labels):
    cluster = await _with_pod()
    await cluster.ok("POST", NODES, _node(of_node))
    body = binding(labels=sent)
    body["target"]["kind"] = target
    await cluster.ok("POST", PATH, body)
    after = await cluster.ok("GET", f"{PODS}/a")
    assert after["metadata"].get("labels", {}) == labels


async def test_the_zone_of_the_node_replaces_the_pods_own_at_binding():
    cluster = Cluster()
    await cluster.ok("POST", NODES, _node({ZONE: "a"}))
    await cluster.ok("POST", PODS, pod() | {"metadata": {"name": "a", "labels": {ZONE: "b"}}})
    await cluster.ok("POST", PATH, binding())
    assert (await cluster.ok("GET", f"{PODS}/a"))["metadata"]["labels"] == {ZONE: "a"}


async def test_a_pod_that_is_created_on_a_node_keeps_its_own_zone():
    cluster = Cluster()
    await cluster.ok("POST", NODES, _node({ZONE: "a", REGION: "r"}))
    body = pod() | {"metadata": {"name": "a", "labels": {ZONE: "b"}}}
    body["spec"]["nodeName"] = "n1"
    made = await cluster.ok("POST", PODS, body)
    assert made["metadata"]["labels"] == {ZONE: "b", REGION: "r"}


async def test_a_binding_to_a_node_that_does_not_exist_adds_no_label():
    cluster = await _with_pod()
    await cluster.ok("POST", PATH, binding())
    assert "labels" not in (await cluster.ok("GET", f"{PODS}/a"))["metadata"]


async def test_a_binding_writes_node_and_condition_and_keeps_the_rest():
    cluster = await _with_pod()
    patch = {
        "status": {
            "nominatedNodeName": "n9",
            "conditions": [
                {"type": "Other", "status": "True"},
                {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"},
            ],
        }
    }
    before = await cluster.ok("PATCH", f"{PODS}/a/status", patch, content_type=STRATEGIC)
    cluster.clock.advance(5)
    meta: dict[str, Any] = {"annotations": {"by": "me"}, "labels": {"zone": "a"}}
    await cluster.ok("POST", PATH, binding(**meta))
    after = await cluster.ok("GET", f"{PODS}/a")
    assert unowned(after)["metadata"] == unowned(before)["metadata"] | meta | {
        "resourceVersion": str(cluster.server.store.version)
    }
    assert after["spec"] == before["spec"] | {"nodeName": "n1"}
    status = {key: value for key, value in before["status"].items() if key != "nominatedNodeName"}
    assert after["status"] == status | {
        "conditions": [
            before["status"]["conditions"][0],
            {
                "type": "PodScheduled",
                "status": "True",
                "lastTransitionTime": "2026-01-01T00:00:05Z",
            },
        ]
    }


async def test_a_binding_is_one_modification_to_watchers():
    cluster = await _with_pod()
    watch = await cluster.watch(PODS)
    await cluster.ok("POST", PATH, binding())
    assert await watch.seen(2) == [("ADDED", "a"), ("MODIFIED", "a")]
    await watch.close()


async def test_the_node_need_not_exist():
    cluster = await _with_pod()
    await cluster.ok("POST", PATH, binding(node="nowhere"))
    assert (await cluster.ok("GET", f"{PODS}/a"))["spec"]["nodeName"] == "nowhere"


async def test_a_dry_run_binds_nothing():
    cluster = await _with_pod()
    await cluster.ok("POST", PATH, binding(), query={"dryRun": "All"})
    assert "nodeName" not in (await cluster.ok("GET", f"{PODS}/a"))["spec"]


async def test_a_bound_pod_cannot_be_bound_again():
    cluster = await _with_pod()
    await cluster.ok("POST", PATH, binding(node="n1"))
    again = await cluster.call("POST", PATH, binding(node="n1"))
    assert again == _conflict('pod a is already assigned to node "n1"')


async def test_a_gated_pod_cannot_be_bound_until_its_gates_are_removed():
    cluster = await _with_pod(schedulingGates=[{"name": "example.com/wait"}])
    found = await cluster.call("POST", PATH, binding())
    assert found == _conflict("pod a has non-empty .spec.schedulingGates")
    patch = [{"op": "remove", "path": "/spec/schedulingGates"}]
    await cluster.ok("PATCH", f"{PODS}/a", patch, content_type=JSON_PATCH)
    await cluster.ok("POST", PATH, binding())


async def test_a_terminating_pod_cannot_be_bound():
    cluster = Cluster()
    body = pod()
    body["metadata"]["finalizers"] = ["example.com/hold"]
    await cluster.ok("POST", PODS, body)
    await cluster.ok("DELETE", f"{PODS}/a")
    found = await cluster.call("POST", PATH, binding())
    assert found == _conflict("pod a is being deleted, cannot be assigned to a host")


async def test_an_unknown_pod_cannot_be_bound():
    assert await Cluster().call("POST", PATH, binding()) == failure(
        404, "NotFound", 'pods "a" not found', {"name": "a", "kind": "pods"}
    )


async def test_a_binding_with_the_uid_of_a_replaced_pod_conflicts():
    cluster = await _with_pod()
    uid = (await cluster.ok("GET", f"{PODS}/a"))["metadata"]["uid"]
    found = await cluster.call("POST", PATH, binding(uid="old"))
    why = f"Precondition failed: UID in precondition: old, UID in object meta: {uid}"
    message = f'Operation cannot be fulfilled on pods "a": {why}'
    assert found == failure(409, "Conflict", message, {"name": "a", "kind": "pods"})
    await cluster.ok("POST", PATH, binding(uid=uid))


async def test_a_binding_observes_the_resource_version_as_precondition():
    cluster = await _with_pod()
    status, _ = await cluster.call("POST", PATH, binding(resourceVersion="1"))
    assert status == 409


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        pytest.param(
            binding("b"),
            400,
            "name in URL does not match name in Binding object",
            id="another pod than the path's",
        ),
        pytest.param(
            binding() | {"target": {"kind": "Node"}},
            422,
            'Binding "a" is invalid: target.name: Required value',
            id="no node",
        ),
        pytest.param(
            binding() | {"target": {"kind": "Rack", "name": "r"}},
            422,
            'Binding "a" is invalid: target.kind: Unsupported value: "Rack": supported values: '
            '"<empty>", "Node"',
            id="something else than a node",
        ),
        pytest.param(
            binding() | {"target": 5},
            400,
            'Binding in version "v1" cannot be handled as a Binding: Expected `object`, got `int` '
            "- at `$.target`",
            id="a target of the wrong type",
        ),
        pytest.param(
            pod(),
            400,
            'Pod in version "v1" cannot be handled as a Binding: expected kind "Binding" of '
            'version "v1"',
            id="another kind",
        ),
        pytest.param(
            binding(namespace="other"),
            400,
            "the namespace of the provided object does not match the namespace sent on the request",
            id="another namespace",
        ),
    ],
)
async def test_faulty_bindings_are_refused_and_write_nothing(body, code, message):
    cluster = await _with_pod()
    status, found = await cluster.call("POST", PATH, body)
    assert (status, found["message"]) == (code, message)
    assert "nodeName" not in (await cluster.ok("GET", f"{PODS}/a"))["spec"]


class TestOrder:
    """Where several rules are broken, the first in this order is the one told."""

    async def test_a_binding_is_checked_for_name_then_target_then_existence(self):
        cluster = Cluster()
        body = binding("b") | {"target": {}}
        assert (await cluster.call("POST", PATH, body))[0] == 400
        assert (await cluster.call("POST", PATH, binding() | {"target": {}}))[0] == 422
        assert (await cluster.call("POST", PATH, binding()))[0] == 404

    async def test_a_binding_is_checked_for_uid_then_deletion_then_assignment(self):
        cluster = await _with_pod(nodeName="n1")
        await cluster.ok("DELETE", f"{PODS}/a")
        _, by_uid = await cluster.call("POST", PATH, binding(uid="old"))
        _, by_deletion = await cluster.call("POST", PATH, binding())
        assert "UID in precondition" in by_uid["message"]
        assert "is being deleted" in by_deletion["message"]


@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE"])
async def test_a_binding_can_only_be_posted(method):
    cluster = await _with_pod()
    status, body = await cluster.call(method, PATH, binding(), content_type=MERGE)
    assert (status, body["reason"]) == (405, "MethodNotAllowed")
