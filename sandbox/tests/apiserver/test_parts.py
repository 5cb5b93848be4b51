"""Scope: subresources that write one part of an object: resize, finalize, approval and others."""

from __future__ import annotations

import asyncio
import base64
from typing import Any, ClassVar

import pytest

from moorage.kinds.users import User
from sandbox.tests.apiserver.certificates import signing_request
from sandbox.tests.apiserver.harness import MERGE, PODS, STRATEGIC, Cluster
from scheduler.tests.kinds.builders import container, pod

NAMESPACES = "/api/v1/namespaces"
REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
NO_REQUEST = base64.b64encode(b"-----BEGIN CERTIFICATE REQUEST-----\nMA==\n").decode()
CLASSES = "/apis/node.k8s.io/v1/runtimeclasses"


def amounts(cpu: str, **more: str) -> dict[str, Any]:
    return {"requests": {"cpu": cpu, **more}}


async def running(cluster: Cluster, **fields: Any) -> dict[str, Any]:
    made: dict[str, Any] = await cluster.ok(
        "POST", PODS, pod(containers=[container(resources=amounts("1"), **fields)])
    )
    return made


class TestResize:
    async def test_a_resize_changes_resources_and_raises_the_generation(self):
        cluster = Cluster()
        before = await running(cluster)
        patch = {"spec": {"containers": [{"name": "main", "resources": amounts("2")}]}}
        found = await cluster.ok("PATCH", f"{PODS}/web/resize", patch, content_type=STRATEGIC)
        assert found["spec"]["containers"][0]["resources"] == amounts("2")
        assert found["metadata"]["generation"] == before["metadata"]["generation"] + 1

    async def test_a_resize_ignores_every_other_change(self):
        cluster = Cluster()
        found = await running(cluster)
        found["spec"]["containers"][0] |= {"image": "other", "resources": amounts("3")}
        found["metadata"]["labels"] = {"a": "b"}
        after = await cluster.ok("PUT", f"{PODS}/web/resize", found)
        [main] = after["spec"]["containers"]
        assert (main["image"], main["resources"]) == ("app:1", amounts("3"))
        assert "labels" not in after["metadata"]

    @pytest.mark.parametrize(
        ("resources", "message"),
        [
            pytest.param(
                amounts("1", **{"example.com/gpu": "1"}),
                "only cpu and memory resources are mutable",
                id="another resource",
            ),
            pytest.param({}, "Pod QOS Class may not change", id="no resources at all"),
        ],
    )
    async def test_a_faulty_resize_is_refused(self, resources, message):
        cluster = Cluster()
        found = await running(cluster)
        if "requests" in resources:
            resources = resources | {"limits": {"example.com/gpu": "1"}}
        found["spec"]["containers"][0]["resources"] = resources
        status, answer = await cluster.call("PUT", f"{PODS}/web/resize", found)
        assert (status, message in answer["message"]) == (422, True)

    @pytest.mark.parametrize(
        ("spec", "message"),
        [
            pytest.param(
                {"containers": [container(resources=amounts("1", memory="1Gi"))]},
                "spec.containers[0].resources.limits: Forbidden: resource limits cannot be removed",
                id="a limit is removed",
            ),
            pytest.param(
                {"containers": [container(resources=amounts("1") | {"limits": {"cpu": "2"}})]},
                "spec.containers[0].resources.requests: Forbidden: resource requests cannot be "
                "removed",
                id="a request is removed",
            ),
            pytest.param(
                {"containers": [container(name="other", resources=amounts("1"))]},
                "spec.containers[0].name: Forbidden: containers may not be renamed or reordered "
                "on resize",
                id="a container is renamed",
            ),
            pytest.param(
                {"containers": [container(), container(name="more")]},
                "spec.containers: Forbidden: containers may not be added or removed on resize",
                id="a container is added",
            ),
            pytest.param(
                {"initContainers": [container(name="first", resources=amounts("2"))]},
                "spec.initContainers[0].resources: Forbidden: resources for non-sidecar init "
                "containers are immutable",
                id="an init container is resized",
            ),
        ],
    )
    async def test_a_resize_changes_nothing_else(self, spec, message):
        cluster = Cluster()
        limited = amounts("1", memory="1Gi") | {"limits": {"cpu": "2"}}
        made = pod(
            containers=[container(resources=limited)],
            initContainers=[
                container(name="first", resources=amounts("1")),
                container(name="side", resources=amounts("1"), restartPolicy="Always"),
            ],
        )
        found = await cluster.ok("POST", PODS, made)
        found["spec"]["initContainers"][1]["resources"] = amounts("2")
        found = await cluster.ok("PUT", f"{PODS}/web/resize", found)
        for which, listed in spec.items():
            found["spec"][which][: len(listed)] = listed
        status, answer = await cluster.call("PUT", f"{PODS}/web/resize", found)
        assert status == 422
        assert message in answer["message"]

    @pytest.mark.parametrize(
        ("plural", "spec", "message"),
        [
            pytest.param(
                "resourcequotas",
                {"hard": {"requests.cpu": "2"}},
                "exceeded quota: x, requested: requests.cpu=2, used: requests.cpu=1, limited: "
                "requests.cpu=2",
                id="a quota",
            ),
            pytest.param(
                "limitranges",
                {"limits": [{"type": "Container", "max": {"cpu": "2"}}]},
                "maximum cpu usage per Container is 2, but limit is 4",
                id="a limit range",
            ),
        ],
    )
    async def test_a_resize_may_not_exceed(self, plural, spec, message):
        cluster = Cluster()
        limits = {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}
        found = await cluster.ok("POST", PODS, pod(containers=[container(resources=limits)]))
        path = f"{NAMESPACES}/default/{plural}"
        await cluster.ok("POST", path, {"metadata": {"name": "x"}, "spec": spec})
        found["spec"]["containers"][0]["resources"] = {
            "requests": {"cpu": "3"},
            "limits": {"cpu": "4"},
        }
        status, answer = await cluster.call("PUT", f"{PODS}/web/resize", found)
        assert (status, message in answer["message"]) == (403, True), answer["message"]
        found["spec"]["containers"][0]["resources"] = {
            "requests": {"cpu": "2"},
            "limits": {"cpu": "2"},
        }
        await cluster.ok("PUT", f"{PODS}/web/resize", found)

    async def test_an_update_of_the_pod_itself_may_not_resize(self):
        cluster = Cluster()
        found = await running(cluster)
        found["spec"]["containers"][0]["resources"] = amounts("2")
        assert (await cluster.call("PUT", f"{PODS}/web", found))[0] == 422


