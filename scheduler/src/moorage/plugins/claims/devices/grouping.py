"""Grouping of nodes: nodes with equal signatures for some claims share one search.

A node's signature has all inputs of the search: pools in order, selector answers, the attributes
that constraints read, consumption, free devices and available counters. The signature has no
names, so a solution is a list of positions. For a plain number of devices of a class, the search of
a group only counts the free devices.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import NamedTuple

from moorage.plugins.claims.devices.allocated import AllocatedState, Use
from moorage.plugins.claims.devices.counters import PoolCounters
from moorage.plugins.claims.devices.inventory import Inventory
from moorage.plugins.claims.devices.pools import NodeView, Signature, VisibleDevice, VisiblePool
from moorage.plugins.claims.devices.requests import Demand
from moorage.plugins.claims.devices.selecting import judgement

_SIGNATURES_MAX = 16
"""Number of signatures kept for each view; a guess. One more clears them."""


class Question(NamedTuple):
    """The device properties that claims read, independent of allocations."""

    selectors: tuple[tuple[str, ...], ...]
    """Expressions of each request."""
    attributes: tuple[str, ...]


def question(demands: Sequence[Demand]) -> Question:
    """Return the device properties that claims read."""
    selectors = {a.expressions: None for d in demands for r in d.requests for a in r}
    attributes = {c.attribute: None for demand in demands for c in demand.constraints}
    return Question(tuple(selectors), tuple(attributes))


class Signatures:
    """Signatures of one cycle's nodes, for the claims of one pod.

    Parameters
    ----------
    properties
        The device properties that the claims read, as `question` returns them.
    inventory
        Numbers and keeps the parts that a cycle does not change.
    allocated, counters
        The allocated devices, and the available counters.
    """

    def __init__(
        self,
        properties: Question,
        inventory: Inventory,
        allocated: AllocatedState,
        counters: PoolCounters,
    ) -> None:
        self._question = properties
        self._question_number = inventory.number(self._question)
        self._inventory = inventory
        self._used = allocated.pools
        self._memo = inventory.device_parts(self._question_number)
        self._counters = counters

    def signature_of(self, view: NodeView, check_time: Callable[[], None]) -> tuple[object, ...]:
        """Return a value that is equal for views with equal search results.

        Parameters
        ----------
        view
            The pools of a node.
        check_time
            Called before each device that selectors have to judge; raises when time is over.
        """
        used = tuple([self._used.get(pool.id) for pool in view.pools])
        known = view.signatures.get(self._question_number)
        # The entry of a pool stays the same object until a change, so this is mostly quick.
        if known is not None and known.uses == used:
            return known.key
        if known is None and len(view.signatures) >= _SIGNATURES_MAX:
            view.signatures.clear()
        fixed = (
            self._inventory.number(self._fixed(view, check_time)) if known is None else known.fixed
        )
        uses = [
            self._uses(position, view.pools[position], in_pool)
            for position, in_pool in enumerate(used)
            if in_pool is not None
        ]
        found = Signature(fixed, used, (fixed, *uses))
        view.signatures[self._question_number] = found
        return found.key

    def _uses(self, position: int, pool: VisiblePool, in_pool: Mapping[str, Use]) -> object:
        """Return the relevant devices in use of a pool, and the available counters."""
        uses: list[tuple[object, ...]] = []
        for name, (whole, _, consumed) in in_pool.items():
            index = pool.positions.get(name)
            if index is None or self._device(pool.devices[index]) is None:
                continue
            amounts = None if consumed is None else tuple(sorted(consumed.items()))
            uses.append((index, whole > 0, amounts))
        uses.sort(key=itemgetter(0))
        if pool.counters:
            uses.extend(sorted(self._counters.available(pool).items()))
        return (position, *uses)

    def _fixed(self, view: NodeView, check_time: Callable[[], None]) -> object:
        return tuple(
            (
                pool.is_incomplete,
                pool.fault is not None,
                tuple(
                    sorted((name, *sorted(held.items())) for name, held in pool.counters.items())
                ),
                tuple([self._checked_device(visible, check_time) for visible in pool.devices]),
            )
            for pool in view.pools
        )

    def _checked_device(self, visible: VisibleDevice, check_time: Callable[[], None]) -> object:
        check_time()
        return self._device(visible)

    def _device(self, visible: VisibleDevice) -> object:
        """Return what a search reads of a device; None where no request may select the device.

        Devices of one kind have equal attributes, so each kind is looked at once.
        """
        key = visible.offered.kind, visible.is_reachable
        part = self._memo.get(key, _UNKNOWN)
        if part is _UNKNOWN:
            part = self._memo[key] = _device_part(visible, self._question)
        return part


_UNKNOWN = object()


def _device_part(visible: VisibleDevice, question: Question) -> object:
    offered = visible.offered
    answers = tuple(judgement(offered.kind, all_of) for all_of in question.selectors)
    if all(answer is False for answer in answers):
        return None
    return (
        visible.is_reachable,
        answers,
        tuple(offered.attribute(name) for name in question.attributes),
        offered.kind.profile,
    )
