"""Consumable capacity: the amount of a device that a request consumes, and its policy.

Rules mirrored: kubernetes v1.36 ``structured/internal/incubating/consumable_capacity.go``.
Amounts are nano units, each with the quantity as the API writes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from moorage.api.devices import CapacityRequestPolicy, DeviceCapacity
from moorage.api.meta import Quantity
from moorage.api.quantity import canonical, parse_quantity, value


class Amount(NamedTuple):
    """A quantity: value in nano units, and text."""

    nano: int
    text: str


class Range(NamedTuple):
    """The allowed amounts: minimum, maximum and step."""

    least: Amount | None
    most: Amount | None
    step: Amount | None


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
            return _rounded_up(requested, self.valid_range.least, self.valid_range.step)
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


def parse_capacity(capacity: DeviceCapacity) -> CapacityRule:
    """Read one capacity of a device.

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
        None
        if limits is None
        else Range(_optional(limits.min), _optional(limits.max), _optional(limits.step)),
    )


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
    """Write a number with binary suffixes, as the reference writes rounded amounts."""
    return parse_amount(str(number) if number % 1024 else f"{number // 1024}Ki")


def _within(amount: Amount, limits: Range) -> bool:
    if limits.most is not None and amount.nano > limits.most.nano:
        return False
    if limits.step is None:
        return True
    least = 0 if limits.least is None else value(limits.least.nano)
    return (value(amount.nano) - least) % max(value(limits.step.nano), 1) == 0
