"""Whether a toleration accepts a taint of a node or of a device, and which devices rules taint.

Used by TaintToleration, NodeUnschedulable, spreading and the allocation of devices.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import msgspec

from moorage.api.devices import (
    Device,
    DeviceTaint,
    DeviceTaintRule,
    DeviceTaintSelector,
    DeviceToleration,
    ResourceSlice,
)
from moorage.api.node import Taint
from moorage.api.pod import Toleration

NO_SCHEDULE = "NoSchedule"
NO_EXECUTE = "NoExecute"

SCHEDULING_EFFECTS = (NO_SCHEDULE, NO_EXECUTE)
"""The effects that keep a pod off a node."""


def tolerates(toleration: Toleration | DeviceToleration, taint: Taint | DeviceTaint) -> bool:
    """Whether one toleration accepts one taint.

    Notes
    -----
    kubernetes v1.36 ``api/core/v1/toleration.go``, with the comparison operators Lt and Gt off as
    they are by default: an operator that is not known accepts nothing. An empty key with operator
    Equal accepts any key whose value is equal; validation normally forbids that, the rule does not.
    """
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator in {"", "Equal"}:
        return toleration.value == taint.value
    return toleration.operator == "Exists"


def tolerated(
    taint: Taint | DeviceTaint, tolerations: Iterable[Toleration | DeviceToleration]
) -> bool:
    """Whether any of the tolerations accepts the taint."""
    return any(tolerates(toleration, taint) for toleration in tolerations)


def find_untolerated(
    taints: Iterable[Taint], tolerations: Collection[Toleration], effects: Collection[str]
) -> Taint | None:
    """Return the first taint that has one of the effects and that no toleration accepts."""
    for taint in taints:
        if taint.effect in effects and not tolerated(taint, tolerations):
            return taint
    return None


# --- rules that taint devices ---------------------------------------------------------------------

_EVERY_DEVICE = DeviceTaintSelector()


def concerns_slice(rule: DeviceTaintRule, slice_: ResourceSlice) -> bool:
    """Whether a rule may taint devices of a slice: its driver and its pool match.

    Notes
    -----
    A rule without a selector matches every device. The text of the API says that it matches none.
    The code of kubernetes v1.37 (``resourceslice/tracker/tracker.go``, applyPatches) and its test
    case ``patch-all-slices`` taint every device, and so do we.
    """
    selector, spec = rule.spec.device_selector or _EVERY_DEVICE, slice_.spec
    return (selector.driver is None or selector.driver == spec.driver) and (
        selector.pool is None or selector.pool == spec.pool.name
    )


def taints_device(rule: DeviceTaintRule, device: Device) -> bool:
    """Whether a rule taints a device of a slice that it concerns."""
    selector = rule.spec.device_selector or _EVERY_DEVICE
    return selector.device is None or selector.device == device.name


def with_rule_taints(slice_: ResourceSlice, rules: Iterable[DeviceTaintRule]) -> ResourceSlice:
    """Return a slice whose devices have the taints of rules behind their own.

    Returns
    -------
    ResourceSlice
        The given object if no rule matches a device of it.
    """
    chosen = [rule for rule in rules if concerns_slice(rule, slice_)]
    chosen.sort(key=lambda rule: rule.metadata.name)
    devices = [_with_taints(device, chosen) for device in slice_.spec.devices]
    if all(new is old for new, old in zip(devices, slice_.spec.devices, strict=True)):
        return slice_
    return msgspec.structs.replace(
        slice_, spec=msgspec.structs.replace(slice_.spec, devices=devices)
    )


def _with_taints(device: Device, rules: Sequence[DeviceTaintRule]) -> Device:
    taints = [rule.spec.taint for rule in rules if taints_device(rule, device)]
    if not taints:
        return device
    return msgspec.structs.replace(device, taints=[*device.taints, *taints])
