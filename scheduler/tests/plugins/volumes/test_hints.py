"""Hints about CSI drivers, limits and volumes in use, one event at a time."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from moorage.api.changes import Action, ClusterEvent, Resource, matches
from moorage.api.codec import from_dict
from moorage.api.pod import Pod
from moorage.api.volume import (
    CSIDriver,
    CSINode,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from scheduler.tests.plugins.builders import make, node, pod

DRIVER = "csi.example"
WITH_CLAIM = pod(volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}])
INLINE = pod(volumes=[{"name": "v", "csi": {"driver": DRIVER}}])


def csi_driver(*, tracks: bool) -> CSIDriver:
    spec = {"storageCapacity": tracks}
    return from_dict(CSIDriver, {"metadata": {"name": DRIVER}, "spec": spec})


def csi_node(migrated: str = "", **counts: int | None) -> CSINode:
    drivers = [
        {
            "name": name,
            "nodeID": "n",
            **({} if count is None else {"allocatable": {"count": count}}),
        }
        for name, count in counts.items()
    ]
    annotations = {"storage.alpha.kubernetes.io/migrated-plugins": migrated} if migrated else {}
    return from_dict(
        CSINode,
        {"metadata": {"name": "n", "annotations": annotations}, "spec": {"drivers": drivers}},
    )


def answers(name: str, resource: str, waiting: Any, old: Any, new: Any) -> list[bool]:
    action = Action.DELETE if new is None else Action.ADD if old is None else Action.UPDATE
    plugin, _ = make(name)
    return [
        each.hint is None or bool(each.hint(waiting, old, new))
        for each in plugin.events_to_register()
        if matches(each.event, ClusterEvent(resource, action))
    ]


TRACKS, FREE = csi_driver(tracks=True), csi_driver(tracks=False)


@pytest.mark.parametrize(
    ("waiting", "old", "new", "expected"),
    [
        pytest.param(WITH_CLAIM, TRACKS, FREE, True, id="capacity is no longer tracked"),
        pytest.param(WITH_CLAIM, TRACKS, None, True, id="a driver that tracks is deleted"),
        pytest.param(WITH_CLAIM, FREE, TRACKS, False, id="capacity is tracked from now on"),
        pytest.param(WITH_CLAIM, FREE, None, False, id="a driver that does not track is deleted"),
        pytest.param(INLINE, TRACKS, FREE, True, id="an inline volume, as in kube-scheduler"),
        pytest.param(pod(), TRACKS, FREE, False, id="the pod has no volumes"),
    ],
)
def test_a_driver_and_its_capacity(waiting, old, new, expected):
    assert answers("VolumeBinding", Resource.CSI_DRIVER, waiting, old, new) == [expected]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(None, csi_node(a=1), True, id="a new CSINode"),
        pytest.param(csi_node(a=1), csi_node(a=2), True, id="a count rises"),
        pytest.param(csi_node(a=2), csi_node(a=1), False, id="a count falls"),
        pytest.param(csi_node(a=1), csi_node(a=None), True, id="a count is gone"),
        pytest.param(csi_node(a=1, b=1), csi_node(b=1), True, id="a driver is gone"),
        pytest.param(csi_node(a=1), None, True, id="the CSINode is gone"),
        pytest.param(csi_node(a=None), None, False, id="a CSINode without limits is gone"),
        pytest.param(csi_node(a=1), csi_node("x", a=1), True, id="a plugin is migrated"),
        pytest.param(csi_node("x", a=1), csi_node("x", a=1), False, id="nothing changes"),
    ],
)
def test_a_limit_of_a_node(old, new, expected):
    assert answers("NodeVolumeLimits", Resource.CSI_NODE, WITH_CLAIM, old, new) == [expected]


VOLUME = from_dict(PersistentVolume, {"metadata": {"name": "v"}})
CLASS = from_dict(StorageClass, {"metadata": {"name": "s"}, "provisioner": DRIVER})


@pytest.mark.parametrize(
    ("resource", "old", "new"),
    [
        pytest.param(Resource.NODE, None, node("n2"), id="a node comes, perhaps without limits"),
        pytest.param(Resource.STORAGE_CLASS, CLASS, None, id="a class and its driver are gone"),
        pytest.param(
            Resource.PERSISTENT_VOLUME, VOLUME, None, id="a volume and its driver are gone"
        ),
    ],
)
def test_fewer_volumes_may_count(resource, old, new):
    for waiting, expected in ((WITH_CLAIM, True), (pod(), False)):
        assert answers("NodeVolumeLimits", resource, waiting, old, new) == [expected]


def test_a_changed_claim_may_count_otherwise():
    one, other = (
        from_dict(PersistentVolumeClaim, {"metadata": {"name": name, "namespace": "default"}})
        for name in ("c", "d")
    )
    kind = Resource.PERSISTENT_VOLUME_CLAIM
    assert answers("NodeVolumeLimits", kind, WITH_CLAIM, one, one) == [True]
    assert answers("NodeVolumeLimits", kind, WITH_CLAIM, other, other) == [False]


def disk_user(name: str, namespace: str, disk: str) -> Pod:
    made = pod(name, volumes=[{"name": "v", "gcePersistentDisk": {"pdName": disk}}])
    metadata = msgspec.structs.replace(made.metadata, namespace=namespace)
    return msgspec.structs.replace(made, metadata=metadata)


@pytest.mark.parametrize(
    ("resource", "waiting", "old", "expected"),
    [
        pytest.param(
            Resource.ASSIGNED_POD,
            disk_user("w", "a", "d"),
            disk_user("o", "b", "d"),
            True,
            id="a pod of another namespace used the disk",
        ),
        pytest.param(
            Resource.ASSIGNED_POD,
            disk_user("w", "a", "d"),
            disk_user("o", "b", "e"),
            False,
            id="a pod of another namespace used another disk",
        ),
        pytest.param(
            Resource.NODE, WITH_CLAIM, node("n2"), True, id="a node, perhaps with the claim's user"
        ),
        pytest.param(
            Resource.NODE, disk_user("w", "a", "d"), node("n2"), False, id="a node with a disk"
        ),
    ],
)
def test_what_is_deleted_may_have_used_a_volume(resource, waiting, old, expected):
    assert answers("VolumeRestrictions", resource, waiting, old, None) == [expected]
