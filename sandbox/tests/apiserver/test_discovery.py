"""What a server tells of itself, who may ask, and paths that lead nowhere."""

from __future__ import annotations

import json

import pytest

from moorage_sandbox.apiserver.kubelet.metrics import METRICS
from moorage_sandbox.apiserver.rbac.reviews import REVIEWS
from moorage_sandbox.apiserver.served_kinds import served_kinds
from moorage_sandbox.apiserver.subresources.binding import BINDINGS
from moorage_sandbox.apiserver.wire.negotiate import OPENAPI_PROTOBUF
from sandbox.tests.apiserver.crd import DEFINITIONS, definition
from sandbox.tests.apiserver.harness import Cluster, failure

NOT_FOUND = failure(404, "NotFound", "the server could not find the requested resource", {})
NOT_ALLOWED = failure(
    405,
    "MethodNotAllowed",
    "the server does not allow this method on the requested resource",
    {},
)


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz", "/livez/ping"])
async def test_health_is_open_to_everybody(path):
    reply = await Cluster().reply("GET", path, user=None)
    assert (reply.status, reply.body, reply.content_type) == (
        200,
        b"ok",
        "text/plain; charset=utf-8",
    )


@pytest.mark.parametrize(
    "path", ["/", "/version", "/api", "/apis", "/api/v1/pods", "/openapi/v2", "/nonsense"]
)
async def test_everything_else_needs_credentials(path):
    reply = await Cluster().reply("GET", path, user=None)
    assert isinstance(reply.body, bytes)
    assert (reply.status, json.loads(reply.body)) == failure(401, "Unauthorized", "Unauthorized")
    assert reply.headers == (("WWW-Authenticate", 'Bearer realm="moorage"'),)


async def test_the_version_document_names_the_kubernetes_version():
    found = await Cluster().ok("GET", "/version")
    assert (found["major"], found["minor"], found["gitVersion"]) == ("1", "36", "v1.36.0+moorage")


async def test_every_kind_is_discovered_under_its_group_and_version():
    cluster = Cluster()
    groups = (await cluster.ok("GET", "/apis"))["groups"]
    paths = ["/api/v1"]
    paths += [f"/apis/{v['groupVersion']}" for group in groups for v in group["versions"]]
    found = set()
    for path in paths:
        listed = await cluster.ok("GET", path)
        version = listed["groupVersion"]
        found |= {
            (version, entry["name"], entry["kind"], entry["namespaced"])
            for entry in listed["resources"]
            if "/" not in entry["name"]
        }
    resources = [kind.resource for kind in served_kinds()]
    shipped = {
        ("scheduling.x-k8s.io/v1alpha1", "elasticquotas", "ElasticQuota", True),
        ("scheduling.x-k8s.io/v1alpha1", "podgroups", "PodGroup", True),
    }
    served = {
        (r.api_version, r.plural, r.kind, r.namespaced)
        for r in (*resources, *REVIEWS, *METRICS, BINDINGS)
    }
    assert found == served | shipped


async def test_discovery_lists_reviews_with_the_verb_create_only():
    cluster = Cluster()
    listed = await cluster.ok("GET", "/apis/authorization.k8s.io/v1")
    assert listed["resources"][0] == {
        "name": "localsubjectaccessreviews",
        "singularName": "localsubjectaccessreview",
        "namespaced": True,
        "kind": "LocalSubjectAccessReview",
        "verbs": ["create"],
    }
    accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    groups = (await cluster.ok("GET", "/apis", accept=accept))["items"]
    [group] = [g for g in groups if g["metadata"].get("name") == "authentication.k8s.io"]
    [version] = group["versions"]
    assert [each["resource"] for each in version["resources"]] == [
        "selfsubjectreviews",
        "tokenreviews",
    ]


POD_VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
OF_OBJECT, OF_STREAM = ["get", "patch", "update"], ["create", "get"]
# Subresource, kind and verbs.
POD_SUBRESOURCES = [
    ("attach", "PodAttachOptions", OF_STREAM),
    ("binding", "Binding", ["create"]),
    ("ephemeralcontainers", "Pod", OF_OBJECT),
    ("eviction", "Eviction", ["create"]),
    ("exec", "PodExecOptions", OF_STREAM),
    ("log", "Pod", ["get"]),
    ("portforward", "PodPortForwardOptions", OF_STREAM),
    ("proxy", "PodProxyOptions", ["create", "delete", "get", "patch", "update"]),
    ("resize", "Pod", OF_OBJECT),
    ("status", "Pod", OF_OBJECT),
]