class TestEphemeralContainers:
    PATH = f"{PODS}/web/ephemeralcontainers"

    async def test_an_ephemeral_container_is_added_and_cannot_be_removed(self):
        cluster = Cluster()
        await running(cluster)
        patch = {"spec": {"ephemeralContainers": [{"name": "debug", "image": "busybox"}]}}
        found = await cluster.ok("PATCH", self.PATH, patch, content_type=STRATEGIC)
        assert [each["name"] for each in found["spec"]["ephemeralContainers"]] == ["debug"]
        nothing = {"spec": {"ephemeralContainers": None}}
        status, answer = await cluster.call("PATCH", self.PATH, nothing, content_type=MERGE)
        assert status == 422
        assert 'existing ephemeral containers "debug" may not be removed' in answer["message"]

    @pytest.mark.parametrize(
        ("fields", "message"),
        [
            pytest.param(
                {"ports": [{"containerPort": 80}], "resources": {"requests": {"cpu": "1"}}},
                "[spec.ephemeralContainers[0].ports: Forbidden: cannot be set for an Ephemeral "
                "Container, spec.ephemeralContainers[0].resources: Forbidden: cannot be set for "
                "an Ephemeral Container]",
                id="ports and resources",
            ),
            pytest.param(
                {"name": "main"},
                'spec.ephemeralContainers[0].name: Duplicate value: "main"',
                id="the name of another container",
            ),
            pytest.param(
                {"targetContainerName": "other"},
                'spec.ephemeralContainers[0].targetContainerName: Not found: "other"',
                id="a target that is not there",
            ),
            pytest.param(
                {"image": None},
                "spec.ephemeralContainers[0].image: Required value",
                id="no image",
            ),
            pytest.param(
                {"volumeMounts": [{"name": "v", "mountPath": "/v", "subPath": "a"}]},
                "spec.ephemeralContainers[0].volumeMounts[0].subPath: Forbidden: cannot be set "
                "for an Ephemeral Container",
                id="a part of a volume",
            ),
        ],
    )
    async def test_an_ephemeral_container_is_refused_with(self, fields, message):
        cluster = Cluster()
        volumes = [{"name": "v", "emptyDir": {}}]
        await cluster.ok("POST", PODS, pod(containers=[container()], volumes=volumes))
        given = {"name": "debug", "image": "busybox", "targetContainerName": "main", **fields}
        patch = {"spec": {"ephemeralContainers": [given]}}
        status, answer = await cluster.call("PATCH", self.PATH, patch, content_type=MERGE)
        assert (status, answer["message"]) == (422, f'Pod "web" is invalid: {message}')

    async def test_a_new_pod_has_no_ephemeral_containers(self):
        made = pod(ephemeralContainers=[container(name="debug")])
        status, answer = await Cluster().call("POST", PODS, made)
        assert status == 422
        assert "spec.ephemeralContainers: Forbidden: cannot be set on create" in answer["message"]


