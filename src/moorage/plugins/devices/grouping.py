"""Nodes that look the same to a set of claims share one search.

A node's signature is everything the search reads: pools in order, for each device what the
selectors say, the attributes constraints look at, what it consumes, whether it is free, and what
is left of counters. Names are left out, so the solution is a list of positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from moorage.plugins.devices.allocated import AllocatedState
from moorage.plugins.devices.counters import PoolCounters
from moorage.plugins.devices.inventory import Inventory
from moorage.plugins.devices.pools import NodeView, VisibleDevice
from moorage.plugins.devices.requests import Demand
from moorage.plugins.devices.selecting import verdict

_SIGNATURES_MAX = 64
"""Kept for each view; a guess, above it they are made anew."""


class Question(NamedTuple):
    """What claims ask about a device, whatever is allocated."""

    selectors: tuple[tuple[str, ...], ...]
    """Expressions of each request."""
    attributes: tuple[str, ...]


def question(demands: Sequence[Demand]) -> Question:
    """Return what claims ask about a device."""
    selectors = {a.expressions: None for d in demands for r in d.requests for a in r}
    attributes = {c.attribute: None for demand in demands for c in demand.constraints}
    return Question(tuple(selectors), tuple(attributes))


def signature(
    view: NodeView,
    asked: Question,
    inventory: Inventory,
    allocated: AllocatedState,
    counters: PoolCounters,
) -> tuple[object, ...]:
    """Return a value that is equal for views a search cannot tell apart."""
    fixed = view.signatures.get(asked)
    if fixed is None:
        if len(view.signatures) >= _SIGNATURES_MAX:
            view.signatures.clear()
        fixed = view.signatures[asked] = inventory.number(_fixed(view, asked))
    uses: list[object] = []
    for position, pool in enumerate(view.pools):
        in_pool = allocated.in_pool(pool.id)
        if not in_pool:
            continue
        for index, visible in enumerate(pool.devices):
            use = in_pool.get(visible.offered.id.device)
            if use is not None and visible.is_reachable and _matters(visible, asked):
                whole, _, consumed = use
                amounts = None if consumed is None else tuple(sorted(consumed.items()))
                uses.append((position, index, whole > 0, amounts))
        if pool.counters:
            uses.append((position, *sorted(counters.available(pool).items())))
    return (fixed, *uses)


def _fixed(view: NodeView, asked: Question) -> object:
    return tuple(
        (
            pool.is_incomplete,
            pool.fault is not None,
            tuple(sorted((name, *sorted(held.items())) for name, held in pool.counters.items())),
            tuple(_device(visible, asked) for visible in pool.devices),
        )
        for pool in view.pools
    )


def _device(visible: VisibleDevice, asked: Question) -> object:
    if not _matters(visible, asked):
        return None
    offered = visible.offered
    return (
        visible.is_reachable,
        tuple(verdict(offered.kind, all_of) for all_of in asked.selectors),
        tuple(offered.attribute(name) for name in asked.attributes),
        offered.kind.profile,
    )


def _matters(visible: VisibleDevice, asked: Question) -> bool:
    """Whether some request could want the device, or cannot say."""
    kind = visible.offered.kind
    return any(verdict(kind, all_of) is not False for all_of in asked.selectors)
