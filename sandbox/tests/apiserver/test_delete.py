"""Deleting: at once, with grace, with finalizers, under conditions; and whole namespaces."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox.tests.apiserver.harness import (
    CONFIG_MAPS,
    MERGE,
    PODS,
    Cluster,
    config_map,
    failure,
    namespace,
    pod,
    unowned,
)


def _times(obj: dict[str, Any]) -> tuple[str | None, int | None]:
    meta = obj["metadata"]
    return meta.get("deletionTimestamp"), meta.get("deletionGracePeriodSeconds")


async def _bound(**spec: Any) -> Cluster:
    cluster = Cluster()
    body = pod("a", node="n1")
    body["spec"] |= spec
    await cluster.ok("POST", PODS, body)
    return cluster


async def test_most_objects_are_removed_at_once_and_answered_with_a_status():
    cluster = Cluster()
    uid = (await cluster.ok("POST", CONFIG_MAPS, config_map()))["metadata"]["uid"]
    assert await cluster.call("DELETE", f"{CONFIG_MAPS}/a") == (
        200,
        {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Success",
            "details": {"name": "a", "kind": "configmaps", "uid": uid},
        },
    )
    assert await cluster.names(CONFIG_MAPS) == []


async def test_deleting_an_unknown_object_is_not_found():
    assert await Cluster().call("DELETE", f"{PODS}/a") == failure(
        404, "NotFound", 'pods "a" not found', {"name": "a", "kind": "pods"}
    )


GRACES = [
    pytest.param({}, {"gracePeriodSeconds": 5}, 5, id="asked for by the call"),
    pytest.param({"terminationGracePeriodSeconds": 7}, {}, 7, id="the pod's own"),
    pytest.param({}, {"gracePeriodSeconds": -1}, 1, id="negative means one second"),
]


class TestGrace:
    """Pods on a node get their time; the node's agent ends them."""

    async def test_an_unbound_pod_is_removed_at_once(self):
        cluster = Cluster()
        await cluster.ok("POST", PODS, pod())
        shown = await cluster.ok("DELETE", f"{PODS}/a")
        assert shown["kind"] == "Pod"
        assert await cluster.names(PODS) == []

    async def test_a_bound_pod_is_marked_and_stays(self):
        cluster = await _bound()
        shown = await cluster.ok("DELETE", f"{PODS}/a")
        assert _times(shown) == ("2026-01-01T00:00:30Z", 30)
        assert shown["metadata"]["generation"] == 2
        assert unowned(await cluster.ok("GET", f"{PODS}/a")) == unowned(shown)

    @pytest.mark.parametrize(("spec", "options", "expected"), GRACES)
    async def test_the_grace_period_of_a_deleted_pod(self, spec, options, expected):
        cluster = await _bound(**spec)
        shown = await cluster.ok("DELETE", f"{PODS}/a", options)
        assert _times(shown)[1] == expected

    async def test_grace_may_be_a_query_parameter(self):
        cluster = await _bound()
        query = {"gracePeriodSeconds": "0"}
        await cluster.ok("DELETE", f"{PODS}/a", query=query)
        assert await cluster.names(PODS) == []

    async def test_a_finished_pod_is_removed_at_once(self):
        cluster = await _bound()
        patch = {"status": {"phase": "Succeeded"}}
        await cluster.ok("PATCH", f"{PODS}/a/status", patch, content_type=MERGE)
        await cluster.ok("DELETE", f"{PODS}/a")
        assert await cluster.names(PODS) == []

    async def test_a_repeated_delete_changes_nothing(self):
        cluster = await _bound()
        first = await cluster.ok("DELETE", f"{PODS}/a")
        cluster.clock.advance(10)
        assert await cluster.ok("DELETE", f"{PODS}/a") == first
        assert await cluster.ok("DELETE", f"{PODS}/a", {"gracePeriodSeconds": 60}) == first

    async def test_a_shorter_grace_counts_from_the_first_delete(self):
        cluster = await _bound()
        await cluster.ok("DELETE", f"{PODS}/a")
        cluster.clock.advance(10)
        shown = await cluster.ok("DELETE", f"{PODS}/a", {"gracePeriodSeconds": 5})
        assert _times(shown) == ("2026-01-01T00:00:05Z", 5)

    async def test_a_delete_without_grace_removes_the_stopped_pod_and_watches_show_both_steps(self):
        cluster = await _bound()
        watch = await cluster.watch(PODS)
        await cluster.ok("DELETE", f"{PODS}/a")
        uid = (await cluster.ok("GET", f"{PODS}/a"))["metadata"]["uid"]
        last = {"gracePeriodSeconds": 0, "preconditions": {"uid": uid}}
        await cluster.ok("DELETE", f"{PODS}/a", last)
        assert await watch.seen(3) == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]
        await watch.close()

    async def test_a_dry_run_deletes_nothing(self):
        cluster = await _bound()
        before = cluster.server.store.version
        await cluster.ok("DELETE", f"{PODS}/a", {"dryRun": ["All"]})
        await cluster.ok("DELETE", f"{PODS}/a", {"dryRun": ["All"], "gracePeriodSeconds": 0})
        assert cluster.server.store.version == before