class TestFinalize:
    async def test_finalizers_of_a_namespace_are_replaced(self):
        cluster = Cluster()
        await cluster.ok("POST", NAMESPACES, {"metadata": {"name": "n"}})
        found = await cluster.ok("GET", f"{NAMESPACES}/n")
        assert found["spec"]["finalizers"] == ["kubernetes"]
        found["spec"]["finalizers"].append("example.com/wait")
        found["metadata"]["labels"] = {"not": "taken"}
        found = await cluster.ok("PUT", f"{NAMESPACES}/n/finalize", found)
        assert found["spec"]["finalizers"] == ["kubernetes", "example.com/wait"]
        assert "not" not in found["metadata"]["labels"]

    async def test_a_deleted_namespace_waits_for_foreign_finalizers(self):
        cluster = Cluster()
        await cluster.ok("POST", NAMESPACES, {"metadata": {"name": "n"}})
        found = await cluster.ok("GET", f"{NAMESPACES}/n")
        found["spec"]["finalizers"].append("example.com/wait")
        await cluster.ok("PUT", f"{NAMESPACES}/n/finalize", found)
        await cluster.ok("DELETE", f"{NAMESPACES}/n")
        found = await cluster.ok("GET", f"{NAMESPACES}/n")
        assert (found["status"]["phase"], found["spec"]["finalizers"]) == (
            "Terminating",
            ["example.com/wait"],
        )
        found["spec"]["finalizers"] = []
        await cluster.ok("PUT", f"{NAMESPACES}/n/finalize", found)
        assert (await cluster.call("GET", f"{NAMESPACES}/n"))[0] == 404

    async def test_the_conditions_of_an_empty_namespace_say_that_its_content_is_gone(self):
        cluster = Cluster()
        made = {"metadata": {"name": "n"}, "spec": {"finalizers": ["example.com/wait"]}}
        await cluster.ok("POST", NAMESPACES, made)
        found = await cluster.ok("DELETE", f"{NAMESPACES}/n")
        found = await cluster.ok("GET", f"{NAMESPACES}/n")
        assert found["spec"]["finalizers"] == ["example.com/wait"]
        conditions = {each["type"]: each for each in found["status"]["conditions"]}
        assert {each["status"] for each in conditions.values()} == {"False"}
        assert len(conditions) == 5
        remaining = conditions["NamespaceContentRemaining"]
        assert (remaining["reason"], remaining["message"]) == (
            "ContentRemoved",
            "All content successfully removed",
        )

    async def test_only_finalize_changes_the_finalizers_of_a_namespace(self):
        cluster = Cluster()
        await cluster.ok("POST", NAMESPACES, {"metadata": {"name": "n"}})
        none = {"spec": {"finalizers": []}, "metadata": {"labels": {"a": "b"}}}
        found = await cluster.ok("PATCH", f"{NAMESPACES}/n", none, content_type=MERGE)
        assert found["spec"]["finalizers"] == ["kubernetes"]
        assert found["metadata"]["labels"]["a"] == "b"
        await cluster.ok("PUT", f"{NAMESPACES}/n", {"metadata": {"name": "n"}})
        found = await cluster.ok("GET", f"{NAMESPACES}/n")
        assert found["spec"]["finalizers"] == ["kubernetes"]

    async def test_a_finalizer_of_a_namespace_is_standard_or_qualified(self):
        cluster = Cluster()
        odd = {"metadata": {"name": "default"}, "spec": {"finalizers": ["kubernetes", "odd"]}}
        status, answer = await cluster.call("PUT", f"{NAMESPACES}/default/finalize", odd)
        assert (status, answer["message"]) == (
            422,
            'Namespace "default" is invalid: spec.finalizers[1]: Invalid value: "odd": name is '
            "neither a standard finalizer name nor is it fully qualified",
        )

    @pytest.mark.parametrize(
        ("deleted", "phase", "fault"),
        [
            (False, "Terminating", "may only be 'Active' if `deletionTimestamp` is empty"),
            (True, "Active", "may only be 'Terminating' if `deletionTimestamp` is not empty"),
        ],
    )
    async def test_the_phase_of_a_namespace_says_whether_it_is_deleted(self, deleted, phase, fault):
        cluster = Cluster()
        held = {"metadata": {"name": "n", "finalizers": ["example.com/wait"]}}
        await cluster.ok("POST", NAMESPACES, held)
        if deleted:
            await cluster.ok("DELETE", f"{NAMESPACES}/n")
        change = {"status": {"phase": phase}}
        path = f"{NAMESPACES}/n/status"
        status, answer = await cluster.call("PATCH", path, change, content_type=MERGE)
        assert (status, answer["message"]) == (
            422,
            f'Namespace "n" is invalid: status.Phase: Invalid value: "{phase}": {fault}',
        )

    @pytest.mark.parametrize("method", ["GET", "PATCH"])
    async def test_finalize_serves_only_put(self, method):
        cluster = Cluster()
        path = f"{NAMESPACES}/default/finalize"
        status, _ = await cluster.call(method, path, {} if method == "PATCH" else None)
        assert status == 405


