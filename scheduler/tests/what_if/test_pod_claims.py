"""Claims from templates are made in a model, so pods with devices start and are counted."""

from __future__ import annotations

import pytest

from moorage.api.codec import encode
from moorage.api.resources import DEVICE_CLASSES, RESOURCE_CLAIM_TEMPLATES, RESOURCE_SLICES
from moorage.virtual.deciding_half import ClusterInputs
from moorage.virtual.model import ClusterModel
from moorage.what_if.answering.answers import capacity_kinds
from moorage.what_if.capacity.count import room_in
from moorage.what_if.change import Change, Drain, Scale
from moorage.what_if.course import scene_of, try_steps
from moorage.what_if.wire import CapacityBody
from moorage_sandbox.testing.builders import Manifest
from scheduler.tests.what_if.cluster import inputs_of, replica_set


def _slice(node_name: str, devices: int) -> Manifest:
    return {
        "apiVersion": RESOURCE_SLICES.api_version,
        "kind": "ResourceSlice",
        "metadata": {"name": f"s-{node_name}", "uid": f"s-{node_name}"},
        "spec": {
            "driver": "gpu.example.com",
            "nodeName": node_name,
            "pool": {"name": node_name, "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": f"d{number}"} for number in range(devices)],
        },
    }


def _inputs(devices: dict[str, int], replicas: int = 0) -> ClusterInputs:
    owner = replica_set("web", replicas, "100m")
    spec = owner["spec"]["template"]["spec"]
    spec["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "one"}]
    template = {
        "apiVersion": RESOURCE_CLAIM_TEMPLATES.api_version,
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "one", "namespace": "default", "uid": "t"},
        "spec": {
            "spec": {
                "devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}
            }
        },
    }
    kind = {
        "apiVersion": DEVICE_CLASSES.api_version,
        "kind": "DeviceClass",
        "metadata": {"name": "gpu", "uid": "c"},
        "spec": {},
    }
    return inputs_of(owner, template, kind, *(_slice(*each) for each in devices.items()))


@pytest.mark.parametrize(
    ("devices", "starts"),
    [
        pytest.param({"n1": 2}, 2, id="two devices for three pods"),
        pytest.param({"n1": 1, "n2": 2}, 3, id="a device for each pod"),
        pytest.param({}, 0, id="no device"),
    ],
)
def test_a_pod_starts_with_a_device_of_its_own(devices: dict[str, int], starts: int) -> None:
    """Each pod gets a claim, and each claim a device."""
    course = try_steps(_inputs(devices), [Scale("ReplicaSet", "default", "web", 3)])
    assert (len(course.starts), len(course.newly_pending)) == (starts, 3 - starts)


def test_the_device_of_a_pod_that_goes_is_free() -> None:
    """The pods of a drained node take the devices of another one, and a device is free again."""
    steps: list[Change] = [
        Scale("ReplicaSet", "default", "web", 2),
        Drain("n1"),
        Scale("ReplicaSet", "default", "web", 1),
        Scale("ReplicaSet", "default", "web", 2),
    ]
    course = try_steps(_inputs({"n1": 2, "n2": 2}), steps)
    assert [each.node for each in course.starts] == ["n2", "n2"]
    assert not course.newly_pending


def test_capacity_counts_free_devices() -> None:
    """Three devices on two nodes."""
    scene = scene_of(ClusterModel(_inputs({"n1": 1, "n2": 2})))
    room = room_in(scene, capacity_kinds(CapacityBody(like="rs/web"), scene), most=100)
    assert (room.fit, room.by_node) == (3, {"n1": 1, "n2": 2})
    assert room.message


def test_a_quota_bounds_the_claims_from_templates() -> None:
    """A pod whose claim is refused waits, and says why; the claim of a pod that goes is free."""
    inputs = _inputs({"n1": 4})
    hard = {"count/resourceclaims.resource.k8s.io": "2"}
    inputs.objects.add_json(
        encode(
            {
                "apiVersion": "v1",
                "kind": "ResourceQuota",
                "metadata": {"name": "q", "namespace": "default", "uid": "q"},
                "spec": {"hard": hard},
            }
        )
    )
    course = try_steps(inputs, [Scale("ReplicaSet", "default", "web", 3)])
    assert len(course.starts) == 2
    (waiting,) = course.newly_pending
    assert "exceeded quota: q, requested: count/resourceclaims" in waiting.reason
    scene = scene_of(ClusterModel(inputs))
    room = room_in(scene, capacity_kinds(CapacityBody(like="rs/web"), scene), most=100)
    assert room.fit == 2
