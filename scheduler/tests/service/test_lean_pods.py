"""Pods made small after decoding: what is shared, what is dropped, and that decisions keep theirs.

Left out: the memory of a whole process, which docs/how-to/deploy.md has from measurements.
"""

from __future__ import annotations

import tracemalloc
from typing import Any

import msgspec
import pytest

from moorage.api.codec import decode, encode
from moorage.api.pod import Pod
from moorage.client.objects import ObjectReader
from moorage.service.intake import lean_pods
from moorage.service.intake.lean_pods import LeanPods
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.shape import FEATURES, IMAGES, PORTS, RESOURCES, TOLERATIONS
from moorage.snapshot.volume_pods import volumes_of

TIME = "2026-01-02T03:04:05Z"


def manifest(number: int, *, node: str = "n1") -> dict[str, Any]:
    """Return a replica as an API server shows it."""
    token = f"kube-api-access-{number:05x}"
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {
            "name": f"web-{number}",
            "namespace": "shop",
            "uid": f"uid-{number}",
            "labels": {"app": "web", "pod-template-hash": "7d4b9c6f5"},
            "ownerReferences": [{"kind": "ReplicaSet", "name": "web-7d4b9c6f5", "uid": "r"}],
        },
        "spec": {
            "nodeName": node,
            "schedulerName": "default-scheduler",
            "containers": [
                {
                    "name": "main",
                    "image": "registry.example/web:1",
                    "ports": [{"containerPort": 80, "hostPort": 8080}],
                    "resources": {"requests": {"cpu": "1", "memory": "1Gi"}},
                }
            ],
            "tolerations": [{"key": "a", "operator": "Exists"}],
            "volumes": [
                {"name": token, "projected": {"sources": []}},
                {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
                {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
            ],
        },
        "status": {
            "phase": "Running",
            "conditions": [
                {"type": "PodScheduled", "status": "True", "lastTransitionTime": TIME},
                {"type": "Ready", "status": "True", "lastTransitionTime": TIME},
            ],
            "containerStatuses": [
                {
                    "name": "main",
                    "imageID": "sha256:0",
                    "containerID": f"containerd://{number}",
                    "restartCount": 1,
                    "state": {"running": {"startedAt": TIME}},
                    "allocatedResources": {"cpu": "2"},
                }
            ],
        },
    }


def read(obj: dict[str, Any]) -> Pod:
    return decode(Pod, encode(obj))


def trimmed(obj: dict[str, Any], lean: LeanPods | None = None) -> Pod:
    pod = read(obj)
    (lean or LeanPods()).trim(pod)
    return pod


def test_of_a_pod_with_a_node_ids_times_and_volumes_that_no_rule_reads_are_dropped() -> None:
    wanted = manifest(1)
    del wanted["spec"]["volumes"][0]
    del wanted["status"]["conditions"][1]["lastTransitionTime"]
    (status,) = wanted["status"]["containerStatuses"]
    del status["imageID"], status["containerID"]
    status["state"] = {"running": {}}
    assert trimmed(manifest(1)) == read(wanted)


def test_a_pod_without_a_node_keeps_all_but_the_volumes_that_no_rule_reads() -> None:
    wanted = manifest(1, node="")
    del wanted["spec"]["volumes"][0]
    assert trimmed(manifest(1, node="")) == read(wanted)


def test_replicas_share_what_is_equal() -> None:
    lean = LeanPods()
    one, other = trimmed(manifest(1), lean), trimmed(manifest(2), lean)
    for names in (
        ("metadata", "labels"),
        ("metadata", "owner_references"),
        ("metadata", "namespace"),
        ("spec", "containers"),
        ("spec", "volumes"),
        ("spec", "node_name"),
        ("spec", "init_containers"),
        ("status", "container_statuses"),
    ):
        part, field = names
        assert getattr(getattr(one, part), field) is getattr(getattr(other, part), field), names
    for here, there in zip(one.status.conditions, other.status.conditions, strict=True):
        assert here is there
    assert one.name != other.name


@pytest.mark.parametrize("kind", [RESOURCES, PORTS, IMAGES, FEATURES, TOLERATIONS], ids=str)
@pytest.mark.parametrize("node", ["", "n1"])
def test_what_plugins_compile_of_a_pod_is_the_same(kind: Any, node: str) -> None:
    obj = manifest(1, node=node)
    assert PodInfo(trimmed(obj)).part(kind).value == PodInfo(read(obj)).part(kind).value


@pytest.mark.parametrize("node", ["", "n1"])
def test_the_volumes_of_a_pod_are_the_same(node: str) -> None:
    obj = manifest(1, node=node)
    assert volumes_of(PodInfo(trimmed(obj))) == volumes_of(PodInfo(read(obj)))


def changed(path: str, value: Any) -> dict[str, Any]:
    """Return the second replica with another value at a path."""
    obj = manifest(2)
    *parents, last = path.split(".")
    found: Any = obj
    for each in parents:
        found = found[int(each)] if each.isdigit() else found[each]
    found[last] = value
    return obj


CHANGES = [
    ("metadata.labels", {"app": "other"}),
    ("metadata.annotations", {"its own": "2"}),
    ("metadata.namespace", "other"),
    ("metadata.generateName", "other-"),
    ("metadata.finalizers", ["f"]),
    ("metadata.deletionTimestamp", TIME),
    ("spec.nodeName", "n2"),
    ("spec.priority", 7),
    ("spec.containers.0.image", "registry.example/web:2"),
    ("spec.containers.0.resources.requests", {"cpu": "2"}),
    ("spec.initContainers", [{"name": "main"}]),
    ("spec.tolerations", []),
    ("spec.volumes", [{"name": "data", "persistentVolumeClaim": {"claimName": "other"}}]),
    ("spec.hostNetwork", True),
    ("status.phase", "Failed"),
    ("status.hostIP", "10.0.0.2"),
    ("status.conditions", []),
    ("status.conditions.0.lastTransitionTime", "2026-01-02T03:04:06Z"),
    ("status.conditions.0.status", "False"),
    ("status.conditions.1.reason", "ContainersNotReady"),
    ("status.conditions.1.message", "starting"),
    ("status.conditions.1.type", "Initialized"),
    ("status.containerStatuses.0.restartCount", 2),
    ("status.containerStatuses.0.state", {"waiting": {"reason": "CrashLoopBackOff"}}),
    ("status.containerStatuses.0.allocatedResources", {"cpu": "3"}),
]


@pytest.mark.parametrize(("path", "value"), CHANGES, ids=[path for path, _ in CHANGES])
def test_a_pod_read_after_a_replica_is_the_pod_read_alone(path: str, value: Any) -> None:
    lean = LeanPods()
    trimmed(manifest(1), lean)
    other = changed(path, value)
    assert encode(trimmed(other, lean)) == encode(trimmed(other))
    assert encode(trimmed(manifest(3), lean)) == encode(trimmed(manifest(3)))


def test_conditions_that_come_and_go_in_another_order_stay_what_they_are() -> None:
    lean, kinds = LeanPods(), ["PodScheduled", "Initialized", "Ready"]
    for order in ([0, 1, 2], [2, 1], [1, 0, 2], [], [2]):
        obj = manifest(1)
        obj["status"]["conditions"] = [
            {"type": kinds[each], "status": "True", "lastTransitionTime": TIME} for each in order
        ]
        assert encode(trimmed(obj, lean)) == encode(trimmed(obj))


def test_the_number_of_remembered_replicas_and_texts_is_bounded(monkeypatch) -> None:
    monkeypatch.setattr(lean_pods, "_REPLICAS_MOST", 30)
    monkeypatch.setattr(lean_pods, "_TEXTS_MOST", 30)
    lean = LeanPods()
    for number in range(200):
        obj = manifest(number, node=f"n{number}")
        obj["metadata"]["generateName"] = f"w{number}-"
        trimmed(obj, lean)
        assert len(lean._last) <= 30
        assert len(lean._texts) <= 30


def test_a_replica_takes_less_than_two_kilobytes() -> None:
    lines = [encode(manifest(number)) for number in range(500)]
    lean, decoder = LeanPods(), msgspec.json.Decoder(Pod)
    tracemalloc.start()
    try:
        kept = [decoder.decode(line) for line in lines]
        before, _ = tracemalloc.get_traced_memory()
        for pod in kept:
            lean.trim(pod)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after / len(kept) < 2048 < before / len(kept)


@pytest.mark.parametrize(
    "line",
    [
        pytest.param('{"type":"ADDED","object":%s}', id="a line of a watch"),
        pytest.param('{"type":"MODIFIED","object":%s,"more":null}', id="a line with more"),
    ],
)
def test_a_reader_trims_lists_watches_and_objects_read_at_the_second_look(line: str) -> None:
    reader: ObjectReader[Pod] = ObjectReader(Pod, kind="Pod", trim=LeanPods().trim)
    obj = manifest(1)
    text = encode(obj).decode()
    wanted = trimmed(obj)
    item: Any = reader.read_line((line % text).encode())
    assert item.object == wanted
    with_null = text.replace('"tolerations":[', '"initContainers":null,"tolerations":[')
    again: Any = reader.read_line((line % with_null).encode())
    assert again.object == wanted
    assert reader.read_listed(msgspec.Raw(encode(obj))) == wanted
