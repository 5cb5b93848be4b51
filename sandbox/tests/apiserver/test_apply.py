"""Server-side apply: who manages which field, who may change it, and what goes when nobody does.

Rows follow the documented behaviour of Kubernetes 1.36 (Server-Side Apply) and, for messages,
apimachinery pkg/util/managedfields.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from moorage.kinds.schema.field_sets import from_fields_v1, shown, to_fields_v1
from moorage.kinds.schema.layout import DEDUCED
from moorage.kinds.schema.merging import compare, fields_of
from moorage_sandbox.apiserver.served_kinds import served_kinds
from moorage_sandbox.apiserver.verbs.applying.managers import Writing, applied
from moorage_sandbox.apiserver.verbs.applying.updates import updated
from moorage_sandbox.apiserver.verbs.applying.versions import Version
from sandbox.tests.apiserver.crd import CARS, DEFINITIONS, car, definition
from sandbox.tests.apiserver.harness import (
    CONFIG_MAPS,
    MERGE,
    PODS,
    STRATEGIC,
    Cluster,
    clear_managers,
    config_map,
    pod,
)

APPLY = "application/apply-patch+yaml"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
ZERO = "2026-01-01T00:00:00Z"


async def apply(cluster: Cluster, path: str, obj: Any, manager: str, **query: str) -> Any:
    return await cluster.call(
        "PATCH", path, obj, content_type=APPLY, query={"fieldManager": manager, **query}
    )


async def applied_ok(cluster: Cluster, path: str, obj: Any, manager: str, **query: str) -> Any:
    status, found = await apply(cluster, path, obj, manager, **query)
    assert status in {200, 201}, found
    return found


def managers(obj: dict[str, Any]) -> dict[tuple[str, str], Any]:
    """Return (manager, operation) -> fieldsV1."""
    entries = obj["metadata"].get("managedFields", ())
    return {(each["manager"], each["operation"]): each["fieldsV1"] for each in entries}


def deployment(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "main", "image": "nginx:1"}]},
            },
        }
        | spec,
    }


async def test_an_apply_creates_the_object_and_manages_the_sent_fields():
    cluster = Cluster()
    status, found = await apply(cluster, f"{CONFIG_MAPS}/a", config_map(x="1"), "me")
    assert status == 201
    assert found["metadata"]["managedFields"] == [
        {
            "manager": "me",
            "operation": "Apply",
            "apiVersion": "v1",
            "time": ZERO,
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:data": {"f:x": {}}},
        }
    ]


async def test_the_same_apply_again_writes_nothing():
    cluster = Cluster()
    first = await applied_ok(cluster, f"{CONFIG_MAPS}/a", config_map(x="1"), "me")
    cluster.clock.advance(60)
    status, second = await apply(cluster, f"{CONFIG_MAPS}/a", config_map(x="1"), "me")
    assert (status, second) == (200, first)


async def test_defaulted_fields_have_no_manager():
    cluster = Cluster()
    found = await applied_ok(cluster, f"{PODS}/a", pod(), "me")
    assert found["spec"]["restartPolicy"] == "Always"
    assert managers(found) == {
        ("me", "Apply"): {
            "f:spec": {"f:containers": {'k:{"name":"c"}': {".": {}, "f:image": {}, "f:name": {}}}}
        }
    }


async def test_an_apply_that_changes_a_field_of_another_manager_conflicts():
    cluster = Cluster()
    path = f"{CONFIG_MAPS}/a"
    await applied_ok(cluster, path, config_map(x="1"), "one")
    assert await apply(cluster, path, config_map(x="2"), "two") == (
        409,
        {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": 'Apply failed with 1 conflict: conflict with "one": .data.x',
            "reason": "Conflict",
            "details": {
                "causes": [
                    {
                        "reason": "FieldManagerConflict",
                        "message": 'conflict with "one"',
                        "field": ".data.x",
                    }
                ]
            },
            "code": 409,
        },
    )


async def test_several_conflicts_are_listed_by_manager():
    cluster = Cluster()
    path = f"{CONFIG_MAPS}/a"
    await applied_ok(cluster, path, config_map(x="1", y="1"), "one")
    await applied_ok(cluster, path, config_map(z="1"), "two")
    await cluster.ok(
        "PATCH",
        path,
        {"data": {"w": "1"}},
        content_type=MERGE,
        query={"fieldManager": "hand"},
    )
    _, found = await apply(cluster, path, config_map(x="2", y="2", z="2", w="2"), "three")
    assert found["message"] == (
        'Apply failed with 4 conflicts: conflicts with "hand" using v1 at 2026-01-01T00:00:00Z:\n'
        '- .data.w\nconflicts with "one":\n- .data.x\n- .data.y\nconflicts with "two":\n- .data.z'
    )


async def test_a_forced_apply_takes_only_the_conflicting_field():
    cluster = Cluster()
    path = f"{CONFIG_MAPS}/a"
    await applied_ok(cluster, path, config_map(x="1", y="1"), "one")
    found = await applied_ok(cluster, path, config_map(x="2"), "two", force="true")
    assert found["data"] == {"x": "2", "y": "1"}
    assert managers(found) == {
        ("one", "Apply"): {"f:data": {"f:y": {}}},
        ("two", "Apply"): {"f:data": {"f:x": {}}},
    }


async def test_managers_that_apply_the_same_value_share_the_field():
    cluster = Cluster()
    path = f"{CONFIG_MAPS}/a"
    await applied_ok(cluster, path, config_map(x="1"), "one")
    found = await applied_ok(cluster, path, config_map(x="1"), "two")
    assert set(managers(found)) == {("one", "Apply"), ("two", "Apply")}
    # One leaves, and the field stays for the other; both leave, and it goes.
    found = await applied_ok(cluster, path, config_map(), "one")
    assert found["data"] == {"x": "1"}
    found = await applied_ok(cluster, path, config_map(), "two")
    assert not found.get("data")


async def test_a_field_left_out_of_the_next_apply_is_removed_and_fields_of_others_stay():
    cluster = Cluster()
    path = f"{CONFIG_MAPS}/a"
    await applied_ok(cluster, path, config_map(x="1", y="1"), "me")
    await cluster.ok("PATCH", path, {"data": {"z": "1"}}, content_type=MERGE)
    found = await applied_ok(cluster, path, config_map(y="1"), "me")
    assert found["data"] == {"y": "1", "z": "1"}


async def test_an_update_takes_changed_fields_from_their_managers():
    cluster = Cluster()
    path = f"{CONFIG_MAPS}/a"
    await applied_ok(cluster, path, config_map(x="1", y="1"), "me")
    found = await cluster.ok(
        "PATCH",
        path,
        {"data": {"x": "2", "y": None}},
        content_type=MERGE,
        user_agent="kubectl/v1.36.3 (linux/amd64)",
    )
    assert managers(found) == {("kubectl", "Update"): {"f:data": {"f:x": {}}}}


async def test_an_apply_to_an_object_without_managers_conflicts_with_its_first_fields():
    cluster = Cluster()
    path = f"{CONFIG_MAPS}/a"
    await cluster.ok("POST", CONFIG_MAPS, config_map(x="1", y="1"))
    await clear_managers(cluster, path)
    status, found = await apply(cluster, path, config_map(x="2"), "me")
    text = 'conflict with "before-first-apply" using v1 at 2026-01-01T00:00:00Z: .data.x'
    assert (status, found["message"]) == (409, f"Apply failed with 1 conflict: {text}")
    found = await applied_ok(cluster, path, config_map(x="1"), "me")
    assert managers(found) == {
        ("me", "Apply"): {"f:data": {"f:x": {}}},
        ("before-first-apply", "Update"): {"f:data": {"f:x": {}, "f:y": {}}},
    }


async def test_a_server_side_apply_of_kubectl_continues_its_client_side_apply():
    last = "kubectl.kubernetes.io/last-applied-configuration"
    cluster = Cluster()
    made = config_map(x="1")
    made["metadata"]["annotations"] = {last: json.dumps(config_map(x="1"))}
    await cluster.ok("POST", CONFIG_MAPS, made)
    await clear_managers(cluster, f"{CONFIG_MAPS}/a")
    other = await apply(cluster, f"{CONFIG_MAPS}/a", config_map(x="2"), "other")
    assert other[0] == 409
    found = await applied_ok(cluster, f"{CONFIG_MAPS}/a", config_map(x="2"), "kubectl")
    assert found["data"] == {"x": "2"}
    assert json.loads(found["metadata"]["annotations"][last])["data"] == {"x": "2"}


async def test_fields_of_a_client_side_apply_are_distinguished_from_other_writes():
    last = "kubectl.kubernetes.io/last-applied-configuration"
    cluster = Cluster()
    made = config_map(x="1", y="1")
    made["metadata"]["annotations"] = {last: json.dumps(config_map(x="1")), "other": "1"}
    await cluster.ok("POST", CONFIG_MAPS, made)
    await clear_managers(cluster, f"{CONFIG_MAPS}/a")
    found = await applied_ok(cluster, f"{CONFIG_MAPS}/a", config_map(z="1"), "me")
    assert managers(found) == {
        ("me", "Apply"): {"f:data": {"f:z": {}}},
        ("kubectl-client-side-apply", "Update"): {
            "f:data": {"f:x": {}},
            "f:metadata": {"f:annotations": {f"f:{last}": {}}},
        },
        ("before-first-apply", "Update"): {
            "f:data": {"f:y": {}},
            "f:metadata": {"f:annotations": {"f:other": {}}},
        },
    }


async def test_each_item_of_a_keyed_list_has_its_own_managers():
    cluster = Cluster()
    path = f"{DEPLOYMENTS}/web"
    await applied_ok(cluster, path, deployment(), "me")
    mesh = deployment()
    mesh["spec"] = {
        "template": {"spec": {"containers": [{"name": "proxy", "image": "envoy:1"}]}},
    }
    found = await applied_ok(cluster, path, mesh, "mesh")
    names = [c["name"] for c in found["spec"]["template"]["spec"]["containers"]]
    assert sorted(names) == ["main", "proxy"]
    mesh["spec"] = {}
    found = await applied_ok(cluster, path, mesh, "mesh")
    names = [c["name"] for c in found["spec"]["template"]["spec"]["containers"]]
    assert names == ["main"]


async def test_port_entries_are_keyed_by_number_and_protocol_with_default_tcp():
    cluster = Cluster()
    sent = pod()
    sent["spec"]["containers"][0]["ports"] = [
        {"containerPort": 53},
        {"containerPort": 53, "protocol": "UDP"},
    ]
    found = await applied_ok(cluster, f"{PODS}/a", sent, "me")
    container = managers(found)["me", "Apply"]["f:spec"]["f:containers"]['k:{"name":"c"}']
    assert sorted(container["f:ports"]) == [
        'k:{"containerPort":53,"protocol":"TCP"}',
        'k:{"containerPort":53,"protocol":"UDP"}',
    ]
    again = await applied_ok(cluster, f"{PODS}/a", sent, "me")
    assert again == found


async def test_replicas_stay_when_the_applier_stops_sending_them_after_a_scale():
    cluster = Cluster()
    path = f"{DEPLOYMENTS}/web"
    await applied_ok(cluster, path, deployment(replicas=3), "me")
    await cluster.ok(
        "PATCH",
        path,
        {"spec": {"replicas": 7}},
        content_type=STRATEGIC,
        query={"fieldManager": "scaler"},
    )
    status, found = await apply(cluster, path, deployment(replicas=3), "me")
    assert (status, found["message"]) == (
        409,
        'Apply failed with 1 conflict: conflict with "scaler" using apps/v1 at '
        "2026-01-01T00:00:00Z: .spec.replicas",
    )
    found = await applied_ok(cluster, path, deployment(), "me")
    assert found["spec"]["replicas"] == 7


async def test_fields_of_the_status_have_managers_of_their_own():
    cluster = Cluster()
    await applied_ok(cluster, f"{PODS}/a", pod(), "me")
    await cluster.ok(
        "PATCH",
        f"{PODS}/a/status",
        {"status": {"message": "hello"}},
        content_type=STRATEGIC,
        query={"fieldManager": "kubelet"},
    )
    found = await cluster.ok("GET", f"{PODS}/a")
    [entry] = [e for e in found["metadata"]["managedFields"] if e["manager"] == "kubelet"]
    assert (entry["subresource"], entry["fieldsV1"]) == ("status", {"f:status": {"f:message": {}}})
    status = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}
    body = status | {"status": {"message": "other"}}
    code, refused = await apply(cluster, f"{PODS}/a/status", body, "me")
    assert code == 409
    assert 'conflict with "kubelet" with subresource "status" using v1' in refused["message"]


async def test_a_dry_run_of_an_apply_shows_the_result_and_stores_nothing():
    cluster = Cluster()
    path = f"{CONFIG_MAPS}/a"
    found = await applied_ok(cluster, path, config_map(x="1"), "me", dryRun="All")
    assert found["data"] == {"x": "1"}
    assert (await cluster.call("GET", path))[0] == 404
    await applied_ok(cluster, path, config_map(x="1"), "me")
    found = await applied_ok(cluster, path, config_map(x="2"), "me", dryRun="All")
    assert found["data"] == {"x": "2"}
    assert (await cluster.ok("GET", path))["data"] == {"x": "1"}


async def test_an_apply_in_yaml_equals_the_apply_in_json():
    body = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {x: 2001-01-01, 1: 'no'}\n"
    found = await applied_ok(Cluster(), f"{CONFIG_MAPS}/a", body, "me")
    assert found["data"] == {"x": "2001-01-01", "1": "no"}


@pytest.mark.parametrize(
    ("body", "query", "code", "message"),
    [
        pytest.param(
            config_map(),
            {},
            422,
            'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required '
            "for apply patch",
            id="a manager has a name",
        ),
        pytest.param(
            config_map() | {"metadata": {"name": "a", "managedFields": [{"manager": "x"}]}},
            {"fieldManager": "me"},
            400,
            "metadata.managedFields must be nil",
            id="managers are not applied",
        ),
        pytest.param(
            b"a: &x [*x]\n",
            {"fieldManager": "me"},
            400,
            "error decoding YAML: line 1, column 8: anchor 'x' value contains itself",
            id="yaml does not refer to itself",
        ),
        pytest.param(
            b"a: [",
            {"fieldManager": "me"},
            400,
            None,
            id="yaml is yaml",
        ),
    ],
)
async def test_an_apply_that_cannot_be_read_is_refused(body, query, code, message):
    status, found = await Cluster().call(
        "PATCH", f"{CONFIG_MAPS}/a", body, content_type=APPLY, query=query
    )
    assert status == code
    assert message is None or found["message"] == message


async def test_an_apply_with_an_old_resource_version_conflicts():
    cluster = Cluster()
    await applied_ok(cluster, f"{CONFIG_MAPS}/a", config_map(x="1"), "me")
    sent = config_map(x="2")
    sent["metadata"]["resourceVersion"] = "1"
    status, found = await apply(cluster, f"{CONFIG_MAPS}/a", sent, "me")
    assert (status, found["reason"]) == (409, "Conflict")


async def test_a_client_may_rewrite_and_clear_managed_fields():
    cluster = Cluster()
    path = f"{CONFIG_MAPS}/a"
    found = await applied_ok(cluster, path, config_map(x="1"), "me")
    entries = found["metadata"]["managedFields"]
    entries[0]["manager"] = "you"
    patch = {"metadata": {"managedFields": entries}}
    found = await cluster.ok("PATCH", path, patch, content_type=MERGE)
    assert managers(found) == {("you", "Apply"): {"f:data": {"f:x": {}}}}
    patch = {"metadata": {"managedFields": [{}]}}
    found = await cluster.ok("PATCH", path, patch, content_type=MERGE)
    assert "managedFields" not in found["metadata"]


@pytest.mark.parametrize("odd", [7, 0.5, True, "x", ["f:y"], None, {"f:y": 7}])
async def test_fields_that_are_no_set_leave_the_managers_as_they_are(odd: Any):
    cluster = Cluster()
    path = f"{CONFIG_MAPS}/a"
    found = await applied_ok(cluster, path, config_map(x="1"), "me")
    entries = found["metadata"]["managedFields"]
    entries[0] |= {"manager": "you", "fieldsV1": {"f:data": {"f:x": odd}}}
    patch = {"metadata": {"managedFields": entries}}
    found = await cluster.ok("PATCH", path, patch, content_type=MERGE)
    assert managers(found) == {("me", "Apply"): {"f:data": {"f:x": {}}}}


async def test_custom_resources_merge_as_their_schema_says():
    cluster = Cluster()
    await cluster.ok("POST", DEFINITIONS, definition())
    path = f"{CARS}/a"
    one = car(doors=[{"name": "left", "open": True}], tags=["fast"], extras={"a": {"b": 1}})
    await applied_ok(cluster, path, one, "one")
    two = car(doors=[{"name": "right"}], tags=["old"], extras={"a": {"c": 1}})
    found = await applied_ok(cluster, path, two, "two")
    assert found["spec"] == {
        "color": "red",
        "wheels": 4,
        "doors": [{"name": "left", "open": True}, {"name": "right", "open": False}],
        "tags": ["fast", "old"],
        "extras": {"a": {"b": 1, "c": 1}},
    }
    assert managers(found)["two", "Apply"] == {
        "f:spec": {
            "f:color": {},
            "f:doors": {'k:{"name":"right"}': {".": {}, "f:name": {}}},
            "f:extras": {"f:a": {"f:c": {}}},
            "f:tags": {'v:"old"': {}},
        }
    }
    found = await applied_ok(cluster, path, car(), "one")
    assert found["spec"]["doors"] == [{"name": "right", "open": False}]
    assert found["spec"]["tags"] == ["old"]
    assert found["spec"]["extras"] == {"a": {"c": 1}}


def test_every_kind_has_the_layout_of_an_object():
    for kind in served_kinds():
        assert kind.shape.layout().form == "object"


async def test_a_reference_marked_granular_has_a_manager_for_each_field():
    cluster, path = Cluster(), "/api/v1/persistentvolumes/v"
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": "default"}
    spec: dict[str, Any] = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "hostPath": {"path": "/x"},
    }
    volume = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "v"}}
    await applied_ok(cluster, path, volume | {"spec": spec | {"claimRef": claim}}, "a")
    bound = {"claimRef": {"name": "data", "uid": "7"}}
    found = await applied_ok(cluster, path, volume | {"spec": bound}, "b")
    assert found["spec"]["claimRef"] == claim | bound["claimRef"]
    assert managers(found)["b", "Apply"] == {"f:spec": {"f:claimRef": {"f:name": {}, "f:uid": {}}}}


def test_a_field_path_is_written_in_readable_form():
    path = ("f:spec", 'k:{"containerPort":80,"protocol":"TCP"}', "f:name")
    assert shown(path) == '.spec[containerPort=80,protocol="TCP"].name'
    assert shown(("f:metadata", "f:finalizers", 'v:"a/b"')) == '.metadata.finalizers[="a/b"]'


# Properties, on objects without a schema: objects field by field, everything else whole.

LEAVES = st.one_of(st.integers(0, 2), st.lists(st.integers(0, 1), max_size=2))
TREES = st.recursive(
    LEAVES, lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3), max_leaves=6
)
OBJECTS = st.dictionaries(st.sampled_from("xyz"), TREES, max_size=3)


def as_it_is(obj: Any) -> Any:
    return obj


def writing(manager: str) -> Writing:
    return Writing(
        manager=manager,
        version=Version("v1", DEDUCED, as_it_is, as_it_is),
        find=lambda name: None,
        subresource="",
        has_status=False,
        now=ZERO,
    )


def put(live: Any, config: Any, manager: str) -> Any:
    new, entries = applied(live, config | {"metadata": {}}, writing(manager), force=True)
    return new | {"metadata": {"managedFields": entries}}


def plain(obj: Any) -> Any:
    return {key: value for key, value in obj.items() if key != "metadata"}


@given(OBJECTS, OBJECTS)
def test_a_forced_apply_overlays_the_object(first, second):
    found = put(put(None, first, "one"), second, "two")
    assert plain(found) == overlaid(first, second)


def overlaid(below: Any, above: Any) -> Any:
    """Return one value laid over another: the reference."""
    if not isinstance(below, dict) or not isinstance(above, dict):
        return above
    both = {key: overlaid(below.get(key), value) for key, value in above.items()}
    return below | both


@given(OBJECTS, OBJECTS, OBJECTS)
@example({"z": {"c": {"a": 0}}}, {"z": {"c": {}}}, {"z": 1})
def test_a_manager_that_applies_nothing_removes_the_fields_it_alone_had(first, second, third):
    found = put(put(put(None, first, "one"), second, "two"), third, "one")
    gone = put(put(found, {}, "one"), {}, "two")
    assert fields_of(plain(gone), DEDUCED) <= {
        path for path in fields_of(plain(gone), DEDUCED) if not _value(gone, path)
    }


def _value(obj: Any, path: tuple[str, ...]) -> Any:
    for element in path:
        obj = obj[element[2:]]
    return obj


@given(OBJECTS, OBJECTS)
def test_an_update_makes_the_writer_manager_of_every_changed_field(first, second):
    live = put(None, first, "one")
    entries = updated(live, second | {"metadata": {}}, None, writing("hand"))
    changed, gone = compare(plain(live), second, DEDUCED)
    found = {e["manager"]: from_fields_v1(e["fieldsV1"]) for e in entries or ()}
    if live["metadata"]["managedFields"]:
        assert found.get("hand", frozenset()) == changed
        assert not found.get("one", frozenset()) & (changed | gone)


@given(OBJECTS)
def test_a_set_of_fields_is_read_as_it_was_written(obj):
    fields = fields_of(obj, DEDUCED)
    assert from_fields_v1(to_fields_v1(fields)) == fields


@pytest.mark.parametrize("mode", ["Strict", "Warn", "Ignore"])
@pytest.mark.parametrize(
    ("fields", "told"),
    [
        pytest.param({"nosuch": 1}, ".nosuch: field not declared in schema", id="one field"),
        pytest.param(
            {"nosuch": 1, "metadata": {"name": "m", "other": 1}},
            "errors:\n  .metadata.other: field not declared in schema\n  .nosuch: field not "
            "declared in schema",
            id="several fields",
        ),
    ],
)
async def test_a_field_that_is_not_in_the_schema_cannot_be_applied(mode, fields, told):
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}}
    query = {"fieldManager": "test", "fieldValidation": mode}
    path = f"{CONFIG_MAPS}/m"
    status, found = await Cluster().call(
        "PATCH", path, {**body, **fields}, query=query, content_type=APPLY
    )
    assert status == 500
    assert (
        found["message"] == f"failed to create typed patch object (m; v1, Kind=ConfigMap): {told}"
    )


async def test_owned_fields_are_written_in_the_order_of_the_api():
    """Programs compare the text of ``fieldsV1``: the mark of an element comes first."""
    reply = await Cluster().reply(
        "PATCH",
        f"{PODS}/a",
        pod(),
        query={"fieldManager": "m"},
        content_type="application/apply-patch+yaml",
    )
    assert isinstance(reply.body, bytes)
    containers = b'"f:containers":{"k:{\\"name\\":\\"c\\"}":{".":{},"f:'
    assert containers in reply.body
