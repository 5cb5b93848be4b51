"""Owners of fields from an object's first write on, whatever the client.

The expected entries are those that a cluster of 1.36 shows. Also: applies that change nothing. Does
not cover: other applies (`test_apply`).
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.api.resources import RESOURCE_CLAIMS
from moorage.kinds.schema.field_sets import from_fields_v1, to_fields_v1
from moorage.kinds.schema.field_trees import tree_of, with_paths, without_paths
from moorage.kinds.schema.layout import DEDUCED
from moorage.kinds.schema.merging import compare, fields_of
from moorage.kinds.schema.shape import BuiltinShape
from moorage_sandbox.apiserver.verbs.applying import updates
from moorage_sandbox.apiserver.verbs.applying.managers import Writing
from moorage_sandbox.apiserver.verbs.applying.notes import note
from moorage_sandbox.apiserver.verbs.applying.versions import Version
from sandbox.tests.apiserver.crd import CARS, DEFINITIONS, car, definition
from sandbox.tests.apiserver.harness import (
    CONFIG_MAPS,
    MERGE,
    NODES,
    PODS,
    STRATEGIC,
    Cluster,
    config_map,
    pod,
)
from sandbox.tests.apiserver.test_apply import (
    DEPLOYMENTS,
    OBJECTS,
    applied_ok,
    apply,
    deployment,
    managers,
    put,
    writing,
)

CREATOR = {"fieldManager": "kubectl-create"}


async def test_a_client_owns_what_it_creates_with_the_defaults():
    cluster = Cluster()
    body = deployment()
    body["metadata"]["labels"] = {"app": "web"}
    made = await cluster.ok("POST", DEPLOYMENTS, body, user_agent="kubectl/v1.36.3 (linux/amd64)")
    assert made["metadata"]["managedFields"] == [
        {
            "manager": "kubectl",
            "operation": "Update",
            "apiVersion": "apps/v1",
            "time": "2026-01-01T00:00:00Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": {
                "f:metadata": {"f:labels": {".": {}, "f:app": {}}},
                "f:spec": {
                    "f:progressDeadlineSeconds": {},
                    "f:replicas": {},
                    "f:revisionHistoryLimit": {},
                    "f:selector": {},
                    "f:strategy": {
                        "f:rollingUpdate": {".": {}, "f:maxSurge": {}, "f:maxUnavailable": {}},
                        "f:type": {},
                    },
                    "f:template": {
                        "f:metadata": {"f:labels": {".": {}, "f:app": {}}},
                        "f:spec": {
                            "f:containers": {
                                'k:{"name":"main"}': {
                                    ".": {},
                                    "f:image": {},
                                    "f:imagePullPolicy": {},
                                    "f:name": {},
                                    "f:resources": {},
                                    "f:terminationMessagePath": {},
                                    "f:terminationMessagePolicy": {},
                                }
                            },
                            "f:dnsPolicy": {},
                            "f:restartPolicy": {},
                            "f:schedulerName": {},
                            "f:securityContext": {},
                            "f:terminationGracePeriodSeconds": {},
                        },
                    },
                },
            },
        }
    ]


async def test_a_custom_resource_has_the_mark_of_each_object():
    cluster = Cluster()
    await cluster.ok("POST", DEFINITIONS, definition())
    made = await cluster.ok("POST", CARS, car(), query=CREATOR)
    fields = managers(made)["kubectl-create", "Update"]
    assert "." in fields["f:spec"]
    assert set(fields) == {"f:spec"}


async def test_each_client_owns_what_it_changed_last():
    cluster = Cluster()
    path = f"{CONFIG_MAPS}/a"
    await cluster.ok("POST", CONFIG_MAPS, config_map(x="1", y="1"), query=CREATOR)
    cluster.clock.advance(60)
    patch = {"data": {"y": "2", "z": "1"}}
    found = await cluster.ok("PATCH", path, patch, content_type=MERGE, query={"fieldManager": "b"})
    assert managers(found) == {
        ("kubectl-create", "Update"): {"f:data": {".": {}, "f:x": {}}},
        ("b", "Update"): {"f:data": {"f:y": {}, "f:z": {}}},
    }
    times = {each["manager"]: each["time"] for each in found["metadata"]["managedFields"]}
    assert times == {"kubectl-create": "2026-01-01T00:00:00Z", "b": "2026-01-01T00:01:00Z"}
    found = await cluster.ok("PUT", path, config_map(x="3"), query=CREATOR)
    assert managers(found) == {("kubectl-create", "Update"): {"f:data": {".": {}, "f:x": {}}}}
    assert found["metadata"]["managedFields"][0]["time"] == "2026-01-01T00:01:00Z"


async def test_a_write_that_changes_nothing_leaves_the_managers_alone():
    cluster = Cluster()
    made = await cluster.ok("POST", CONFIG_MAPS, config_map(x="1"), query=CREATOR)
    cluster.clock.advance(60)
    again = await cluster.ok(
        "PUT", f"{CONFIG_MAPS}/a", config_map(x="1"), query={"fieldManager": "b"}
    )
    assert again == made


async def test_an_apply_conflicts_with_the_client_that_created_the_object():
    cluster = Cluster()
    await cluster.ok("POST", CONFIG_MAPS, config_map(x="1"), query=CREATOR)
    status, found = await apply(cluster, f"{CONFIG_MAPS}/a", config_map(x="2"), "me")
    text = 'conflict with "kubectl-create" using v1 at 2026-01-01T00:00:00Z: .data.x'
    assert (status, found["message"]) == (409, f"Apply failed with 1 conflict: {text}")
    status, found = await apply(cluster, f"{CONFIG_MAPS}/a", config_map(x="1"), "me")
    assert managers(found) == {
        ("me", "Apply"): {"f:data": {"f:x": {}}},
        ("kubectl-create", "Update"): {"f:data": {".": {}, "f:x": {}}},
    }


async def test_a_status_in_the_file_of_an_apply_conflicts_with_nobody():
    cluster = Cluster()
    await cluster.ok("POST", DEPLOYMENTS, deployment(replicas=2), query=CREATOR)
    await cluster.ok(
        "PATCH",
        f"{DEPLOYMENTS}/web/status",
        {"status": {"replicas": 2}},
        content_type=MERGE,
        query={"fieldManager": "controller"},
    )
    sent = deployment(replicas=2) | {"status": {"replicas": 1}}
    found = await applied_ok(cluster, f"{DEPLOYMENTS}/web", sent, "me")
    assert found["status"]["replicas"] == 2
    assert "f:status" not in managers(found)["me", "Apply"]


async def test_the_status_of_a_node_belongs_to_its_agent():
    cluster = Cluster()
    await cluster.ok("POST", NODES, {"metadata": {"name": "n", "labels": {"a": "b"}}})
    patch = {"status": {"capacity": {"cpu": "1"}, "nodeInfo": {"machineID": "m"}}}
    found = await cluster.ok(
        "PATCH", f"{NODES}/n/status", patch, content_type=STRATEGIC, user_agent="kubelet/v1.36"
    )
    [entry] = [each for each in found["metadata"]["managedFields"] if each["manager"] == "kubelet"]
    assert entry["subresource"] == "status"
    assert entry["fieldsV1"]["f:status"]["f:capacity"] == {".": {}, "f:cpu": {}}


async def test_the_same_apply_again_writes_nothing_beside_another_applier():
    """Entries are sorted by time, so a new time would put one into another place."""
    cluster = Cluster()
    for seconds, manager in enumerate(("one", "two")):
        cluster.clock.advance(seconds)
        second = await applied_ok(cluster, f"{CONFIG_MAPS}/a", config_map(x="1"), manager)
    cluster.clock.advance(60)
    assert await applied_ok(cluster, f"{CONFIG_MAPS}/a", config_map(x="1"), "one") == second


async def test_an_apply_whose_result_is_what_is_stored_writes_nothing():
    cluster = Cluster()
    path = "/api/v1/namespaces/default/secrets/a"
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}}
    body |= {"stringData": {"x": "1"}}
    first = await applied_ok(cluster, path, body, "one")
    cluster.clock.advance(60)
    assert await applied_ok(cluster, path, body, "one") == first


POD_FIELDS: dict[str, Any] = {
    "f:containers": {
        'k:{"name":"c"}': {
            ".": {},
            "f:image": {},
            "f:imagePullPolicy": {},
            "f:name": {},
            "f:resources": {},
            "f:terminationMessagePath": {},
            "f:terminationMessagePolicy": {},
        }
    },
    "f:dnsPolicy": {},
    "f:enableServiceLinks": {},
    "f:restartPolicy": {},
    "f:schedulerName": {},
    "f:securityContext": {},
    "f:terminationGracePeriodSeconds": {},
}


class TestPods:
    """Entries of pods are stored short, and whole wherever they count."""

    async def test_a_read_of_a_pod_shows_whole_entries(self):
        cluster = await self._running()
        found = await cluster.ok("GET", f"{PODS}/a")
        owned = managers(found)
        assert set(owned) == {("kubectl-create", "Update"), ("kubelet", "Update")}
        creation = owned["kubectl-create", "Update"]["f:spec"]
        # What admission has added belongs to nobody.
        assert creation == POD_FIELDS
        assert set(owned["kubelet", "Update"]) == {"f:status"}
        assert "f:phase" in owned["kubelet", "Update"]["f:status"]

    @pytest.mark.parametrize(
        ("labels", "owned"),
        [
            pytest.param({}, {}, id="without labels"),
            pytest.param({"x": "1"}, {"f:labels": {".": {}, "f:x": {}}}, id="with a label"),
        ],
    )
    async def test_labels_that_binding_adds_belong_to_nobody(self, labels: Any, owned: Any):
        cluster = Cluster()
        zone = {"topology.kubernetes.io/zone": "a", "topology.kubernetes.io/region": "r"}
        node = {"metadata": {"name": "n", "labels": zone}}
        await cluster.ok("POST", NODES, {"apiVersion": "v1", "kind": "Node"} | node)
        made = pod()
        made["metadata"]["labels"] = labels
        await cluster.ok("POST", PODS, made, query=CREATOR)
        target = {"apiVersion": "v1", "kind": "Node", "name": "n"}
        await cluster.ok("POST", f"{PODS}/a/binding", {"metadata": {"name": "a"}, "target": target})
        found = await cluster.ok("GET", f"{PODS}/a")
        assert found["metadata"]["labels"] == zone | labels
        assert managers(found)["kubectl-create", "Update"].get("f:metadata", {}) == owned

    @pytest.mark.parametrize(
        ("path", "body"),
        [
            pytest.param(
                "/api/v1/namespaces/default/limitranges",
                {"spec": {"limits": [{"type": "Container", "default": {"cpu": "1"}}]}},
                id="a limit range",
            ),
            pytest.param(
                "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
                {"webhooks": []},
                id="a webhook",
            ),
        ],
    )
    async def test_entries_are_whole_where_admission_may_add_fields(self, path: str, body: Any):
        cluster = Cluster()
        await cluster.ok("POST", path, {"metadata": {"name": "x"}} | body)
        made = await cluster.ok("POST", PODS, pod(), query=CREATOR)
        fields = managers(made)["kubectl-create", "Update"]["f:spec"]["f:containers"]
        assert "f:requests" not in fields['k:{"name":"c"}'].get("f:resources", {})

    async def test_a_list_shows_short_entries(self):
        cluster = await self._running()
        [found] = (await cluster.ok("GET", PODS))["items"]
        assert found["metadata"]["managedFields"] == [
            {
                "manager": "kubectl-create",
                "operation": "Update",
                "apiVersion": "v1",
                "time": "2026-01-01T00:00:00Z",
            },
            {
                "manager": "kubelet",
                "operation": "Update",
                "apiVersion": "v1",
                "time": "2026-01-01T00:00:00Z",
                "subresource": "status",
            },
        ]

    async def test_another_write_makes_the_entries_whole(self):
        cluster = await self._running()
        found = await cluster.ok(
            "PATCH",
            f"{PODS}/a",
            {"metadata": {"labels": {"x": "1"}}},
            content_type=MERGE,
            query={"fieldManager": "kubectl-label"},
        )
        owned = managers(found)
        assert owned["kubectl-label", "Update"] == {
            "f:metadata": {"f:labels": {".": {}, "f:x": {}}}
        }
        assert POD_FIELDS.items() <= owned["kubectl-create", "Update"]["f:spec"].items()

    async def test_an_apply_conflicts_with_the_creator(self):
        cluster = await self._running()
        body = pod()
        body["spec"]["containers"][0]["image"] = "other"
        status, found = await apply(cluster, f"{PODS}/a", body, "me")
        assert status == 409
        assert 'conflict with "kubectl-create" using v1' in found["message"]

    async def test_a_pod_read_and_written_back_keeps_its_managers(self):
        cluster = await self._running()
        found = await cluster.ok("GET", f"{PODS}/a")
        again = await cluster.ok("PUT", f"{PODS}/a", found, query={"fieldManager": "b"})
        assert managers(again) == managers(found)
        [listed] = (await cluster.ok("GET", PODS))["items"]
        again = await cluster.ok("PUT", f"{PODS}/a", listed, query={"fieldManager": "b"})
        assert managers(again) == managers(found)

    async def test_a_status_written_again_as_it_is_changes_nothing(self):
        cluster = await self._running()
        version = cluster.server.store.version
        for manager in ("kubelet", "other"):
            await self._run(cluster, manager)
        assert cluster.server.store.version == version

    async def _running(self) -> Cluster:
        cluster = Cluster()
        await cluster.ok("POST", PODS, pod(), query=CREATOR)
        await self._run(cluster, "kubelet")
        return cluster

    async def _run(self, cluster: Cluster, manager: str) -> None:
        await cluster.ok(
            "PATCH",
            f"{PODS}/a/status",
            {"status": {"phase": "Running"}},
            content_type=STRATEGIC,
            query={"fieldManager": manager},
        )


PATHS = st.frozensets(
    st.lists(st.sampled_from(["f:x", "f:y", "f:z"]), min_size=1, max_size=3).map(tuple), max_size=5
)


@given(PATHS, PATHS, PATHS)
def test_trees_of_fields_are_the_sets_they_stand_for(start, more, less):
    tree = with_paths(with_paths({}, start), more)
    assert from_fields_v1(tree) == start | more
    assert tree == to_fields_v1(start | more)
    assert from_fields_v1(without_paths(tree, less)) == (start | more) - less
    assert without_paths(tree, less) == to_fields_v1((start | more) - less)


@given(OBJECTS)
def test_a_tree_of_an_object_has_its_fields(obj: Any):
    assert fields_of(obj, DEDUCED) <= from_fields_v1(tree_of(obj, DEDUCED))


@pytest.mark.parametrize("writer", ["one", "two", "hand"])
@given(OBJECTS, OBJECTS, OBJECTS, OBJECTS)
def test_updates_of_trees_and_of_sets_agree(writer, first, second, third, fourth):
    live = put(put(None, first, "one"), second, "two")
    entries = updates.updated(live, third | {"metadata": {}}, None, writing("hand"))
    live = third | {"metadata": {"managedFields": entries} if entries else {}}
    new = fourth | {"metadata": {}}
    calls = (live, new, writing(writer))
    assert _by_trees(*calls) == _by_sets(*calls)


def _by_trees(live: Any, new: Any, write: Any) -> Any:
    return updates.updated(live, new, None, write) or None


def _by_sets(live: Any, new: Any, write: Any) -> Any:
    # Entries that a client sends are read into sets; these are the stored ones, in another order.
    entries = live["metadata"].get("managedFields")
    if not entries:
        return None
    odd = [each | {"fieldsV1": dict(reversed(each["fieldsV1"].items()))} for each in entries]
    sent = [*odd, {"manager": "none", "operation": "Update", "apiVersion": "v1", "fieldsV1": {}}]
    return updates.updated(live, new, sent, write) or None


CLAIM = Version(
    "resource.k8s.io/v1", BuiltinShape(RESOURCE_CLAIMS).layout(), lambda obj: obj, lambda obj: obj
)


@pytest.mark.parametrize("old", [{}, {"status": {}}], ids=["no status", "an empty status"])
@pytest.mark.parametrize(
    "status",
    [
        pytest.param({}, id="empty"),
        pytest.param({"devices": []}, id="an empty list"),
        pytest.param({"allocation": {}}, id="an empty object"),
        pytest.param(
            {
                "allocation": {
                    "devices": {"results": [{"request": "a", "driver": "d"}], "config": []},
                    "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [{"key": "x"}]}]},
                },
                "reservedFor": [{"resource": "pods", "name": "a", "uid": "1"}],
            },
            id="an allocation",
        ),
    ],
)
def test_the_first_status_has_the_owner_that_a_comparison_finds(old, status):
    """The writer of the first status owns its tree, as if each field had been compared."""
    creator = note("maker", CLAIM.name, "now") | {"fieldsV1": {"f:spec": {"f:devices": {}}}}
    live = {"metadata": {"managedFields": [creator]}, "spec": {"devices": {}}, **old}
    new = {"metadata": {}, "spec": {"devices": {}}, "status": status}
    write = Writing(
        manager="scheduler",
        version=CLAIM,
        find=lambda name: None,
        subresource="status",
        has_status=True,
        now="now",
    )
    changed, _ = compare(live, new, CLAIM.layout)
    managed = write.managed(changed)
    fields = [each.get("fieldsV1") for each in updates.updated(live, new, None, write) or []]
    assert fields == [creator["fieldsV1"], *([to_fields_v1(managed)] if managed else [])]
