"""What claims hold already: devices, shares of devices, and how much of their capacity.

Rules mirrored: kubernetes v1.36 ``dynamic-resource-allocation/structured/internal``
``allocatedstate.go`` and ``plugins/dynamicresources/allocateddevices.go``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from moorage.api.devices import AllocationResult
from moorage.plugins.devices.contract import DeviceID


class SharedDeviceID(NamedTuple):
    """A share of a device that allows several allocations."""

    device: DeviceID
    share_id: str


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
        raise NotImplementedError("the allocator's books are not built yet")

    def copy(self) -> AllocatedState:
        """Return books of their own with the same entries."""
        raise NotImplementedError("the allocator's books are not built yet")

    def add(self, allocation: AllocationResult) -> None:
        """Enter what a claim got; devices with admin access are not counted as taken."""
        raise NotImplementedError("the allocator's books are not built yet")

    def remove(self, allocation: AllocationResult) -> None:
        """Take out what a claim gave back."""
        raise NotImplementedError("the allocator's books are not built yet")

    def is_taken(self, device: DeviceID) -> bool:
        """Whether a claim holds the whole device."""
        raise NotImplementedError("the allocator's books are not built yet")

    def consumed(self, device: DeviceID) -> Mapping[str, int] | None:
        """Return nano units consumed of each capacity, None where no share consumes any."""
        raise NotImplementedError("the allocator's books are not built yet")