class TestConditions:
    """Preconditions and options."""

    async def test_another_uid_is_a_conflict(self):
        cluster = Cluster()
        uid = (await cluster.ok("POST", PODS, pod()))["metadata"]["uid"]
        found = await cluster.call("DELETE", f"{PODS}/a", {"preconditions": {"uid": "old"}})
        why = (
            f"the UID in the precondition (old) does not match the UID in record ({uid}). The "
            "object might have been deleted and then recreated"
        )
        message = f'Operation cannot be fulfilled on pods "a": {why}'
        assert found == failure(409, "Conflict", message, {"name": "a", "kind": "pods"})

    async def test_another_version_is_a_conflict(self):
        cluster = Cluster()
        await cluster.ok("POST", PODS, pod())
        options = {"preconditions": {"resourceVersion": "1"}}
        status, body = await cluster.call("DELETE", f"{PODS}/a", options)
        assert (status, body["reason"]) == (409, "Conflict")

    @pytest.mark.parametrize(
        ("policy", "finalizers"),
        [
            pytest.param("Background", None, id="in the background it goes at once"),
            pytest.param("Foreground", ["foregroundDeletion"], id="after its dependents"),
            pytest.param("Orphan", ["orphan"], id="after its dependents were let go"),
        ],
    )
    async def test_a_propagation_policy_is_left_to_the_collector_of_garbage(
        self, policy, finalizers
    ):
        cluster = Cluster()
        await cluster.ok("POST", CONFIG_MAPS, config_map())
        options = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": policy}
        await cluster.ok("DELETE", f"{CONFIG_MAPS}/a", options)
        left = await cluster.names(CONFIG_MAPS)
        assert left == (["a"] if finalizers else [])
        if finalizers:
            found = await cluster.ok("GET", f"{CONFIG_MAPS}/a")
            assert found["metadata"]["finalizers"] == finalizers
            assert found["metadata"]["deletionTimestamp"]

    @pytest.mark.parametrize(
        "options",
        [
            pytest.param({"gracePeriodSeconds": "soon"}, id="grace that is no number"),
            pytest.param([], id="no object"),
        ],
    )
    async def test_unreadable_delete_options_are_refused(self, options):
        cluster = Cluster()
        await cluster.ok("POST", CONFIG_MAPS, config_map())
        status, body = await cluster.call("DELETE", f"{CONFIG_MAPS}/a", options)
        assert (status, body["reason"]) == (400, "BadRequest")
        assert await cluster.names(CONFIG_MAPS) == ["a"]


_BOTH = (
    'propagationPolicy: Invalid value: "Orphan": orphanDependents and deletionPropagation cannot '
    "be both set"
)
_SIDEWAYS = (
    'propagationPolicy: Unsupported value: "Sideways": supported values: "Background", '
    '"Foreground", "Orphan", "nil"'
)


