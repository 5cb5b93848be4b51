"""The official Python client: what its users do all day, and how it understands refusals."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import kubernetes
import pytest
from kubernetes.client import ApiException

from tests.foreign.served import serving

# Untyped, as its users see it: half of the client has no types, the rest makes all optional.
kube: Any = kubernetes
client = kube.client

# How many changes of a kind the server remembers.
REMEMBERED = 60


@pytest.fixture(scope="module")
def api() -> Iterator[Any]:
    with serving(remembered=REMEMBERED) as kubeconfig:
        found: Any = kube.config.new_client_from_config_dict(kubeconfig)
        yield found
        found.close()
        # Closing leaves the connections to the garbage collector.
        found.rest_client.pool_manager.clear()


@pytest.fixture
def core(api: Any) -> Any:
    return client.CoreV1Api(api)


@pytest.fixture
def space(core: Any, request: pytest.FixtureRequest) -> str:
    """Return the name of a namespace of the test's own."""
    name = request.node.name.replace("_", "-")[:60].strip("-")
    core.create_namespace(client.V1Namespace(metadata=client.V1ObjectMeta(name=name)))
    return str(name)


def pod(name: str, **labels: str) -> Any:
    resources = client.V1ResourceRequirements(requests={"cpu": "0.5", "memory": "64Mi"})
    container = client.V1Container(name="c", image="nginx:1", resources=resources)
    return client.V1Pod(
        metadata=client.V1ObjectMeta(name=name, labels=labels),
        spec=client.V1PodSpec(containers=[container]),
    )


def refused(error: pytest.ExceptionInfo[ApiException]) -> tuple[int, str]:
    """Return code and reason of a refusal, as the server's ``Status`` gives them."""
    status = json.loads(error.value.body or "")
    assert status["kind"] == "Status"
    assert status["code"] == error.value.status
    return status["code"], status["reason"]


def test_a_pod_is_created_read_listed_and_deleted(core, space):
    made = core.create_namespaced_pod(space, pod("a", app="x"))
    core.create_namespaced_pod(space, pod("b", app="y"))
    assert made.status.phase == "Pending"
    assert made.spec.containers[0].resources.requests == {"cpu": "500m", "memory": "64Mi"}
    read = core.read_namespaced_pod("a", space)
    # The answer to a create of a pod names its managers only, and a read says what they own.
    assert made.metadata.managed_fields[0].fields_v1 is None
    assert read.metadata.managed_fields[0].fields_v1["f:spec"]
    made.metadata.managed_fields = read.metadata.managed_fields
    assert read == made
    listed = core.list_namespaced_pod(space, label_selector="app in (x)")
    assert [each.metadata.uid for each in listed.items] == [made.metadata.uid]
    chosen = core.list_pod_for_all_namespaces(field_selector=f"metadata.namespace={space}")
    assert [each.metadata.name for each in chosen.items] == ["a", "b"]
    core.delete_namespaced_pod("a", space, grace_period_seconds=0)
    with pytest.raises(ApiException) as error:
        core.read_namespaced_pod("a", space)
    assert refused(error) == (404, "NotFound")


def test_a_patch_changes_what_it_names(core, space):
    core.create_namespaced_pod(space, pod("a", app="x"))
    patch = {"metadata": {"labels": {"tier": "front", "app": None}}}
    assert core.patch_namespaced_pod("a", space, patch).metadata.labels == {"tier": "front"}
    operations = [{"op": "replace", "path": "/metadata/labels/tier", "value": "back"}]
    assert core.patch_namespaced_pod("a", space, operations).metadata.labels == {"tier": "back"}


def test_a_pod_is_bound_once(core, space):
    made = core.create_namespaced_pod(space, pod("a"))
    binding = client.V1Binding(
        metadata=client.V1ObjectMeta(name="a", uid=made.metadata.uid),
        target=client.V1ObjectReference(kind="Node", name="n1"),
    )
    # The client cannot read the Status this returns into the V1Binding it expects.
    options = {"_preload_content": False}
    assert core.create_namespaced_pod_binding("a", space, binding, **options).status == 201
    bound = core.read_namespaced_pod("a", space)
    assert bound.spec.node_name == "n1"
    assert [(each.type, each.status) for each in bound.status.conditions] == [
        ("PodScheduled", "True")
    ]
    with pytest.raises(ApiException) as error:
        core.create_namespaced_pod_binding("a", space, binding, **options)
    assert refused(error) == (409, "Conflict")


def test_an_old_copy_does_not_overwrite_a_newer_one(core, space):
    body = client.V1ConfigMap(metadata=client.V1ObjectMeta(name="a"), data={"a": "1"})
    old = core.create_namespaced_config_map(space, body)
    core.patch_namespaced_config_map("a", space, {"data": {"a": "2"}})
    with pytest.raises(ApiException) as error:
        core.replace_namespaced_config_map("a", space, old)
    assert refused(error) == (409, "Conflict")


def test_a_watch_goes_on_where_a_list_ended(core, space):
    core.create_namespaced_pod(space, pod("old"))
    version = core.list_namespaced_pod(space).metadata.resource_version
    core.create_namespaced_pod(space, pod("new"))
    core.patch_namespaced_pod("new", space, {"metadata": {"labels": {"a": "b"}}})
    core.delete_namespaced_pod("old", space, grace_period_seconds=0)
    seen = []
    watcher = kube.watch.Watch()
    for event in watcher.stream(core.list_namespaced_pod, space, resource_version=version):
        assert isinstance(event["object"], client.V1Pod)
        seen.append((event["type"], event["object"].metadata.name))
        if len(seen) == 3:
            watcher.stop()
    assert seen == [("ADDED", "new"), ("MODIFIED", "new"), ("DELETED", "old")]


