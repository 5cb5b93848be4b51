"""Devices that bound pods hold: what plugins count on a node next to the requests of its pods."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from typing import Final, TypeVar

import msgspec

N = TypeVar("N", int, float)

WHOLE_DEVICE: Final = 1000
"""Thousandths of a whole device."""


class HeldDevice(msgspec.Struct, frozen=True):
    """A device of a node, or a part of one, that a pod holds.

    Parameters
    ----------
    pool
        The devices it belongs to: the resource that counts them, or driver and pool.
    device
        Its index or name within the pool.
    milli
        The part of the device that the pod holds, in thousandths.
    """

    pool: str
    device: str
    milli: int


def with_devices(
    requests: Mapping[str, N],
    devices: Iterable[HeldDevice],
    allocatable: Container[str],
    *,
    amount_of: Callable[[int], N],
) -> dict[str, N]:
    """Return what a pod takes of its node: its requests, and the devices that it holds.

    Parameters
    ----------
    requests
        What it requests, by resource.
    devices
        The devices that it holds. A pod that requests them as well takes them once.
    allocatable
        The resources of the node; devices of other pools are left out.
    amount_of
        Returns thousandths of devices in the unit of the requests.
    """
    sums: dict[str, int] = {}
    for each in devices:
        if each.pool in allocatable:
            sums[each.pool] = sums.get(each.pool, 0) + each.milli
    taken = dict(requests)
    for pool, milli in sums.items():
        amount = amount_of(milli)
        taken[pool] = max(amount, taken.get(pool, amount))
    return taken
