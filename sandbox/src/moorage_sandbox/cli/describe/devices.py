"""The devices of a node, one in a row: how much of each is taken, and by which pods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.quantity import NANO, parse_quantity
from moorage.api.requests import pod_requests
from moorage.cli.render import Columns
from moorage.framework.insight.held_devices import WHOLE_DEVICE
from moorage.plugins.gpu_share.asking import gpus_by_default_names

_HEADINGS: Final = ("Pool", "Device", "Used", "By")
_UNKNOWN: Final = "<unknown>"


def device_rows(node: Node, pods: Sequence[Pod]) -> list[tuple[str, str, str, str]]:
    """Return a row for each device of the pools of which a pod of the node holds a device.

    Parameters
    ----------
    node
        The node, whose resources count the devices.
    pods
        The pods of the node that have not finished. A pod that requests devices of such a pool,
        and does not say which, has a row of its own.

    Returns
    -------
    list of tuple
        The pool, the device, the part of the device that is taken, and the pods.
    """
    holders = [(pod, device) for pod in pods for device in gpus_by_default_names(pod, node)]
    rows = []
    for pool in sorted({device.pool for _, device in holders}):
        count = parse_quantity(node.status.allocatable[pool]) // NANO
        parts: dict[str, dict[str, int]] = {str(index): {} for index in range(count)}
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


def device_lines(node: Node, pods: Sequence[Pod]) -> list[str]:
    """Return the table of a node's devices; nothing where no pod holds a device."""
    rows = device_rows(node, pods)
    if not rows:
        return []
    return ["Devices:", *(f"  {line}" for line in Columns(_HEADINGS).lines(rows))]


def _used(milli_by_pod: Mapping[str, int]) -> tuple[str, str]:
    by = ", ".join(f"{name} {_part(milli)}" for name, milli in milli_by_pod.items())
    return _part(sum(milli_by_pod.values())), by or "<none>"


def _part(milli: int) -> str:
    return f"{milli / WHOLE_DEVICE:g}"
