"""``exec``, ``attach`` and ``portforward`` are refused, each with a message that says why."""

from __future__ import annotations

import pytest

from tests.apiserver.harness import PODS, Cluster
from tests.apiserver_kubelet.pods import RUNNING, store_pod


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
async def test_what_a_real_server_checks_first(name, method, query, code, message):
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
