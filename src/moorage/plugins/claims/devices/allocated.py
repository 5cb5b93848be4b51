"""What claims hold already: devices, shares of devices, and how much of their capacity.

Rules mirrored: kubernetes v1.36 ``dynamic-resource-allocation/structured/internal``
``allocatedstate.go`` and ``pkg/scheduler/framework/plugins/dynamicresources/allocateddevices.go``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from moorage.api.devices import AllocationResult, DeviceRequestAllocationResult
from moorage.api.quantity import parse_quantity
from moorage.plugins.claims.devices.contract import DeviceID, PoolID

Use = tuple[int, int, Mapping[str, int] | None]
"""Of a device: times taken whole, shares, and nano units consumed of each capacity."""

_UNUSED: Use = (0, 0, None)


class AllocatedState:
    """Books of what is allocated; one result is entered once, and taken out once.

    Parameters
    ----------
    allocations
        Entered at once, as by `add`.
    consumable_capacity
        The feature gate: without it a share counts as the whole device.
    """

    def __init__(
        self, allocations: Iterable[AllocationResult] = (), *, consumable_capacity: bool = True
    ) -> None:
        self._consumable_capacity = consumable_capacity
        self.pools: dict[PoolID, Mapping[str, Use]] = {}
        """The use of each device that is used at all, by pool and name; to be read only.

        What is said of a pool is replaced and never changed: copies share it, and it can be kept
        to tell later whether anything has changed.
        """
        for allocation in allocations:
            self.add(allocation)

    def copy(self) -> AllocatedState:
        """Return books of their own with the same entries."""
        other = AllocatedState(consumable_capacity=self._consumable_capacity)
        other.pools = dict(self.pools)
        return other

    def add(self, allocation: AllocationResult) -> None:
        """Enter what a claim got; devices with admin access are not counted as taken."""
        for result in allocation.devices.results:
            self._book(result, 1)

    def remove(self, allocation: AllocationResult) -> None:
        """Take out what a claim gave back."""
        for result in allocation.devices.results:
            self._book(result, -1)

    def is_taken(self, device: DeviceID) -> bool:
        """Whether a claim holds the whole device."""
        return self._use(device)[0] > 0

    def is_used(self, device: DeviceID) -> bool:
        """Whether a claim holds the device or a share of it."""
        whole, shares, _ = self._use(device)
        return whole > 0 or shares > 0

    def consumed(self, device: DeviceID) -> Mapping[str, int] | None:
        """Return nano units consumed of each capacity, None where no share consumes any."""
        return self._use(device)[2]

    def _use(self, device: DeviceID) -> Use:
        uses = self.pools.get(PoolID(device.driver, device.pool))
        return _UNUSED if uses is None else uses.get(device.device, _UNUSED)

    def _book(self, result: DeviceRequestAllocationResult, times: int) -> None:
        if result.admin_access:
            return
        pool = PoolID(result.driver, result.pool)
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


def _amounts(result: DeviceRequestAllocationResult) -> Mapping[str, int] | None:
    """Return what a share consumes in nano units; None for a whole device.

    None, too, where an amount cannot be read: nobody can say how much is left.
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