async def test_discovery_lists_pods_with_verbs_and_short_names():
    listed = await Cluster().ok("GET", "/api/v1")
    entries = [each for each in listed["resources"] if each["name"].partition("/")[0] == "pods"]
    subresources = [
        {
            "name": f"pods/{name}",
            "singularName": "",
            # Bodies of another group name it.
            **({"group": "policy", "version": "v1"} if name == "eviction" else {}),
            "namespaced": True,
            "kind": kind,
            "verbs": verbs,
        }
        for name, kind, verbs in POD_SUBRESOURCES
    ]
    assert entries == [
        {
            "name": "pods",
            "singularName": "pod",
            "namespaced": True,
            "kind": "Pod",
            "verbs": POD_VERBS,
            "shortNames": ["po"],
            "categories": ["all"],
            "storageVersionHash": "xPOwRZ+Yhw8=",
        },
        *subresources,
    ]


async def test_what_extends_the_api_is_a_category():
    cluster = Cluster()
    listed = [
        each["name"]
        for group in ("admissionregistration", "apiextensions", "apiregistration")
        for each in (await cluster.ok("GET", f"/apis/{group}.k8s.io/v1"))["resources"]
        if each.get("categories") == ["api-extensions"]
    ]
    assert sorted(listed) == [
        "apiservices",
        "customresourcedefinitions",
        "mutatingadmissionpolicies",
        "mutatingadmissionpolicybindings",
        "mutatingwebhookconfigurations",
        "validatingadmissionpolicies",
        "validatingadmissionpolicybindings",
        "validatingwebhookconfigurations",
    ]


async def test_discovery_tells_the_stored_version_by_its_hash():
    """The hashes of built-in kinds are those that real clusters show."""

    async def hashes(path: str) -> dict[str, str]:
        found = (await cluster.ok("GET", path))["resources"]
        return {
            each["name"]: each["storageVersionHash"]
            for each in found
            if "storageVersionHash" in each
        }

    cluster = Cluster()
    core = await hashes("/api/v1")
    assert (core["configmaps"], core["nodes"]) == ("qFsyl6wFWjQ=", "XwShjMxG9Fs=")
    assert "pods/status" not in core
    assert await hashes("/apis/events.k8s.io/v1") == {"events": core["events"]}
    assert (await hashes("/apis/autoscaling/v1")) == await hashes("/apis/autoscaling/v2")
    assert await hashes("/apis/authorization.k8s.io/v1") == {}
    versions = definition()["spec"]["versions"]
    second = versions[0] | {"name": "v2", "storage": False}
    await cluster.ok("POST", DEFINITIONS, definition(spec__versions=[*versions, second]))
    first = await hashes("/apis/example.com/v1")
    assert first == await hashes("/apis/example.com/v2")
    assert list(first) == ["cars"]


async def test_the_document_of_one_group_lists_its_versions():
    assert await Cluster().ok("GET", "/apis/apps") == {
        "kind": "APIGroup",
        "apiVersion": "v1",
        "name": "apps",
        "versions": [{"groupVersion": "apps/v1", "version": "v1"}],
        "preferredVersion": {"groupVersion": "apps/v1", "version": "v1"},
    }


async def test_every_openapi_document_of_the_index_is_there():
    cluster = Cluster()
    index = await cluster.ok("GET", "/openapi/v3")
    assert "api/v1" in index["paths"]
    for entry in index["paths"].values():
        path, _, _ = entry["serverRelativeURL"].partition("?")
        assert (await cluster.ok("GET", path))["openapi"].startswith("3.")
    assert (await cluster.ok("GET", "/openapi/v2"))["swagger"] == "2.0"


@pytest.mark.parametrize(
    ("path", "accept"),
    [
        pytest.param("/openapi/v3", OPENAPI_PROTOBUF[2], id="version 3 has another type"),
        pytest.param("/api", OPENAPI_PROTOBUF[2], id="not OpenAPI"),
    ],
)
async def test_other_protobuf_is_refused_clearly(path, accept):
    status, found = await Cluster().call("GET", path, accept=accept)
    assert (status, found["reason"]) == (406, "NotAcceptable")


AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


async def test_the_old_version_of_aggregated_discovery_is_not_served():
    """apiserver v1.36 endpoints/discovery/aggregated: AggregatedDiscoveryRemoveBetaType is on."""
    old = AGGREGATED.replace("v=v2", "v=v2beta1")
    code, found = await Cluster().call("GET", "/apis", accept=old)
    assert (code, found["reason"]) == (406, "NotAcceptable")
    for also, kind in ((AGGREGATED, "APIGroupDiscoveryList"), ("application/json", "APIGroupList")):
        assert (await Cluster().ok("GET", "/apis", accept=f"{old},{also}"))["kind"] == kind