class TestCertificateRequests:
    SPEC: ClassVar[dict[str, Any]] = {
        "request": signing_request(),
        "signerName": "example.com/signer",
        "usages": ["client auth"],
    }

    def manifest(self, **spec: Any) -> dict[str, Any]:
        return {"metadata": {"name": "r"}, "spec": {**self.SPEC, **spec}}

    async def test_a_certificate_request_records_its_caller(self):
        cluster = Cluster()
        found = await cluster.ok("POST", REQUESTS, self.manifest(username="somebody else"))
        assert (found["spec"]["username"], found["spec"]["groups"]) == (
            "kubernetes-admin",
            ["system:masters", "system:authenticated"],
        )

    async def test_the_approval_subresource_writes_conditions_only(self):
        cluster = Cluster()
        found = await cluster.ok("POST", REQUESTS, self.manifest())
        approved = {"type": "Approved", "status": "True", "reason": "x", "message": "y"}
        found["status"] = {"conditions": [approved], "certificate": "YQ=="}
        found = await cluster.ok("PUT", f"{REQUESTS}/r/approval", found)
        assert found["status"] == {"conditions": [approved]}
        patch = {"status": {"certificate": "YQ=="}, "metadata": {"annotations": {"a": "b"}}}
        found = await cluster.ok("PATCH", f"{REQUESTS}/r/status", patch, content_type=MERGE)
        assert found["status"] == {"conditions": [approved], "certificate": "YQ=="}
        assert found["metadata"]["annotations"] == {"a": "b"}

    async def test_an_approval_cannot_be_taken_back(self):
        cluster = Cluster()
        found = await cluster.ok("POST", REQUESTS, self.manifest())
        found["status"] = {"conditions": [{"type": "Denied", "status": "True"}]}
        await cluster.ok("PUT", f"{REQUESTS}/r/approval", found)
        patch = {"status": {"conditions": [{"type": "Approved", "status": "True"}]}}
        path = f"{REQUESTS}/r/approval"
        status, answer = await cluster.call("PATCH", path, patch, content_type=MERGE)
        assert status == 422
        assert 'updates may not remove a condition of type "Denied"' in answer["message"]

    @pytest.mark.parametrize(
        ("spec", "field"),
        [
            pytest.param({"request": "YQ=="}, "spec.request", id="no request in PEM"),
            pytest.param({"request": NO_REQUEST}, "spec.request", id="PEM of nothing"),
            pytest.param({"signerName": "nobody"}, "spec.signerName", id="a signer without a path"),
            pytest.param(
                {"signerName": "a.b/c/d"}, "spec.signerName", id="a signer with two paths"
            ),
            pytest.param({"signerName": "a/c"}, "spec.signerName", id="a signer of a short domain"),
            pytest.param({"signerName": "a.b/C"}, "spec.signerName", id="a path in capitals"),
            pytest.param(
                {"signerName": "kubernetes.io/legacy-unknown"}, "spec.signerName", id="of old"
            ),
            pytest.param({"usages": []}, "spec.usages", id="no usages"),
            pytest.param({"usages": ["fun"]}, "spec.usages[0]", id="an unknown usage"),
            pytest.param(
                {"usages": ["client auth", "client auth"]}, "spec.usages[1]", id="a usage twice"
            ),
            pytest.param({"expirationSeconds": 5}, "spec.expirationSeconds", id="too short"),
        ],
    )
    async def test_a_faulty_certificate_request_is_refused(self, spec, field):
        status, answer = await Cluster().call("POST", REQUESTS, self.manifest(**spec))
        assert (status, [each["field"] for each in answer["details"]["causes"]]) == (422, [field])


