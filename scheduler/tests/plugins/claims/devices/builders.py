"""Slices, classes and claims in one line each, and an allocator over them."""

from __future__ import annotations

from typing import Any

from moorage.api.codec import from_dict
from moorage.api.devices import AllocationResult, DeviceClass, ResourceClaim, ResourceSlice
from moorage.base.clock import ManualClock
from moorage.base.rng import Streams
from moorage.plugins.claims.devices.allocated import AllocatedState
from moorage.plugins.claims.devices.allocator import Allocator
from moorage.plugins.claims.devices.contract import (
    AllocationError,
    Features,
    NodeAllocationError,
    NodeFacts,
)
from moorage.plugins.claims.devices.inventory import Inventory

DRIVER = "gpu.example.com"
N1 = NodeFacts("n1", {"zone": "a"})
N2 = NodeFacts("n2", {"zone": "b"})
HERE = {"nodeName": "n1"}


def device(name: str, **fields: Any) -> dict[str, Any]:
    """A device; ``attributes`` as plain values, ``capacity`` as quantities."""
    kinds = {str: "string", int: "int", bool: "bool"}
    attributes = {
        key: value if isinstance(value, dict) else {kinds[type(value)]: value}
        for key, value in fields.pop("attributes", {}).items()
    }
    capacity = {
        key: value if isinstance(value, dict) else {"value": value}
        for key, value in fields.pop("capacity", {}).items()
    }
    return {"name": name, "attributes": attributes, "capacity": capacity, **fields}


def slice_(
    name: str = "s1",
    *devices: dict[str, Any],
    pool: str = "p1",
    driver: str = DRIVER,
    generation: int = 1,
    count: int = 1,
    **spec: Any,
) -> ResourceSlice:
    """A slice; without a word about nodes it is on n1."""
    where = {"nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection", "sharedCounters"}
    spec = spec if where & spec.keys() else {**HERE, **spec}
    about = {"name": pool, "generation": generation, "resourceSliceCount": count}
    return from_dict(
        ResourceSlice,
        {
            "metadata": {"name": name},
            "spec": {"driver": driver, "pool": about, "devices": list(devices), **spec},
        },
    )


def model(name: str, value: str, **fields: Any) -> dict[str, Any]:
    return device(name, attributes={"model": value, "numa": int(name[-1]) % 2}, **fields)


def gpus(*names: str, **slice_fields: Any) -> ResourceSlice:
    """A slice of plain devices."""
    return slice_("s1", *(device(name) for name in names), **slice_fields)


MIXED = slice_("s1", model("d0", "t4"), model("d1", "a100"), model("d2", "t4"), model("d3", "a100"))


def class_(name: str = "gpu", *expressions: str, **spec: Any) -> DeviceClass:
    selectors = [{"cel": {"expression": text}} for text in expressions]
    return from_dict(
        DeviceClass, {"metadata": {"name": name}, "spec": {"selectors": selectors, **spec}}
    )


def exactly(name: str = "r", count: int = 1, *expressions: str, **fields: Any) -> dict[str, Any]:
    """A request for a count of devices; ``mode`` All for all of them."""
    return {"name": name, "exactly": _asked(count, expressions, fields)}


def first_of(name: str, *alternatives: dict[str, Any]) -> dict[str, Any]:
    """A request with alternatives, each as `exactly` makes them."""
    subs = [{"name": sub["name"], **sub["exactly"]} for sub in alternatives]
    return {"name": name, "firstAvailable": subs}


def _asked(count: int, expressions: tuple[str, ...], fields: dict[str, Any]) -> dict[str, Any]:
    capacity = fields.pop("capacity", None)
    mode = fields.pop("mode", "ExactCount")
    asked = {
        "deviceClassName": fields.pop("device_class", "gpu"),
        "allocationMode": mode,
        "selectors": [{"cel": {"expression": text}} for text in expressions],
        **({} if mode == "All" else {"count": count}),
        **({} if capacity is None else {"capacity": {"requests": capacity}}),
    }
    return asked | fields


def claim(*requests: dict[str, Any], name: str = "c", **devices: Any) -> ResourceClaim:
    return from_dict(
        ResourceClaim,
        {
            "metadata": {"name": name, "namespace": "ns"},
            "spec": {"devices": {"requests": list(requests), **devices}},
        },
    )


def allocation(*results: dict[str, Any]) -> AllocationResult:
    """What another claim got: each result a device of p1, or more in detail."""
    defaults = {"driver": DRIVER, "pool": "p1", "request": "r"}
    return from_dict(
        AllocationResult, {"devices": {"results": [{**defaults, **result} for result in results]}}
    )


def allocator(
    slices: list[ResourceSlice],
    *classes: DeviceClass,
    held: list[AllocationResult] | None = None,
    features: Features | None = None,
    **more: Any,
) -> Allocator:
    by_name = {found.name: found for found in classes or (class_(),)}
    return Allocator(
        AllocatedState(held or []),
        Inventory(slices, features=features),
        by_name.get,
        rng=Streams(1).stream("shares"),
        **{"clock": ManualClock(), **more},
    )


def found(
    allocates: Allocator, *claims: ResourceClaim, node: NodeFacts = N1
) -> list[list[str]] | str | None:
    """Allocate; for each claim its devices as ``request=device``, or None, or the error's text."""
    try:
        results = allocates.allocate(node, claims)
    except (AllocationError, NodeAllocationError) as error:
        return str(error)
    return None if results is None else [shown(result) for result in results]


def shown(result: AllocationResult) -> list[str]:
    return [f"{each.request}={each.device}" for each in result.devices.results]
