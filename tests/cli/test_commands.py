"""The everyday commands against a real sandbox: what they print and how they end."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from moorage_sandbox.testing.builders import pod_manifest
from tests.cli.conftest import Type, errors

pytestmark = pytest.mark.slow

MANIFEST = """
apiVersion: v1
kind: Pod
metadata:
  name: web
  namespace: {namespace}
  labels: {{app: web{more}}}
spec:
  containers:
    - {{name: main, image: "nginx:{tag}", resources: {{requests: {{cpu: 100m}}}}}}
---
apiVersion: v1
kind: Pod
metadata: {{name: giant, namespace: {namespace}}}
spec:
  containers:
    - {{name: main, image: "nginx:1", resources: {{requests: {{cpu: "64"}}}}}}
"""


def manifest(namespace: str, *, tag: int = 1, more: str = "") -> str:
    return MANIFEST.format(namespace=namespace, tag=tag, more=more)


@pytest.fixture
def namespace(typed: Type, request: pytest.FixtureRequest) -> str:
    """Return a new namespace."""
    name = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower())[:50].strip("-")
    text = f"{{apiVersion: v1, kind: Namespace, metadata: {{name: {name}}}}}"
    assert typed("apply", "-f", "-", stdin=text).stdout == f"namespace/{name} created\n"
    return str(name)


def get_json(typed: Type, *words: str) -> Any:
    result = typed("get", *words, "-o", "json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def until_running(typed: Type, namespace: str) -> None:
    """Look until the pod runs; the sandbox takes its time, the test's own timeout is the bound."""
    wakened = threading.Event()
    while get_json(typed, "pod", "web", "-n", namespace)["status"]["phase"] != "Running":
        wakened.wait(0.05)


def until_rejected(typed: Type, namespace: str) -> None:
    """Look until the condition of the pod that fits nowhere is written, its last change."""
    wakened = threading.Event()
    while not get_json(typed, "pod", "giant", "-n", namespace)["status"].get("conditions"):
        wakened.wait(0.05)


def own_labels(pod: Mapping[str, Any]) -> dict[str, str]:
    """Leave out zone and region: a pod has them of its node as soon as it is bound."""
    labels: Mapping[str, str] = pod["metadata"]["labels"]
    return {k: v for k, v in labels.items() if not k.startswith("topology.kubernetes.io/")}


def test_apply_takes_an_exported_object_as_kubectl_does(typed: Type, namespace: str) -> None:
    assert typed("apply", "-f", "-", stdin=manifest(namespace)).exit_code == 0
    until_rejected(typed, namespace)
    exported = typed("get", "pod", "giant", "-n", namespace, "-o", "json").stdout
    again = typed("apply", "-f", "-", stdin=exported)
    assert again.stdout in ("pod/giant unchanged\n", "pod/giant configured\n"), again.stderr
    assert typed("delete", "pod", "giant", "-n", namespace, "--grace-period", "0").exit_code == 0
    created = typed("apply", "-f", "-", stdin=exported)
    assert (created.exit_code, created.stdout) == (0, "pod/giant created\n"), created.stderr


def test_apply_creates_changes_and_leaves_alone(typed: Type, namespace: str) -> None:
    def apply(text: str, *options: str) -> str:
        result = typed("apply", "-f", "-", *options, stdin=text)
        assert result.exit_code == 0, result.output
        return result.stdout

    assert apply(manifest(namespace)) == "pod/web created\npod/giant created\n"
    assert apply(manifest(namespace)) == "pod/web unchanged\npod/giant unchanged\n"
    changed = manifest(namespace, tag=2, more=", tier: front")
    assert apply(changed) == "pod/web configured\npod/giant unchanged\n"
    pod = get_json(typed, "pod", "web", "-n", namespace)
    assert own_labels(pod) == {"app": "web", "tier": "front"}
    assert pod["spec"]["containers"][0]["image"] == "nginx:2"
    # What leaves the manifest leaves the object; what others set stays.
    assert apply(manifest(namespace, tag=2), "-o", "name") == "pod/web\npod/giant\n"
    pod = get_json(typed, "pod", "web", "-n", namespace)
    assert own_labels(pod) == {"app": "web"}
    assert pod["spec"]["schedulerName"] == "default-scheduler"


def test_get_wide_names_the_gpus_of_pods(typed: Type, namespace: str) -> None:
    pods = [pod_manifest("plain"), pod_manifest("share")]
    pods[1]["metadata"]["annotations"] = {"alibabacloud.com/gpu-index": "0-3"}
    for each in pods:
        each |= {"apiVersion": "v1", "kind": "Pod"}
        each["metadata"]["namespace"] = namespace
        typed("apply", "-f", "-", stdin=json.dumps(each))
    heading, *rows = typed("get", "pods", "-n", namespace, "-o", "wide").stdout.splitlines()
    assert heading.endswith("GPUS")
    assert [row.split()[-1] for row in rows] == ["<none>", "0-3"]
    assert "GPUS" not in typed("get", "pods", "-n", namespace).stdout


