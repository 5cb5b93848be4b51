"""Whatever is sent, the answer is a refusal or a success, never a fault of the server."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.api.resources import ResourceType, resource_path
from moorage_sandbox.apiserver.served_kinds import served_kinds
from sandbox.tests.apiserver.harness import (
    JSON_PATCH,
    MERGE,
    NODES,
    PODS,
    STRATEGIC,
    Cluster,
    binding,
    pod,
    unowned,
)

RESOURCES = [kind.resource for kind in served_kinds()]

# Values that are wrong nearly everywhere, and a few that are right somewhere.
ODD: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, 0, -1, 2**70, 1.5, "", "x", "-", "1Gi", "a/b/c", [], [None], [[]], {}, {"a": {}}]
)
_SELECTOR = {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}

RUNTIME_CLASSES = "/apis/node.k8s.io/v1/runtimeclasses"
RUNTIME_CLASS = {
    "metadata": {"name": "slim"},
    "handler": "slim",
    "overhead": {"podFixed": {"cpu": "1m"}},
}
# A pod that uses much of what a scheduler reads.
RICH_POD = pod() | {
    "spec": {
        "containers": [
            {
                "name": "c",
                "image": "x",
                "resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "2"}},
                "ports": [{"containerPort": 80, "hostPort": 80}],
                "env": [{"name": "A", "value": "b"}],
            }
        ],
        "initContainers": [{"name": "i", "image": "x", "restartPolicy": "Always"}],
        "tolerations": [{"key": "k", "operator": "Exists", "effect": "NoSchedule"}],
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "zone",
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": _SELECTOR,
                "matchLabelKeys": ["app"],
            }
        ],
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [_SELECTOR]}
            },
            "podAntiAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {
                        "weight": 1,
                        "podAffinityTerm": {"topologyKey": "zone", "labelSelector": _SELECTOR},
                    }
                ]
            },
        },
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}],
        "schedulingGates": [{"name": "g"}],
        "overhead": {"cpu": "1m"},
        "runtimeClassName": "slim",
    }
}


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the path of every value inside a tree."""
    found = [path] if path else []
    if isinstance(value, dict):
        for key in value:
            found += _places(value[key], (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            found += _places(item, (*path, index))
    return found


def _with(tree: Any, path: tuple[Any, ...], value: Any) -> Any:
    """Return a copy of a tree with one value replaced."""
    tree = copy.deepcopy(tree)
    inner = tree
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return tree


@given(st.sampled_from(_places(RICH_POD)), ODD)
@settings(max_examples=80)
async def test_a_pod_with_one_odd_value(path, value):
    cluster = Cluster()
    await cluster.ok("POST", RUNTIME_CLASSES, RUNTIME_CLASS)
    reply = await cluster.reply("POST", PODS, _with(RICH_POD, path, value))
    assert reply.status in {201, 400, 403, 404, 422}, reply.body


# Component statuses can only be read.
CREATED = [each for each in RESOURCES if each.plural != "componentstatuses"]


def _path(resource: ResourceType) -> str:
    return resource_path(resource, namespace="default" if resource.namespaced else None)


@given(
    st.sampled_from(CREATED),
    st.sampled_from(["spec", "status", "metadata", "data", "template", "value", "drivers"]),
    ODD | st.dictionaries(st.sampled_from(["name", "capacity", "selector", "taints"]), ODD),
)
@settings(max_examples=80)
async def test_an_object_of_any_kind_with_odd_parts(resource, key, value):
    body: dict[str, Any] = {"metadata": {"name": "a"}}
    if key == "metadata" and isinstance(value, dict):
        value = {"name": "a"} | value
    body[key] = value
    reply = await Cluster().reply("POST", _path(resource), body)
    assert reply.status in {201, 400, 403, 422}, reply.body


@given(
    st.sampled_from([MERGE, STRATEGIC]),
    st.sampled_from(_places(RICH_POD)),
    ODD,
    st.sampled_from(["", "/status"]),
)
@settings(max_examples=80)
async def test_a_patch_with_one_odd_value(content_type, path, value, subresource):
    cluster = Cluster()
    await cluster.ok("POST", RUNTIME_CLASSES, RUNTIME_CLASS)
    await cluster.ok("POST", PODS, RICH_POD)
    patch = _with(RICH_POD, path, value)
    reply = await cluster.reply("PATCH", f"{PODS}/a{subresource}", patch, content_type=content_type)
    assert reply.status in {200, 400, 403, 422}, reply.body


@given(
    st.sampled_from(["add", "remove", "replace", "move", "copy", "test", "jump", ""]),
    st.sampled_from(["", "/", "/spec", "/spec/containers/0", "/spec/containers/-", "/x/y", "a"]),
    ODD,
)
@settings(max_examples=50)
async def test_an_odd_json_patch(op, path, value):
    cluster = Cluster()
    await cluster.ok("POST", RUNTIME_CLASSES, RUNTIME_CLASS)
    await cluster.ok("POST", PODS, RICH_POD)
    patch = [{"op": op, "path": path, "from": "/metadata", "value": value}]
    reply = await cluster.reply("PATCH", f"{PODS}/a", patch, content_type=JSON_PATCH)
    assert reply.status in {200, 400, 403, 422}, reply.body


DEEP = b'{"a":' * 900 + b"1" + b"}" * 900

RAW = [
    pytest.param(b"", id="nothing"),
    pytest.param(b"\xff\xfe", id="no UTF-8"),
    pytest.param(b"null", id="null"),
    pytest.param(b'{"metadata": {"name": "a"}} trailing', id="more than one value"),
    pytest.param(b'{"metadata": {"name": 5}}', id="a name that is a number"),
    pytest.param(b'{"metadata": {"name": "a", "labels": [1]}}', id="labels that are a list"),
    pytest.param(b'{"metadata": {"generateName": 5}}', id="a prefix that is a number"),
    pytest.param(b'{"kind": 5, "apiVersion": [], "metadata": {}}', id="a kind that is a number"),
]


CALLS = [
    pytest.param("POST", PODS, "application/json", id="create"),
    pytest.param("PUT", f"{PODS}/a", "application/json", id="update"),
    pytest.param("PATCH", f"{PODS}/a", MERGE, id="merge patch"),
    pytest.param("PATCH", f"{PODS}/a", STRATEGIC, id="strategic merge patch"),
    pytest.param("PATCH", f"{PODS}/a", JSON_PATCH, id="JSON patch"),
    pytest.param("POST", f"{PODS}/a/binding", "application/json", id="binding"),
]


@pytest.mark.parametrize("body", RAW)
@pytest.mark.parametrize(("method", "path", "content_type"), CALLS)
async def test_a_body_that_cannot_be_read_is_refused_and_writes_nothing(
    method, path, content_type, body
):
    cluster = Cluster()
    await cluster.ok("POST", PODS, pod())
    before = cluster.server.store.version
    reply = await cluster.reply(method, path, body, content_type=content_type)
    assert reply.status in {400, 422}, reply.body
    assert cluster.server.store.version == before


@pytest.mark.parametrize(("method", "path", "content_type"), CALLS)
async def test_a_deeply_nested_body_is_refused(method, path, content_type):
    cluster = Cluster()
    await cluster.ok("POST", PODS, pod())
    body = b'{"metadata": {"name": "b"}, "spec": ' + DEEP + b"}"
    reply = await cluster.reply(method, path, body, content_type=content_type)
    assert reply.status in {400, 422}, reply.body


@pytest.mark.parametrize(
    ("path", "query", "expected"),
    [
        pytest.param(PODS, {"labelSelector": "a in (b"}, (400, "BadRequest"), id="half a selector"),
        pytest.param(PODS, {"labelSelector": "=,="}, (400, "BadRequest"), id="no label named"),
        pytest.param(PODS, {"fieldSelector": "spec.x=1"}, (400, "BadRequest"), id="unknown field"),
        pytest.param(PODS, {"fieldSelector": "a"}, (400, "BadRequest"), id="no field selector"),
        pytest.param(
            PODS, {"fieldSelector": "spec.x=1", "watch": "1"}, (400, "BadRequest"), id="in a watch"
        ),
        pytest.param(PODS, {"continue": "zz"}, (400, "BadRequest"), id="no continue token"),
        pytest.param(PODS, {"continue": "W10="}, (400, "BadRequest"), id="a token of a list"),
        pytest.param(PODS, {"limit": "x"}, (400, "BadRequest"), id="a limit that is a word"),
        pytest.param(PODS, {"limit": "1_0"}, (400, "BadRequest"), id="a number as in Python"),
        pytest.param(PODS, {"limit": "9" * 30}, (400, "BadRequest"), id="a limit beyond int64"),
        pytest.param(PODS, {"limit": "9" * 6000}, (400, "BadRequest"), id="an endless limit"),
        pytest.param(
            PODS, {"resourceVersion": "9" * 6000}, (400, "BadRequest"), id="an endless version"
        ),
        pytest.param(PODS, {"resourceVersion": "-1"}, (400, "BadRequest"), id="a version below 0"),
        pytest.param(PODS, {"resourceVersion": "9999"}, (504, "Timeout"), id="a future version"),
        pytest.param(
            PODS,
            {"timeoutSeconds": "9" * 40, "watch": "1"},
            (400, "BadRequest"),
            id="a watch until the end of time",
        ),
        pytest.param(
            "/api/v1/namespaces/default/foos", {}, (404, "NotFound"), id="an unknown kind"
        ),
        pytest.param(
            "/apis/apps/v1/namespaces/default/pods", {}, (404, "NotFound"), id="the wrong group"
        ),
        pytest.param("/apis/apps/v9/deployments", {}, (404, "NotFound"), id="the wrong version"),
        pytest.param("/api/v1//pods", {}, (404, "NotFound"), id="an empty part in the path"),
        pytest.param(f"{PODS}/a\0b", {}, (404, "NotFound"), id="a zero byte in the path"),
    ],
)
async def test_reads_with_faulty_parameters_are_refused(path, query, expected):
    status, body = await Cluster().call("GET", path, query=query)
    assert (status, body["reason"]) == expected
    assert (body["kind"], body["status"], body["code"]) == ("Status", "Failure", status)


async def test_a_limit_below_zero_is_no_limit():
    cluster = Cluster()
    for name in "ab":
        await cluster.ok("POST", PODS, pod(name))
    assert await cluster.names(PODS, limit="-1") == ["a", "b"]


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        pytest.param("\x00;;;q=q,,,", 406, id="garbage"),
        pytest.param("text/xml", 406, id="XML"),
        pytest.param("application/json;q=nan", 200, id="a quality that is no number"),
        pytest.param(";,", 406, id="punctuation"),
    ],
)
async def test_odd_accept_headers_are_answered_or_refused_with_406(accept, expected):
    status, body = await Cluster().call("GET", PODS, accept=accept)
    assert (status, body.get("reason", "")) == (expected, "NotAcceptable" * (expected == 406))


