"""Quantities of objects: canonical form, values in nano units, and the rules that all kinds share.

Mirrors kubernetes v1.36 pkg/apis/core/validation/validation.go, ValidateResourceQuantityValue.
"""

from __future__ import annotations

from typing import Any

from moorage.api.quantity import NANO, canonical, parse_quantity
from moorage.kinds.kind import FieldError, invalid
from moorage.kinds.tree import Json

Amounts = dict[str, int]
"""Nano units by the name of the resource."""

NOT_NEGATIVE = "must be greater than or equal to 0"
NOT_ZERO = "must be greater than zero"
NANO_PER_MILLI = NANO // 1000


def canonical_quantity(value: Any) -> Any:
    """Canonical form of a quantity, rounded up to a thousandth; an invalid quantity unchanged.

    Notes
    -----
    Defaulting leaves an invalid quantity alone, because validation names its field.
    """
    try:
        nano = parse_quantity(value)
        if nano % NANO_PER_MILLI:
            return canonical(f"{-(-nano // NANO_PER_MILLI)}m")
        return canonical(value)
    except (ValueError, TypeError):
        return value


def nano_of(value: Any) -> int | None:
    """Value of a quantity in nano units, or None when it cannot be read."""
    try:
        return parse_quantity(value)
    except (ValueError, TypeError):
        return None


def amounts(listed: Json) -> Amounts:
    """Return a resource list in nano units; invalid quantities are left out."""
    return {name: nano for name, each in listed.items() if (nano := nano_of(each)) is not None}


def add(total: Amounts, more: Amounts) -> None:
    """Add amounts to a total, in place."""
    for name, nano in more.items():
        total[name] = total.get(name, 0) + nano


def check_quantity(value: Any, field: str) -> list[FieldError]:
    """Check one quantity: readable and not negative."""
    nano = nano_of(value)
    if nano is None:
        return [invalid(field, value, "quantities must be numbers with a known suffix")]
    return [invalid(field, str(value), NOT_NEGATIVE)] if nano < 0 else []


def check_size(value: Any, field: str) -> list[FieldError]:
    """Check one quantity: readable and more than zero."""
    errors = check_quantity(value, field)
    return errors or ([] if nano_of(value) else [invalid(field, str(value), NOT_ZERO)])
