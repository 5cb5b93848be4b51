"""Autoscalers: one store, two API versions; the rules are those of v2 in both.

How one form is made of the other is in scheduler/tests/kinds/test_autoscaler_v1.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from moorage.kinds.workloads.autoscaler_v1 import CARRIED
from moorage_sandbox.apiserver.protobuf.envelope import write_object
from moorage_sandbox.apiserver.wire.negotiate import PROTOBUF
from sandbox.tests.apiserver.harness import (
    ADMIN,
    JSON_PATCH,
    MERGE,
    STRATEGIC,
    Cluster,
    Watch,
    namespace,
)

V1 = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers"
V2 = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
APPLY = "application/apply-patch+yaml"
TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
SNAPSHOT = "/moorage.dev/v1/snapshot"
TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}


def cpu(percent: int) -> dict[str, Any]:
    target = {"type": "Utilization", "averageUtilization": percent}
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


def memory(amount: str) -> dict[str, Any]:
    target = {"type": "AverageValue", "averageValue": amount}
    return {"type": "Resource", "resource": {"name": "memory", "target": target}}


def v1(name: str = "web", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "autoscaling/v1",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name},
        "spec": {"scaleTargetRef": TARGET, "maxReplicas": 3, **spec},
    }


def v2(name: str = "web", **spec: Any) -> dict[str, Any]:
    return v1(name, **spec) | {"apiVersion": "autoscaling/v2"}


CONDITION = {"type": "AbleToScale", "status": "True", "reason": "Ready"}
SEEN = {"type": "Resource", "resource": {"name": "cpu", "current": {"averageValue": "1"}}}
MEASURED = {"desiredReplicas": 2, "currentMetrics": [SEEN], "conditions": [CONDITION]}


async def with_status(cluster: Cluster, **spec: Any) -> dict[str, Any]:
    """Make an autoscaler that something has measured for."""
    await cluster.ok("POST", V2, v2(**spec))
    found: dict[str, Any] = await cluster.ok(
        "PATCH", f"{V2}/web/status", {"status": MEASURED}, content_type=MERGE
    )
    return found


async def test_an_autoscaler_created_in_v1_is_served_in_both_versions():
    cluster = Cluster()
    created = await cluster.ok("POST", V1, v1(targetCPUUtilizationPercentage=50))
    assert created["apiVersion"] == "autoscaling/v1"
    assert created["spec"] == {
        "scaleTargetRef": TARGET,
        "minReplicas": 1,
        "maxReplicas": 3,
        "targetCPUUtilizationPercentage": 50,
    }
    assert created["status"] == {"currentReplicas": 0, "desiredReplicas": 0}
    assert await cluster.ok("GET", f"{V1}/web") == created
    shown = await cluster.ok("GET", f"{V2}/web")
    assert shown == created | {
        "apiVersion": "autoscaling/v2",
        "spec": {
            "scaleTargetRef": TARGET,
            "minReplicas": 1,
            "maxReplicas": 3,
            "metrics": [cpu(50)],
        },
        "status": {"desiredReplicas": 0},
    }


async def test_a_list_and_its_items_carry_the_version_of_the_path():
    cluster = Cluster()
    await cluster.ok("POST", V1, v1("a"))
    await cluster.ok("POST", V2, v2("b"))
    for version, path in (("v1", V1), ("v2", V2)):
        found = await cluster.ok("GET", path)
        assert (found["apiVersion"], found["kind"]) == (
            f"autoscaling/{version}",
            "HorizontalPodAutoscalerList",
        )
        assert [(each["apiVersion"], each["metadata"]["name"]) for each in found["items"]] == [
            (f"autoscaling/{version}", "a"),
            (f"autoscaling/{version}", "b"),
        ]
    assert await cluster.names(V1, fieldSelector="metadata.name=b") == ["b"]


async def test_an_autoscaler_is_stored_once_for_both_versions():
    cluster = Cluster()
    await cluster.ok("POST", V1, v1())
    status, found = await cluster.call("POST", V2, v2())
    assert (status, found["reason"]) == (409, "AlreadyExists")
    await cluster.ok("DELETE", f"{V2}/web")
    assert (await cluster.call("GET", f"{V1}/web"))[0] == 404


async def test_a_watch_shows_changes_in_the_version_of_its_path():
    cluster = Cluster()
    watches: list[Watch] = [await cluster.watch(V1), await cluster.watch(V2)]
    await cluster.ok("POST", V2, v2(metrics=[cpu(60)]))
    await cluster.ok(
        "PATCH",
        f"{V1}/web",
        {"spec": {"targetCPUUtilizationPercentage": 70}},
        content_type=MERGE,
    )
    await cluster.ok("DELETE", f"{V1}/web")
    old = [await watches[0].event() for _ in range(3)]
    new = [await watches[1].event() for _ in range(3)]
    assert [each["type"] for each in old] == ["ADDED", "MODIFIED", "DELETED"]
    percents = [each["object"]["spec"]["targetCPUUtilizationPercentage"] for each in old]
    assert percents == [60, 70, 70]
    assert [each["object"]["spec"]["metrics"] for each in new] == [[cpu(60)], [cpu(70)], [cpu(70)]]
    for watch in watches:
        await watch.close()


async def test_a_bookmark_carries_the_version_of_its_watch():
    cluster = Cluster()
    watch = await cluster.watch(
        V1,
        sendInitialEvents="true",
        resourceVersionMatch="NotOlderThan",
        allowWatchBookmarks="true",
    )
    found = await watch.event()
    assert (found["type"], found["object"]["apiVersion"]) == ("BOOKMARK", "autoscaling/v1")
    await watch.close()


PATCHES = [
    pytest.param({"spec": {"targetCPUUtilizationPercentage": 70}}, MERGE, id="merge"),
    pytest.param({"spec": {"targetCPUUtilizationPercentage": 70}}, STRATEGIC, id="strategic"),
    pytest.param(
        [{"op": "replace", "path": "/spec/targetCPUUtilizationPercentage", "value": 70}],
        JSON_PATCH,
        id="json",
    ),
]


@pytest.mark.parametrize(("patch", "content_type"), PATCHES)
async def test_a_patch_in_v1_keeps_fields_that_only_v2_has(patch, content_type):
    cluster = Cluster()
    behavior = {"scaleDown": {"stabilizationWindowSeconds": 60}}
    before = await with_status(cluster, metrics=[memory("1Gi"), cpu(50)], behavior=behavior)
    await cluster.ok("PATCH", f"{V1}/web", patch, content_type=content_type)
    after = await cluster.ok("GET", f"{V2}/web")
    assert after["spec"] == before["spec"] | {"metrics": [memory("1Gi"), cpu(70)]}
    assert after["status"] == before["status"]
    assert "annotations" not in after["metadata"]


async def test_writing_back_an_unchanged_v1_autoscaler_changes_nothing():
    cluster = Cluster()
    before = await with_status(cluster, metrics=[memory("1Gi"), cpu(50)])
    read = await cluster.ok("GET", f"{V1}/web")
    carried = json.loads(read["metadata"]["annotations"][CARRIED])
    assert set(carried) == {"metrics", "currentMetrics", "conditions"}
    assert await cluster.ok("PUT", f"{V1}/web", read) == read
    assert await cluster.ok("GET", f"{V2}/web") == before


async def test_a_manifest_of_v1_replaces_the_spec_and_keeps_the_status():
    cluster = Cluster()
    before = await with_status(cluster, metrics=[memory("1Gi")])
    await cluster.ok("PUT", f"{V1}/web", v1(maxReplicas=5))
    after = await cluster.ok("GET", f"{V2}/web")
    assert (after["spec"]["metrics"], after["spec"]["maxReplicas"]) == ([cpu(80)], 5)
    assert after["status"] == before["status"]


async def test_the_status_of_v1_carries_conditions_and_leaves_the_spec():
    cluster = Cluster()
    before = await cluster.ok("POST", V2, v2(metrics=[memory("1Gi")]))
    sent = await cluster.ok("GET", f"{V1}/web")
    sent["metadata"]["annotations"] = {CARRIED: json.dumps({"conditions": [CONDITION]})}
    sent["status"] = {
        "currentReplicas": 1,
        "desiredReplicas": 2,
        "currentCPUUtilizationPercentage": 90,
    }
    shown = await cluster.ok("PUT", f"{V1}/web/status", sent)
    assert shown["status"] == sent["status"]
    after = await cluster.ok("GET", f"{V2}/web")
    seen = {"name": "cpu", "current": {"averageUtilization": 90}}
    assert after["spec"] == before["spec"]
    assert after["status"] == {
        "currentReplicas": 1,
        "desiredReplicas": 2,
        "currentMetrics": [{"type": "Resource", "resource": seen}],
        "conditions": [CONDITION],
    }


async def test_errors_of_a_v1_autoscaler_name_the_fields_of_v2():
    sent = v1(minReplicas=4)
    sent["metadata"]["annotations"] = {CARRIED: '{"metrics": [{"type": "Feelings"}]}'}
    status, found = await Cluster().call("POST", V1, sent)
    assert (status, [cause["field"] for cause in found["details"]["causes"]]) == (
        422,
        ["spec.maxReplicas", "spec.metrics[0].type"],
    )


@pytest.mark.parametrize(
    ("path", "body", "text"),
    [
        pytest.param(V1, v2(), 'expected kind "HorizontalPodAutoscaler" of version', id="v2 to v1"),
        pytest.param(V2, v1(), 'expected kind "HorizontalPodAutoscaler" of version', id="v1 to v2"),
        pytest.param(V1, v1(metrics=[]), 'unknown field "spec.metrics"', id="v1 has no metrics"),
    ],
)
async def test_a_body_of_another_version_than_the_path_is_refused(path, body, text):
    status, found = await Cluster().call("POST", path, body, query={"fieldValidation": "Strict"})
    assert status == 400
    assert text in found["message"]


@pytest.mark.parametrize("path", [V1, V2])
async def test_tables_are_the_same_in_both_versions(path):
    cluster = Cluster()
    await cluster.ok("POST", V2, v2(metrics=[memory("1Gi"), cpu(50)]))
    found = await cluster.ok("GET", path, accept=TABLE)
    assert [each["name"] for each in found["columnDefinitions"]] == [
        "Name",
        "Reference",
        "Targets",
        "MinPods",
        "MaxPods",
        "Replicas",
        "Age",
    ]
    [row] = found["rows"]
    targets = "memory: <unknown>/1Gi, cpu: <unknown>/50%"
    assert row["cells"][:-1] == ["web", "Deployment/web", targets, "1", "3", 0]


async def test_metadata_is_that_of_the_version_asked_for():
    cluster = Cluster()
    await cluster.ok("POST", V2, v2(metrics=[memory("1Gi")]))
    old = await cluster.ok("GET", f"{V1}/web", accept=METADATA)
    assert list(old["metadata"]["annotations"]) == [CARRIED]
    new = await cluster.ok("GET", f"{V2}/web", accept=METADATA)
    assert "annotations" not in new["metadata"]


class TestApply:
    """Managers name their fields in the version they wrote."""

    async def apply(
        self, cluster: Cluster, path: str, obj: Any, manager: str, **query: str
    ) -> tuple[int, Any]:
        found: tuple[int, Any] = await cluster.call(
            "PATCH",
            f"{path}/web",
            obj,
            content_type=APPLY,
            query={"fieldManager": manager, **query},
        )
        return found

    def managers(self, obj: Any) -> dict[str, tuple[str, Any]]:
        entries = obj["metadata"]["managedFields"]
        return {each["manager"]: (each["apiVersion"], each["fieldsV1"]) for each in entries}

    async def test_an_apply_is_kept_in_its_version_and_shown_in_both(self):
        cluster = Cluster()
        _, made = await self.apply(cluster, V1, v1(targetCPUUtilizationPercentage=50), "me")
        fields: dict[str, Any] = {
            "f:spec": {
                "f:maxReplicas": {},
                "f:scaleTargetRef": {},
                "f:targetCPUUtilizationPercentage": {},
            }
        }
        assert self.managers(made) == {"me": ("autoscaling/v1", fields)}
        assert self.managers(await cluster.ok("GET", f"{V2}/web")) == self.managers(made)

    async def test_an_apply_conflicts_with_a_manager_of_the_other_version(self):
        cluster = Cluster()
        await self.apply(cluster, V1, v1(targetCPUUtilizationPercentage=50), "one")
        status, found = await self.apply(cluster, V2, v2(metrics=[cpu(60)]), "two")
        assert (status, found["message"]) == (
            409,
            'Apply failed with 1 conflict: conflict with "one": '
            ".spec.targetCPUUtilizationPercentage",
        )
        status, found = await self.apply(cluster, V2, v2(metrics=[cpu(50)]), "two")
        assert status == 200
        assert set(self.managers(found)) == {"one", "two"}

    async def test_a_forced_apply_takes_a_field_from_a_manager_of_the_other_version(self):
        cluster = Cluster()
        await self.apply(cluster, V1, v1(targetCPUUtilizationPercentage=50), "one")
        _, found = await self.apply(cluster, V2, v2(metrics=[cpu(60)]), "two", force="true")
        assert found["spec"]["metrics"] == [cpu(60)]
        version, fields = self.managers(found)["one"]
        assert (version, set(fields["f:spec"])) == (
            "autoscaling/v1",
            {"f:maxReplicas", "f:scaleTargetRef"},
        )

    async def test_a_manager_that_moves_to_the_other_version_keeps_one_entry(self):
        cluster = Cluster()
        await self.apply(cluster, V1, v1(targetCPUUtilizationPercentage=50), "me")
        cluster.clock.advance(60)
        status, found = await self.apply(cluster, V2, v2(metrics=[cpu(60)]), "me")
        assert (status, found["spec"]["metrics"]) == (200, [cpu(60)])
        [entry] = found["metadata"]["managedFields"]
        assert (entry["apiVersion"], entry["time"]) == ("autoscaling/v2", "2026-01-01T00:01:00Z")
        assert set(entry["fieldsV1"]["f:spec"]) == {
            "f:maxReplicas",
            "f:metrics",
            "f:scaleTargetRef",
        }

    async def test_a_field_left_out_of_an_apply_in_the_other_version_is_removed(self):
        cluster = Cluster()
        sent = v1()
        sent["metadata"]["labels"] = {"mine": "1", "shared": "1"}
        await self.apply(cluster, V1, sent, "me")
        other = v2()
        other["metadata"]["labels"] = {"shared": "1"}
        await self.apply(cluster, V2, other, "other")
        sent = v2(minReplicas=2)
        _, found = await self.apply(cluster, V2, sent, "me")
        assert found["metadata"]["labels"] == {"shared": "1"}
        assert found["spec"]["minReplicas"] == 2

    async def test_a_write_takes_fields_from_managers_of_both_versions(self):
        cluster = Cluster()
        await self.apply(cluster, V1, v1(targetCPUUtilizationPercentage=50), "one")
        await self.apply(cluster, V2, v2(metrics=[cpu(50)]), "two")
        patch = {"spec": {"targetCPUUtilizationPercentage": 70}}
        for path in (V1, V2):
            await cluster.ok(
                "PATCH",
                f"{path}/web",
                patch if path is V1 else {"metadata": {"labels": {"a": "b"}}},
                content_type=MERGE,
                query={"fieldManager": "hand"},
            )
        found = await cluster.ok("GET", f"{V2}/web")
        entries = found["metadata"]["managedFields"]
        assert [
            (each["manager"], each["apiVersion"], each["fieldsV1"])
            for each in entries
            if each["manager"] == "hand"
        ] == [
            ("hand", "autoscaling/v1", {"f:spec": {"f:targetCPUUtilizationPercentage": {}}}),
            ("hand", "autoscaling/v2", {"f:metadata": {"f:labels": {".": {}, "f:a": {}}}}),
        ]
        fields = {each["manager"]: each["fieldsV1"]["f:spec"] for each in entries[:2]}
        assert {name: set(found) for name, found in fields.items()} == {
            "one": {"f:maxReplicas", "f:scaleTargetRef"},
            "two": {"f:maxReplicas", "f:scaleTargetRef"},
        }

    async def test_managers_of_a_version_no_longer_served_are_dropped(self):
        cluster = Cluster()
        _, found = await self.apply(cluster, V2, v2(), "me")
        entries = found["metadata"]["managedFields"]
        entries.append(entries[0] | {"manager": "old", "apiVersion": "autoscaling/v2beta2"})
        patch = {"metadata": {"managedFields": entries, "labels": {"a": "b"}}}
        found = await cluster.ok(
            "PATCH", f"{V2}/web", patch, content_type=MERGE, query={"fieldManager": "hand"}
        )
        assert set(self.managers(found)) == {"me", "hand"}


async def test_both_versions_are_discovered_and_v2_is_preferred():
    cluster = Cluster()
    found = await cluster.ok("GET", "/apis/autoscaling")
    assert found["versions"] == [
        {"groupVersion": "autoscaling/v2", "version": "v2"},
        {"groupVersion": "autoscaling/v1", "version": "v1"},
    ]
    assert found["preferredVersion"] == found["versions"][0]
    listed = await cluster.ok("GET", "/apis/autoscaling/v1")
    assert [each["name"] for each in listed["resources"]] == [
        "horizontalpodautoscalers",
        "horizontalpodautoscalers/status",
    ]
    accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    groups = (await cluster.ok("GET", "/apis", accept=accept))["items"]
    [group] = [each for each in groups if each["metadata"].get("name") == "autoscaling"]
    assert [each["version"] for each in group["versions"]] == ["v2", "v1"]


async def test_openapi_tells_the_fields_of_each_version():
    cluster = Cluster()
    document = await cluster.ok("GET", "/openapi/v3/apis/autoscaling/v1")
    schemas = document["components"]["schemas"]
    package = "io.k8s.api.autoscaling.v1"
    assert sorted(schemas[f"{package}.HorizontalPodAutoscalerSpec"]["properties"]) == [
        "maxReplicas",
        "minReplicas",
        "scaleTargetRef",
        "targetCPUUtilizationPercentage",
    ]
    reference = schemas[f"{package}.CrossVersionObjectReference"]
    assert reference["x-kubernetes-map-type"] == "atomic"
    document = await cluster.ok("GET", "/openapi/v3/apis/autoscaling/v2")
    reference = document["components"]["schemas"][
        "io.k8s.api.autoscaling.v2.CrossVersionObjectReference"
    ]
    assert "x-kubernetes-map-type" not in reference


async def test_a_snapshot_with_both_versions_stores_one_autoscaler():
    cluster = Cluster()
    source = Cluster()
    await with_status(source, metrics=[memory("1Gi"), cpu(50)])
    read = [await source.ok("GET", f"{path}/web") for path in (V1, V2)]
    answer = await cluster.ok(
        "POST", SNAPSHOT, {"begin": True, "objects": read, "store": True}, user=ADMIN
    )
    assert (answer["stored"], answer["present"], answer["faults"]) == (1, 1, [])
    found = await cluster.ok("GET", f"{V2}/web")
    assert (found["spec"], found["status"], found["metadata"]["uid"]) == (
        read[1]["spec"],
        read[1]["status"],
        read[1]["metadata"]["uid"],
    )


async def test_a_quota_counts_an_autoscaler_once():
    cluster = Cluster()
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "q"},
        "spec": {"hard": {"count/horizontalpodautoscalers.autoscaling": "1"}},
    }
    await cluster.ok("POST", "/api/v1/namespaces/default/resourcequotas", quota)
    await cluster.ok("POST", V1, v1("a"))
    status, found = await cluster.call("POST", V2, v2("b"))
    assert (status, found["reason"]) == (403, "Forbidden")
    found = await cluster.ok("GET", "/api/v1/namespaces/default/resourcequotas/q")
    assert found["status"]["used"] == {"count/horizontalpodautoscalers.autoscaling": "1"}


async def test_an_autoscaler_is_deleted_with_its_namespace():
    cluster = Cluster()
    await cluster.ok("POST", "/api/v1/namespaces", namespace("shop"))
    path = V1.replace("default", "shop")
    await cluster.ok("POST", path, v1())
    await cluster.ok("DELETE", "/api/v1/namespaces/shop")
    assert await cluster.names(path) == []


@pytest.mark.parametrize("version", ["v1", "v2"])
async def test_an_autoscaler_in_the_protobuf_of_kubectl_autoscale_is_created(version):
    """Field 4 of the spec is a number in v1, and a list of metrics in v2."""
    cluster = Cluster()
    body = write_object(
        v1(targetCPUUtilizationPercentage=50) if version == "v1" else v2(metrics=[cpu(50)])
    )
    await cluster.ok("POST", V1 if version == "v1" else V2, body, content_type=PROTOBUF)
    found = await cluster.ok("GET", f"{V2}/web")
    assert (found["spec"]["metrics"], found["spec"]["maxReplicas"]) == ([cpu(50)], 3)
