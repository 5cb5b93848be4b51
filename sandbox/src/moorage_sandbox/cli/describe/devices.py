"""The devices of a node, one in a row: how much of each is taken, and by which pods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from moorage.api.devices import ResourceClaim, ResourceSlice
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.quantity import NANO, parse_quantity
from moorage.api.requests import pod_requests
from moorage.cli.render import Columns
from moorage.framework.insight.held_devices import WHOLE_DEVICE
from moorage.plugins.claims.devices.holdings import claimed_devices, device_capacities, pool_name
from moorage.plugins.gpu_share.asking import gpus_by_default_names

_HEADINGS: Final = ("Pool", "Device", "Used", "By")
_UNKNOWN: Final = "<unknown>"


def device_rows(
    node: Node,
    pods: Sequence[Pod],
    claims: Sequence[ResourceClaim] = (),
    slices: Sequence[ResourceSlice] = (),
) -> list[tuple[str, str, str, str]]:
    """Return a row for each device of the pools of which a pod of the node holds a device.

    Parameters
    ----------
    node
        The node, whose resources count the devices.
    pods
        The pods of the node that have not finished. A pod that requests devices of such a pool,
        and does not say which, has a row of its own.
    claims, slices
        The claims of these pods, and the slices of the node.

    Returns
    -------
    list of tuple
        The pool, the device, the part of the device that is taken, and the pods.
    """
    capacities = device_capacities(slices)
    holders = [
        (pod, device)
        for pod in pods
        for device in (
            *gpus_by_default_names(pod, node),
            *claimed_devices(pod, claims, capacities),
        )
    ]
    offered: dict[str, list[str]] = {}
    for driver, pool, name in capacities:
        offered.setdefault(pool_name(driver, pool), []).append(name)
    rows = []
    for pool in sorted({device.pool for _, device in holders}):
        names = offered.get(pool) or _indexes(node, pool)
        parts: dict[str, dict[str, int]] = {name: {} for name in names}
        for pod, device in holders:
            if device.pool == pool:
                parts.setdefault(device.device, {})[pod.full_name] = device.milli
        rows += [(pool, name, *_used(by)) for name, by in parts.items()]
        holding = {pod.uid for pod, device in holders if device.pool == pool}
        others = {
            pod.full_name: pod_requests(pod, use_status=True, pod_level=True).get(pool, 0)
            for pod in pods
            if pod.uid not in holding
        }
        unknown = {name: WHOLE_DEVICE * nano // NANO for name, nano in others.items() if nano}
        if unknown:
            rows.append((pool, _UNKNOWN, *_used(unknown)))
    return rows


def uses_claims(pods: Sequence[Pod]) -> bool:
    """Whether a pod has devices by a claim."""
    return any(
        pod.spec.resource_claims or pod.status.extended_resource_claim_status for pod in pods
    )


def device_lines(
    node: Node,
    pods: Sequence[Pod],
    claims: Sequence[ResourceClaim] = (),
    slices: Sequence[ResourceSlice] = (),
) -> list[str]:
    """Return the table of a node's devices; nothing where no pod holds a device."""
    rows = device_rows(node, pods, claims, slices)
    if not rows:
        return []
    return ["Devices:", *(f"  {line}" for line in Columns(_HEADINGS).lines(rows))]


def _indexes(node: Node, pool: str) -> list[str]:
    """Return the indexes of the devices that a resource of the node counts."""
    amount = node.status.allocatable.get(pool, 0)
    return [str(index) for index in range(parse_quantity(amount) // NANO)]


def _used(milli_by_pod: Mapping[str, int]) -> tuple[str, str]:
    by = ", ".join(f"{name} {_part(milli)}" for name, milli in milli_by_pod.items())
    return _part(sum(milli_by_pod.values())), by or "<none>"


def _part(milli: int) -> str:
    return f"{milli / WHOLE_DEVICE:g}"
