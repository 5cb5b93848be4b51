"""resource.k8s.io DeviceTaintRule: a taint for every device that a selector matches.

The forms of v1beta2 and v1 are the same. Source: kubernetes v1.37
``staging/src/k8s.io/api/resource/v1/types.go``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from moorage.api.devices import Device, DeviceTaint, ResourceSlice
from moorage.api.meta import ApiObject, ApiStruct


class DeviceTaintSelector(ApiStruct, frozen=True, kw_only=True):
    """The devices that a rule taints; a field that is None matches every device."""

    driver: str | None = None
    pool: str | None = None
    device: str | None = None


class DeviceTaintRuleSpec(ApiStruct, frozen=True, kw_only=True):
    """A selector and a taint."""

    device_selector: DeviceTaintSelector | None = None
    taint: DeviceTaint = DeviceTaint()


class DeviceTaintRule(ApiObject, frozen=True, kw_only=True):
    """resource.k8s.io DeviceTaintRule: an administrator's taint of devices of any driver."""

    spec: DeviceTaintRuleSpec = DeviceTaintRuleSpec()

    @property
    def selector(self) -> DeviceTaintSelector:
        """The selector; without one the rule matches every device.

        Notes
        -----
        The text of the API says that a rule without a selector matches no device. The code of
        kubernetes v1.37 (``resourceslice/tracker/tracker.go``, applyPatches) and its test case
        ``patch-all-slices`` taint every device, and so do we.
        """
        return self.spec.device_selector or DeviceTaintSelector()

    def concerns(self, slice_: ResourceSlice) -> bool:
        """Whether devices of this slice may match: its driver and its pool do."""
        selector, spec = self.selector, slice_.spec
        return (selector.driver is None or selector.driver == spec.driver) and (
            selector.pool is None or selector.pool == spec.pool.name
        )

    def matches(self, device: Device) -> bool:
        """Whether a device of a slice that the rule concerns has the taint."""
        return self.selector.device is None or self.selector.device == device.name


def with_rule_taints(slice_: ResourceSlice, rules: Iterable[DeviceTaintRule]) -> ResourceSlice:
    """Return a slice whose devices have the taints of rules behind their own.

    Returns
    -------
    ResourceSlice
        The given object if no rule matches a device of it.
    """
    chosen = sorted(
        (rule for rule in rules if rule.concerns(slice_)), key=lambda rule: rule.metadata.name
    )
    devices = [_with_taints(device, chosen) for device in slice_.spec.devices]
    if all(new is old for new, old in zip(devices, slice_.spec.devices, strict=True)):
        return slice_
    return msgspec.structs.replace(
        slice_, spec=msgspec.structs.replace(slice_.spec, devices=devices)
    )


def _with_taints(device: Device, rules: Sequence[DeviceTaintRule]) -> Device:
    taints = [rule.spec.taint for rule in rules if rule.matches(device)]
    if not taints:
        return device
    return msgspec.structs.replace(device, taints=[*device.taints, *taints])
