"""YAML and JSON that once ended the process, stopped it, or escaped as a traceback."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from moorage.api.manifest_text import parse_manifests
from moorage.base.errors import ConfigError, KubeconfigError, UsageError
from moorage.client.kubeconfig_file import parse_kubeconfig
from moorage.config.load import parse_config
from moorage.nodeshapes.templates import load_nodes
from sandbox.tests.apiserver.crd import CARS, DEFINITIONS, definition
from sandbox.tests.apiserver.harness import JSON_PATCH, MERGE, Cluster, pod

YAML = "application/yaml"
APPLY = "application/apply-patch+yaml"

TEXTS = [
    pytest.param(b"[" * 30_000 + b"]" * 30_000, "nested deeper than 200 levels", id="30,000 lists"),
    pytest.param(b"{a: " * 30_000, "nested deeper than 200 levels", id="30,000 mappings"),
    pytest.param(b'{"a":' * 100_000, "nested deeper than 200 levels", id="100,000 objects of JSON"),
    pytest.param(b"- " * 30_000, "nested deeper than 200 levels", id="30,000 dashes"),
    pytest.param(b"a: !!int x", "cannot decode !!str `x` as a !!int", id="a number that is none"),
    pytest.param(
        b"a: !!timestamp x", "cannot decode !!str `x` as a !!timestamp", id="a time that is none"
    ),
    pytest.param(b"a: \x01", "unacceptable character", id="a control character"),
    pytest.param(b"a: \xff", "UTF-8", id="bytes that are no text"),
    pytest.param(b"a: &a [*a]", "value contains itself", id="a list inside itself"),
]


def _nodes(text: bytes, folder: Path) -> None:
    path = folder / "nodes.yaml"
    path.write_bytes(text)
    load_nodes(path)


def _config(text: bytes, folder: Path) -> None:
    # The command line reads the file as text.
    parse_config(text.decode(errors="surrogateescape"))


FILES = [
    pytest.param(_config, ConfigError, id="a configuration file"),
    pytest.param(lambda text, _: parse_manifests(text, "x"), UsageError, id="a manifest"),
    pytest.param(parse_kubeconfig, KubeconfigError, id="a kubeconfig"),
    pytest.param(_nodes, UsageError, id="a file of nodes"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), TEXTS)
@pytest.mark.parametrize(("read", "error"), FILES)
def test_a_file_is_refused_with_a_reason(
    read: Callable[[bytes, Path], object],
    error: type[Exception],
    text: bytes,
    message: str,
    tmp_path: Path,
):
    with pytest.raises(error) as refused:
        read(text, tmp_path)
    is_json = read is _nodes and text[:1] in b"[{"
    assert (message in str(refused.value)) or (is_json and "not JSON" in str(refused.value))


@pytest.mark.parametrize(("text", "message"), TEXTS)
@pytest.mark.parametrize(
    ("method", "form"), [("POST", YAML), ("PUT", YAML), ("PATCH", APPLY), ("DELETE", YAML)]
)
async def test_a_body_is_refused_with_a_reason(method: str, form: str, text: bytes, message: str):
    cluster = await _with_cars()
    await cluster.ok("POST", CARS, _car())
    path = CARS if method == "POST" else f"{CARS}/a"
    query = {"fieldManager": "m"} if form == APPLY else {}
    status, found = await cluster.call(method, path, text, query=query, content_type=form)
    assert (status, found["reason"]) == (400, "BadRequest")
    assert message in found["message"]


def _car(**spec: Any) -> dict[str, Any]:
    spec = {"color": "red", **spec}
    return {
        "apiVersion": "example.com/v1",
        "kind": "Car",
        "metadata": {"name": "a"},
        "spec": spec,
    }


async def _with_cars() -> Cluster:
    cluster = Cluster()
    await cluster.ok("POST", DEFINITIONS, definition())
    return cluster


def _nested(depth: int) -> Any:
    value: Any = {}
    for _ in range(depth - 1):
        value = {"a": value}
    return value


# The object and its spec are two levels themselves.
@pytest.mark.parametrize("depth", [190, 198, 199, 400, 900])
@pytest.mark.parametrize("form", ["application/json", YAML, APPLY])
async def test_a_deep_custom_resource_goes_through_every_verb_or_none(depth: int, form: str):
    cluster = await _with_cars()
    body = json.dumps(_car(extras=_nested(depth))).encode()
    if form == APPLY:
        status, found = await cluster.call(
            "PATCH", f"{CARS}/a", body, query={"fieldManager": "m"}, content_type=form
        )
    else:
        status, found = await cluster.call("POST", CARS, body, content_type=form)
    if depth > 198:
        assert status == 400
        assert "nested deeper than 200 levels" in found["message"]
        return
    assert status == 201, found
    for accept in ("application/json", YAML, "application/json;as=Table;g=meta.k8s.io;v=v1"):
        for path in (CARS, f"{CARS}/a"):
            assert (await cluster.reply("GET", path, accept=accept)).status == 200
    changed = {"spec": {"wheels": 3}}
    await cluster.ok("PATCH", f"{CARS}/a", changed, content_type=MERGE)
    operation = [{"op": "replace", "path": "/spec/wheels", "value": 6}]
    await cluster.ok("PATCH", f"{CARS}/a", operation, content_type=JSON_PATCH)
    await cluster.ok("DELETE", f"{CARS}/a")


async def test_small_patches_cannot_nest_an_object_deeper_than_a_body():
    cluster = await _with_cars()
    await cluster.ok("POST", CARS, _car(extras=_nested(150)))
    copied = [{"op": "copy", "from": "/spec/extras", "path": "/spec/extras" + "/a" * 149}]
    status, found = await cluster.call("PATCH", f"{CARS}/a", copied, content_type=JSON_PATCH)
    assert (status, found["message"]) == (
        400,
        "the object as patched is nested deeper than 208 levels",
    )


async def test_a_mapping_is_read_as_kubernetes_reads_it():
    cluster = await _with_cars()
    body = b"""
        apiVersion: example.com/v1
        kind: Car
        metadata: {name: a}
        spec: {color: red, extras: {at: 12:30, on: 2001-01-01, mode: 0644, ten: 1e1}}
    """
    made = await cluster.ok("POST", CARS, body, content_type=YAML)
    assert made["spec"]["extras"] == {"at": "12:30", "true": "2001-01-01", "mode": 420, "ten": 10}


@pytest.mark.parametrize("kind", [["List"], {}, 1, None, True])
def test_a_kind_that_is_no_string_is_refused(kind: Any, tmp_path: Path):
    # Found by the fuzzer of files.
    with pytest.raises(UsageError):
        _nodes(json.dumps({"kind": kind, "items": []}).encode(), tmp_path)


def test_half_of_a_surrogate_pair_in_a_configuration_is_refused():
    # Found by the fuzzer of files.
    body = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    with pytest.raises(ConfigError, match="half of a surrogate pair"):
        parse_config(json.dumps({**body, "profiles": [{"schedulerName": "\ud800"}]}))


_DEPLOYMENT = {
    "metadata": {"name": "a"},
    "spec": {
        "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": pod()["spec"]},
    },
}


@pytest.mark.parametrize("name", ["metadata", "spec", "status"])
async def test_a_scale_with_parts_of_a_wrong_type_is_refused(name: str):
    # Found by the fuzzer of calls.
    cluster = Cluster()
    path = "/apis/apps/v1/namespaces/default/deployments"
    await cluster.ok("POST", path, _DEPLOYMENT)
    status, found = await cluster.call("PUT", f"{path}/a/scale", {name: "x"})
    assert status == 400, found


async def test_a_user_agent_that_is_no_valid_text_becomes_a_field_manager():
    # Found by the fuzzer of calls: the name stands in managedFields.
    cluster = Cluster()
    applied = {"apiVersion": "v1", "kind": "Pod", **pod()}
    path = "/api/v1/namespaces/default/pods/a"
    await cluster.ok("PATCH", path, applied, query={"fieldManager": "m"}, content_type=APPLY)
    labels = {"metadata": {"labels": {"a": "b"}}}
    found = await cluster.ok("PATCH", path, labels, content_type=MERGE, user_agent="\udcff/1")
    managers = [each["manager"] for each in found["metadata"]["managedFields"]]
    assert managers == ["m", "\ufffd\ufffd\ufffd"]
