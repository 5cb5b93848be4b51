"""``metrics.k8s.io``: usage by annotation or request, of pods and of nodes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from moorage.base import aio
from moorage.base.clock import rfc3339
from sandbox.tests.apiserver.harness import NODES, Cluster
from tests.apiserver_kubelet.pods import RUNNING, TERMINATED, store_pod

BASE = "/apis/metrics.k8s.io/v1beta1"
OF_PODS = f"{BASE}/namespaces/default/pods"


async def read(cluster: Cluster, path: str, **query: str) -> tuple[int, Any]:
    """HTTP status and body, read to the end where it is streamed."""
    reply = await cluster.reply("GET", path, query=query)
    body = reply.body
    if not isinstance(body, bytes):
        body = b"".join([chunk async for chunk in body])
    return reply.status, json.loads(body)


def usages(body: Any) -> dict[str, dict[str, tuple[str, str]]]:
    """Pod to container to cpu and memory."""
    return {
        each["metadata"]["name"]: {
            c["name"]: (c["usage"]["cpu"], c["usage"]["memory"]) for c in each["containers"]
        }
        for each in body["items"]
    }


async def stored() -> Cluster:
    cluster = Cluster()
    for name in ("node-01", "node-02"):
        node = {"metadata": {"name": name, "labels": {"disk": name}}}
        assert (await cluster.call("POST", NODES, node))[0] == 201
    await store_pod(cluster, "asks", labels={"app": "a"})
    two = {"a": RUNNING, "b": RUNNING}
    told = {
        "moorage.dev/cpu-usage": "250m",
        "moorage.dev/cpu-usage.b": "1",
        "moorage.dev/memory-usage.b": "1Gi",
        "moorage.dev/memory-usage": "a lot",
    }
    await store_pod(cluster, "says", containers=two, annotations=told)
    await store_pod(cluster, "half", node="node-02", containers={"a": RUNNING, "b": None})
    await store_pod(cluster, "over", containers={"main": {"state": TERMINATED}}, phase="Failed")
    await store_pod(cluster, "crashed", containers={"main": {"state": TERMINATED}})
    return cluster


async def test_the_usage_of_pods_is_listed():
    cluster = await stored()
    code, body = await read(cluster, OF_PODS)
    assert (code, body["kind"], body["apiVersion"]) == (
        200,
        "PodMetricsList",
        "metrics.k8s.io/v1beta1",
    )
    assert usages(body) == {
        "asks": {"main": ("100m", "64Mi")},
        "says": {"a": ("250m", "64Mi"), "b": ("1", "1Gi")},
        "half": {"a": ("100m", "64Mi")},
    }
    assert (await read(cluster, f"{BASE}/pods"))[1]["items"] == body["items"]
    now = rfc3339(cluster.clock.now_ns())
    assert (await read(cluster, f"{OF_PODS}/asks"))[1] == {
        "kind": "PodMetrics",
        "apiVersion": "metrics.k8s.io/v1beta1",
        "metadata": {
            "name": "asks",
            "namespace": "default",
            "creationTimestamp": now,
            "labels": {"app": "a"},
        },
        "timestamp": now,
        "window": "15s",
        "containers": [{"name": "main", "usage": {"cpu": "100m", "memory": "64Mi"}}],
    }


async def test_the_usage_of_nodes_is_listed():
    cluster = await stored()
    _, body = await read(cluster, f"{BASE}/nodes")
    assert {each["metadata"]["name"]: each["usage"] for each in body["items"]} == {
        "node-01": {"cpu": "1350m", "memory": "1152Mi"},
        "node-02": {"cpu": "100m", "memory": "64Mi"},
    }
    _, one = await read(cluster, f"{BASE}/nodes/node-01")
    assert (one["kind"], one["usage"]) == ("NodeMetrics", body["items"][0]["usage"])


@pytest.mark.parametrize(
    ("path", "query", "names"),
    [
        (OF_PODS, {"labelSelector": "app=a"}, ["asks"]),
        (OF_PODS, {"fieldSelector": "metadata.name=says"}, ["says"]),
        (f"{BASE}/namespaces/other/pods", {}, []),
        (f"{BASE}/nodes", {"labelSelector": "disk=node-02"}, ["node-02"]),
    ],
)
async def test_metrics_are_filtered_by_selectors(path, query, names):
    _, body = await read(await stored(), path, **query)
    assert [each["metadata"]["name"] for each in body["items"]] == names


@pytest.mark.parametrize(
    ("path", "query", "code", "message"),
    [
        (f"{OF_PODS}/gone", {}, 404, 'pods.metrics.k8s.io "default/gone" not found'),
        (f"{OF_PODS}/over", {}, 404, 'pods.metrics.k8s.io "default/over" not found'),
        (f"{BASE}/nodes/gone", {}, 404, 'nodes.metrics.k8s.io "gone" not found'),
        (OF_PODS, {"watch": "true"}, 405, "the server does not allow this method on the"),
        (OF_PODS, {"labelSelector": "a in b"}, 400, ""),
        (OF_PODS, {"fieldSelector": "spec.nodeName=a"}, 400, "field label not supported"),
        (f"{BASE}/others", {}, 404, "the server could not find the requested resource"),
    ],
)
async def test_metrics_calls_that_cannot_be_answered_are_refused(path, query, code, message):
    found, body = await read(await stored(), path, **query)
    assert found == code
    assert body.get("message", "").startswith(message)


async def test_a_long_metrics_list_yields_to_other_calls():
    cluster = Cluster()
    for number in range(500):
        await store_pod(cluster, f"p{number}")
    reply = await cluster.reply("GET", OF_PODS)
    turns = 0
    assert not isinstance(reply.body, bytes)
    async for _ in reply.body:
        turns += 1
        await aio.sleep(0)
    assert turns == 7, "head, five times a hundred pods, end"


async def test_discovery_lists_the_group():
    cluster = Cluster()
    _, groups = await cluster.call("GET", "/apis")
    assert "metrics.k8s.io" in [each["name"] for each in groups["groups"]]
    _, body = await cluster.call("GET", BASE)
    assert [(each["name"], each["kind"], each["verbs"]) for each in body["resources"]] == [
        ("nodes", "NodeMetrics", ["get", "list"]),
        ("pods", "PodMetrics", ["get", "list"]),
    ]


@pytest.mark.parametrize(
    ("path", "rows"),
    [
        pytest.param(OF_PODS, ["asks", "half", "says"], id="pods"),
        pytest.param(f"{OF_PODS}/says", ["says"], id="a pod"),
        pytest.param(f"{BASE}/nodes", ["node-01", "node-02"], id="nodes"),
    ],
)
async def test_a_table_shows_what_each_pod_and_node_uses(path: str, rows: list[str]):
    cluster = await stored()
    table = "application/json;as=Table;g=meta.k8s.io;v=v1,application/json"
    reply = await cluster.reply("GET", path, accept=table)
    body = reply.body
    if not isinstance(body, bytes):
        body = b"".join([chunk async for chunk in body])
    found = json.loads(body)
    assert (found["kind"], found["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    names = [each["name"] for each in found["columnDefinitions"]]
    assert names == ["Name", "cpu", "memory", "Window"]
    assert [each["cells"][0] for each in found["rows"]] == rows
    for row in found["rows"]:
        _, one = await read(cluster, path if path.endswith("says") else f"{path}/{row['cells'][0]}")
        assert row["object"]["metadata"] == one["metadata"]
    if "says" in rows:
        # The containers use 250m and 1 core, 64 MiB and 1 GiB.
        assert found["rows"][-1]["cells"][1:] == ["1250m", "1088Mi", "15s"]
