"""Objects that are deleted while pods use them: they stay until the last such pod is gone."""

from __future__ import annotations

import pytest

from moorage.what_if.change import Apply, Change, Delete
from moorage.what_if.consequences import ChangeComparison
from moorage.what_if.course import try_steps
from moorage_sandbox.testing.builders import Manifest
from scheduler.tests.what_if.cluster import bare, inputs_of, pod_of, replica_set
from scheduler.tests.what_if.test_volumes import _STORAGE

_BOUND = {"pv.kubernetes.io/bind-completed": "yes"}
_CLAIM: Manifest = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "data", "namespace": "default", "uid": "uid-data", "annotations": _BOUND},
    "spec": {"volumeName": "disk", "storageClassName": "", **_STORAGE},
    "status": {"phase": "Bound"},
}
_VOLUME: Manifest = {
    "apiVersion": "v1",
    "kind": "PersistentVolume",
    "metadata": {"name": "disk", "uid": "uid-disk"},
    "spec": {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "hostPath": {"path": "/data"},
        "claimRef": {"namespace": "default", "name": "data", "uid": "uid-data"},
    },
    "status": {"phase": "Bound"},
}
_DELETE_CLAIM = Delete("PersistentVolumeClaim", "default", "data")
_DELETE_VOLUME = Delete("PersistentVolume", "", "disk")


def _with_volume(pod: Manifest) -> Manifest:
    source = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    return {**pod, "spec": {**pod["spec"], "volumes": [source]}}


def _reasons(course: ChangeComparison) -> list[str]:
    return [each.reason for each in course.newly_pending]


def _course(changes: list[Change], *, users: int = 1) -> ChangeComparison:
    pods = [_with_volume(pod_of("web", n, "n1", cpu="100m")) for n in range(users)]
    return try_steps(inputs_of(_VOLUME, _CLAIM, replica_set("web", users), *pods), changes)


@pytest.mark.parametrize(
    ("changes", "users", "why"),
    [
        pytest.param([_DELETE_CLAIM], 1, "is being deleted", id="a claim that a pod uses"),
        pytest.param([_DELETE_CLAIM], 0, "not found", id="a claim that no pod uses"),
        pytest.param(
            [_DELETE_CLAIM, Delete("ReplicaSet", "default", "web")],
            2,
            "not found",
            id="a claim that the last pod has left",
        ),
        pytest.param([_DELETE_VOLUME], 1, "", id="the volume of a claim"),
        pytest.param([_DELETE_VOLUME], 0, "", id="the volume of a claim that no pod uses"),
    ],
)
def test_a_new_pod_sees_the_claim_as_it_is(changes: list[Change], users: int, why: str) -> None:
    course = _course([*changes, Apply(_with_volume(bare("new", cpu="100m")))], users=users)
    assert [why in each for each in _reasons(course)] == [True] * bool(why)
    assert len(course.starts) == (not why)


def test_a_volume_goes_after_its_claim() -> None:
    """The claim goes with its last pod, so the name is free for a claim without the volume."""
    later = {**_CLAIM, "metadata": {"name": "data"}, "status": {}}
    course = _course(
        [
            _DELETE_VOLUME,
            _DELETE_CLAIM,
            Delete("ReplicaSet", "default", "web"),
            Apply(later),
            Apply(_with_volume(bare("new", cpu="100m"))),
        ]
    )
    assert len(_reasons(course)) == 1


def test_a_pod_that_follows_may_not_use_a_claim_that_is_being_deleted() -> None:
    """Its predecessor keeps the claim for as long as it stops, and longer with another user."""
    course = _course([_DELETE_CLAIM, Delete("Pod", "default", "web-0")], users=2)
    assert ["being deleted" in each for each in _reasons(course)] == [True]


def _device_claim(users: list[str]) -> Manifest:
    reserved = [{"resource": "pods", "name": name, "uid": f"uid-{name}"} for name in users]
    results = [{"request": "r", "driver": "d", "pool": "n1", "device": "g0"}]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "gpu", "namespace": "default", "uid": "uid-gpu"},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}},
        "status": {"allocation": {"devices": {"results": results}}, "reservedFor": reserved},
    }


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        pytest.param([], "is being deleted", id="a pod uses it"),
        pytest.param([Delete("Pod", "default", "one")], "could not find", id="the pod is gone"),
    ],
)
def test_a_resource_claim_stays_as_long_as_it_is_reserved(changes: list[Change], why: str) -> None:
    entry = [{"name": "r", "resourceClaimName": "gpu"}]
    user = bare("one", "n1", cpu="100m", resourceClaims=entry)
    new = bare("new", cpu="100m", resourceClaims=entry)
    course = try_steps(
        inputs_of(_device_claim(["one"]), user),
        [Delete("ResourceClaim", "default", "gpu"), *changes, Apply(new)],
    )
    assert [why in each for each in _reasons(course)] == [True], course.newly_pending


def test_a_claim_that_is_being_deleted_at_the_start_goes_with_its_last_user() -> None:
    """Then a StatefulSet, or a person, may make another of that name."""
    going = {**_CLAIM["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}
    user = _with_volume(pod_of("web", 0, "n1", cpu="100m"))
    inputs = inputs_of(_VOLUME, {**_CLAIM, "metadata": going}, replica_set("web", 1), user)
    new = Apply(_with_volume(bare("new", cpu="100m")))
    course = try_steps(inputs, [Delete("ReplicaSet", "default", "web"), new])
    assert ["not found" in each for each in _reasons(course)] == [True]
