"""Whatever is drawn is read, refused or answered; nothing escapes and nothing hangs."""

from __future__ import annotations

import asyncio
import contextlib
import json
from pathlib import Path
from typing import Any

import pytest

from moorage.api.manifest_text import parse_manifests
from moorage.api.yaml_text import read_yaml, write_yaml
from moorage.base.errors import DecodeError, UsageError
from moorage.client.kubeconfig_file import parse_kubeconfig
from moorage.config.load import parse_config
from moorage.nodeshapes.templates import load_nodes
from sandbox.tests.apiserver.crd import CARS, DEFINITIONS, car, definition
from sandbox.tests.apiserver.harness import (
    CONFIG_MAPS,
    JSON_PATCH,
    MERGE,
    NODES,
    PODS,
    STRATEGIC,
    Cluster,
    binding,
    config_map,
    pod,
)
from sandbox.tests.apiserver.test_bad_input import RICH_POD
from tests.attack.fuzz import SEED, draws, mutated_bytes, mutated_value
from tests.attack.wire import SECRET, listening

YAML = "application/yaml"
APPLY = "application/apply-patch+yaml"

CONFIG = b"""apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaseDuration: 15s, renewDeadline: 10s}
profiles:
- schedulerName: a
  percentageOfNodesToScore: 50
  plugins: {score: {enabled: [{name: NodeResourcesFit, weight: 3}], disabled: [{name: "*"}]}}
  pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: LeastAllocated, resources: [{name: cpu, weight: 1}]}}
---
apiVersion: moorage.dev/v1alpha1
kind: MoorageConfiguration
pluginBudgetSeconds: 1
"""
KUBECONFIG = b"""apiVersion: v1
kind: Config
current-context: a
clusters: [{name: a, cluster: {server: "https://x", certificate-authority-data: YQ==}}]
users: [{name: a, user: {token: t, exec: {command: c, args: [x], env: [{name: a, value: b}]}}}]
contexts: [{name: a, context: {cluster: a, user: a, namespace: n}}]
"""
MANIFEST = b"""# two objects
apiVersion: v1
kind: Pod
metadata: &m {name: a, labels: {on: "yes", 1: x}}
spec:
  containers:
  - {name: c, image: "nginx:1", command: [sh, -c, 'exit 0']}
---
{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: ConfigMap, metadata: {<<: *m}}]}
"""
NODE = b"""kind: List
items:
- kind: Node
  metadata: {name: a, labels: {x: y}}
  status: {capacity: {cpu: "4", memory: 8Gi}, allocatable: {cpu: 3500m}}
"""


def _nodes(text: bytes, folder: Path) -> None:
    path = folder / "nodes"
    path.write_bytes(text)
    load_nodes(path)


@pytest.mark.parametrize(
    ("name", "text", "read"),
    [
        pytest.param("yaml", MANIFEST, lambda text, _: read_yaml(text), id="YAML"),
        pytest.param(
            "config", CONFIG, lambda text, _: parse_config(text.decode(errors="replace")),
            id="a configuration",
        ),
        pytest.param("kubeconfig", KUBECONFIG, parse_kubeconfig, id="a kubeconfig"),
        pytest.param("manifest", MANIFEST, lambda t, _: parse_manifests(t, "x"), id="manifests"),
        pytest.param("nodes", NODE, _nodes, id="nodes"),
    ],
)  # fmt: skip
def test_a_random_file_is_read_or_refused(name: str, text: bytes, read: Any, tmp_path: Path):
    for run, rng in draws(name):
        changed = mutated_bytes(text, rng)
        if rng.random() < 0.3:
            with contextlib.suppress(DecodeError):
                values = [mutated_value(each, rng) for each in read_yaml(text)]
                changed = json.dumps(values[0]).encode()
        try:
            read(changed, tmp_path)
        except (UsageError, DecodeError):
            pass
        except Exception as error:
            pytest.fail(f"seed {SEED}, run {run}: {type(error).__name__}: {error}\n{changed!r}")


