"""Consumable capacity: the amount of a device that a request consumes, and its policy.

Rules mirrored: kubernetes v1.36 ``structured/internal/incubating/consumable_capacity.go``, and of
v1.37 the gate DRAFractionalCapacityRange: a range with a bound or a step that is no whole number is
counted in thousandths.
Amounts are nano units, each with the quantity as the API writes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from moorage.api.devices import (
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    DeviceCapacity,
)
from moorage.api.meta import Quantity
from moorage.api.quantity import NANO, canonical, parse_quantity

_MILLI_NANO: Final = NANO // 1000


class Amount(NamedTuple):
    """A quantity: value in nano units, and text."""

    nano: int
    text: str


class Range(NamedTuple):
    """The allowed amounts: minimum, maximum and step; and the unit in which steps are counted."""

    least: Amount | None
    most: Amount | None
    step: Amount | None
    unit_nano: int = NANO

    def units(self, amount: Amount) -> int:
        """Return an amount in units of the range, rounded up."""
        return -(-amount.nano // self.unit_nano)


class CapacityRule(NamedTuple):
    """One capacity of a device and its request policy."""

    total: Amount
    default: Amount | None = None
    valid_values: tuple[Amount, ...] = ()
    valid_range: Range | None = None

    def consumed(self, requested: Amount | None) -> Amount:
        """Return the consumed amount: rounded up by the policy; the whole capacity by default."""
        if requested is None:
            return self.default or self.total
        if self.valid_range is not None and self.valid_range.least is not None:
            return _rounded_up(requested, self.valid_range.least, self.valid_range)
        for valid in self.valid_values:
            if requested.nano <= valid.nano:
                return valid
        return requested

    def allows(self, amount: Amount) -> bool:
        """Whether the policy allows this amount."""
        if self.default is not None and amount == self.default:
            return True
        if self.valid_range is not None:
            return _within(amount, self.valid_range)
        return not self.valid_values or any(v.nano == amount.nano for v in self.valid_values)


def parse_amount(quantity: Quantity) -> Amount:
    """Read a quantity.

    Raises
    ------
    ValueError
        The text is not a valid quantity.
    """
    return Amount(parse_quantity(quantity), canonical(quantity))


def parse_capacity(capacity: DeviceCapacity, *, fractions: bool = False) -> CapacityRule:
    """Read one capacity of a device.

    Parameters
    ----------
    capacity
        The capacity and its request policy.
    fractions
        Whether a range that is not whole is counted in thousandths.

    Raises
    ------
    ValueError
        A quantity is invalid.
    """
    policy = capacity.request_policy or CapacityRequestPolicy()
    limits = policy.valid_range
    return CapacityRule(
        parse_amount(capacity.value),
        _optional(policy.default),
        tuple(parse_amount(quantity) for quantity in policy.valid_values),
        None if limits is None else _range(limits, fractions=fractions),
    )


def _range(limits: CapacityRequestPolicyRange, *, fractions: bool) -> Range:
    least, most, step = map(_optional, (limits.min, limits.max, limits.step))
    fractional = any(bound is not None and bound.nano % NANO for bound in (least, most, step))
    return Range(least, most, step, _MILLI_NANO if fractions and fractional else NANO)


def consumption(
    rules: Mapping[str, CapacityRule], requests: Mapping[str, Amount]
) -> dict[str, Amount] | None:
    """Return the consumed amount of each capacity; None for an unknown capacity.

    The result is also None where a policy forbids the amount, even if enough capacity is left.
    """
    if not requests.keys() <= rules.keys():
        return None
    taken = {name: rule.consumed(requests.get(name)) for name, rule in rules.items()}
    return taken if all(rule.allows(taken[name]) for name, rule in rules.items()) else None


def _optional(quantity: Quantity | None) -> Amount | None:
    return None if quantity is None else parse_amount(quantity)


def _rounded_up(requested: Amount, least: Amount, limits: Range) -> Amount:
    if requested.nano < least.nano:
        return least
    if limits.step is None:
        return requested
    size = max(limits.units(limits.step), 1)
    steps = -(-(limits.units(requested) - limits.units(least)) // size)
    return _written((limits.units(least) + steps * size) * limits.unit_nano)


def _written(nano: int) -> Amount:
    """Write a whole number with binary suffixes, as the reference writes rounded amounts."""
    if nano % NANO:
        return parse_amount(f"{nano // _MILLI_NANO}m")
    number = nano // NANO
    return parse_amount(str(number) if number % 1024 else f"{number // 1024}Ki")


def _within(amount: Amount, limits: Range) -> bool:
    if limits.most is not None and amount.nano > limits.most.nano:
        return False
    if limits.step is None:
        return True
    least = 0 if limits.least is None else limits.units(limits.least)
    return (limits.units(amount) - least) % max(limits.units(limits.step), 1) == 0
