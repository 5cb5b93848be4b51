"""PUT and PATCH: conflicts, what may not change, the patch types, the status subresource."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.api.patch_operations import merge_patch
from moorage_sandbox.apiserver.served_kinds import served_kinds
from sandbox.tests.apiserver.crd import CARS, DEFINITIONS, car, definition
from sandbox.tests.apiserver.harness import (
    CONFIG_MAPS,
    JSON_PATCH,
    MERGE,
    NODES,
    PODS,
    STRATEGIC,
    Cluster,
    config_map,
    failure,
    pod,
    unowned,
)

LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
LEASE = {"metadata": {"name": "s"}, "spec": {"holderIdentity": "me"}}
SERVICES = "/api/v1/namespaces/default/services"
SERVICE = {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}}
CANDIDATES = "/apis/coordination.k8s.io"
CANDIDATE = {
    "metadata": {"name": "s"},
    "spec": {
        "leaseName": "l",
        "binaryVersion": "1.36.0",
        "emulationVersion": "1.36.0",
        "strategy": "OldestEmulationVersion",
    },
}
MODIFIED = (
    'Operation cannot be fulfilled on configmaps "a": the object has been modified; please apply '
    "your changes to the latest version and try again"
)
A_CONFIG_MAP = {"name": "a", "kind": "configmaps"}


async def _created() -> tuple[Cluster, dict[str, Any]]:
    cluster = Cluster()
    return cluster, await cluster.ok("POST", CONFIG_MAPS, config_map("a", k="v"))


async def test_put_replaces_all_fields_but_those_of_the_server():
    cluster, old = await _created()
    new = await cluster.ok("PUT", f"{CONFIG_MAPS}/a", config_map("a", other="w"))
    assert unowned(new) == old | {
        "data": {"other": "w"},
        "metadata": unowned(old)["metadata"]
        | {"resourceVersion": str(cluster.server.store.version)},
    }
    assert await cluster.ok("GET", f"{CONFIG_MAPS}/a") == new


async def test_put_of_an_old_version_is_a_conflict():
    cluster, old = await _created()
    await cluster.ok("PUT", f"{CONFIG_MAPS}/a", config_map("a", k="w"))
    old["data"] = {"k": "x"}
    found = await cluster.call("PUT", f"{CONFIG_MAPS}/a", old)
    assert found == failure(409, "Conflict", MODIFIED, A_CONFIG_MAP)


async def test_put_of_another_object_of_the_same_name_is_a_conflict():
    cluster, old = await _created()
    uid = old["metadata"]["uid"]
    old["metadata"]["uid"] = "gone"
    found = await cluster.call("PUT", f"{CONFIG_MAPS}/a", old)
    why = f"Precondition failed: UID in precondition: gone, UID in object meta: {uid}"
    message = f'Operation cannot be fulfilled on configmaps "a": {why}'
    assert found == failure(409, "Conflict", message, A_CONFIG_MAP)


async def test_a_put_without_changes_writes_no_new_version():
    cluster, old = await _created()
    assert await cluster.ok("PUT", f"{CONFIG_MAPS}/a", config_map("a", k="v")) == old
    assert old["metadata"]["resourceVersion"] == str(cluster.server.store.version)


async def test_put_of_an_unknown_object_is_not_found():
    found = await Cluster().call("PUT", f"{CONFIG_MAPS}/a", config_map("a"))
    assert found == failure(404, "NotFound", 'configmaps "a" not found', A_CONFIG_MAP)


async def test_kinds_that_a_put_creates():
    """The strategies of kubernetes v1.36 pkg/registry with AllowCreateOnUpdate."""
    assert {kind.resource.qualified for kind in served_kinds() if kind.created_by_put} == {
        "clusterrolebindings.rbac.authorization.k8s.io",
        "clusterroles.rbac.authorization.k8s.io",
        "endpoints",
        "events",
        "events.events.k8s.io",
        "leasecandidates.coordination.k8s.io",
        "leases.coordination.k8s.io",
        "limitranges",
        "rolebindings.rbac.authorization.k8s.io",
        "roles.rbac.authorization.k8s.io",
        "runtimeclasses.node.k8s.io",
        "services",
    }


class TestPutOfAMissingObject:
    """A PUT creates the object where its kind says so (apiserver v1.36 registry store.Update)."""

    @pytest.mark.parametrize(
        ("collection", "body"),
        [
            pytest.param(LEASES, LEASE, id="a lease"),
            pytest.param(
                f"{CANDIDATES}/v1beta1/namespaces/default/leasecandidates",
                CANDIDATE,
                id="a lease candidate",
            ),
            pytest.param(
                f"{CANDIDATES}/v1alpha2/namespaces/default/leasecandidates",
                CANDIDATE,
                id="a lease candidate in its other version",
            ),
            pytest.param(SERVICES, SERVICE, id="a service"),
            pytest.param(
                "/api/v1/namespaces/default/events",
                {
                    "metadata": {"name": "s"},
                    "involvedObject": {"kind": "Pod", "namespace": "default", "name": "a"},
                    "reason": "Made",
                },
                id="an event",
            ),
            pytest.param(
                "/apis/rbac.authorization.k8s.io/v1/clusterroles",
                {"metadata": {"name": "s"}, "rules": []},
                id="a cluster role",
            ),
        ],
    )
    async def test_the_object_is_made_as_by_a_post(self, collection: str, body: Any):
        posted = await Cluster().ok("POST", collection, body)
        cluster = Cluster()
        status, put = await cluster.call("PUT", f"{collection}/s", body)
        assert (status, put) == (201, posted)
        assert unowned(await cluster.ok("GET", f"{collection}/s")) == unowned(put)
        assert (await cluster.call("PUT", f"{collection}/s", put))[0] == 200

    async def test_a_put_of_a_status_makes_the_object_without_it(self):
        posted = await Cluster().ok("POST", SERVICES, SERVICE)
        status = {"loadBalancer": {"ingress": [{"ip": "10.1.1.1"}]}}
        code, found = await Cluster().call(
            "PUT", f"{SERVICES}/s/status", SERVICE | {"status": status}
        )
        assert (code, unowned(found)) == (201, unowned(posted))

    async def test_a_version_of_an_object_that_has_gone_is_ignored(self):
        cluster = Cluster()
        made = await cluster.ok("POST", LEASES, LEASE)
        await cluster.ok("DELETE", f"{LEASES}/s")
        old = made["metadata"]
        del old["uid"]
        status, again = await cluster.call("PUT", f"{LEASES}/s", made)
        new = again["metadata"]
        assert (status, again["spec"]) == (201, made["spec"])
        assert int(new["resourceVersion"]) > int(old["resourceVersion"])

    async def test_the_uid_of_an_object_that_has_gone_is_a_conflict(self):
        cluster = Cluster()
        made = await cluster.ok("POST", LEASES, LEASE)
        await cluster.ok("DELETE", f"{LEASES}/s")
        found = await cluster.call("PUT", f"{LEASES}/s", made)
        why = f"Precondition failed: UID in precondition: {made['metadata']['uid']}, "
        message = (
            f'Operation cannot be fulfilled on leases.coordination.k8s.io "s": {why}'
            "UID in object meta: "
        )
        details = {"name": "s", "group": "coordination.k8s.io", "kind": "leases"}
        assert found == failure(409, "Conflict", message, details)

    async def test_a_uid_of_a_kind_that_no_put_creates_is_not_found(self):
        cluster, made = await _created()
        await cluster.ok("DELETE", f"{CONFIG_MAPS}/a")
        found = await cluster.call("PUT", f"{CONFIG_MAPS}/a", made)
        assert found == failure(404, "NotFound", 'configmaps "a" not found', A_CONFIG_MAP)

    @pytest.mark.parametrize(
        ("path", "body", "code"),
        [
            pytest.param(f"{LEASES}/t", LEASE, 400, id="another name than the path"),
            pytest.param(f"{LEASES}/s", {"metadata": {}}, 400, id="no name"),
            pytest.param(
                f"{LEASES}/s",
                LEASE | {"spec": {"leaseDurationSeconds": -1}},
                422,
                id="an invalid object",
            ),
            pytest.param(
                f"{LEASES.replace('kube-system', 'none')}/s", LEASE, 404, id="no such namespace"
            ),
        ],
    )
    async def test_a_refused_object_is_not_made(self, path: str, body: Any, code: int):
        cluster = Cluster()
        before = cluster.server.store.version
        assert (await cluster.call("PUT", path, body))[0] == code
        assert cluster.server.store.version == before

    async def test_a_dry_run_makes_nothing(self):
        cluster = Cluster()
        query = {"dryRun": "All"}
        status, shown = await cluster.call("PUT", f"{LEASES}/s", LEASE, query=query)
        assert (status, shown["spec"]) == (201, LEASE["spec"])
        assert (await cluster.call("GET", f"{LEASES}/s"))[0] == 404

    async def test_unknown_fields_cause_a_warning(self):
        reply = await Cluster().reply("PUT", f"{LEASES}/s", LEASE | {"foo": 1})
        assert reply.status == 201
        assert reply.headers == (("Warning", '299 - "unknown field \\"foo\\""'),)


async def test_put_with_another_name_than_the_path_is_refused():
    cluster, _ = await _created()
    found = await cluster.call("PUT", f"{CONFIG_MAPS}/a", config_map("b"))
    text = "the name of the object (b) does not match the name on the URL (a)"
    assert found == failure(400, "BadRequest", text)


WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"


@pytest.mark.parametrize(
    ("collection", "body"),
    [
        pytest.param(LEASES, LEASE, id="a lease"),
        pytest.param(
            "/apis/node.k8s.io/v1/runtimeclasses",
            {"metadata": {"name": "s"}, "handler": "h"},
            id="a runtime class",
        ),
        pytest.param(WEBHOOKS, {"metadata": {"name": "s"}}, id="a webhook configuration"),
        pytest.param(
            "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
            {"metadata": {"name": "s"}, "spec": {"policyName": "p", "validationActions": ["Deny"]}},
            id="a binding of a policy",
        ),
        pytest.param(DEFINITIONS, definition(), id="a definition"),
        pytest.param(CARS, car(), id="a custom resource"),
    ],
)
async def test_an_update_of_some_kinds_must_carry_its_version(collection: str, body: Any):
    cluster = Cluster()
    if collection == CARS:
        await cluster.ok("POST", DEFINITIONS, definition())
    created = await cluster.ok("POST", collection, body)
    name = body["metadata"]["name"]
    status, answer = await cluster.call("PUT", f"{collection}/{name}", body)
    group, plural = collection.split("/")[2], collection.rsplit("/", maxsplit=1)[-1]
    assert (status, answer["message"]) == (
        422,
        f'{plural}.{group} "{name}" is invalid: metadata.resourceVersion: Invalid value: 0: '
        "must be specified for an update",
    )
    path, zero = f"{collection}/{name}", {"metadata": {"resourceVersion": "0"}}
    unversioned = created | {"metadata": created["metadata"] | zero["metadata"]}
    assert await cluster.call("PUT", path, unversioned) == (status, answer)
    assert await cluster.call("PATCH", path, zero, content_type=MERGE) == (status, answer)
    nothing = {"metadata": {"resourceVersion": None}}
    assert await cluster.call("PATCH", path, nothing, content_type=MERGE) == (status, answer)
    await cluster.ok("PUT", path, created)


async def test_version_0_of_the_status_or_scale_of_a_custom_resource_is_no_version():
    cluster = Cluster()
    paths = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    await cluster.ok("POST", DEFINITIONS, definition(subresources={"status": {}, "scale": paths}))
    created = await cluster.ok("POST", CARS, car())
    zero = {"name": "a", "resourceVersion": "0"}
    path = f"{CARS}/a"
    scale = {"spec": {"replicas": 2}, "metadata": zero}
    for sent, where in ((created | {"metadata": zero}, "status"), (scale, "scale")):
        code, answer = await cluster.call("PUT", f"{path}/{where}", sent)
        assert (code, answer["details"]["causes"][0]["field"]) == (422, "metadata.resourceVersion")
    found = await cluster.ok("PUT", f"{path}/scale", {"spec": {"replicas": 2}})
    assert found["spec"] == {"replicas": 2}, "a Scale without a version is for any version"


@pytest.mark.parametrize("version", ["0", "00", ""])
@pytest.mark.parametrize("where", ["", "/status", "/scale"])
@pytest.mark.parametrize("method", ["PUT", "PATCH"])
async def test_version_0_of_other_kinds_is_for_any_version(method, where, version):
    cluster = Cluster()
    template = {"metadata": {"labels": {"a": "b"}}, "spec": pod()["spec"]}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    sets = "/apis/apps/v1/namespaces/default/replicasets"
    created = await cluster.ok("POST", sets, {"metadata": {"name": "a"}, "spec": spec})
    await cluster.ok("PATCH", f"{sets}/a", {"spec": {"replicas": 3}}, content_type=MERGE)
    sent = created | {"metadata": {"name": "a", "resourceVersion": version}}
    sent |= {"spec": {"replicas": 5}} if where == "/scale" else {}
    body = {"metadata": {"resourceVersion": version}} if method == "PATCH" else sent
    if where == "/scale" and method == "PUT":
        body |= {"kind": "Scale", "apiVersion": "autoscaling/v1"}
    form = {"content_type": MERGE} if method == "PATCH" else {}
    found = await cluster.ok(method, f"{sets}/a{where}", body, **form)
    assert found["metadata"]["resourceVersion"] == str(cluster.server.store.version)


@pytest.mark.parametrize("version", ["abc", "-1", "1.5", str(2**64)])
async def test_a_version_that_is_no_number_is_that_of_no_object(version):
    cluster, old = await _created()
    old["metadata"]["resourceVersion"] = version
    found = await cluster.call("PUT", f"{CONFIG_MAPS}/a", old)
    assert found == failure(409, "Conflict", MODIFIED, A_CONFIG_MAP)


async def test_a_precondition_of_version_0_never_holds():
    cluster, _ = await _created()
    body = {"preconditions": {"resourceVersion": "0"}}
    code, answer = await cluster.call("DELETE", f"{CONFIG_MAPS}/a", body)
    assert (code, answer["reason"]) == (409, "Conflict")


async def test_a_dry_run_shows_the_change_and_keeps_the_object():
    cluster, old = await _created()
    query = {"dryRun": "All"}
    shown = await cluster.ok("PUT", f"{CONFIG_MAPS}/a", config_map("a", k="w"), query=query)
    assert shown["data"] == {"k": "w"}
    assert await cluster.ok("GET", f"{CONFIG_MAPS}/a") == old


async def test_creation_time_is_immutable():
    cluster, old = await _created()
    old["metadata"]["creationTimestamp"] = "2020-01-01T00:00:00Z"
    status, body = await cluster.call("PUT", f"{CONFIG_MAPS}/a", old)
    assert (status, body["details"]["causes"][0]["field"]) == (422, "metadata.creationTimestamp")


class TestStatus:
    """The object itself and its status are written by different calls."""

    async def test_a_write_of_the_object_keeps_the_status(self):
        cluster = Cluster()
        created = await cluster.ok("POST", PODS, pod())
        body = created | {"status": {"phase": "Failed"}}
        assert (await cluster.ok("PUT", f"{PODS}/a", body))["status"] == created["status"]

    async def test_a_write_of_the_status_keeps_the_object(self):
        cluster = Cluster()
        created = await cluster.ok("POST", PODS, pod())
        body = created | {"spec": {"containers": []}, "status": {"phase": "Running"}}
        found = await cluster.ok("PUT", f"{PODS}/a/status", body)
        assert found["spec"] == created["spec"]
        assert found["status"]["phase"] == "Running"

    async def test_a_scheduler_patches_the_condition_pod_scheduled(self):
        cluster = Cluster()
        await cluster.ok("POST", PODS, pod())
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": "0/1 nodes are available",
            "lastProbeTime": None,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        path = f"{PODS}/a/status"
        patches = [
            {"status": {"conditions": [condition], "nominatedNodeName": "n1"}},
            {
                "status": {
                    "$setElementOrder/conditions": [{"type": "PodScheduled"}],
                    "conditions": [{"type": "PodScheduled", "message": "0/2 nodes"}],
                    "nominatedNodeName": None,
                }
            },
        ]
        first, second = [
            (await cluster.ok("PATCH", path, patch, content_type=STRATEGIC))["status"]
            for patch in patches
        ]
        assert first["nominatedNodeName"] == "n1"
        kept = {key: value for key, value in condition.items() if value is not None}
        assert [_without_nulls(each) for each in first["conditions"]] == [kept]
        assert "nominatedNodeName" not in second
        assert [_without_nulls(each) for each in second["conditions"]] == [
            kept | {"message": "0/2 nodes"}
        ]

    async def test_an_unknown_subresource_is_not_found(self):
        cluster = Cluster()
        await cluster.ok("POST", PODS, pod())
        status, _ = await cluster.call("GET", f"{PODS}/a/logs")
        assert status == 404


PATCHED = [
    pytest.param(
        MERGE,
        {"data": {"k": None, "new": "1"}},
        {"new": "1"},
        id="merge patch: null deletes, the rest merges",
    ),
    pytest.param(
        JSON_PATCH,
        [
            {"op": "test", "path": "/data/k", "value": "v"},
            {"op": "add", "path": "/data/new", "value": "1"},
        ],
        {"k": "v", "new": "1"},
        id="JSON patch: operations in order",
    ),
    pytest.param(
        STRATEGIC,
        {"data": {"$patch": "replace", "new": "1"}},
        {"new": "1"},
        id="strategic merge patch: directives",
    ),
]


@pytest.mark.parametrize(("content_type", "patch", "expected"), PATCHED)
async def test_patches_of_each_type_change_the_data(content_type, patch, expected):
    cluster, _ = await _created()
    found = await cluster.ok("PATCH", f"{CONFIG_MAPS}/a", patch, content_type=content_type)
    assert found["data"] == expected
    assert await cluster.ok("GET", f"{CONFIG_MAPS}/a") == found


async def test_a_strategic_patch_merges_containers_by_name():
    cluster = Cluster()
    await cluster.ok("POST", PODS, pod())
    patch = {"spec": {"containers": [{"name": "c", "image": "nginx:2"}]}}
    found = await cluster.ok("PATCH", f"{PODS}/a", patch, content_type=STRATEGIC)
    assert [each["image"] for each in found["spec"]["containers"]] == ["nginx:2"]
    assert found["metadata"]["generation"] == 2


REFUSED = [
    pytest.param(
        JSON_PATCH,
        [{"op": "test", "path": "/data/k", "value": "other"}],
        422,
        "Invalid",
        id="a JSON patch whose test fails",
    ),
    pytest.param(
        JSON_PATCH,
        [{"op": "remove", "path": "/data/none"}],
        422,
        "Invalid",
        id="a JSON patch of a path that is not there",
    ),
    pytest.param(
        JSON_PATCH, [{"op": "jump", "path": "/data"}], 400, "BadRequest", id="no such operation"
    ),
    pytest.param(JSON_PATCH, {"data": {}}, 400, "BadRequest", id="a JSON patch that is no list"),
    pytest.param(MERGE, [1], 400, "BadRequest", id="a merge patch that is no object"),
    pytest.param(MERGE, {"metadata": {"name": "b"}}, 400, "BadRequest", id="a patch that renames"),
    pytest.param(
        MERGE,
        {"metadata": {"resourceVersion": "1"}},
        409,
        "Conflict",
        id="a patch for another version",
    ),
    pytest.param(MERGE, {"kind": "Secret"}, 400, "BadRequest", id="a patch that changes the kind"),
    pytest.param(MERGE, {"data": {"k": 1}}, 400, "BadRequest", id="a patch to a wrong type"),
    pytest.param(
        "application/apply-patch+yaml", {}, 422, "Invalid", id="an apply by nobody in particular"
    ),
    pytest.param("application/json", {}, 415, "UnsupportedMediaType", id="no patch type"),
]


@pytest.mark.parametrize(("content_type", "patch", "code", "reason"), REFUSED)
async def test_faulty_patches_are_refused_and_change_nothing(content_type, patch, code, reason):
    cluster, old = await _created()
    status, body = await cluster.call("PATCH", f"{CONFIG_MAPS}/a", patch, content_type=content_type)
    assert (status, body["reason"]) == (code, reason)
    assert await cluster.ok("GET", f"{CONFIG_MAPS}/a") == old


async def test_the_refusal_of_a_json_patch_does_not_quote_the_object():
    cluster, _ = await _created()
    patch = [{"op": "add", "path": "/metadata/labels/x", "value": "y"}]
    _, body = await cluster.call("PATCH", f"{CONFIG_MAPS}/a", patch, content_type=JSON_PATCH)
    words = "the server rejected our request due to an error in our request"
    assert body["message"] == f"{words}: member 'labels' not found"


async def test_a_patch_of_kubectl_cordon_makes_the_node_unschedulable():
    cluster = Cluster()
    await cluster.ok("POST", NODES, {"metadata": {"name": "n1"}})
    patch = {"spec": {"unschedulable": True}}
    found = await cluster.ok("PATCH", f"{NODES}/n1", patch, content_type=STRATEGIC)
    assert found["spec"]["unschedulable"] is True


def _without_nulls(condition: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in condition.items() if value is not None}


_json = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from(["x", "y"]),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
    max_leaves=8,
)
_object = st.dictionaries(st.sampled_from("abc"), _json, max_size=3)


@given(_object, _object)
@settings(max_examples=50)
def test_a_merge_patch_applied_twice_is_applied_once(target, patch):
    once = merge_patch(target, patch)
    assert merge_patch(once, patch) == once


@given(_object, _object)
@settings(max_examples=50)
def test_a_merge_patch_sets_or_removes_every_key_it_names(target, patch):
    merged = merge_patch(target, patch)
    for key, value in patch.items():
        if value is None:
            assert key not in merged
        elif not isinstance(value, dict):
            assert merged[key] == value
    assert all(merged[key] == target[key] for key in target if key not in patch)
