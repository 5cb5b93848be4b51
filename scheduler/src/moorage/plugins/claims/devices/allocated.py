"""Allocated devices, shares of devices, and consumed capacity.

Rules mirrored: kubernetes v1.36 ``dynamic-resource-allocation/structured/internal``
``allocatedstate.go`` and ``pkg/scheduler/framework/plugins/dynamicresources/allocateddevices.go``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from moorage.api.devices import AllocationResult, DeviceRequestAllocationResult
from moorage.api.quantity import parse_quantity
from moorage.plugins.claims.devices.contract import DeviceID, PoolID
from moorage.snapshot.key_log import KeyLog

Use = tuple[int, int, Mapping[str, int] | None]
"""For a device: whole allocations, shares, and consumed nano units of each capacity."""

_UNUSED: Use = (0, 0, None)


class AllocatedState:
    """Sums over allocations; each result is added once and removed once.

    Parameters
    ----------
    allocations
        Allocations to add at the start, as by `add`.
    consumable_capacity
        The feature gate: without it a share counts as the whole device.
    """

    def __init__(
        self, allocations: Iterable[AllocationResult] = (), *, consumable_capacity: bool = True
    ) -> None:
        self._consumable_capacity = consumable_capacity
        self.pools: dict[PoolID, Mapping[str, Use]] = {}
        """The use of each device in use, by pool and name; read-only.

        The entry of a pool is replaced and never changed. So a kept entry shows by identity
        whether the pool has changed.
        """
        self.log: KeyLog[PoolID] = KeyLog()
        """Pools of which an entry was replaced."""
        for allocation in allocations:
            self.add(allocation)

    def add(self, allocation: AllocationResult) -> None:
        """Add an allocation; devices with admin access do not count."""
        for result in allocation.devices.results:
            self._book(result, 1)

    def remove(self, allocation: AllocationResult) -> None:
        """Remove an allocation."""
        for result in allocation.devices.results:
            self._book(result, -1)

    def exchange(
        self, removed: Iterable[AllocationResult], added: Iterable[AllocationResult]
    ) -> None:
        """Remove and add allocations; a device on both sides leaves its pool unchanged.

        An allocation is decided, then written, then shown, and is the same one each time.
        """
        changes: dict[object, tuple[DeviceRequestAllocationResult, int]] = {}
        for times, allocations in ((-1, removed), (1, added)):
            for allocation in allocations:
                for result in allocation.devices.results:
                    key = _booked_part(result)
                    changes[key] = result, changes.get(key, (result, 0))[1] + times
        for result, times in changes.values():
            if times:
                self._book(result, times)

    def is_taken(self, device: DeviceID) -> bool:
        """Whether the whole device is allocated."""
        return self._use(device)[0] > 0

    def is_used(self, device: DeviceID) -> bool:
        """Whether the device or a share of the device is allocated."""
        whole, shares, _ = self._use(device)
        return whole > 0 or shares > 0

    def is_shared(self, device: DeviceID) -> bool:
        """Whether a share of the device is allocated, even one that consumes no capacity."""
        return self._use(device)[1] > 0

    def consumed(self, device: DeviceID) -> Mapping[str, int] | None:
        """Return consumed nano units of each capacity; None where no share consumes any."""
        return self._use(device)[2]

    def _use(self, device: DeviceID) -> Use:
        uses = self.pools.get(PoolID(device.driver, device.pool))
        return _UNUSED if uses is None else uses.get(device.device, _UNUSED)

    def _book(self, result: DeviceRequestAllocationResult, times: int) -> None:
        if result.admin_access:
            return
        pool = PoolID(result.driver, result.pool)
        self.log.append(pool)
        uses = dict(self.pools.get(pool, {}))
        whole, shares, consumed = uses.pop(result.device, _UNUSED)
        amounts = _amounts(result) if self._consumable_capacity else None
        if amounts is None:
            whole += times
        else:
            shares += times
            consumed = _added(consumed or {}, amounts, times)
        if whole or shares:
            uses[result.device] = (whole, shares, consumed)
        if uses:
            self.pools[pool] = uses
        else:
            self.pools.pop(pool, None)


def _booked_part(result: DeviceRequestAllocationResult) -> object:
    """Return the part of a result that `AllocatedState` counts."""
    consumed = tuple(sorted(result.consumed_capacity.items())) if result.consumed_capacity else ()
    id_ = result.driver, result.pool, result.device
    return *id_, bool(result.admin_access), result.share_id, consumed


def _amounts(result: DeviceRequestAllocationResult) -> Mapping[str, int] | None:
    """Return the nano units that a share consumes; None for a whole device.

    The result is also None for an invalid amount, because the remaining capacity is unknown.
    """
    if result.share_id is None:
        return None
    try:
        return {name: parse_quantity(found) for name, found in result.consumed_capacity.items()}
    except ValueError:
        return None


def _added(
    consumed: Mapping[str, int], amounts: Mapping[str, int], times: int
) -> Mapping[str, int] | None:
    total = dict(consumed)
    for name, amount in amounts.items():
        total[name] = total.get(name, 0) + times * amount
    return total if any(total.values()) else None