@pytest.mark.parametrize(
    "quantity",
    ["", "1 Gi", "0x10", "NaN", "Infinity", "1KI", ".", "+", "\u0661", "9" * 5000, True, []],
)
async def test_impossible_quantities_are_refused(quantity):
    body = _with(RICH_POD, ("spec", "containers", 0, "resources", "requests"), {"cpu": quantity})
    status, found = await Cluster().call("POST", PODS, body)
    assert (status, found["reason"]) == (400, "BadRequest")


async def test_a_node_may_be_without_allocatable():
    cluster = Cluster()
    node = await cluster.ok("POST", NODES, {"metadata": {"name": "n1"}})
    assert "allocatable" not in node["status"]


async def test_a_pod_of_another_namespace_than_the_path_is_refused():
    body = pod() | {"metadata": {"name": "a", "namespace": "kube-system"}}
    status, found = await Cluster().call("POST", PODS, body)
    assert (status, found["reason"]) == (400, "BadRequest")


async def test_a_pod_of_a_thousand_containers_is_bound_updated_and_deleted():
    cluster = Cluster()
    body = pod()
    body["spec"]["containers"] = [{"name": f"c{n}", "image": "i"} for n in range(1000)]
    await cluster.ok("POST", PODS, body)
    statuses = [{"name": f"c{n}", "ready": True, "image": "i"} for n in range(1000)]
    patch = {"status": {"phase": "Running", "containerStatuses": statuses}}
    await cluster.ok("PATCH", f"{PODS}/a/status", patch, content_type=STRATEGIC)
    await cluster.ok("POST", f"{PODS}/a/binding", binding())
    found = await cluster.ok("GET", f"{PODS}/a")
    assert (len(found["spec"]["containers"]), found["spec"]["nodeName"]) == (1000, "n1")


