"""The devices that a bound pod holds by claims: for people, no decision reads them; pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from moorage.api.devices import (
    DeviceCapacity,
    DeviceRequestAllocationResult,
    ResourceClaim,
    ResourceSlice,
)
from moorage.api.pod import Pod
from moorage.api.quantity import parse_quantity
from moorage.framework.insight.held_devices import WHOLE_DEVICE, HeldDevice

DeviceKey = tuple[str, str, str]
"""Driver, pool and name of a device."""
Capacities = Mapping[DeviceKey, Mapping[str, DeviceCapacity]]


def pool_name(driver: str, pool: str) -> str:
    """Return the name under which the devices of a pool are shown."""
    return f"{driver}/{pool}"


def claimed_devices(
    pod: Pod, claims: Iterable[ResourceClaim], capacities: Capacities
) -> tuple[HeldDevice, ...]:
    """Return the devices that a pod holds by claims, each once.

    A claim that several pods use counts for each with an equal part: nobody says more. Devices with
    admin access are not counted, as others may hold them as well.

    Parameters
    ----------
    pod
        A bound pod.
    claims
        Claims; those that are not reserved for the pod are left out.
    capacities
        The capacities of devices, which a share of a device is a part of. A share of an unknown
        device counts as the whole device.
    """
    parts: dict[tuple[str, str], int] = {}
    for claim in claims:
        allocation = claim.status.allocation
        users = [user.uid for user in claim.status.reserved_for]
        if allocation is None or pod.uid not in users:
            continue
        for result in allocation.devices.results:
            if not result.admin_access:
                device = pool_name(result.driver, result.pool), result.device
                milli = _milli(result, capacities) // len(users)
                parts[device] = parts.get(device, 0) + milli
    return tuple(HeldDevice(*device, milli) for device, milli in parts.items())


def device_capacities(
    slices: Iterable[ResourceSlice],
) -> dict[DeviceKey, dict[str, DeviceCapacity]]:
    """Return the capacities of devices; of a pool the slices of the latest generation count."""
    capacities: dict[DeviceKey, dict[str, DeviceCapacity]] = {}
    for each in sorted(slices, key=lambda each: each.spec.pool.generation):
        for device in each.spec.devices:
            capacities[each.spec.driver, each.spec.pool.name, device.name] = device.capacity
    return capacities


def _milli(result: DeviceRequestAllocationResult, capacities: Capacities) -> int:
    """Return the part of the device that an allocation takes, thousandths."""
    known = capacities.get((result.driver, result.pool, result.device), {})
    parts = [
        WHOLE_DEVICE * parse_quantity(amount) // whole
        for name, amount in result.consumed_capacity.items()
        if name in known and (whole := parse_quantity(known[name].value))
    ]
    if result.share_id is None or not parts:
        return WHOLE_DEVICE
    return min(WHOLE_DEVICE, max(parts))