async def test_a_delete_with_an_object_for_a_body_is_refused():
    cluster = Cluster()
    await cluster.ok("POST", CONFIG_MAPS, config_map())
    code, found = await cluster.call("DELETE", f"{CONFIG_MAPS}/a", config_map())
    text = "the body of a delete must be DeleteOptions, not ConfigMap"
    assert (code, found["message"]) == (400, text)
    assert await cluster.names(CONFIG_MAPS) == ["a"]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        pytest.param({"propagationPolicy": "Sideways"}, _SIDEWAYS, id="an unknown policy"),
        pytest.param(
            {"propagationPolicy": "Orphan", "orphanDependents": True}, _BOTH, id="two policies"
        ),
    ],
)
async def test_faulty_propagation_policies_are_refused(options, text):
    cluster = Cluster()
    await cluster.ok("POST", CONFIG_MAPS, config_map())
    status, found = await cluster.call("DELETE", f"{CONFIG_MAPS}/a", options)
    message = f'DeleteOptions.meta.k8s.io "" is invalid: {text}'
    assert (status, found["reason"], found["message"]) == (422, "Invalid", message)
    assert await cluster.names(CONFIG_MAPS) == ["a"]


@pytest.mark.parametrize(
    ("query", "body", "finalizers"),
    [
        pytest.param({}, {"orphanDependents": True}, ["orphan"], id="in the body"),
        pytest.param({"orphanDependents": "true"}, None, ["orphan"], id="in the query"),
        pytest.param({"orphanDependents": "false"}, None, None, id="not to be orphaned"),
    ],
)
async def test_orphan_dependents_of_old_clients_sets_the_finalizer(query, body, finalizers):
    cluster = Cluster()
    await cluster.ok("POST", CONFIG_MAPS, config_map())
    await cluster.ok("DELETE", f"{CONFIG_MAPS}/a", body, query=query)
    items = (await cluster.ok("GET", CONFIG_MAPS))["items"]
    assert [each["metadata"]["finalizers"] for each in items] == (
        [finalizers] if finalizers else []
    )


class TestFinalizers:
    """An object with finalizers is marked and goes with the last of them."""

    async def test_a_deleted_object_waits_for_its_finalizers(self):
        cluster = Cluster()
        body = config_map()
        body["metadata"]["finalizers"] = ["example.com/hold"]
        await cluster.ok("POST", CONFIG_MAPS, body)
        shown = await cluster.ok("DELETE", f"{CONFIG_MAPS}/a")
        assert _times(shown) == ("2026-01-01T00:00:00Z", 0)
        assert await cluster.ok("DELETE", f"{CONFIG_MAPS}/a") == shown
        patch = {"metadata": {"finalizers": None}}
        await cluster.ok("PATCH", f"{CONFIG_MAPS}/a", patch, content_type=MERGE)
        assert await cluster.names(CONFIG_MAPS) == []

    async def test_the_deletion_timestamp_cannot_be_removed(self):
        cluster = Cluster()
        body = config_map()
        body["metadata"]["finalizers"] = ["example.com/hold"]
        await cluster.ok("POST", CONFIG_MAPS, body)
        marked = await cluster.ok("DELETE", f"{CONFIG_MAPS}/a")
        patch = {"metadata": {"deletionTimestamp": None}, "data": {"k": "v"}}
        found = await cluster.ok("PATCH", f"{CONFIG_MAPS}/a", patch, content_type=MERGE)
        assert _times(found) == _times(marked)

    async def test_an_object_that_is_deleted_takes_no_new_finalizers(self):
        cluster = Cluster()
        body = config_map()
        body["metadata"]["finalizers"] = ["example.com/hold", "example.com/other"]
        await cluster.ok("POST", CONFIG_MAPS, body)
        await cluster.ok("DELETE", f"{CONFIG_MAPS}/a")
        patch = {"metadata": {"finalizers": ["example.com/new", "example.com/hold"]}}
        code, found = await cluster.call("PATCH", f"{CONFIG_MAPS}/a", patch, content_type=MERGE)
        assert (code, found["message"]) == (
            422,
            'ConfigMap "a" is invalid: metadata.finalizers: Forbidden: no new finalizers can be '
            "added if the object is being deleted, found new finalizers "
            '[]string{"example.com/new"}',
        )
        patch = {"metadata": {"finalizers": ["example.com/hold"]}}
        await cluster.ok("PATCH", f"{CONFIG_MAPS}/a", patch, content_type=MERGE)


