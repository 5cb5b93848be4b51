"""Consumable capacity: how much of a device a request takes, and whether that may be taken.

Rules mirrored: kubernetes v1.36 ``structured/internal/incubating/consumable_capacity.go``.
Amounts are nano units; beside each stands the quantity as the API writes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from moorage.api.devices import CapacityRequestPolicy, DeviceCapacity
from moorage.api.meta import Quantity
from moorage.api.quantity import canonical, parse_quantity, value


class Amount(NamedTuple):
    """A quantity: what it is worth, and how it is written."""

    nano: int
    text: str


class Range(NamedTuple):
    """From the least to the most that may be consumed, in steps."""

    least: Amount | None
    most: Amount | None
    step: Amount | None


class CapacityRule(NamedTuple):
    """One capacity of a device and the policy for requests of it."""

    total: Amount
    default: Amount | None = None
    valid_values: tuple[Amount, ...] = ()
    valid_range: Range | None = None

    def consumed(self, requested: Amount | None) -> Amount:
        """Return what a request takes: rounded up as the policy says, all of it by default."""
        if requested is None:
            return self.default or self.total
        if self.valid_range is not None and self.valid_range.least is not None:
            return _rounded_up(requested, self.valid_range.least, self.valid_range.step)
        for valid in self.valid_values:
            if requested.nano <= valid.nano:
                return valid
        return requested

    def allows(self, amount: Amount) -> bool:
        """Whether the policy lets a request take this amount."""
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
        Not a quantity.
    """
    return Amount(parse_quantity(quantity), canonical(quantity))


def parse_capacity(capacity: DeviceCapacity) -> CapacityRule:
    """Read one capacity of a device.

    Raises
    ------
    ValueError
        A quantity cannot be read.
    """
    policy = capacity.request_policy or CapacityRequestPolicy()
    limits = policy.valid_range
    return CapacityRule(
        parse_amount(capacity.value),
        _optional(policy.default),
        tuple(parse_amount(quantity) for quantity in policy.valid_values),
        None
        if limits is None
        else Range(_optional(limits.min), _optional(limits.max), _optional(limits.step)),
    )


def consumption(
    rules: Mapping[str, CapacityRule], requests: Mapping[str, Amount]
) -> dict[str, Amount] | None:
    """Return what a request takes of each capacity; None where it asks for what there is not.

    None also where a policy forbids the amount, whatever is left of the capacity.
    """
    if not requests.keys() <= rules.keys():
        return None
    taken = {name: rule.consumed(requests.get(name)) for name, rule in rules.items()}
    return taken if all(rule.allows(taken[name]) for name, rule in rules.items()) else None


def _optional(quantity: Quantity | None) -> Amount | None:
    return None if quantity is None else parse_amount(quantity)


def _rounded_up(requested: Amount, least: Amount, step: Amount | None) -> Amount:
    if requested.nano < least.nano:
        return least
    if step is None:
        return requested
    # Whole units, as the reference counts them; fractions are a later feature there.
    size = max(value(step.nano), 1)
    steps = -(-(value(requested.nano) - value(least.nano)) // size)
    return _binary(value(least.nano) + steps * size)


def _binary(number: int) -> Amount:
    """Write a number as the reference writes what it rounded: with binary suffixes."""
    return parse_amount(str(number) if number % 1024 else f"{number // 1024}Ki")


def _within(amount: Amount, limits: Range) -> bool:
    if limits.most is not None and amount.nano > limits.most.nano:
        return False
    if limits.step is None:
        return True
    least = 0 if limits.least is None else value(limits.least.nano)
    return (value(amount.nano) - least) % max(value(limits.step.nano), 1) == 0