async def test_each_of_a_thousand_duplicate_container_names_is_reported():
    body = pod()
    body["spec"]["containers"] = [{"name": "c", "image": "i"}] * 1000
    status, found = await Cluster().call("POST", PODS, body)
    assert (status, len(found["details"]["causes"])) == (422, 999)


@pytest.mark.timeout(30)
async def test_a_large_strategic_patch_is_not_slow():
    # 15000 conditions took minutes when each was looked for among the others.
    cluster = Cluster()
    await cluster.ok("POST", PODS, pod())
    names = [{"type": f"t{n}"} for n in range(15_000)]
    conditions = [each | {"status": "True"} for each in names]
    patch = {"status": {"$setElementOrder/conditions": names, "conditions": conditions}}
    for _ in range(2):
        found = await cluster.ok("PATCH", f"{PODS}/a/status", patch, content_type=STRATEGIC)
        assert len(found["status"]["conditions"]) == 15_000


@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    "operations",
    [
        pytest.param(
            [{"op": "add", "path": "/metadata/annotations", "value": {"a": "x" * 1000}}]
            + [{"op": "copy", "from": "/metadata", "path": f"/metadata/{n}"} for n in range(30)],
            id="each copies all before it",
        ),
        pytest.param(
            [{"op": "add", "path": "/metadata/labels", "value": {}}] * 10_001, id="10001 operations"
        ),
    ],
)
async def test_a_json_patch_that_grows_without_end_is_refused(operations):
    cluster = Cluster()
    before = await cluster.ok("POST", PODS, pod())
    status, found = await cluster.call("PATCH", f"{PODS}/a", operations, content_type=JSON_PATCH)
    assert (status, found["reason"]) == (413, "RequestEntityTooLarge")
    assert unowned(await cluster.ok("GET", f"{PODS}/a")) == unowned(before)


