"""The subresource scale, of built-in kinds and of custom resources."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox.tests.apiserver.crd import CARS, DEFINITIONS, car, definition
from sandbox.tests.apiserver.harness import JSON_PATCH, MERGE, STRATEGIC, Cluster

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
WEB = f"{DEPLOYMENTS}/web"
DEPLOYMENT: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web"},
    "spec": {
        "replicas": 3,
        "selector": {"matchLabels": {"app": "web", "tier": "a"}},
        "template": {
            "metadata": {"labels": {"app": "web", "tier": "a"}},
            "spec": {"containers": [{"name": "main", "image": "nginx:1"}]},
        },
    },
}
SCALE = {
    "kind": "Scale",
    "apiVersion": "autoscaling/v1",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {"replicas": 5},
}


async def with_deployment() -> Cluster:
    cluster = Cluster()
    await cluster.ok("POST", DEPLOYMENTS, DEPLOYMENT)
    return cluster


async def test_a_scale_shows_wanted_and_current_replicas_and_the_selector():
    cluster = await with_deployment()
    await cluster.ok("PATCH", f"{WEB}/status", {"status": {"replicas": 2}}, content_type=MERGE)
    found = await cluster.ok("GET", WEB)
    meta = found["metadata"]
    assert await cluster.ok("GET", f"{WEB}/scale") == {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {
            key: meta[key]
            for key in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
        },
        "spec": {"replicas": 3},
        "status": {"replicas": 2, "selector": "app=web,tier=a"},
    }


async def test_a_written_scale_changes_the_object_and_its_generation():
    cluster = await with_deployment()
    scale = await cluster.ok("PUT", f"{WEB}/scale", SCALE)
    found = await cluster.ok("GET", WEB)
    assert (found["spec"]["replicas"], found["metadata"]["generation"]) == (5, 2)
    assert scale["spec"] == {"replicas": 5}
    assert scale["metadata"]["resourceVersion"] == found["metadata"]["resourceVersion"]


@pytest.mark.parametrize(
    ("content_type", "patch"),
    [
        pytest.param(MERGE, {"spec": {"replicas": 7}}, id="a merge patch"),
        pytest.param(STRATEGIC, {"spec": {"replicas": 7}}, id="a strategic merge patch"),
        pytest.param(
            JSON_PATCH,
            [{"op": "replace", "path": "/spec/replicas", "value": 7}],
            id="a JSON patch",
        ),
    ],
)
async def test_a_scale_is_patched(content_type, patch):
    cluster = await with_deployment()
    await cluster.ok("PATCH", f"{WEB}/scale", patch, content_type=content_type)
    assert (await cluster.ok("GET", WEB))["spec"]["replicas"] == 7


APPLY = "application/apply-patch+yaml"


def owners(obj: dict[str, Any]) -> set[tuple[str, str, str]]:
    """Return who manages the number of replicas: (manager, operation, subresource)."""
    return {
        (each["manager"], each["operation"], each.get("subresource", ""))
        for each in obj["metadata"]["managedFields"]
        if "f:replicas" in each["fieldsV1"].get("f:spec", {})
    }


async def test_an_applied_scale_belongs_to_the_applier_in_the_object_itself():
    cluster = await applied_deployment()
    refused = await applied_scale(cluster, 5)
    assert refused == (
        409,
        'Apply failed with 1 conflict: conflict with "owner": .spec.replicas',
    )
    assert (await cluster.ok("GET", WEB))["spec"]["replicas"] == 3
    assert await applied_scale(cluster, 5, force="true") == (200, None)
    found = await cluster.ok("GET", WEB)
    assert found["spec"]["replicas"] == 5
    assert owners(found) == {("scaler", "Apply", "scale")}
    [entry] = [each for each in found["metadata"]["managedFields"] if "subresource" in each]
    assert (entry["apiVersion"], entry["fieldsV1"]) == (
        "apps/v1",
        {"f:spec": {"f:replicas": {}}},
    )
    # The owner of the rest may go on, as long as it leaves the number alone.
    rest = DEPLOYMENT | {"spec": {k: v for k, v in DEPLOYMENT["spec"].items() if k != "replicas"}}
    query = {"fieldManager": "owner"}
    found = await cluster.ok("PATCH", WEB, rest, content_type=APPLY, query=query)
    assert found["spec"]["replicas"] == 5


async def test_managers_that_apply_the_same_scale_share_it():
    cluster = await applied_deployment()
    assert await applied_scale(cluster, 3) == (200, None)
    found = await cluster.ok("GET", WEB)
    assert owners(found) == {("scaler", "Apply", "scale"), ("owner", "Apply", "")}


async def test_a_faulty_apply_of_a_scale_is_refused():
    cluster = await applied_deployment()
    assert (await applied_scale(cluster, -1, force="true"))[0] == 422
    status, _ = await cluster.call("PATCH", f"{WEB}/scale", SCALE, content_type=APPLY)
    assert status == 422, "an apply needs the name of a manager"
    query = {"fieldManager": "scaler"}
    other = f"{DEPLOYMENTS}/none/scale"
    scale = SCALE | {"metadata": {"name": "none"}}
    status, _ = await cluster.call("PATCH", other, scale, content_type=APPLY, query=query)
    assert status == 404, "an apply makes no object for a scale"


async def applied_deployment() -> Cluster:
    cluster = Cluster()
    query = {"fieldManager": "owner"}
    assert (await cluster.call("PATCH", WEB, DEPLOYMENT, content_type=APPLY, query=query))[0] == 201
    return cluster


async def applied_scale(cluster: Cluster, replicas: int, **query: str) -> tuple[int, str | None]:
    """Apply a number of replicas as ``scaler``; return the status and the message."""
    scale = SCALE | {"spec": {"replicas": replicas}}
    query = {"fieldManager": "scaler", **query}
    status, found = await cluster.call(
        "PATCH", f"{WEB}/scale", scale, content_type=APPLY, query=query
    )
    return status, found.get("message")


async def test_a_dry_run_scales_nothing():
    cluster = await with_deployment()
    found = await cluster.ok("PUT", f"{WEB}/scale", SCALE, query={"dryRun": "All"})
    assert found["spec"] == {"replicas": 5}
    assert (await cluster.ok("GET", WEB))["spec"]["replicas"] == 3


@pytest.mark.parametrize(
    ("scale", "code", "message"),
    [
        pytest.param(
            SCALE | {"spec": {"replicas": -1}},
            422,
            'Scale.autoscaling "web" is invalid: spec.replicas: Invalid value: -1: must be '
            "greater than or equal to 0",
            id="there are no negative replicas",
        ),
        pytest.param(
            SCALE | {"metadata": {"name": "web", "resourceVersion": "1"}},
            409,
            'Operation cannot be fulfilled on deployments.apps "web": the object has been '
            "modified; please apply your changes to the latest version and try again",
            id="a scale of another version",
        ),
        pytest.param(
            SCALE | {"metadata": {"name": "other"}},
            400,
            "the name of the object (other) does not match the name on the URL (web)",
            id="a scale of another object",
        ),
        pytest.param(
            SCALE | {"kind": "Deployment"},
            400,
            'Deployment in version "autoscaling/v1" cannot be handled as a Scale: expected kind '
            '"Scale" of version "autoscaling/v1"',
            id="not a scale",
        ),
    ],
)
async def test_a_faulty_scale_is_refused(scale, code, message):
    cluster = await with_deployment()
    status, found = await cluster.call("PUT", f"{WEB}/scale", scale)
    assert (status, found["message"]) == (code, message)


async def test_the_scale_of_a_custom_resource_reads_the_paths_of_its_definition():
    paths = {
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    }
    cluster = Cluster()
    await cluster.ok("POST", DEFINITIONS, definition(subresources={"status": {}, "scale": paths}))
    await cluster.ok("POST", CARS, car())
    status = {"status": {"replicas": 1, "selector": "a=b"}}
    await cluster.ok("PATCH", f"{CARS}/a/status", status, content_type=MERGE)
    found = await cluster.ok("GET", f"{CARS}/a/scale")
    assert (found["spec"], found["status"]) == ({}, {"replicas": 1, "selector": "a=b"})
    await cluster.ok("PATCH", f"{CARS}/a/scale", {"spec": {"replicas": 2}}, content_type=MERGE)
    assert (await cluster.ok("GET", f"{CARS}/a"))["spec"]["replicas"] == 2


async def test_discovery_names_the_group_of_a_scale():
    listed = (await Cluster().ok("GET", "/apis/apps/v1"))["resources"]
    [entry] = [each for each in listed if each["name"] == "deployments/scale"]
    assert entry == {
        "name": "deployments/scale",
        "singularName": "",
        "namespaced": True,
        "group": "autoscaling",
        "version": "v1",
        "kind": "Scale",
        "verbs": ["get", "patch", "update"],
    }


TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


async def test_a_scale_is_shown_as_a_table():
    cluster = await with_deployment()
    table = await cluster.ok("GET", f"{WEB}/scale", accept=TABLE)
    scale = await cluster.ok("GET", f"{WEB}/scale")
    columns = [(each["name"], each["type"], each["format"]) for each in table["columnDefinitions"]]
    assert columns == [
        ("Name", "string", ""),
        ("Desired", "integer", ""),
        ("Available", "integer", ""),
        ("Age", "string", ""),
    ]
    (row,) = table["rows"]
    assert row["cells"] == ["web", 3, 0, "0s"]
    assert row["object"]["metadata"] == scale["metadata"]
    assert table["metadata"] == {"resourceVersion": scale["metadata"]["resourceVersion"]}


async def test_a_changed_scale_is_shown_as_a_table():
    cluster = await with_deployment()
    table = await cluster.ok("PUT", f"{WEB}/scale", SCALE, accept=TABLE)
    assert table["rows"][0]["cells"] == ["web", 5, 0, "0s"]


async def test_the_table_of_the_scale_of_a_custom_resource_has_the_columns_of_its_definition():
    cluster = Cluster()
    paths = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    await cluster.ok("POST", DEFINITIONS, definition(subresources={"status": {}, "scale": paths}))
    await cluster.ok("POST", CARS, car("beetle"))
    table = await cluster.ok("GET", f"{CARS}/beetle/scale", accept=TABLE)
    columns = [(each["name"], each["type"], each["format"]) for each in table["columnDefinitions"]]
    assert columns == [
        ("Name", "string", "name"),
        ("Desired", "integer", ""),
        ("Available", "integer", ""),
        ("Age", "date", ""),
    ]
    assert table["rows"][0]["cells"] == ["beetle", 0, 0, "0s"]


async def test_a_client_may_ask_for_the_metadata_of_a_scale_alone():
    cluster = await with_deployment()
    form = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
    partial = await cluster.ok("GET", f"{WEB}/scale", accept=form)
    assert (partial["kind"], partial["metadata"]["name"]) == ("PartialObjectMetadata", "web")
    assert "spec" not in partial


async def test_a_binding_has_no_form_of_a_table():
    cluster = await with_deployment()
    path = "/api/v1/namespaces/default/pods/a/binding"
    reply = await cluster.reply("POST", path, {"target": {"name": "n"}}, accept=TABLE)
    assert reply.status == 406
