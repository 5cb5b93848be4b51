"""Bodies and answers in YAML, as people send them with curl."""

from __future__ import annotations

import json

import pytest
import yaml

from moorage.api.yaml_text import write_yaml
from moorage_sandbox.apiserver.wire.negotiate import accepts_yaml
from moorage_sandbox.apiserver.wire.requests import Reply
from moorage_sandbox.apiserver.wire.yaml_calls import WRITTEN_BYTES_MAX
from sandbox.tests.apiserver.harness import CONFIG_MAPS, MERGE, PODS, Cluster, config_map

YAML = "application/yaml"
POD = b"""
# A pod, as people write it.
kind: Pod
metadata:
  name: a
  labels: {on: "yes"}
spec:
  containers:
  - name: c
    image: nginx:1
"""


def _bytes(reply: Reply) -> bytes:
    assert isinstance(reply.body, bytes)
    return reply.body


async def test_an_object_is_made_from_yaml():
    cluster = Cluster()
    made = await cluster.ok("POST", PODS, POD, content_type=f"{YAML}; charset=utf-8")
    assert (made["kind"], made["metadata"]["labels"]) == ("Pod", {"true": "yes"})
    made["metadata"]["labels"] = {"b": "c"}
    changed = await cluster.ok("PUT", f"{PODS}/a", write_yaml(made).encode(), content_type=YAML)
    assert changed["metadata"]["labels"] == {"b": "c"}
    options = b"gracePeriodSeconds: 0"
    await cluster.ok("DELETE", f"{PODS}/a", options, content_type=YAML)
    assert await cluster.names(PODS) == []


async def test_a_subresource_takes_yaml():
    cluster = Cluster()
    await cluster.ok("POST", PODS, POD, content_type=YAML)
    binding = b"{kind: Binding, apiVersion: v1, metadata: {name: a}, target: {name: n1}}"
    await cluster.ok("POST", f"{PODS}/a/binding", binding, content_type=YAML)
    assert (await cluster.ok("GET", f"{PODS}/a"))["spec"]["nodeName"] == "n1"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        pytest.param(b"a: [", None, id="not YAML"),
        pytest.param(
            b"? [1]\n: 2\n",
            "yaml: line 1, column 3: invalid map key: a key is neither text nor a number",
            id="a list for a key",
        ),
        pytest.param(
            b"[" * 30_000 + b"]" * 30_000,
            "yaml: line 1, column 201: nested deeper than 200 levels",
            id="30,000 brackets",
        ),
        pytest.param(b"a: 1\n---\nb: 2\n", None, id="two documents"),
        pytest.param(b"a: \xff", None, id="not UTF-8"),
    ],
)
async def test_a_body_that_is_no_yaml_is_refused(body, message):
    status, found = await Cluster().call("POST", PODS, body, content_type=YAML)
    assert (status, found["reason"]) == (400, "BadRequest")
    assert message is None or found["message"] == message


async def test_a_patch_in_plain_yaml_is_refused():
    cluster = Cluster()
    await cluster.ok("POST", CONFIG_MAPS, config_map())
    status, found = await cluster.call("PATCH", f"{CONFIG_MAPS}/a", b"data: {}", content_type=YAML)
    assert (status, found["reason"]) == (415, "UnsupportedMediaType")


async def test_yaml_of_an_unauthenticated_call_is_not_parsed():
    reply = await Cluster().reply("POST", PODS, b"a: [", user=None, content_type=YAML)
    assert reply.status == 401


@pytest.mark.parametrize(
    ("path", "options"),
    [
        pytest.param(CONFIG_MAPS, {}, id="a list"),
        pytest.param(f"{CONFIG_MAPS}/a", {}, id="an object"),
        pytest.param(f"{CONFIG_MAPS}/nosuch", {}, id="a failure"),
        pytest.param("/apis", {}, id="a document"),
        pytest.param(CONFIG_MAPS, {"accept": f"{YAML};as=Table;g=meta.k8s.io;v=v1"}, id="a table"),
    ],
)
async def test_an_answer_in_yaml_equals_the_answer_in_json(path, options):
    cluster = Cluster()
    await cluster.ok("POST", CONFIG_MAPS, config_map(y="n", t="2026-01-01", lines="a\nb\n"))
    accept = options.get("accept", YAML)
    reply = await cluster.reply("GET", path, accept=accept)
    plain = await cluster.reply("GET", path, accept=accept.replace("yaml", "json"))
    assert (reply.status, reply.content_type) == (plain.status, YAML)
    assert yaml.safe_load(_bytes(reply)) == json.loads(_bytes(plain))


async def test_a_long_answer_in_yaml_is_written_as_json():
    cluster = Cluster()
    await cluster.ok("POST", CONFIG_MAPS, config_map(big="x" * WRITTEN_BYTES_MAX))
    reply = await cluster.reply("GET", f"{CONFIG_MAPS}/a", accept=YAML)
    assert reply.content_type == YAML
    assert json.loads(_bytes(reply))["data"]["big"] == "x" * WRITTEN_BYTES_MAX


async def test_a_watch_is_served_in_json_only():
    cluster = Cluster()
    reply = await cluster.reply("GET", CONFIG_MAPS, query={"watch": "1"}, accept=YAML)
    assert yaml.safe_load(_bytes(reply))["code"] == reply.status == 406
    watch = await cluster.watch(CONFIG_MAPS, accept=f"{YAML},application/json")
    await watch.close()


async def test_health_is_served_as_plain_text_to_a_yaml_client():
    reply = await Cluster().reply("GET", "/healthz", accept=YAML)
    assert (reply.body, reply.content_type) == (b"ok", "text/plain; charset=utf-8")


async def test_a_merge_patch_may_be_answered_in_yaml():
    cluster = Cluster()
    await cluster.ok("POST", CONFIG_MAPS, config_map())
    body = {"data": {"k": "v"}}
    reply = await cluster.reply("PATCH", f"{CONFIG_MAPS}/a", body, content_type=MERGE, accept=YAML)
    assert yaml.safe_load(_bytes(reply))["data"] == {"k": "v"}


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        pytest.param("", False, id="anything"),
        pytest.param("*/*", False, id="anything by name"),
        pytest.param("application/yaml", True, id="YAML only"),
        pytest.param("application/json,application/yaml", False, id="JSON first"),
        pytest.param("application/json;q=0.1,application/yaml", True, id="JSON second"),
        pytest.param(
            "application/vnd.kubernetes.protobuf,application/yaml", True, id="protobuf first"
        ),
        pytest.param(
            "application/yaml;as=Nothing;g=meta.k8s.io;v=v1,application/json",
            False,
            id="a form that is not served in YAML",
        ),
    ],
)
def test_the_accept_header_prefers_yaml_over_other_types(accept, expected):
    assert accepts_yaml(accept) is expected