async def test_aggregated_discovery_is_served_with_its_media_type():
    cluster = Cluster()
    for path in ("/api", "/apis"):
        reply = await cluster.reply("GET", path, accept=f"{AGGREGATED},application/json")
        assert reply.content_type == AGGREGATED
    [core] = (await cluster.ok("GET", "/api", accept=AGGREGATED))["items"]
    [version] = core["versions"]
    [pods] = [each for each in version["resources"] if each["resource"] == "pods"]
    subresources = [
        {
            "subresource": name,
            "responseKind": {
                "group": "policy" if name == "eviction" else "",
                "version": "v1",
                "kind": kind,
            },
            "verbs": verbs,
        }
        for name, kind, verbs in POD_SUBRESOURCES
    ]
    assert pods == {
        "resource": "pods",
        "responseKind": {"group": "", "version": "v1", "kind": "Pod"},
        "scope": "Namespaced",
        "singularResource": "pod",
        "verbs": POD_VERBS,
        "shortNames": ["po"],
        "categories": ["all"],
        "subresources": subresources,
    }


async def test_aggregated_discovery_equals_the_documents_of_all_groups():
    cluster = Cluster()
    found = []
    for path in ("/api", "/apis"):
        for group in (await cluster.ok("GET", path, accept=AGGREGATED))["items"]:
            name = group["metadata"].get("name", "")
            for version in group["versions"]:
                assert version["freshness"] == "Current"
                found.append((f"{name}/{version['version']}".lstrip("/"), version["resources"]))
    for api_version, resources in found:
        where = "apis" if "/" in api_version else "api"
        listed = (await cluster.ok("GET", f"/{where}/{api_version}"))["resources"]
        names = [each["resource"] for each in resources]
        assert names == [each["name"] for each in listed if "/" not in each["name"]]


@pytest.mark.parametrize(
    "accept",
    [
        "",
        "application/json",
        "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json",
    ],
)
async def test_clients_without_aggregated_discovery_get_one_document_for_each_group(accept):
    assert (await Cluster().ok("GET", "/api", accept=accept))["kind"] == "APIVersions"


@pytest.mark.parametrize(
    "path",
    [
        "/nonsense",
        "/api/v2",
        "/api/v1/widgets",
        "/apis/apps/v1beta1/deployments",
        "/apis/nobody.example.com",
        "/api/v1/namespaces/default/nodes",
        "/api/v1/namespaces/default/pods/a/logs",
        "/api/v1/namespaces/default/pods/a/status/more",
        "/api/v1/pods/a",
        "/api/v1//pods",
        "/healthz/etcd/../x",
    ],
)
async def test_unknown_paths_are_not_found(path):
    status, body = await Cluster().call("GET", path)
    assert (status, body["reason"]) == (404, "NotFound")
    if not path.startswith("/healthz"):
        assert (status, body) == NOT_FOUND


@pytest.mark.parametrize(
    ("method", "path"),
    [
        pytest.param("POST", "/version", id="writing to discovery"),
        pytest.param("POST", "/api/v1/namespaces/default/pods/a", id="posting to an object"),
        pytest.param("PUT", "/api/v1/namespaces/default/pods", id="replacing a collection"),
        pytest.param("DELETE", "/api/v1/namespaces/default/pods/a/status", id="deleting a status"),
        pytest.param("DELETE", "/api/v1/pods", id="deleting in all namespaces"),
        pytest.param("TRACE", "/api/v1/nodes", id="a method nobody serves"),
    ],
)
async def test_methods_that_a_path_does_not_serve_are_not_allowed(method, path):
    assert await Cluster().call(method, path) == NOT_ALLOWED


async def test_an_internal_error_is_answered_with_500_and_logged(monkeypatch, caplog):
    cluster = Cluster()
    monkeypatch.setattr(cluster.server._resources._lister, "list", lambda *args: 1 // 0)
    status, body = await cluster.call("GET", "/api/v1/pods")
    assert (status, body["reason"]) == (500, "InternalError")
    assert "ZeroDivisionError" in body["message"]
    assert "GET /api/v1/pods failed" in caplog.text


async def test_a_new_cluster_has_the_system_namespaces_and_priority_classes():
    cluster = Cluster()
    assert await cluster.names("/api/v1/namespaces") == [
        "default",
        "kube-node-lease",
        "kube-public",
        "kube-system",
    ]
    classes = await cluster.ok("GET", "/apis/scheduling.k8s.io/v1/priorityclasses")
    assert [(item["metadata"]["name"], item["value"]) for item in classes["items"]] == [
        ("system-cluster-critical", 2_000_000_000),
        ("system-node-critical", 2_000_001_000),
    ]


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        pytest.param("application/json;as=Table;v=v1;g=meta.k8s.io", 406, id="a Table alone"),
        pytest.param(
            "application/json;as=Table;v=v1;g=meta.k8s.io,application/json", 201, id="or the object"
        ),
    ],
)
async def test_a_review_has_no_table(accept, expected):
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    spec = {"nonResourceAttributes": {"path": "/", "verb": "get"}}
    status, _ = await Cluster().call("POST", path, {"spec": spec}, accept=accept)
    assert status == expected
