"""Volume claims are bound before their pods where their class does not wait for a pod."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.what_if.change import Apply, Scale
from moorage.what_if.course import try_steps
from moorage_sandbox.testing.builders import Manifest
from scheduler.tests.what_if.cluster import bare, inputs_of
from scheduler.tests.what_if.test_stateful_sets import _stateful_set, _with_volumes

_STORAGE = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


def _class(mode: str = "Immediate", provisioner: str = "example.com", **more: Any) -> Manifest:
    head = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "now"}}
    return {**head, "provisioner": provisioner, "volumeBindingMode": mode, **more}


def _claim(name: str = "data", **spec: Any) -> Manifest:
    head = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}}
    return {**head, "spec": {"storageClassName": "now", **_STORAGE, **spec}}


def _volume(name: str, node_name: str = "", size: str = "1Gi") -> Manifest:
    spec: dict[str, Any] = {
        "capacity": {"storage": size},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "now",
        "hostPath": {"path": "/data"},
    }
    if node_name:
        names = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node_name]}
        terms = [{"matchExpressions": [names]}]
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}} | {
        "spec": spec
    }


def _user(**source: Any) -> Manifest:
    pod = bare("user", cpu="1")
    pod["spec"]["volumes"] = [{"name": "data", **source}]
    return pod


_USER = _user(persistentVolumeClaim={"claimName": "data"})
_HOSTS = [{"matchLabelExpressions": [{"key": "kubernetes.io/hostname", "values": ["n2"]}]}]
_STATIC = "kubernetes.io/no-provisioner"


@pytest.mark.parametrize(
    ("there", "applied", "node_name", "anywhere"),
    [
        pytest.param([_class()], [_claim(), _USER], "any", ["default/data"], id="a driver"),
        pytest.param(
            [_class(allowedTopologies=_HOSTS)],
            [_claim(), _USER],
            "n2",
            [],
            id="a driver whose class names nodes",
        ),
        pytest.param(
            [_class(), _volume("v", "n3")], [_claim(), _USER], "n3", [], id="a volume that is free"
        ),
        pytest.param(
            [_class(), _volume("large", "n1", "9Gi"), _volume("small", "n2", "2Gi")],
            [_claim(), _USER],
            "n2",
            [],
            id="the smallest volume that suits",
        ),
        pytest.param([_class(provisioner=_STATIC)], [_claim(), _USER], "", [], id="no volume"),
        pytest.param(
            [_class(provisioner=_STATIC)],
            [_claim(), _USER, _volume("v", "n3")],
            "n3",
            [],
            id="a volume that comes later",
        ),
        pytest.param(
            [_class()],
            [_user(ephemeral={"volumeClaimTemplate": {"spec": _claim()["spec"]}})],
            "any",
            ["default/user-data"],
            id="an ephemeral volume",
        ),
        pytest.param(
            [_class("WaitForFirstConsumer")],
            [_user(ephemeral={"volumeClaimTemplate": {"spec": _claim()["spec"]}})],
            "any",
            [],
            id="an ephemeral volume that waits for its pod",
        ),
    ],
)
def test_a_pod_goes_where_the_volume_of_its_claim_is(
    there: list[Manifest], applied: list[Manifest], node_name: str, anywhere: list[str]
) -> None:
    course = try_steps(inputs_of(*there), [Apply(each) for each in applied])
    nodes = [each.node for each in course.starts]
    assert (nodes != []) == (node_name != "")
    assert node_name in ("", "any", *nodes)
    assert list(course.volumes_anywhere) == anywhere


def test_new_pods_of_a_set_get_volumes_of_a_driver() -> None:
    items = [each for each in _with_volumes("Immediate") if each["kind"] != "PersistentVolumeClaim"]
    items = [_stateful_set(1) | items[0], *items[2:]]
    course = try_steps(inputs_of(*items), [Scale("StatefulSet", "default", "db", 2)])
    assert list(course.volumes_anywhere) == ["default/data-db-0", "default/data-db-1"]
    assert len(course.newly_pending) == 0
