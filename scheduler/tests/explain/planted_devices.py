"""Planted causes in devices: resource claims, classes, slices, taints of devices.

Each function plants its cause in a plan, and returns the beginning of the sentence and the words
that name the cause.
"""

from __future__ import annotations

from typing import Any, Final

from moorage_sandbox.testing.builders import Manifest
from scheduler.tests.explain.plan import Plan

DRIVER: Final = "gpu.example"
_VERSION: Final = "resource.k8s.io/v1"
_NEVER: Final = "never fits here, not even on an empty node"
_CLAIM: Final = "its resource claim c (device class gpu)"


def device_class(name: str = "gpu") -> Manifest:
    """Return a class of all devices."""
    return {"apiVersion": _VERSION, "kind": "DeviceClass", "metadata": {"name": name}, "spec": {}}


def resource_claim(
    name: str = "c", *, status: dict[str, Any] | None = None, **exactly: Any
) -> Manifest:
    """Return a claim for one device of the class."""
    request = {"name": "r", "exactly": {"deviceClassName": "gpu", **exactly}}
    found = {
        "apiVersion": _VERSION,
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"},
        "spec": {"devices": {"requests": [request]}},
    }
    return found if status is None else {**found, "status": status}


def offered(node: str, **fields: Any) -> Manifest:
    """Return the slice of a node's pool, with one device."""
    return {
        "apiVersion": _VERSION,
        "kind": "ResourceSlice",
        "metadata": {"name": f"slice-{node}"},
        "spec": {
            "driver": DRIVER,
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "d0", **fields}],
        },
    }


def taken(node: str, *, by: str = "") -> dict[str, Any]:
    """Return the status of a claim that has a node's device, in use by a pod if one is named."""
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    result = {"request": "r", "driver": DRIVER, "pool": node, "device": "d0"}
    status: dict[str, Any] = {
        "allocation": {
            "devices": {"results": [result]},
            "nodeSelector": {"nodeSelectorTerms": [term]},
        }
    }
    if by:
        status["reservedFor"] = [{"resource": "pods", "name": by, "uid": f"uid-default-{by}"}]
    return status


def using(name: str = "c") -> list[dict[str, str]]:
    """Return ``spec.resourceClaims`` with a claim."""
    return [{"name": "e", "resourceClaimName": name}]


def _asks(plan: Plan, **exactly: Any) -> None:
    plan.objects += [device_class(), resource_claim(**exactly)]
    plan.pod["resourceClaims"] = using()


def no_device(plan: Plan) -> tuple[str, str]:
    _asks(plan)
    return "fits on no node now", f"{_CLAIM}, for which these nodes offer no device"


def too_few_devices(plan: Plan) -> tuple[str, str]:
    _asks(plan, count=2)
    plan.objects += [offered(name) for name in plan.open]
    return _NEVER, f"{_CLAIM}, which asks for more devices than these nodes offer"


def all_devices_taken(plan: Plan) -> tuple[str, str]:
    _asks(plan)
    for name in plan.open:
        plan.objects += [
            offered(name),
            resource_claim(f"of-{name}", status=taken(name, by=f"{name}-user")),
        ]
        plan.on(name, f"{name}-user", cpu="10m", resourceClaims=using(f"of-{name}"))
    return "would fit on", f"{_CLAIM}, whose devices on these nodes other pods have"


def no_device_selected(plan: Plan) -> tuple[str, str]:
    wanted = f'device.attributes["{DRIVER}"].model == "big"'
    _asks(plan, selectors=[{"cel": {"expression": wanted}}])
    small = {f"{DRIVER}/model": {"string": "small"}}
    plan.objects += [offered(name, attributes=small) for name in plan.open]
    return _NEVER, f"{_CLAIM}, whose selectors match no device of these nodes"


def devices_with_taints(plan: Plan) -> tuple[str, str]:
    _asks(plan)
    effect = plan.draw.choice(["NoSchedule", "NoExecute"])
    taints = [{"key": f"{DRIVER}/broken", "effect": effect}]
    plan.objects += [offered(name, taints=taints) for name in plan.open]
    return _NEVER, f"{_CLAIM}, which does not tolerate the taint {DRIVER}/broken:{effect}"


def devices_elsewhere(plan: Plan) -> tuple[str, str]:
    """The claim has a device of a node that is not there any more."""
    plan.objects += [device_class(), resource_claim(status=taken("gone", by="other"))]
    plan.pod["resourceClaims"] = using()
    return _NEVER, "its resource claim c, whose devices are for nodes with (metadata.name In [gone]"


def missing_device_class(plan: Plan) -> tuple[str, str]:
    plan.objects.append(resource_claim())
    plan.pod["resourceClaims"] = using()
    return "is not tried on any node", "its resource claim c, whose device class gpu does not exist"


def missing_resource_claim(plan: Plan) -> tuple[str, str]:
    plan.pod["resourceClaims"] = using("gone")
    return (
        "held before the queue by plugin DynamicResources",
        'could not find ResourceClaim "default/gone"',
    )
