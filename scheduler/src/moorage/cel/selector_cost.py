"""The limits of selectors of devices, and what a selector costs at most.

Place in the flow: the API server refuses selectors over the limits, and the scheduler, which may
work with another server, does not evaluate them.

Rules mirrored: kubernetes v1.36 ``api/resource/v1/types.go`` (the largest sizes of a device,
``CELSelectorExpressionMaxCost`` and ``CELSelectorExpressionMaxLength``) and
``dynamic-resource-allocation/cel/compile.go`` (what the estimate knows of a device).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from moorage.cel.bounds import LARGEST, Bound, Sizes, flat, of_text, union
from moorage.cel.cost import cost_bound
from moorage.cel.tree import read_tree

SELECTOR_COST_MAX: Final = 1_000_000
"""Highest cost of a selector for one device (CELSelectorExpressionMaxCost)."""
SELECTOR_LENGTH_MAX: Final = 10 * 1024
"""Greatest length of a selector in bytes (CELSelectorExpressionMaxLength)."""
_DOMAIN_MAX, _IDENTIFIER_MAX, _VALUE_MAX, _ENTRIES_MAX = 63, 32, 64, 32
_OPTIONAL_MACROS_MAX: Final = 8
"""Most calls of ``optMap`` and ``optFlatMap``: each doubles the tree of what is before it."""
_OPTIONAL_MACRO: Final = re.compile(r"\bopt(?:Flat)?Map\b")


def _map(key: Bound, value: Bound) -> Bound:
    weight = 1 + _ENTRIES_MAX * (key.weight + value.weight)
    return Bound(_ENTRIES_MAX, 0, weight, flat(union([key, value])))


_DOMAINS: Final = _map(of_text(_DOMAIN_MAX), _map(of_text(_IDENTIFIER_MAX), of_text(_VALUE_MAX)))
_LARGEST_DEVICE: Final = Bound(
    items=4,
    weight=1 + 3 * _DOMAINS.weight,
    inner=_DOMAINS,
    fields={
        "driver": of_text(_DOMAIN_MAX),
        "attributes": _DOMAINS,
        "capacity": _DOMAINS,
        "allowMultipleAllocations": Bound(),
    },
)


def fits(device: Mapping[str, Mapping[str, object]]) -> bool:
    """Whether a map of a device, attributes or capacity by domain, is within the limits."""
    return sum(map(len, device.values())) <= _ENTRIES_MAX and all(
        len(value) <= _VALUE_MAX
        for domain in device.values()
        for value in domain.values()
        if isinstance(value, str | bytes)
    )


def selector_cost(serialized: bytes, device: Sizes = _LARGEST_DEVICE) -> int:
    """Return the highest possible cost of a selector for one device.

    Parameters
    ----------
    serialized
        The selector, compiled and serialized by the CEL runtime.
    device
        The variable ``device``; by default the largest device that the API allows.
    """
    try:
        return cost_bound(read_tree(serialized), {"device": device}).all_units
    except RecursionError:
        return LARGEST


def is_too_long(expression: str) -> bool:
    """Whether an expression is too long to be compiled, or becomes so by its macros."""
    if len(expression) > SELECTOR_LENGTH_MAX or len(expression.encode()) > SELECTOR_LENGTH_MAX:
        return True
    return has_many_macros(expression)


def has_many_macros(expression: str) -> bool:
    """Whether an expression has so many macros of optional values that compiling takes long."""
    return len(_OPTIONAL_MACRO.findall(expression)) > _OPTIONAL_MACROS_MAX
