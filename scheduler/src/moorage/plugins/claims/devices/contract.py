"""Shared definitions of this package: device ids, features and errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from moorage.base.errors import MoorageError


class PoolID(NamedTuple):
    """A pool: names of pools are unique to a driver only."""

    driver: str
    pool: str

    def __str__(self) -> str:
        """Return the form of kube-scheduler's messages."""
        return f"{self.driver}/{self.pool}"


class DeviceID(NamedTuple):
    """A device of the cluster."""

    driver: str
    pool: str
    device: str

    def __str__(self) -> str:
        """Return the form of kube-scheduler's messages."""
        return f"{self.driver}/{self.pool}/{self.device}"


class NodeFacts(NamedTuple):
    """The node's properties that the allocator reads."""

    name: str
    labels: Mapping[str, str]


class Features(msgspec.Struct, frozen=True, kw_only=True):
    """Feature gates that change the allocator; the defaults of v1.36."""

    admin_access: bool = True
    """``DRAAdminAccess``."""
    consumable_capacity: bool = True
    """``DRAConsumableCapacity``."""
    device_binding: bool = True
    """``DRADeviceBindingConditions`` (with ``DRAResourceClaimDeviceStatus``)."""
    device_taints: bool = True
    """``DRADeviceTaints``."""
    fractional_capacity: bool = False
    """``DRAFractionalCapacityRange``, of v1.37."""
    partitionable_devices: bool = True
    """``DRAPartitionableDevices``."""
    prioritized_list: bool = True
    """``DRAPrioritizedList``."""


class AllocationError(MoorageError):
    """A claim, a class or a selector cannot be used on any node: the cycle ends."""


class NodeAllocationError(MoorageError):
    """Nothing could be allocated on this node, with a specific reason; other nodes may fit."""


class AllocationTimeoutError(MoorageError):
    """The search on one node exceeded its time limit."""