OBJECTS: list[tuple[str, Any]] = [
    (PODS, RICH_POD),
    (PODS, pod("b")),
    (CONFIG_MAPS, config_map("b", k="v")),
    (NODES, {"kind": "Node", "metadata": {"name": "b"}, "status": {"capacity": {"cpu": "1"}}}),
    (CARS, car("b", color="red", doors=[{"name": "d"}], tags=["a"], port=1, limits={"a": 1.5})),
    (DEFINITIONS, definition()),
    (f"{PODS}/a/binding", binding("a")),
    (f"{PODS}/a/eviction", {"metadata": {"name": "a"}, "deleteOptions": {"dryRun": ["All"]}}),
    ("/apis/authorization.k8s.io/v1/subjectaccessreviews",
     {"spec": {"user": "u", "groups": ["g"], "resourceAttributes": {"verb": "get"}}}),
    ("/apis/rbac.authorization.k8s.io/v1/clusterroles",
     {"metadata": {"name": "r"}, "rules": [{"verbs": ["get"], "apiGroups": [""]}],
      "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}}),
    ("/apis/apps/v1/namespaces/default/deployments",
     {"metadata": {"name": "d"}, "spec": {"replicas": 1, "selector": {"matchLabels": {"a": "b"}},
      "template": {"metadata": {"labels": {"a": "b"}}, "spec": pod()["spec"]}}}),
]  # fmt: skip
PATCHES: list[tuple[str, Any]] = [
    (MERGE, {"metadata": {"labels": {"a": "b"}}, "spec": {"x": None}}),
    (STRATEGIC, {"spec": {"$setElementOrder/containers": [{"name": "c"}],
                          "containers": [{"name": "c", "$patch": "delete"}]}}),
    (JSON_PATCH, [{"op": "add", "path": "/metadata/labels", "value": {"a": "b"}},
                  {"op": "copy", "from": "/metadata", "path": "/spec/x"},
                  {"op": "test", "path": "/metadata/name", "value": "a"},
                  {"op": "move", "from": "/spec/containers/0", "path": "/spec/containers/-"}]),
    (APPLY, pod("a")),
]  # fmt: skip
OPTIONS = ["fieldManager", "force", "dryRun", "fieldValidation", "limit", "continue", "watch",
           "resourceVersion", "resourceVersionMatch", "labelSelector", "fieldSelector",
           "timeoutSeconds", "gracePeriodSeconds", "propagationPolicy", "sendInitialEvents",
           "allowWatchBookmarks", "pretty", "orphanDependents", "includeObject"]  # fmt: skip
TEXTS = [
    *("", "0", "1", "-1", "true", "All", "Strict", "9" * 30, "a=b", "a in (", "!", "x", "\ufffd"),
    *("metadata.name=a", "spec.nodeName!=", "Exact", "NotOlderThan", "Background", "1.5"),
]


def kept_from_clients(found: Any) -> bool:
    """Whether a 500 is one of upstream's own: it has no reason."""
    return str(found.get("message", "")).startswith(
        ("resourceVersion should not be set", "failed to create typed patch object")
    )


async def _send(cluster: Cluster, rng: Any) -> tuple[int, Any, Any]:
    path, obj = rng.choice(OBJECTS)
    method, form = rng.choice(["POST", "PUT", "PATCH", "GET", "DELETE"]), "application/json"
    body = mutated_value(obj, rng)
    if method == "PATCH":
        form, patch = rng.choice(PATCHES)
        body = mutated_value(rng.choice([patch, obj if form != JSON_PATCH else patch]), rng)
    if method != "POST" and "/a/" not in path:
        path += rng.choice(["", "/a", "/b", "/a/status", "/a/scale", "/b/status", "/a/x/y"])
    if rng.random() < 0.2:
        body = mutated_bytes(json.dumps(obj).encode(), rng)
    elif rng.random() < 0.2 and method != "PATCH":
        with contextlib.suppress(UnicodeError):
            form, body = YAML, mutated_bytes(write_yaml(obj).encode(), rng)
    query = {rng.choice(OPTIONS): rng.choice(TEXTS) for _ in range(rng.randrange(3))}
    accept = rng.choice(["application/json", YAML, "application/json;as=Table;g=meta.k8s.io;v=v1"])
    reply = await cluster.reply(
        method, path, body, query=query, content_type=form, accept=accept,
        user_agent=rng.choice(["a/1", "\udcff", ""]),
    )  # fmt: skip
    if not isinstance(reply.body, bytes):
        close: Any = getattr(reply.body, "aclose", None)
        await close()
        return reply.status, {}, body
    found = read_yaml(reply.body)[0] if reply.body[:1] not in b"{" else json.loads(reply.body)
    return reply.status, found, (method, path, query, form, body)


@pytest.mark.parametrize("part", range(4))
async def test_a_random_call_is_answered_without_an_internal_error(part: int):
    cluster = Cluster()
    await cluster.ok("POST", DEFINITIONS, definition())
    await cluster.ok("POST", NODES, {"kind": "Node", "metadata": {"name": "a"}})
    for path, obj in [(PODS, pod()), (CONFIG_MAPS, config_map()), (CARS, car(color="red"))]:
        await cluster.ok("POST", path, obj)
    for run, rng in draws(f"call {part}"):
        status, found, sent = await _send(cluster, rng)
        fault = status >= 500 and status != 504 and not kept_from_clients(found)
        assert not fault, f"seed {SEED}, part {part}, run {run}: {found}\n{sent!r}"


HEAD = (
    b"POST /api/v1/namespaces/default/configmaps?dryRun=All HTTP/1.1\r\nHost: x\r\n" + SECRET
    + b"\r\nContent-Type: application/json\r\nAccept: application/json;q=0.5, */*\r\n"
    b"User-Agent: kubectl/v1.36 (linux/amd64)\r\nImpersonate-User: system:serviceaccount:a:b\r\n"
    b"Impersonate-Group: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"1f\r\n{\"metadata\":{\"generateName\":\"a\"}}\r\n0\r\n\r\n"
)  # fmt: skip


async def test_random_bytes_on_a_connection_do_not_end_the_server(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    async with listening(tmp_path) as wire:
        for run, rng in draws("head"):
            reader, writer = await wire.connect()
            writer.write(mutated_bytes(HEAD, rng))
            with contextlib.suppress(OSError):
                writer.write_eof()
                async with asyncio.timeout(20):
                    answer = await reader.read()
                assert b" 500 " not in answer[:20], f"seed {SEED}, run {run}: {answer!r}"
            writer.close()
        assert (await wire.send(b"GET /readyz")).body == b"ok"
    assert [each for each in caplog.records if each.levelname == "ERROR"] == []
