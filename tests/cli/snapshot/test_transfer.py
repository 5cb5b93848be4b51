"""A cluster's objects into a file, and a file's objects into a sandbox: nothing changes on the way.

The server is in the test's process; the last test goes through a running sandbox.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from moorage.base.errors import ApiError, UsageError
from moorage.base.rng import Streams
from moorage.client.writes import Client
from moorage_sandbox.apiserver.wire.requests import User
from moorage_sandbox.cli.snapshot.transfer import (
    Loaded,
    fault_lines,
    load_snapshot,
    loaded_text,
    read_snapshot,
    save_snapshot,
)
from moorage_sandbox.cluster.in_process import ADMIN, InProcessTransport
from sandbox.tests.apiserver.crd import car, definition
from sandbox.tests.apiserver.harness import PODS, Cluster, namespace, pod

CARS = "/apis/example.com/v1/namespaces/default/cars"


def _transport(cluster: Cluster, user: User = ADMIN) -> InProcessTransport:
    return InProcessTransport(cluster.server, user=user, latency_seconds=0)


async def _save(cluster: Cluster, file: Path) -> dict[str, int]:
    transport = _transport(cluster)
    client = Client(transport, rng=Streams(1).stream("test"))
    return (await save_snapshot(transport, client, file)).kinds


async def _load(cluster: Cluster, file: Path, **options: Any) -> Loaded:
    options = {"dry_run": False} | options
    return await load_snapshot(_transport(cluster), read_snapshot(file), **options)


def _write(file: Path, *items: dict[str, Any], kind: str = "List") -> Path:
    version = "v1"
    file.write_text(json.dumps({"apiVersion": version, "kind": kind, "items": items}))
    return file


def _everything(cluster: Cluster) -> dict[tuple[str, str, str], dict[str, Any]]:
    """Return every object but for what says when it was stored here."""
    found = {}
    for resource, record in cluster.server.store.all_records():
        obj = record.decode()
        del obj["metadata"]["resourceVersion"]
        found[resource, *record.key] = obj
    return found


def _live_pod(**meta: Any) -> dict[str, Any]:
    """Return a pod as a cluster has it: placed, running, owned."""
    obj = pod("web-1", node="n1")
    obj["metadata"] |= {
        "namespace": "shop",
        "uid": "11111111-2222-3333-4444-555555555555",
        "resourceVersion": "998877",
        "creationTimestamp": "2025-01-02T03:04:05Z",
        **meta,
    }
    obj["status"] = {"phase": "Running", "podIP": "10.1.2.3", "startTime": "2025-01-02T03:04:06Z"}
    return obj


def _owner(uid: str) -> dict[str, Any]:
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": uid}
    return reference | {"controller": True, "blockOwnerDeletion": True}


async def test_what_is_saved_and_loaded_elsewhere_is_the_same_cluster(tmp_path):
    first = Cluster()
    await first.ok("POST", "/api/v1/namespaces", namespace("shop"))
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    await first.ok("POST", path, definition())
    await first.ok("POST", CARS, car())
    for number in range(3):
        await first.ok("POST", PODS, pod(f"p{number}"))
    await first.ok("DELETE", f"{PODS}/p0")
    for name in ("a", "b", "z"):
        service = {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}]}}
        await first.ok("POST", "/api/v1/namespaces/shop/services", service)
    kinds = await _save(first, tmp_path / "saved.json")
    assert (tmp_path / "saved.json").stat().st_mode & 0o777 == 0o600
    assert (kinds["Pod"], kinds["Namespace"]) == (2, 5)

    second = Cluster()
    common = set(_everything(second).keys() & _everything(first).keys())
    # The server makes the APIService of the custom kind itself, once the definition is there.
    common.add(("apiservices.apiregistration.k8s.io", "", "v1.example.com"))
    loaded = await _load(second, tmp_path / "saved.json")
    assert (loaded.faults, loaded.left_out, loaded.present) == ([], {}, len(common))
    before, after = _everything(first), _everything(second)
    assert after.keys() == before.keys()
    assert {key: after[key] for key in after.keys() - common} == {
        key: before[key] for key in before.keys() - common
    }
    # The custom kind is served, and the saved file is what the second would save.
    assert await second.names(CARS) == ["a"]
    assert await _save(second, tmp_path / "again.json") == kinds


async def test_a_dump_of_kubectl_keeps_node_status_uid_and_times_and_gets_its_namespace(tmp_path):
    cluster = Cluster()
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "uid": "u-n1"}}
    file = _write(tmp_path / "dump.json", _live_pod(), node)
    loaded = await _load(cluster, file)
    # The namespace was made.
    assert (loaded.stored, loaded.faults) == (3, [])
    found = await cluster.ok("GET", "/api/v1/namespaces/shop/pods/web-1")
    sent = _live_pod()
    meta, kept = found["metadata"], ("uid", "creationTimestamp", "namespace", "name")
    assert {field: meta[field] for field in kept} == {f: sent["metadata"][f] for f in kept}
    assert int(meta["resourceVersion"]) <= cluster.server.store.version < 998877
    assert found["spec"]["nodeName"] == "n1"
    assert found["status"].items() >= sent["status"].items()
    shown = await cluster.ok("GET", "/api/v1/nodes/n1")
    assert shown["metadata"]["annotations"] == {"moorage.dev/played": "true"}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        pytest.param(json.dumps(pod("a")), ["a"], id="one object"),
        pytest.param(json.dumps([pod("a"), pod("b")]), ["a", "b"], id="an array"),
        pytest.param(
            json.dumps({"kind": "List", "apiVersion": "v1", "items": [pod("a"), pod("b")]}),
            ["a", "b"],
            id="a List, as kubectl prints it",
        ),
        pytest.param(
            json.dumps(
                {
                    "kind": "PodList",
                    "apiVersion": "v1",
                    "metadata": {},
                    "items": [{k: v for k, v in pod("a").items() if k not in ("kind",)}],
                }
            ),
            ["a"],
            id="a PodList, as the API answers it",
        ),
        pytest.param(
            json.dumps([{"kind": "List", "apiVersion": "v1", "items": [pod("a")]}, pod("b")]),
            ["a", "b"],
            id="Lists within an array",
        ),
    ],
)
async def test_every_common_form_of_json_is_read(tmp_path, text, names):
    cluster = Cluster()
    (tmp_path / "file").write_text(text)
    loaded = await _load(cluster, tmp_path / "file")
    assert loaded.faults == []
    assert await cluster.names(PODS) == names


async def test_owners_in_the_file_are_kept_and_others_dropped(tmp_path):
    replica_set = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "web", "namespace": "shop", "uid": "rs-uid"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": pod()["spec"],
            },
        },
    }
    file = _write(
        tmp_path / "file",
        replica_set,
        _live_pod(ownerReferences=[_owner("rs-uid")], labels={"app": "web"}),
        _live_pod(name="orphan", uid="other", ownerReferences=[_owner("gone")]),
    )
    cluster = Cluster()
    loaded = await _load(cluster, file)
    assert (loaded.faults, loaded.dropped_owners) == ([], 1)
    listed = await cluster.ok("GET", "/api/v1/namespaces/shop/pods")
    owners = {
        item["metadata"]["name"]: [r["uid"] for r in item["metadata"].get("ownerReferences") or ()]
        for item in listed["items"]
    }
    assert owners == {"web-1": ["rs-uid"], "orphan": []}


async def test_what_cannot_be_loaded_is_told_object_by_object_and_the_rest_is_loaded(tmp_path):
    faulty = pod("Not A Name")
    wrong_type = pod("b")
    wrong_type["spec"]["containers"] = "one"
    strange = {"apiVersion": "example.org/v9", "kind": "Strange", "metadata": {"name": "s"}}
    event = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}}
    file = _write(tmp_path / "file", faulty, wrong_type, strange, event, pod("good"), pod("good"))
    cluster = Cluster()
    loaded = await _load(cluster, file)
    assert await cluster.names(PODS) == ["good"]
    assert loaded.left_out == {"Event.v1": 1, "Strange.example.org/v9": 1}
    faults = list(fault_lines(loaded))
    assert [text.partition(": ")[0] for text in faults] == [
        "Pod default/Not A Name",
        "Pod b",
    ]
    assert loaded_text(loaded, dry_run=False).splitlines() == [
        "1 objects loaded",
        "1 were there already and stay as they are",
        "left out, not kept here: 1 Event.v1, 1 Strange.example.org/v9",
        "2 refused",
    ]


async def test_a_dry_run_checks_and_stores_nothing(tmp_path):
    cluster = Cluster()
    version = cluster.server.store.version
    loaded = await _load(cluster, _write(tmp_path / "f", pod("a"), pod("B")), dry_run=True)
    assert (loaded.stored, len(loaded.faults)) == (0, 1)
    assert cluster.server.store.version == version
    # Nothing of it is stored by a later load either.
    await _load(cluster, _write(tmp_path / "g", pod("c")))
    assert await cluster.names(PODS) == ["c"]


async def test_only_an_administrator_may_load(tmp_path):
    cluster = Cluster()
    transport = _transport(cluster, User("somebody", ("system:authenticated",)))
    content = read_snapshot(_write(tmp_path / "f", pod("a")))
    with pytest.raises(ApiError, match="only system:masters may load a snapshot"):
        await load_snapshot(transport, content, dry_run=False)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param(b"kind: [", "not the text of Kubernetes objects", id="no YAML"),
        pytest.param(b"", "there are no objects in", id="nothing"),
        pytest.param(b"[1]", "not the text of Kubernetes objects", id="a number"),
        pytest.param(b"[{}]", "item 1 has no kind or apiVersion", id="no kind"),
        pytest.param(b"[" * 5000, "not the text of Kubernetes objects", id="too deep"),
        pytest.param(None, "cannot read", id="no file"),
    ],
)
def test_a_file_that_is_no_snapshot_is_told(tmp_path, text, words):
    file = tmp_path / "file"
    if text is not None:
        file.write_bytes(text)
    with pytest.raises(UsageError, match=words):
        read_snapshot(file)


def test_loaded_nodes_are_played_and_their_pods_live_on(typed, tmp_path):
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "real-1", "uid": "u-real", "labels": {"from": "afar"}},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}},
    }
    waiting = pod("fresh")
    waiting["spec"]["nodeSelector"] = {"from": "afar"}
    waiting["metadata"]["namespace"] = "shop"
    file = _write(tmp_path / "file", waiting, _live_pod(), node)
    file.write_text(file.read_text().replace('"n1"', '"real-1"'))
    result = typed("snapshot", "load", str(file))
    assert (result.exit_code, result.stdout) == (0, "4 objects loaded\n")
    for _ in range(200):
        shown = json.loads(typed("get", "pods", "-n", "shop", "-o", "json").stdout)
        phases = {item["metadata"]["name"]: item["status"]["phase"] for item in shown["items"]}
        if phases == {"web-1": "Running", "fresh": "Running"}:
            break
    assert phases == {"web-1": "Running", "fresh": "Running"}
    saved = typed("snapshot", "save", str(tmp_path / "saved"), "-o", "json")
    kinds = json.loads(saved.stdout)["kinds"]
    assert (kinds["Node"], kinds.get("NodeMetrics")) == (3, None)
    again = typed("snapshot", "load", str(file), "--dry-run", "-o", "json")
    assert json.loads(again.stdout)["present"] == 4
    refused = typed("snapshot", "load", str(_write(tmp_path / "bad", pod("Bad"))))
    assert (refused.exit_code, "Pod default/Bad:" in refused.output) == (1, True)
    for kind, name in (("namespace", "shop"), ("node", "real-1")):
        typed("delete", kind, name, "--no-wait")