class TestRuntimeClasses:
    @pytest.fixture
    async def cluster(self):
        cluster = Cluster()
        body = {
            "metadata": {"name": "slim"},
            "handler": "slim",
            "overhead": {"podFixed": {"cpu": "100m"}},
            "scheduling": {
                "nodeSelector": {"slim": "yes"},
                "tolerations": [{"key": "slim", "operator": "Exists"}],
            },
        }
        await cluster.ok("POST", CLASSES, body)
        return cluster

    async def test_a_pod_gets_overhead_and_scheduling_of_its_class(self, cluster):
        made = await cluster.ok("POST", PODS, pod(runtimeClassName="slim", nodeSelector={"a": "b"}))
        assert made["spec"]["overhead"] == {"cpu": "100m"}
        assert made["spec"]["nodeSelector"] == {"a": "b", "slim": "yes"}
        assert {"key": "slim", "operator": "Exists"} in made["spec"]["tolerations"]

    @pytest.mark.parametrize(
        ("spec", "why"),
        [
            pytest.param(
                {"runtimeClassName": "none"}, 'RuntimeClass "none" not found', id="an unknown class"
            ),
            pytest.param(
                {"runtimeClassName": "slim", "nodeSelector": {"slim": "no"}},
                "runtimeClass.scheduling.nodeSelector[slim] = yes",
                id="a node selector that contradicts",
            ),
            pytest.param(
                {"runtimeClassName": "slim", "overhead": {"cpu": "1"}},
                "Pod's Overhead doesn't match",
                id="another overhead",
            ),
            pytest.param(
                {"overhead": {"cpu": "1"}},
                "Pod Overhead set without corresponding RuntimeClass",
                id="an overhead without a class",
            ),
        ],
    )
    async def test_a_pod_that_contradicts_its_runtime_class_is_refused(self, cluster, spec, why):
        status, answer = await cluster.call("POST", PODS, pod(**spec))
        assert (status, why in answer["message"]) == (403, True)

    async def test_the_handler_of_a_runtime_class_is_required_and_immutable(self, cluster):
        status, _ = await cluster.call("POST", CLASSES, {"metadata": {"name": "x"}})
        assert status == 422
        patch = {"handler": "other"}
        status, _ = await cluster.call("PATCH", f"{CLASSES}/slim", patch, content_type=MERGE)
        assert status == 422


async def test_a_binding_may_be_sent_to_the_collection_of_bindings():
    cluster = Cluster()
    await cluster.ok("POST", PODS, pod())
    body = {"metadata": {"name": "web"}, "target": {"kind": "Node", "name": "n1"}}
    await cluster.ok("POST", "/api/v1/namespaces/default/bindings", body)
    assert (await cluster.ok("GET", f"{PODS}/web"))["spec"]["nodeName"] == "n1"


async def test_a_pod_template_has_the_defaults_of_a_pod():
    cluster, path = Cluster(), "/api/v1/namespaces/default/podtemplates"
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container()]}}
    found = await cluster.ok("POST", path, {"metadata": {"name": "t"}, "template": template})
    assert found["template"]["spec"]["restartPolicy"] == "Always"
    bad = {"metadata": {"name": "u"}, "template": {"spec": {"containers": []}}}
    assert (await cluster.call("POST", path, bad))[0] == 422


async def test_a_call_in_a_thread_keeps_its_own_caller():
    """The server answers a large body in a thread, and a read of another user meanwhile."""
    cluster = Cluster()
    cluster.server.use_thread()
    try:
        body = TestCertificateRequests().manifest()
        body["metadata"]["annotations"] = {"example.com/large": "x" * 100_000}
        reads = [cluster.ok("GET", PODS, user=User("reader")) for _ in range(20)]
        made, *_ = await asyncio.gather(cluster.ok("POST", REQUESTS, body), *reads)
        assert made["spec"]["username"] == "kubernetes-admin"
    finally:
        cluster.server.close()