async def test_a_collection_is_deleted_by_selector():
    cluster = Cluster()
    for name, app in (("a", "web"), ("b", "db"), ("c", "web")):
        await cluster.ok("POST", PODS, pod(name, labels={"app": app}))
    deleted = await cluster.ok("DELETE", PODS, query={"labelSelector": "app=web"})
    assert [item["metadata"]["name"] for item in deleted["items"]] == ["a", "c"]
    assert await cluster.names(PODS) == ["b"]


async def test_namespaces_are_deleted_by_name_only():
    cluster = Cluster()
    await cluster.ok("POST", "/api/v1/namespaces", namespace("team"))
    there = await cluster.names("/api/v1/namespaces")
    found = await cluster.call("DELETE", "/api/v1/namespaces")
    assert found == failure(
        405,
        "MethodNotAllowed",
        "the server does not allow this method on the requested resource",
        {},
    )
    assert await cluster.names("/api/v1/namespaces") == there
    listed = (await cluster.ok("GET", "/api/v1"))["resources"]
    verbs = {entry["name"]: entry["verbs"] for entry in listed}
    assert "deletecollection" not in verbs["namespaces"]
    assert "deletecollection" in verbs["nodes"]


# What the namespace controller says of a namespace with a held ConfigMap.
_WAITING = {
    "NamespaceDeletionDiscoveryFailure": (
        "False",
        "ResourcesDiscovered",
        "All resources successfully discovered",
    ),
    "NamespaceDeletionGroupVersionParsingFailure": (
        "False",
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    "NamespaceDeletionContentFailure": (
        "False",
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    "NamespaceContentRemaining": (
        "True",
        "SomeResourcesRemain",
        "Some resources are remaining: configmaps. has 1 resource instances",
    ),
    "NamespaceFinalizersRemaining": (
        "True",
        "SomeFinalizersRemain",
        "Some content in the namespace has finalizers remaining: example.com/hold in 1 "
        "resource instances",
    ),
}


class TestNamespaces:
    """A namespace takes its contents along, and waits for pods on nodes."""

    PODS = "/api/v1/namespaces/team/pods"

    async def _team(self) -> Cluster:
        cluster = Cluster()
        await cluster.ok("POST", "/api/v1/namespaces", namespace("team"))
        await cluster.ok("POST", "/api/v1/namespaces/team/configmaps", config_map())
        await cluster.ok("POST", self.PODS, pod("free"))
        return cluster

    async def test_an_idle_namespace_is_removed_at_once_with_its_objects(self):
        cluster = await self._team()
        shown = await cluster.ok("DELETE", "/api/v1/namespaces/team")
        assert shown["status"]["phase"] == "Terminating"
        assert "team" not in await cluster.names("/api/v1/namespaces")
        assert await cluster.names("/api/v1/pods") == []
        assert await cluster.names("/api/v1/namespaces/team/configmaps") == []

    async def test_a_terminating_namespace_waits_for_bound_pods_and_refuses_creates(self):
        cluster = await self._team()
        await cluster.ok("POST", self.PODS, pod("busy", node="n1"))
        await cluster.ok("DELETE", "/api/v1/namespaces/team")
        assert await cluster.names(self.PODS) == ["busy"]
        assert await cluster.call("POST", self.PODS, pod("new")) == failure(
            403,
            "Forbidden",
            'pods "new" is forbidden: unable to create new content in namespace team because it '
            "is being terminated",
            {
                "name": "new",
                "kind": "pods",
                "causes": [
                    {
                        "reason": "NamespaceTerminating",
                        "message": "namespace team is being terminated",
                        "field": "metadata.namespace",
                    }
                ],
            },
        )
        patch = {"metadata": {"labels": {"x": "y"}}}
        await cluster.ok("PATCH", "/api/v1/namespaces/team", patch, content_type=MERGE)
        assert "team" in await cluster.names("/api/v1/namespaces")
        await cluster.ok("DELETE", f"{self.PODS}/busy", {"gracePeriodSeconds": 0})
        assert "team" not in await cluster.names("/api/v1/namespaces")

    async def test_pods_of_a_namespace_are_deleted_before_its_other_objects(self):
        cluster = await self._team()
        await cluster.ok("POST", self.PODS, pod("busy", node="n1"))
        await cluster.ok("DELETE", "/api/v1/namespaces/team")
        found = await cluster.ok("GET", f"{self.PODS}/busy")
        assert "deletionTimestamp" in found["metadata"]
        config_maps = "/api/v1/namespaces/team/configmaps"
        [kept] = (await cluster.ok("GET", config_maps))["items"]
        assert "deletionTimestamp" not in kept["metadata"]
        conditions = (await cluster.ok("GET", "/api/v1/namespaces/team"))["status"]["conditions"]
        assert "Some resources are remaining: pods. has 1 resource instances" in {
            each["message"] for each in conditions
        }
        await cluster.ok("DELETE", f"{self.PODS}/busy", {"gracePeriodSeconds": 0})
        assert await cluster.names(config_maps) == []
        assert "team" not in await cluster.names("/api/v1/namespaces")

    async def test_conditions_of_a_terminating_namespace_name_the_remaining_objects(self):
        cluster = await self._team()
        held = config_map("held")
        held["metadata"]["finalizers"] = ["example.com/hold"]
        await cluster.ok("POST", "/api/v1/namespaces/team/configmaps", held)
        await cluster.ok("DELETE", "/api/v1/namespaces/team")
        conditions = (await cluster.ok("GET", "/api/v1/namespaces/team"))["status"]["conditions"]
        assert {c["lastTransitionTime"] for c in conditions} == {"2026-01-01T00:00:00Z"}
        told = {c["type"]: (c["status"], c["reason"], c["message"]) for c in conditions}
        assert told == _WAITING
        path = "/api/v1/namespaces/team/configmaps/held"
        await cluster.ok("PATCH", path, {"metadata": {"finalizers": None}}, content_type=MERGE)
        assert "team" not in await cluster.names("/api/v1/namespaces")

    async def test_conditions_of_a_large_terminating_namespace_are_written_once_a_second(self):
        cluster = await self._team()
        for number in range(20):
            await cluster.ok("POST", self.PODS, pod(f"p{number}", node="n1"))
            await cluster.ok("POST", PODS, pod(f"p{number}", node="n1"))
        await cluster.ok("DELETE", "/api/v1/namespaces/team")

        async def message() -> str:
            found = await cluster.ok("GET", "/api/v1/namespaces/team")
            text: str = found["status"]["conditions"][3]["message"]
            return text.removeprefix("Some resources are remaining: pods. has ").partition(" ")[0]

        seen = [await message()]
        for number in range(20):
            if number == 5:
                cluster.clock.advance(1)
            await cluster.ok("DELETE", f"{self.PODS}/p{number}", {"gracePeriodSeconds": 0})
            if number < 19:
                seen.append(await message())
        assert seen == ["20"] * 6 + ["14"] * 4 + [str(left) for left in range(10, 0, -1)]

    async def test_a_repeated_delete_of_a_namespace_checks_its_content_again(self):
        cluster = await self._team()
        await cluster.ok("POST", self.PODS, pod("busy", node="n1"))
        await cluster.ok("DELETE", "/api/v1/namespaces/team")
        await cluster.ok("DELETE", "/api/v1/namespaces/team", query={"dryRun": "All"})
        # Let go behind the server's back, as when a write of the same moment was taken back.
        server = cluster.server
        server.store.remove("pods", ("team", "busy"))
        assert "team" in await cluster.names("/api/v1/namespaces")
        await cluster.ok("DELETE", "/api/v1/namespaces/team")
        assert "team" not in await cluster.names("/api/v1/namespaces")

    async def test_a_deleted_namespace_may_be_created_again(self):
        cluster = await self._team()
        await cluster.ok("DELETE", "/api/v1/namespaces/team")
        await cluster.ok("POST", "/api/v1/namespaces", namespace("team"))
        await cluster.ok("POST", self.PODS, pod("new"))

    @pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
    async def test_the_three_system_namespaces_cannot_be_deleted(self, name):
        found = await Cluster().call("DELETE", f"/api/v1/namespaces/{name}")
        assert found == failure(
            403,
            "Forbidden",
            f'namespaces "{name}" is forbidden: this namespace may not be deleted',
            {"name": name, "kind": "namespaces"},
        )
