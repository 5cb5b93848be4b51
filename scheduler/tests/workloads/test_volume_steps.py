"""One step at a time: what claims, volumes and pods need next, given what the watches showed.

Whole ways from a claim to a running pod are in test_volumes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import pytest

from moorage.api.codec import from_dict
from moorage.api.meta import ApiObject
from moorage.api.pod import Pod
from moorage.api.volume import PersistentVolume, PersistentVolumeClaim, StorageClass
from moorage.workloads.volume_steps import (
    Create,
    Delete,
    Patch,
    Release,
    Step,
    VolumeWorld,
    claim_step,
    index_volumes,
    orphaned_claims,
    pod_steps,
    volume_step,
)

CLASSES = [
    {
        "metadata": {"name": "later"},
        "provisioner": "p",
        "volumeBindingMode": "WaitForFirstConsumer",
    },
    {"metadata": {"name": "now"}, "provisioner": "p", "volumeBindingMode": "Immediate"},
    {"metadata": {"name": "by-hand"}, "provisioner": "kubernetes.io/no-provisioner"},
]
FOR_C = {"namespace": "d", "name": "c", "uid": "u-c"}
SELECTED = {"volume.kubernetes.io/selected-node": "n1"}
COMPLETED = {"pv.kubernetes.io/bind-completed": "yes"}


def claim(
    *, annotations: Mapping[str, str] | None = None, phase: str = "Pending", **spec: Any
) -> dict[str, Any]:
    metadata = {"name": "c", "namespace": "d", "uid": "u-c", "annotations": dict(annotations or {})}
    asked = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return {"metadata": metadata, "spec": {**asked, **spec}, "status": {"phase": phase}}


def volume(
    name: str = "v", *, size: str = "1Gi", phase: str = "Available", **spec: Any
) -> dict[str, Any]:
    given = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": size}}
    return {"metadata": {"name": name}, "spec": {**given, **spec}, "status": {"phase": phase}}


def leaving(obj: dict[str, Any], *finalizers: str) -> dict[str, Any]:
    """The object, being deleted; with the protection of its kind unless others are given."""
    kind = "pvc" if "resources" in obj["spec"] else "pv"
    meta = {
        "deletionTimestamp": "2026-01-01T00:00:00Z",
        "finalizers": list(finalizers) or [f"kubernetes.io/{kind}-protection"],
    }
    return {**obj, "metadata": obj["metadata"] | meta}


def _world(
    claims: list[dict[str, Any]],
    volumes: list[dict[str, Any]],
    pods: list[dict[str, Any]],
    used: tuple[str, str] | None = None,
) -> VolumeWorld:
    def seen(kind: type[ApiObject], objects: list[dict[str, Any]]) -> dict[tuple[str, str], Any]:
        made = [from_dict(kind, each) for each in objects]
        return {(each.namespace, each.name): each for each in made}

    return VolumeWorld(
        claims=seen(PersistentVolumeClaim, claims),
        volumes=seen(PersistentVolume, volumes),
        classes=seen(StorageClass, CLASSES),
        pods=seen(Pod, pods),
        used={} if used is None else {used: {("d", "p")}},
    )


def told(step: Step | None) -> str:
    """A step in a few words."""
    if step is None:
        return "nothing"
    if isinstance(step, Create):
        return f"create {step.resource.plural} {cast(Any, step.body)['metadata']['name']}"
    if isinstance(step, Delete):
        return f"delete {step.resource.plural} {step.key[1]}"
    assert isinstance(step, Patch)
    change: Any = step.change
    if isinstance(step, Release):
        return (
            f"{step.resource.plural} {step.key[1]}: finalizers {change['metadata']['finalizers']}"
        )
    part = "status" if step.subresource else "spec"
    said = change[part].get("phase") or ", ".join(change[part])
    return f"{step.resource.plural} {step.key[1]}: {said}"


@pytest.mark.parametrize(
    ("wanting", "volumes", "expected"),
    [
        pytest.param(
            claim(storageClassName="later"), [volume()], "nothing", id="the claim waits for its pod"
        ),
        pytest.param(
            claim(storageClassName="later", annotations=SELECTED),
            [],
            "create persistentvolumes pvc-u-c",
            id="a node was chosen, so a volume is made",
        ),
        pytest.param(
            claim(storageClassName="later", annotations=SELECTED),
            [volume("pvc-u-c", phase="")],
            "nothing",
            id="the volume is being made",
        ),
        pytest.param(
            claim(storageClassName="now"),
            [
                volume("large", size="3Gi", storageClassName="now"),
                volume("fits", size="2Gi", storageClassName="now"),
                volume("small", size="1Mi", storageClassName="now"),
                volume("other", storageClassName="by-hand"),
            ],
            "persistentvolumes fits: claimRef",
            id="the smallest of its class that is large enough",
        ),
        pytest.param(
            claim(storageClassName="now"),
            [volume(storageClassName="now", phase="Released")],
            "create persistentvolumes pvc-u-c",
            id="a volume that is not available does not suit",
        ),
        pytest.param(
            claim(storageClassName="by-hand"),
            [volume(storageClassName="by-hand", claimRef={**FOR_C, "uid": "u-other"})],
            "nothing",
            id="a volume of an earlier claim of that name does not suit, and nobody makes one",
        ),
        pytest.param(
            claim(storageClassName="later"),
            [volume("other"), volume("mine", claimRef=FOR_C)],
            "persistentvolumeclaims c: volumeName",
            id="one is reserved for it",
        ),
        pytest.param(
            claim(volumeName="v"),
            [volume()],
            "persistentvolumes v: claimRef",
            id="the claim names a volume",
        ),
        pytest.param(
            claim(volumeName="v", annotations=COMPLETED),
            [volume(claimRef=FOR_C)],
            "persistentvolumes v: Bound",
            id="both name each other: the volume is bound",
        ),
        pytest.param(
            claim(volumeName="v", annotations=COMPLETED),
            [volume(claimRef=FOR_C, phase="Bound")],
            "persistentvolumeclaims c: Bound",
            id="then the claim",
        ),
        pytest.param(
            claim(volumeName="v", annotations=COMPLETED, phase="Bound"),
            [volume(claimRef=FOR_C, phase="Bound")],
            "nothing",
            id="and that is all",
        ),
        pytest.param(
            claim(volumeName="v", annotations=COMPLETED, phase="Bound"),
            [],
            "persistentvolumeclaims c: Lost",
            id="the volume of the claim is deleted",
        ),
    ],
)
def test_the_next_step_of_a_claim(wanting, volumes, expected):
    world = _world([wanting], volumes, [])
    index = index_volumes(world.volumes.values())
    assert told(claim_step(world.claims["d", "c"], world, index)) == expected


@pytest.mark.parametrize(
    ("claims", "asked", "expected"),
    [
        pytest.param([], volume(phase=""), "persistentvolumes v: Available", id="a new one"),
        pytest.param([], volume(), "nothing", id="a free one"),
        pytest.param([claim()], volume(claimRef=FOR_C, phase="Bound"), "nothing", id="in use"),
        pytest.param(
            [],
            volume(claimRef=FOR_C, phase="Bound", persistentVolumeReclaimPolicy="Delete"),
            "persistentvolumes v: Released",
            id="the policy Delete: the volume is released first",
        ),
        pytest.param(
            [],
            volume(claimRef=FOR_C, phase="Released", persistentVolumeReclaimPolicy="Delete"),
            "delete persistentvolumes v",
            id="the policy Delete: the volume is deleted after its claim",
        ),
        pytest.param(
            [claim()],
            leaving(volume(claimRef=FOR_C, phase="Bound")),
            "nothing",
            id="a deleted volume stays while it is bound",
        ),
        pytest.param(
            [],
            leaving(volume(claimRef=FOR_C, phase="Bound")),
            "persistentvolumes v: Released",
            id="a deleted volume without its claim is released",
        ),
        pytest.param(
            [],
            leaving(volume(claimRef=FOR_C, phase="Released")),
            "persistentvolumes v: finalizers None",
            id="a deleted volume that is not bound loses its protection",
        ),
        pytest.param(
            [],
            leaving(volume(), "kubernetes.io/pv-protection", "a.b/c"),
            "persistentvolumes v: finalizers ['a.b/c']",
            id="the other finalizers of a deleted volume stay",
        ),
        pytest.param(
            [],
            leaving(volume(), "a.b/c"),
            "nothing",
            id="a deleted volume without protection",
        ),
        pytest.param(
            [],
            volume(claimRef=FOR_C, phase="Bound", persistentVolumeReclaimPolicy="Retain"),
            "persistentvolumes v: Released",
            id="the policy Retain: the volume outlives its claim",
        ),
        pytest.param(
            [],
            volume(claimRef=FOR_C, phase=""),
            "nothing",
            id="the claim of the volume has not been seen yet",
        ),
    ],
)
def test_the_next_step_of_a_volume(claims, asked, expected):
    world = _world(claims, [asked], [])
    assert told(volume_step(world.volumes["", "v"], world)) == expected


@pytest.mark.parametrize(
    ("used", "expected"),
    [
        pytest.param(("d", "c"), "nothing", id="a pod on a node uses it"),
        pytest.param(("d", "b"), "persistentvolumeclaims c: finalizers None", id="no pod uses it"),
    ],
)
def test_a_deleted_claim_is_protected_while(used, expected):
    world = _world([leaving(claim(volumeName="v", phase="Bound"))], [volume()], [], used)
    assert told(claim_step(world.claims["d", "c"], world, index_volumes([]))) == expected


def test_the_claim_of_an_ephemeral_volume_comes_and_goes_with_its_pod():
    template = {"spec": {"accessModes": ["ReadWriteOnce"]}}
    pod = {
        "metadata": {"name": "p", "namespace": "d", "uid": "u-p"},
        "spec": {"volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": template}}]},
    }
    alone = _world([], [], [pod])
    (step,) = pod_steps(alone.pods["d", "p"], alone)
    assert told(step) == "create persistentvolumeclaims p-v"
    made = cast(Any, step).body
    both = _world([made], [], [pod])
    assert pod_steps(both.pods["d", "p"], both) == []
    assert orphaned_claims(both) == []
    (end,) = orphaned_claims(_world([made], [], []))
    assert told(end) == "delete persistentvolumeclaims p-v"
