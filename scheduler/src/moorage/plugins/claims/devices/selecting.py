"""Selects the devices that a request may use: selectors, taints and constraints."""

from __future__ import annotations

from typing import NamedTuple, NoReturn, Protocol

from moorage.api.taints import tolerated
from moorage.plugins.claims.devices.cel import SelectorFault
from moorage.plugins.claims.devices.contract import AllocationError
from moorage.plugins.claims.devices.offered import AttributeValue, DeviceKind, OfferedDevice
from moorage.plugins.claims.devices.requests import Alternative, Constraint


class FaultAt(NamedTuple):
    """A selector, by its index, that has no answer for a kind of device."""

    at: int
    fault: SelectorFault


Judgement = bool | FaultAt


def judgement(kind: DeviceKind, expressions: tuple[str, ...]) -> Judgement:
    """Whether devices of a kind fulfil all selectors; the first failing selector decides."""
    for index, expression in enumerate(expressions):
        answer = kind.fulfils_selector(expression)
        if isinstance(answer, SelectorFault):
            return FaultAt(index, answer)
        if not answer:
            return False
    return True


def raise_fault(fault: FaultAt, alternative: Alternative, device: OfferedDevice) -> NoReturn:
    """End the cycle because of a selector.

    Raises
    ------
    AllocationError
        Always, with upstream's text and the device; upstream's API server refuses a selector that
        costs too much.
    """
    selector, (kind, message) = alternative.selector_name(fault.at), fault.fault
    if kind == "cost":
        request = f"claim {alternative.claim}, request {alternative.own_name}"
        raise AllocationError(f"{request}: {selector}: {message}")
    if kind == "compile":
        raise AllocationError(f"{selector}: CEL compile error: {message}")
    raise AllocationError(f"{selector} on device {device.id}: CEL runtime error: {message}")


def is_tainted(device: OfferedDevice, alternative: Alternative) -> bool:
    """Whether a taint excludes the device from the request."""
    return any(not tolerated(taint, alternative.tolerations) for taint in device.taints)


class ConstraintState(Protocol):
    """A constraint over the devices chosen so far."""

    constraint: Constraint

    def add(self, request: str, device: OfferedDevice) -> bool:
        """Add a device for a request if the constraint holds; return whether it holds."""
        ...

    def remove_last(self, request: str) -> None:
        """Remove the device that was added last."""
        ...


def begin_constraint(constraint: Constraint) -> ConstraintState:
    """Return the state of a constraint before any device is chosen."""
    return _Distinct(constraint) if constraint.is_distinct else _Match(constraint)


class _Match:
    """All devices have the attribute, with one value."""

    def __init__(self, constraint: Constraint) -> None:
        self.constraint = constraint
        self._value: AttributeValue | None = None
        self._count = 0

    def add(self, request: str, device: OfferedDevice) -> bool:
        del request
        value = device.attribute(self.constraint.attribute)
        if value is None or (self._count and value != self._value):
            return False
        self._value = value
        self._count += 1
        return True

    def remove_last(self, request: str) -> None:
        del request
        self._count -= 1


class _Distinct:
    """All devices have the attribute, each with a distinct value among the remembered values.

    Notes
    -----
    kubernetes v1.36 ``structured/internal/incubating/constraint.go`` remembers one value for each
    request: the value of its last device. Giving back a device of the request forgets the value. So
    the devices of a request for several devices can repeat a value, and so can later devices.
    Decisions depend on this.
    """

    def __init__(self, constraint: Constraint) -> None:
        self.constraint = constraint
        self._values: dict[str, AttributeValue] = {}

    def add(self, request: str, device: OfferedDevice) -> bool:
        value = device.attribute(self.constraint.attribute)
        if value is None or value in self._values.values():
            return False
        self._values[request] = value
        return True

    def remove_last(self, request: str) -> None:
        self._values.pop(request, None)
