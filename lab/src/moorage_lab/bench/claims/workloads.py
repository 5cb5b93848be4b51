"""Workloads of pods with claims, after kubernetes v1.36 scheduler_perf (``dra``)."""

from __future__ import annotations

from typing import Final

from moorage_lab.bench.workload import (
    NAMESPACE,
    CreateNodes,
    CreateObjects,
    CreatePods,
    JsonObject,
    Template,
    Workload,
    default_node,
)

RESOURCE: Final = "example.com/gpu"
"""The extended resource that devices provide."""
_API: Final = "resource.k8s.io/v1"
_DRIVER: Final = "test-driver.cdi.k8s.io"
_MODEL: Final = {
    "model": {"string": "A100"},
    "family": {"string": "GPU"},
    "driverVersion": {"version": "1.2.3"},
}


def claimed(*, nodes: int, pods: int, devices: int, present: int = 0) -> Workload:
    """Return pods with one claim each, for one of equal devices.

    Parameters
    ----------
    nodes, pods, devices
        The numbers of nodes, of pods, and of devices on each node.
    present
        Number of pods that stay, while the oldest go; 0 for all of them.
    """
    return Workload(
        "SteadyStateClaims" if present else "SchedulingWithClaims",
        {"nodes": nodes, "initPods": 0, "measurePods": pods, "devices": devices},
        (
            CreateNodes(nodes, default_node),
            CreateObjects(nodes, _slice_of(devices)),
            CreateObjects(1, _device_class("test-class", {})),
            CreateObjects(pods, _claim),
            CreatePods(pods, _pod({}, claim="claim"), measured=True, present=present),
        ),
    )


def extended(*, nodes: int, pods: int, devices: int, classes: int) -> Workload:
    """Return pods with an extended resource that devices of several classes provide."""
    return Workload(
        "ExtendedResourceScoring",
        {"nodes": nodes, "initPods": 0, "measurePods": pods, "devices": devices},
        (
            CreateNodes(nodes, default_node),
            CreateObjects(nodes, _slice_of(devices)),
            CreateObjects(
                classes, _device_class("scoring-test-class", {"extendedResourceName": RESOURCE})
            ),
            CreatePods(pods, _pod({RESOURCE: "1"}), measured=True),
        ),
    )


def _device_class(name: str, spec: JsonObject) -> Template:
    selector = {"cel": {"expression": f'device.driver == "{_DRIVER}"'}}
    return lambda index: {
        "apiVersion": _API,
        "kind": "DeviceClass",
        "metadata": {"name": f"{name}-{index}"},
        "spec": {"selectors": [selector], **spec},
    }


def _slice_of(devices: int) -> Template:
    def slice_(index: int) -> JsonObject:
        node_name = f"scheduler-perf-{index}"
        return {
            "apiVersion": _API,
            "kind": "ResourceSlice",
            "metadata": {"name": node_name},
            "spec": {
                "driver": _DRIVER,
                "nodeName": node_name,
                "pool": {"name": node_name, "generation": 0, "resourceSliceCount": 1},
                "devices": [
                    {
                        "name": f"instance-{number}",
                        "attributes": {**_MODEL, "dra.example.com/numa": {"int": number}},
                        "capacity": {"memory": {"value": "1Gi"}},
                    }
                    for number in range(devices)
                ],
            },
        }

    return slice_


def _claim(index: int) -> JsonObject:
    exactly = {"deviceClassName": "test-class-0", "allocationMode": "ExactCount", "count": 1}
    return {
        "apiVersion": _API,
        "kind": "ResourceClaim",
        "metadata": {"name": f"claim-{index}", "namespace": NAMESPACE, "uid": f"claim-{index}"},
        "spec": {"devices": {"requests": [{"name": "req-0", "exactly": exactly}]}},
    }


def _pod(requests: JsonObject, *, claim: str = "") -> Template:
    def pod(index: int) -> JsonObject:
        container = {
            "name": "pause",
            "image": "registry.k8s.io/pause:3.10.1",
            "resources": {"requests": dict(requests), "limits": dict(requests)},
        }
        spec: JsonObject = {"containers": [container]}
        if claim:
            entry = {"name": "resource", "resourceClaimName": f"{claim}-{index}"}
            spec["resourceClaims"] = [entry]
        metadata = {"name": f"measured-{index}", "namespace": NAMESPACE}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}

    return pod