def test_a_watch_from_a_version_long_forgotten_is_told_so(core, space):
    first = core.list_namespaced_config_map(space).metadata.resource_version
    for n in range(REMEMBERED + 1):
        body = client.V1ConfigMap(metadata=client.V1ObjectMeta(name=f"c{n}"))
        core.create_namespaced_config_map(space, body)
    with pytest.raises(ApiException) as error:
        list(
            kube.watch.Watch().stream(
                core.list_namespaced_config_map, space, resource_version=first
            )
        )
    assert error.value.status == 410


def test_a_long_list_comes_in_pages(core, space):
    for n in range(5):
        core.create_namespaced_pod(space, pod(f"p{n}"))
    pages: list[list[str]] = []
    token = ""
    while not pages or token:
        page = core.list_namespaced_pod(space, limit=2, _continue=token)
        pages.append([each.metadata.name for each in page.items])
        token = page.metadata._continue
    assert pages == [["p0", "p1"], ["p2", "p3"], ["p4"]]


def test_an_event_of_the_new_kind_is_found_as_an_old_one(api, core, space):
    made = core.create_namespaced_pod(space, pod("a"))
    regarding = client.V1ObjectReference(
        kind="Pod", name="a", namespace=space, uid=made.metadata.uid
    )
    event = client.EventsV1Event(
        metadata=client.V1ObjectMeta(name="a.1"),
        event_time="2026-01-01T00:00:00.000001Z",
        reporting_controller="default-scheduler",
        reporting_instance="here",
        action="Scheduling",
        reason="FailedScheduling",
        type="Warning",
        note="0/0 nodes are available",
        regarding=regarding,
    )
    client.EventsV1Api(api).create_namespaced_event(space, event)
    found = core.list_namespaced_event(
        space, field_selector=f"involvedObject.uid={made.metadata.uid},type=Warning"
    )
    assert [(each.reason, each.message) for each in found.items] == [
        ("FailedScheduling", "0/0 nodes are available")
    ]


def test_a_node_is_registered_heartbeats_and_is_cordoned(core):
    amounts = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    status = client.V1NodeStatus(capacity=amounts, allocatable=amounts)
    core.create_node(client.V1Node(metadata=client.V1ObjectMeta(name="n1"), status=status))
    core.patch_node_status("n1", {"status": {"conditions": [{"type": "Ready", "status": "True"}]}})
    core.patch_node("n1", {"spec": {"unschedulable": True}})
    node = core.read_node("n1")
    assert node.status.allocatable == amounts
    assert [(each.type, each.status) for each in node.status.conditions] == [("Ready", "True")]
    assert node.spec.unschedulable is True


def test_a_manifest_of_several_kinds_is_applied(api, space):
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": pod("x").to_dict()["spec"]}
    template["spec"] = {"containers": [{"name": "c", "image": "nginx:1"}]}
    manifests: list[dict[str, Any]] = [
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "web"},
            "spec": {"selector": {"matchLabels": labels}, "template": template},
        },
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "web"},
            "spec": {"selector": labels, "ports": [{"port": 80}]},
        },
    ]
    for manifest in manifests:
        kube.utils.create_from_dict(api, manifest, namespace=space)
    deployment = client.AppsV1Api(api).read_namespaced_deployment("web", space)
    assert (deployment.spec.replicas, deployment.metadata.generation) == (1, 1)


def test_a_lease_changes_hands(api, space):
    leases = client.CoordinationV1Api(api)
    spec = client.V1LeaseSpec(holder_identity="one", lease_duration_seconds=15)
    body = client.V1Lease(metadata=client.V1ObjectMeta(name="l"), spec=spec)
    made = leases.create_namespaced_lease(space, body)
    made.spec.holder_identity = "two"
    assert leases.replace_namespaced_lease("l", space, made).spec.holder_identity == "two"
    with pytest.raises(ApiException) as error:
        leases.replace_namespaced_lease("l", space, made)
    assert refused(error) == (409, "Conflict")


def test_the_dynamic_client_finds_its_way_by_discovery(api, space, tmp_path):
    found: Any = kube.dynamic.DynamicClient(api, cache_file=str(tmp_path / "discovery.json"))
    pods = found.resources.get(api_version="v1", kind="Pod")
    pods.create(namespace=space, body=api.sanitize_for_serialization(pod("a")))
    assert [each.metadata.name for each in pods.get(namespace=space).items] == ["a"]
    budgets = found.resources.get(api_version="policy/v1", kind="PodDisruptionBudget")
    assert budgets.get(namespace=space).items == []


def test_faults_of_a_pod_are_told_by_field(core, space):
    wrong = pod("a")
    wrong.spec.containers[0].image = ""
    wrong.spec.restart_policy = "Sometimes"
    with pytest.raises(ApiException) as error:
        core.create_namespaced_pod(space, wrong)
    assert refused(error) == (422, "Invalid")
    causes = json.loads(error.value.body or "")["details"]["causes"]
    assert [(each["reason"], each["field"]) for each in causes] == [
        ("FieldValueRequired", "spec.containers[0].image"),
        ("FieldValueNotSupported", "spec.restartPolicy"),
    ]


def test_unknown_users_are_not_served(api):
    stranger = client.Configuration()
    stranger.host = api.configuration.host
    stranger.ssl_ca_cert = api.configuration.ssl_ca_cert
    with client.ApiClient(stranger) as other:
        with pytest.raises(ApiException) as error:
            client.CoreV1Api(other).list_node()
        other.rest_client.pool_manager.clear()
    assert refused(error) == (401, "Unauthorized")
