"""Whatever is sent, the answer is a refusal or a success, never a fault of the server."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.api.resources import ResourceType, resource_path
from moorage.apiserver.kinds import all_kinds
from tests.apiserver.harness import JSON_PATCH, MERGE, PODS, STRATEGIC, Cluster, pod

RESOURCES = [kind.resource for kind in all_kinds()]

# Values that are wrong nearly everywhere, and a few that are right somewhere.
ODD: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, 0, -1, 2**70, 1.5, "", "x", "-", "1Gi", "a/b/c", [], [None], [[]], {}, {"a": {}}]
)
_SELECTOR = {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}

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
@settings(max_examples=150)
async def test_a_pod_with_one_odd_value(path, value):
    reply = await Cluster().reply("POST", PODS, _with(RICH_POD, path, value))
    assert reply.status in {201, 400, 403, 404, 422}, reply.body


def _path(resource: ResourceType) -> str:
    return resource_path(resource, namespace="default" if resource.namespaced else None)


@given(
    st.sampled_from(RESOURCES),
    st.sampled_from(["spec", "status", "metadata", "data", "template", "value", "drivers"]),
    ODD | st.dictionaries(st.sampled_from(["name", "capacity", "selector", "taints"]), ODD),
)
@settings(max_examples=150)
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
@settings(max_examples=150)
async def test_a_patch_with_one_odd_value(content_type, path, value, subresource):
    cluster = Cluster()
    await cluster.ok("POST", PODS, RICH_POD)
    patch = _with(RICH_POD, path, value)
    reply = await cluster.reply("PATCH", f"{PODS}/a{subresource}", patch, content_type=content_type)
    assert reply.status in {200, 400, 403, 422}, reply.body


@given(
    st.sampled_from(["add", "remove", "replace", "move", "copy", "test", "jump", ""]),
    st.sampled_from(["", "/", "/spec", "/spec/containers/0", "/spec/containers/-", "/x/y", "a"]),
    ODD,
)
@settings(max_examples=100)
async def test_an_odd_json_patch(op, path, value):
    cluster = Cluster()
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
async def test_raw_bodies(method, path, content_type, body):
    cluster = Cluster()
    await cluster.ok("POST", PODS, pod())
    before = cluster.server.store.version
    reply = await cluster.reply(method, path, body, content_type=content_type)
    assert reply.status in {400, 422}, reply.body
    assert cluster.server.store.version == before


@pytest.mark.parametrize(("method", "path", "content_type"), CALLS)
async def test_nesting_beyond_reason(method, path, content_type):
    cluster = Cluster()
    await cluster.ok("POST", PODS, pod())
    body = b'{"metadata": {"name": "b"}, "spec": ' + DEEP + b"}"
    reply = await cluster.reply(method, path, body, content_type=content_type)
    assert reply.status in {400, 422}, reply.body
