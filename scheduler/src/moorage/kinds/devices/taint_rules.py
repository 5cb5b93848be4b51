"""DeviceTaintRule: an administrator's taint of devices of any driver.

Place in the flow: `served` lists the kind. Mirrors kubernetes v1.37
pkg/apis/resource/validation/validation.go (ValidateDeviceTaintRule) and
pkg/registry/resource/devicetaintrule/strategy.go.
"""

from __future__ import annotations

from typing import Any

from moorage.kinds.built_in import resource_type
from moorage.kinds.cells import AGE, NAME, column, since, timed
from moorage.kinds.devices.shared_rules import (
    check_changed_spec,
    check_taint,
    device_name,
    pool_name,
    set_time_added,
)
from moorage.kinds.fields import driver_name, if_present, rules
from moorage.kinds.kind import Context, Obj
from moorage.kinds.served import ServedKind
from moorage.kinds.tree import child, text
from moorage.kinds.values.conditions import conditions

_CONDITIONS_MAX = 8


def _prepare(obj: Obj, ctx: Context, resource: Any) -> None:
    del resource
    set_time_added(child(obj, "spec", "taint"), ctx)


def _complete(new: Obj, old: Obj, ctx: Context) -> None:
    """Set the time anew with another effect, unless the client sets it."""
    taint, before = child(new, "spec", "taint"), child(old, "spec", "taint")
    same_time = taint.get("timeAdded") == before.get("timeAdded")
    if same_time and text(taint, "effect") != text(before, "effect"):
        taint.pop("timeAdded", None)
    set_time_added(taint, ctx)


_status = rules(("status.conditions", conditions(_CONDITIONS_MAX)))


def _time_added(obj: Obj, now_ns: int) -> str:
    added = text(obj, "spec", "taint", "timeAdded")
    return since(added, now_ns) if added else ""


_selector = rules(
    ("driver", if_present(driver_name)),
    ("pool", if_present(pool_name)),
    ("device", if_present(device_name)),
)

DEVICE_TAINT_RULE = ServedKind(
    resource=resource_type("resource.k8s.io/v1beta2", "devicetaintrules"),
    acted_on_by="the scheduler",
    columns=(
        NAME,
        column("Key", "spec.taint.key", "Key of the taint"),
        column("Value", "spec.taint.value", "Value of the taint"),
        column("Effect", "spec.taint.effect", "What the taint does to pods"),
        timed("TimeAdded", _time_added, "Time since the taint was added"),
        AGE,
    ),
    on_create=_prepare,
    on_update=_complete,
    counts_generations=True,
    open_status=(),
    check_status=lambda new, old: _status(new, ""),
    check=check_changed_spec(
        rules(
            ("spec.deviceSelector", if_present(_selector)),
            ("spec.taint", lambda taint, where: check_taint(taint or {}, where)),
        )
    ),
)
"""The kind DeviceTaintRule."""
