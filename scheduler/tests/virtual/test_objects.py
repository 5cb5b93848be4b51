"""Objects are read from snapshots, Lists and manifests; unreadable ones are reported by name."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from moorage.api.yaml_text import write_yaml
from moorage.base.errors import UsageError
from moorage.virtual.objects import ClusterObjects, read_objects
from moorage_sandbox.testing.builders import node_manifest, pod, pod_manifest

_NODE = node_manifest("n1")
_POD = pod_manifest("p")
_POD["metadata"]["uid"] = "u1"
_SERVICE = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s", "namespace": "a"}}
_DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "d", "namespace": "a"},
    "spec": {"replicas": 2},
}


def _without_kind(obj: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in obj.items() if key not in ("kind", "apiVersion")}


def _list(*items: Any, kind: str = "List") -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "metadata": {}, "items": list(items)}


def _names(found: ClusterObjects) -> tuple[Any, ...]:
    listed = {name: sorted(each) for name, each in found.watched.items()}
    manifests = {name: sorted(each) for name, each in found.manifests.items()}
    return sorted(found.nodes), sorted(found.pods), listed, manifests


_ALL = (
    ["n1"],
    [("default", "p")],
    {"services": [("a", "s")]},
    {("", "Service"): [("a", "s")], ("apps", "Deployment"): [("a", "d")]},
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            json.dumps(_list(_NODE, _POD, _SERVICE, _DEPLOYMENT)), _ALL, id="a List as JSON"
        ),
        pytest.param(
            write_yaml(_list(_NODE, _POD, _SERVICE, _DEPLOYMENT)), _ALL, id="a List as YAML"
        ),
        pytest.param(
            json.dumps([_list(_NODE), _list(_POD, _SERVICE), _DEPLOYMENT]),
            _ALL,
            id="an array of Lists and objects",
        ),
        pytest.param(
            "---\n".join(write_yaml(each) for each in (_NODE, _POD, _SERVICE, _DEPLOYMENT)),
            _ALL,
            id="several documents of YAML",
        ),
        pytest.param(
            json.dumps(_list(_without_kind(_NODE), kind="NodeList")),
            (["n1"], [], {}, {}),
            id="a typed list whose items name no kind",
        ),
    ],
)
def test_objects_are_read_in_every_form(text: str, expected: tuple[Any, ...]) -> None:
    """Every form of the same objects gives the same objects."""
    found = read_objects(text.encode(), "file")
    assert _names(found) == expected
    assert found.unreadable == []


def _without_namespace(obj: dict[str, Any]) -> dict[str, Any]:
    return {**obj, "metadata": {k: v for k, v in obj["metadata"].items() if k != "namespace"}}


def test_objects_without_a_namespace_are_in_the_default_one() -> None:
    """Manifests name none, and an API server puts it in; a node has none."""
    some = [_without_namespace(each) for each in (_NODE, _POD, _SERVICE, _DEPLOYMENT)]
    found = read_objects(json.dumps(_list(*some)).encode(), "file")
    assert _names(found) == (
        ["n1"],
        [("default", "p")],
        {"services": [("default", "s")]},
        {("", "Service"): [("default", "s")], ("apps", "Deployment"): [("default", "d")]},
    )
    assert found.pods["default", "p"].namespace == "default"
    deployment = found.manifest("apps", "Deployment", ("default", "d"))
    assert deployment is not None
    assert deployment["metadata"]["namespace"] == "default"


_BAD_NODE = node_manifest("n2", cpu="many")
_NO_UID = pod_manifest("q")
_BAD_POD = pod_manifest("r", cpu="1z")
_BAD_POD["metadata"]["uid"] = "u2"
_OLD_CLAIM = {
    "apiVersion": "resource.k8s.io/v1beta1",
    "kind": "ResourceClaim",
    "metadata": {"name": "c", "namespace": "a"},
}


def test_pods_without_uid_are_told_apart_by_their_names() -> None:
    """A manifest that no server has stored has no uid."""
    others = [pod_manifest("q2"), pod_manifest("q", namespace="b")]
    found = read_objects(json.dumps(_list(_NO_UID, *others, _NODE)).encode(), "file")
    assert found.unreadable == []
    assert {pod.uid for pod in found.pods.values()} == {"default/q", "default/q2", "b/q"}


@pytest.mark.parametrize(
    ("obj", "told"),
    [
        pytest.param(_BAD_NODE, "Node n2: status.allocatable[cpu]: ", id="a node's quantity"),
        pytest.param(_BAD_POD, "Pod default/r: ", id="a pod's quantity"),
        pytest.param(
            _OLD_CLAIM,
            "ResourceClaim a/c: apiVersion resource.k8s.io/v1beta1 is not read, only "
            "resource.k8s.io/v1",
            id="a version that a scheduler does not watch",
        ),
        pytest.param(
            {"apiVersion": "v1", "kind": "Pod", "metadata": {}},
            "Pod without a name: it has no metadata.name",
            id="an object without a name",
        ),
        pytest.param(
            {"metadata": {"name": "x"}}, "object x: it has no kind", id="an object without a kind"
        ),
        pytest.param(
            {**_POD, "spec": {"containers": 3}}, "Pod default/p: ", id="a field of a wrong type"
        ),
    ],
)
def test_an_unreadable_object_is_told_by_name(obj: dict[str, Any], told: str) -> None:
    """The other objects are taken in."""
    found = read_objects(json.dumps(_list(obj, _NODE)).encode(), "file")
    assert sorted(found.nodes) == ["n1"]
    assert [each.text[: len(told)] for each in found.unreadable] == [told]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param(b"{", "file: neither JSON nor YAML", id="broken JSON"),
        pytest.param(b"a: [", "file: neither JSON nor YAML", id="broken YAML"),
        pytest.param(b"", "there are no objects in file", id="an empty file"),
        pytest.param(b"- just\n- words\n", "file: neither JSON nor YAML", id="YAML of words"),
    ],
)
def test_a_text_without_objects_is_refused(text: bytes, problem: str) -> None:
    """The message names the source."""
    with pytest.raises(UsageError, match=problem):
        read_objects(text, "file")


def test_pending_pods_come_in_order_of_their_age() -> None:
    """Creation time first, then the last write, then the name."""
    pods = []
    for name, created, version in (
        ("d", "2026-01-01T00:00:02Z", "1"),
        ("c", "2026-01-01T00:00:01Z", "10"),
        ("b", "2026-01-01T00:00:01Z", "9"),
        ("a", "2026-01-01T00:00:01Z", "10"),
    ):
        obj = pod_manifest(name)
        obj["metadata"] |= {"uid": name, "creationTimestamp": created, "resourceVersion": version}
        pods.append(obj)
    done = pod_manifest("done")
    done["metadata"]["uid"] = "done"
    pods.append({**done, "status": {"phase": "Succeeded"}})
    found = read_objects(json.dumps(_list(*pods)).encode(), "file")
    assert [pod.metadata.name for pod in found.pending_pods] == ["b", "a", "c", "d"]
    assert len(found.pods) == 5


def test_a_copy_does_not_change_with_its_original() -> None:
    """Objects are shared, the lists are not."""
    first = read_objects(json.dumps(_list(_NODE, _POD, _SERVICE)).encode(), "file")
    second = first.copy()
    second.nodes.clear()
    second.drop_pod(("default", "p"))
    second.lister("services").clear()
    second.manifests["", "Service"].clear()
    assert _names(first) == (
        ["n1"],
        [("default", "p")],
        {"services": [("a", "s")]},
        {("", "Service"): [("a", "s")]},
    )
    assert second.manifest("", "Service", ("a", "s")) is None
    assert first.manifest("", "Service", ("a", "s")) == _SERVICE


def test_pods_are_found_by_their_node() -> None:
    """A pod that gets a node leaves those without one; a pod that has finished is on no node."""
    found = ClusterObjects()
    finished = pod("c", node_name="n1")
    status = msgspec.structs.replace(finished.status, phase="Succeeded")
    for each in (
        pod("b", node_name="n1"),
        pod("a"),
        msgspec.structs.replace(finished, status=status),
    ):
        found.put_pod(each)
    assert (_found(found, ""), _found(found, "n1")) == (["a"], ["b"])
    found.put_pod(pod("a", node_name="n1"))
    assert (_found(found, ""), _found(found, "n1")) == ([], ["b", "a"])
    found.drop_pod(("default", "b"))
    found.drop_pod(("default", "unknown"))
    assert _found(found, "n1") == ["a"]
    assert list(found.pods) == [("default", "a"), ("default", "c")]


def _found(objects: ClusterObjects, node_name: str) -> list[str]:
    return [each.name for each in objects.pods_on(node_name)]