@pytest.mark.parametrize(
    "when",
    ["0001-01-01T00:00:00Z", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59.999999-23:59"],
)
async def test_times_at_the_ends_of_the_calendar_are_stored_unchanged(when):
    body = {"metadata": {"name": "e"}, "involvedObject": {}, "lastTimestamp": when}
    found = await Cluster().ok("POST", "/api/v1/namespaces/default/events", body)
    assert found["lastTimestamp"] == when


@pytest.mark.parametrize("grace", ["x", 2**70, 1.5, []])
async def test_a_grace_period_that_is_no_whole_number_is_refused(grace):
    cluster = Cluster()
    await cluster.ok("POST", PODS, pod())
    status, found = await cluster.call("DELETE", f"{PODS}/a", {"gracePeriodSeconds": grace})
    assert (status, found["reason"]) == (400, "BadRequest")


@pytest.mark.parametrize(
    ("text", "status"),
    [("invalid", 400), ("5", 400), ("3m", 200), ("1h2.5s", 200), ("0s", 200), ("0", 200)],
)
async def test_a_timeout_of_a_call_is_a_duration(text, status):
    found, answer = await Cluster().call("GET", "/version", query={"timeout": text})
    assert found == status
    if status == 400:
        told = f'invalid timeout specified in the request URL - time: invalid duration "{text}"'
        assert answer["message"] == told
