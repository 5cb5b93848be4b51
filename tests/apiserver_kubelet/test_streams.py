"""``exec``, ``attach``, ``portforward`` and ``proxy`` are refused with a message that says why."""

from __future__ import annotations

import pytest

from sandbox.tests.apiserver.harness import NODES, PODS, Cluster
from tests.apiserver_kubelet.pods import RUNNING, store_pod

SERVICES = "/api/v1/namespaces/default/services"


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize(
    ("word", "about"),
    [
        ("exec", "container main of pod web"),
        ("attach", "container main of pod web"),
        ("portforward", "pod web"),
    ],
)
async def test_a_stream_is_refused(word, about, method):
    cluster = Cluster()
    await store_pod(cluster)
    code, body = await cluster.call(method, f"{PODS}/web/{word}", query={"command": "ls"})
    assert (code, body["reason"], body["message"]) == (
        501,
        "NotImplemented",
        f"{word} is not possible: node node-01 plays {about} and runs no process; "
        "moorage's nodes run no containers",
    )


@pytest.mark.parametrize(
    ("name", "method", "query", "code", "message"),
    [
        ("gone", "POST", {}, 404, 'pods "gone" not found'),
        ("two", "POST", {}, 400, "a container name must be specified for pod two, choose one of"),
        ("two", "POST", {"container": "c"}, 400, "container c is not valid for pod two"),
        ("new", "POST", {}, 400, "pod new does not have a host assigned"),
        ("two", "PUT", {}, 405, "the server does not allow this method"),
    ],
)
async def test_exec_calls_are_checked_before_the_stream_is_refused(
    name, method, query, code, message
):
    cluster = Cluster()
    await store_pod(cluster, "two", containers={"a": RUNNING, "b": RUNNING})
    await store_pod(cluster, "new", node="", containers={"main": None}, phase="Pending")
    found, body = await cluster.call(method, f"{PODS}/{name}/exec", query=query)
    assert found == code
    assert body["message"].startswith(message)


async def test_discovery_lists_the_subresources():
    _, body = await Cluster().call("GET", "/api/v1")
    found = {each["name"]: (each["kind"], each["verbs"]) for each in body["resources"]}
    both = ["create", "get"]
    assert {name: found[f"pods/{name}"] for name in ("attach", "exec", "log", "portforward")} == {
        "attach": ("PodAttachOptions", both),
        "exec": ("PodExecOptions", both),
        "log": ("Pod", ["get"]),
        "portforward": ("PodPortForwardOptions", both),
    }


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
@pytest.mark.parametrize(
    ("path", "about"),
    [
        pytest.param(f"{PODS}/web/proxy", "pod web", id="a pod"),
        pytest.param(f"{PODS}/http:web:80/proxy/a/b", "pod web", id="a port and a path of a pod"),
        pytest.param(f"{SERVICES}/shop/proxy", "service shop", id="a service"),
        pytest.param(f"{SERVICES}/shop:http/proxy/", "service shop", id="a port of a service"),
        pytest.param(f"{NODES}/node-01/proxy/stats/summary", "node node-01", id="a node"),
    ],
)
async def test_a_proxy_call_is_answered_as_for_a_dead_backend(path, about, method):
    cluster = Cluster()
    await store_pod(cluster)
    await cluster.ok("POST", NODES, {"metadata": {"name": "node-01"}})
    service = {"metadata": {"name": "shop"}, "spec": {"ports": [{"port": 80}]}}
    await cluster.ok("POST", SERVICES, service)
    code, body = await cluster.call(method, path)
    assert (code, body["reason"], body["message"]) == (
        503,
        "ServiceUnavailable",
        f"error trying to reach service: nothing listens at the address of {about}; moorage's "
        "nodes run no containers",
    )


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (f"{PODS}/gone:80/proxy", 'pods "gone" not found'),
        (f"{NODES}/gone/proxy", 'nodes "gone" not found'),
        (f"{PODS}/gone/nosuch", "the server could not find the requested resource"),
    ],
)
async def test_a_proxy_of_an_unknown_object_is_not_found(path, message):
    code, body = await Cluster().call("GET", path)
    assert (code, body["message"]) == (404, message)