def test_get_in_every_form(typed: Type, namespace: str) -> None:
    typed("apply", "-f", "-", stdin=manifest(namespace))
    until_running(typed, namespace)
    table = typed("get", "pods", "-n", namespace).stdout.splitlines()
    assert [line.split()[:4] for line in table] == [
        ["NAME", "READY", "STATUS", "RESTARTS"],
        ["giant", "0/1", "Pending", "0"],
        ["web", "1/1", "Running", "0"],
    ]
    assert "NODE" not in table[0]
    wide = typed("get", "po", "-n", namespace, "-o", "wide", "-l", "app=web").stdout.splitlines()
    assert "NODE" in wide[0]
    assert len(wide) == 2
    everywhere = typed("get", "pods", "-A", "--field-selector", f"metadata.namespace={namespace}")
    assert everywhere.stdout.splitlines()[1].split()[:2] == [namespace, "giant"]
    names = typed("get", "pods", "-n", namespace, "-o", "name").stdout
    assert names == "pod/giant\npod/web\n"
    several = typed("get", "pods,nodes", "-n", namespace).stdout
    assert "pod/giant" in several
    assert "node/node-01" in several
    one = yaml.safe_load(typed("get", "pod/web", "-n", namespace, "-o", "yaml").stdout)
    assert (one["kind"], one["metadata"]["name"]) == ("Pod", "web")
    listed = get_json(typed, "pods", "-n", namespace)
    assert (listed["kind"], len(listed["items"])) == ("List", 2)
    empty = typed("get", "services", "-n", namespace)
    assert (empty.exit_code, empty.stdout) == (0, "")
    assert errors(empty.stderr) == f"No resources found in {namespace} namespace.\n"


def test_describe_tells_why_a_pod_waits_and_what_a_node_has(typed: Type, namespace: str) -> None:
    typed("apply", "-f", "-", stdin=manifest(namespace))
    until_running(typed, namespace)
    giant = typed("describe", "pod", "giant", "-n", namespace).stdout
    assert "Node:             <none>\n" in giant
    assert re.search(r"PodScheduled +False +Unschedulable +0/2 nodes are available: 2 I", giant)
    assert re.search(r"Warning +FailedScheduling +\d+s +default-scheduler +0/2 nodes", giant)
    web = get_json(typed, "pod", "web", "-n", namespace)
    node = typed("describe", "node", web["spec"]["nodeName"]).stdout
    assert re.search(rf"{namespace} +web +100m +0", node)
    assert re.search(r"cpu +8 +\d", node)
    other = typed("describe", "namespace", namespace).stdout
    assert "Kind:             Namespace\n" in other
    none = typed("describe", "services", "-n", namespace)
    assert (none.exit_code, none.stdout, errors(none.stderr)) == (0, "", "No resources found.\n")


def test_delete_by_name_label_manifest_and_all(typed: Type, namespace: str) -> None:
    def delete(*words: str, stdin: str | None = None) -> tuple[int, str]:
        result = typed("delete", *words, "-n", namespace, "--grace-period", "0", stdin=stdin)
        return result.exit_code, result.stdout

    text = manifest(namespace)
    typed("apply", "-f", "-", stdin=text)
    assert delete("pod", "web") == (0, 'pod "web" force deleted\n')
    assert typed("get", "pod", "web", "-n", namespace).exit_code == 1
    assert delete("-f", "-", stdin=text) == (1, 'pod "giant" force deleted\n')
    assert delete("-f", "-", "--ignore-not-found", stdin=text) == (0, "")
    typed("apply", "-f", "-", stdin=text)
    assert delete("pods", "-l", "app=web", "-o", "name") == (0, "pod/web\n")
    assert delete("pods", "--all") == (0, 'pod "giant" force deleted\n')


def test_waiting_for_a_graceful_end(typed: Type, namespace: str) -> None:
    typed("apply", "-f", "-", stdin=manifest(namespace))
    until_running(typed, namespace)
    assert typed("delete", "pod/web", "-n", namespace).stdout == 'pod "web" deleted\n'
    assert typed("get", "pod/web", "-n", namespace).exit_code == 1


@pytest.mark.parametrize(
    ("words", "stdin", "code", "error"),
    [
        pytest.param(
            ("get", "pod", "nosuch"),
            None,
            1,
            'error: pods "nosuch" not found\n',
            id="no such pod",
        ),
        pytest.param(
            ("get", "wombats"),
            None,
            2,
            'error: the server does not have a resource type "wombats"\n',
            id="no such kind",
        ),
        pytest.param(
            ("apply", "-f", "-"),
            "{apiVersion: v1, kind: Wombat, metadata: {name: x}}",
            1,
            'error: Wombat x: the server has no kind "Wombat" in version "v1"; '
            "correct apiVersion and kind\nerror: 1 of 1 objects were refused\n",
            id="no such kind in a manifest",
        ),
        pytest.param(
            ("apply", "-f", "-"),
            "{apiVersion: v1, kind: Pod, metadata: {name: x}, spec: {containers: []}}",
            1,
            'error: Pod "x" is invalid: spec.containers: Required value\n'
            "error: 1 of 1 objects were refused\n",
            id="an invalid pod",
        ),
        pytest.param(
            ("apply", "-f", "-"),
            "{apiVersion: v1, kind: Pod, metadata: {name: x}, spec: {containers: "
            "[{name: c, image: i}], nodeSelectr: {}}}",
            1,
            'error: Pod x: Pod in version "v1" cannot be handled as a Pod: strict decoding '
            'error: unknown field "spec.nodeSelectr"\nerror: 1 of 1 objects were refused\n',
            id="a misspelt field",
        ),
    ],
)
def test_errors_go_to_standard_error(
    typed: Type, words: tuple[str, ...], stdin: str | None, code: int, error: str
) -> None:
    result = typed(*words, stdin=stdin)
    assert (result.exit_code, result.stdout, errors(result.stderr)) == (code, "", error)


def test_version_asks_the_server_too(typed: Type) -> None:
    found = json.loads(typed("version", "--server", "-o", "json").stdout)
    assert found["server"].endswith("+moorage")
    assert sorted(found) == ["moorage", "python", "server"]
