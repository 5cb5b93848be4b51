"""The kinds of ``resource.k8s.io/v1``, for dynamic resource allocation.

Place in the flow: one table of `moorage.apiserver.kinds.registry`. Columns mirror kubernetes v1.36
pkg/printers/internalversion/printers.go.
"""

from __future__ import annotations

from typing import Any

from moorage.api import resources
from moorage.apiserver.kind import Column
from moorage.apiserver.kinds import check_devices
from moorage.apiserver.kinds.cells import AGE, NAME, UNSET, age, name_of
from moorage.apiserver.kinds.served import ServedKind
from moorage.apiserver.kinds.tree import Json, child, fill_empty, objects, text

_NAME_AND_AGE = (NAME, AGE)
_CLAIM_COLUMNS = (
    NAME,
    Column("State", description="Whether it is pending, allocated, reserved, deleted"),
    AGE,
)
_SLICE_COLUMNS = (
    NAME,
    Column("Node", description="Node its devices belong to"),
    Column("Driver", description="Driver that offers the devices"),
    Column("Pool", description="Pool it is a part of"),
    AGE,
)


def _name_and_age(obj: Json, now_ns: int) -> list[Any]:
    return [name_of(obj), age(obj, now_ns)]


def _claim_cells(obj: Json, now_ns: int) -> list[Any]:
    deleted = bool(text(obj, "metadata", "deletionTimestamp"))
    states = ["deleted"] if deleted else []
    status = child(obj, "status")
    if status.get("allocation") is not None:
        states.append("allocated")
        states += ["reserved"] if objects(status, "reservedFor") else []
    elif not deleted:
        states.append("pending")
    return [name_of(obj), ",".join(states), age(obj, now_ns)]


def _slice_cells(obj: Json, now_ns: int) -> list[Any]:
    spec = child(obj, "spec")
    node_name, pool = text(spec, "nodeName") or UNSET, text(spec, "pool", "name")
    return [name_of(obj), node_name, text(spec, "driver"), pool, age(obj, now_ns)]


def _slice_fields(obj: Json) -> dict[str, str]:
    return {
        "metadata.name": name_of(obj),
        "spec.nodeName": text(obj, "spec", "nodeName"),
        "spec.driver": text(obj, "spec", "driver"),
    }


def _default_claim(obj: Json) -> None:
    _default_requests(child(obj, "spec"))


def _default_template(obj: Json) -> None:
    _default_requests(child(obj, "spec", "spec"))


def _default_requests(spec: Json) -> None:
    for request in objects(spec, "devices", "requests"):
        given = [request["exactly"]] if request.get("exactly") is not None else []
        for wanted in (*given, *objects(request, "firstAvailable")):
            fill_empty(wanted, {"allocationMode": "ExactCount"})
            if wanted["allocationMode"] == "ExactCount" and not wanted.get("count"):
                wanted["count"] = 1
            for toleration in objects(wanted, "tolerations"):
                fill_empty(toleration, {"operator": "Equal"})


KINDS = (
    ServedKind(
        resource=resources.DEVICE_CLASSES,
        acted_on_by="the scheduler",
        columns=_NAME_AND_AGE,
        cells=_name_and_age,
        counts_generations=True,
        check=check_devices.check_device_class,
    ),
    ServedKind(
        resource=resources.RESOURCE_SLICES,
        acted_on_by="the scheduler",
        columns=_SLICE_COLUMNS,
        cells=_slice_cells,
        fields=_slice_fields,
        counts_generations=True,
        check=check_devices.check_slice,
    ),
    ServedKind(
        resource=resources.RESOURCE_CLAIMS,
        acted_on_by="the scheduler, the claim controller",
        columns=_CLAIM_COLUMNS,
        cells=_claim_cells,
        defaults=_default_claim,
        has_status=True,
        open_status=(),
        check=check_devices.check_claim,
        check_status=check_devices.check_claim_status,
    ),
    ServedKind(
        resource=resources.RESOURCE_CLAIM_TEMPLATES,
        acted_on_by="the claim controller",
        columns=_NAME_AND_AGE,
        cells=_name_and_age,
        defaults=_default_template,
        check=check_devices.check_claim_template,
    ),
)
