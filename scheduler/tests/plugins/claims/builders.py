"""Classes, slices and claims in one line, for the tests of what DynamicResources does with them."""

from __future__ import annotations

from typing import Any

from moorage.api.codec import from_dict
from moorage.api.devices import DeviceClass, ResourceClaim, ResourceSlice
from moorage.snapshot.snapshot import Snapshot
from scheduler.tests.plugins.builders import cluster, node

DRIVER = "gpu.example"


def device_class(
    name: str = "gpu", *, resource: str | None = None, made: str = "", **spec: Any
) -> DeviceClass:
    if resource is not None:
        spec["extendedResourceName"] = resource
    metadata = {"name": name, **({"creationTimestamp": made} if made else {})}
    return from_dict(DeviceClass, {"metadata": metadata, "spec": spec})


def offered(on: str, *devices: str, **fields: Any) -> ResourceSlice:
    """Return the slice of a node's pool; `fields` are those of each device."""
    spec = {
        "driver": DRIVER,
        "nodeName": on,
        "pool": {"name": on, "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": name, **fields} for name in devices],
    }
    return from_dict(ResourceSlice, {"metadata": {"name": on}, "spec": spec})


def result(on: str, device: str, request: str = "r", **fields: Any) -> dict[str, Any]:
    return {"request": request, "driver": DRIVER, "pool": on, "device": device, **fields}


def allocated(on: str, *results: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """Return an allocation that can be reached from one node."""
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [on]}]}
    return {
        "devices": {"results": list(results)},
        "nodeSelector": {"nodeSelectorTerms": [term]},
        **fields,
    }


def claim(
    name: str = "c",
    *,
    requests: Any = None,
    owner: str | None = None,
    allocation: dict[str, Any] | None = None,
    reserved: tuple[str, ...] = (),
    **fields: Any,
) -> ResourceClaim:
    """Return a claim for one device; `owner` and `reserved` are uids of pods."""
    asked = requests or [{"name": "r", "exactly": {"deviceClassName": "gpu", "count": 1}}]
    metadata: dict[str, Any] = {
        "namespace": "default",
        "name": name,
        "uid": f"uid-{name}",
        "resourceVersion": "1",
        **fields.pop("metadata", {}),
    }
    if owner is not None:
        name = owner.removeprefix("uid-")
        reference = {"kind": "Pod", "name": name, "uid": owner, "controller": True}
        metadata["ownerReferences"] = [reference]
    status = {
        "reservedFor": [{"resource": "pods", "name": uid, "uid": uid} for uid in reserved],
        **fields,
    }
    if allocation is not None:
        status["allocation"] = allocation
    spec = {"devices": {"requests": asked}}
    return from_dict(ResourceClaim, {"metadata": metadata, "spec": spec, "status": status})


def devices(
    *objects: DeviceClass | ResourceSlice | ResourceClaim, nodes: Any = ("a", "b")
) -> Snapshot:
    """Return a cluster with some nodes and these objects."""
    snapshot = cluster(*(node(each) if isinstance(each, str) else each for each in nodes))
    put(snapshot, *objects)
    return snapshot


def put(snapshot: Snapshot, *objects: DeviceClass | ResourceSlice | ResourceClaim) -> None:
    listers = snapshot.listers
    for each in objects:
        if isinstance(each, DeviceClass):
            listers.device_classes.put(each)
        elif isinstance(each, ResourceSlice):
            listers.resource_slices.put(each)
        else:
            listers.resource_claims.put(each)


def wanting(*names: str) -> list[dict[str, str]]:
    """Return ``spec.resourceClaims`` that name claims."""
    return [{"name": f"e{i}", "resourceClaimName": name} for i, name in enumerate(names)]
