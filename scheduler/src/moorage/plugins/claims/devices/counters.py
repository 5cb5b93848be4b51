"""Shared counters of pools: the available amounts, and the amounts that a search takes.

Rules mirrored: kubernetes v1.36 ``structured/internal/incubating/allocator_incubating.go``
``checkAvailableCounters``; upstream keeps counters by the name of the pool alone, so pools of one
name share counters. Here they are kept by driver and name.
"""

from __future__ import annotations

from moorage.plugins.claims.devices.allocated import AllocatedState
from moorage.plugins.claims.devices.contract import PoolID
from moorage.plugins.claims.devices.offered import OfferedDevice
from moorage.plugins.claims.devices.pools import VisiblePool

Amounts = dict[tuple[str, str], int]
"""Nano units by counter set and counter."""


class PoolCounters:
    """The available counters of each pool, computed once a cycle.

    Parameters
    ----------
    allocated
        The allocated devices.
    """

    def __init__(self, allocated: AllocatedState) -> None:
        self._allocated = allocated
        self._available: dict[PoolID, Amounts] = {}

    def available(self, pool: VisiblePool) -> Amounts:
        """Return the available amounts of a pool; below zero where too much is allocated."""
        found = self._available.get(pool.id)
        if found is None:
            found = self._available[pool.id] = self._count(pool)
        return found

    def _count(self, pool: VisiblePool) -> Amounts:
        left = {(s, name): n for s, held in pool.counters.items() for name, n in held.items()}
        if pool.id in self._allocated.pools:
            for device in pool.members:
                if self._allocated.is_used(device.id):
                    _book(left, device, -1)
        return left


class CounterLedger:
    """The counters that one search takes.

    Parameters
    ----------
    counters
        The available counters before the search.
    """

    def __init__(self, counters: PoolCounters) -> None:
        self._counters = counters
        self._left: dict[PoolID, Amounts] = {}

    def take_counters(self, pool: VisiblePool, device: OfferedDevice) -> bool:
        """Take the counters of a device; return False if the pool has too little.

        A pool with any counter below zero gives nothing, as in the reference.
        """
        left = self._left.get(pool.id)
        if left is None:
            left = self._left[pool.id] = dict(self._counters.available(pool))
        _book(left, device, -1)
        if all(amount >= 0 for amount in left.values()):
            return True
        _book(left, device, 1)
        return False

    def give_back(self, pool: VisiblePool, device: OfferedDevice) -> None:
        """Undo `take_counters`."""
        _book(self._left[pool.id], device, 1)


def _book(amounts: Amounts, device: OfferedDevice, times: int) -> None:
    for set_name, consumed in device.consumes.items():
        for name, nano in consumed.items():
            amounts[set_name, name] += times * nano
