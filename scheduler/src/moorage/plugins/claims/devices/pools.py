"""The pools that one node sees: whether they are usable, and their order.

Rules mirrored: kubernetes v1.36 ``structured/internal/incubating/pools_incubating.go``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from moorage.plugins.claims.devices.allocated import Use
from moorage.plugins.claims.devices.contract import NodeFacts, PoolID
from moorage.plugins.claims.devices.offered import Counters, OfferedDevice, OfferedSlice


class VisibleDevice(NamedTuple):
    """A device in a slice that the node sees."""

    offered: OfferedDevice
    pool: VisiblePool
    is_reachable: bool
    """False for a device that only other nodes can use."""


class VisiblePool:
    """A pool as a node sees it.

    Parameters
    ----------
    id_
        Driver and name.
    is_incomplete
        Slices of the current generation are missing, or the pool is being replaced.
    fault
        Why the pool is invalid, or None.
    """

    def __init__(
        self, id_: PoolID, *, is_incomplete: bool = False, fault: str | None = None
    ) -> None:
        self.id = id_
        self.is_incomplete = is_incomplete
        self.fault = fault
        self.devices: tuple[VisibleDevice, ...] = ()
        """Devices in slices that the node sees; empty for an unusable pool."""
        self.positions: dict[str, int] = {}
        """Position of each of these devices, by name."""
        self.members: tuple[OfferedDevice, ...] = ()
        """Devices of the whole pool, other nodes' devices too: they share the counters."""
        self.counters: Counters = {}
        """The counters of the pool without any allocation."""

    @property
    def binds_late(self) -> bool:
        """Whether a device of the pool has binding conditions."""
        return any(d.offered.device.binding_conditions for d in self.devices)


class Signature(NamedTuple):
    """The properties of a view that matter to a question, and their inputs."""

    fixed: int
    """The number of the part that does not depend on allocations."""
    uses: tuple[Mapping[str, Use] | None, ...]
    """The allocations in each pool."""
    key: tuple[object, ...]
    """A value that is equal for views with equal search results."""


class NodeView:
    """The pools of a node, in the order in which devices are tried.

    Parameters
    ----------
    pools
        In any order; pools of which the node sees only the counters are left out.
    pool_ids
        The ids of `pools`, and of pools left out because they are being replaced.
    """

    def __init__(self, pools: Iterable[VisiblePool], pool_ids: Iterable[PoolID]) -> None:
        self.pool_ids = tuple(pool_ids)
        pools = (pool for pool in pools if pool.devices or pool.fault or pool.is_incomplete)
        self.pools = tuple(sorted(pools, key=lambda pool: (pool.binds_late, pool.id)))
        self.devices = tuple(device for pool in self.pools for device in pool.devices)
        self.has_invalid_pool = any(pool.fault is not None for pool in self.pools)
        self.signatures: dict[int, Signature] = {}
        """By the number of the question; filled by `moorage.plugins.claims.devices.grouping`."""


def node_view(
    slices: Iterable[OfferedSlice],
    by_pool: Mapping[PoolID, Mapping[str, OfferedSlice]],
    node: NodeFacts,
    *,
    partitionable_devices: bool,
) -> NodeView:
    """Gather the pools of a node.

    Parameters
    ----------
    slices
        All slices that may concern the node; other slices are allowed.
    by_pool
        Every slice of the cluster, by pool and name.
    node
        The node.
    partitionable_devices
        The feature gate.

    Raises
    ------
    AllocationError
        A node selector of a slice is invalid.
    """
    slices_by_pool: dict[PoolID, list[OfferedSlice]] = {}
    for found in sorted(slices, key=lambda item: item.api.name):
        if not partitionable_devices and _needs_partitions(found):
            continue
        if found.is_reached_from(node):
            _add_newest(slices_by_pool.setdefault(found.pool, []), found)
    pools = (
        _pool(mine, by_pool[id_].values(), node, partitionable_devices=partitionable_devices)
        for id_, mine in slices_by_pool.items()
    )
    return NodeView((pool for pool in pools if pool is not None), slices_by_pool)


def _needs_partitions(offered: OfferedSlice) -> bool:
    return offered.api.spec.per_device_node_selection or bool(offered.api.spec.shared_counters)


def _generation(offered: OfferedSlice) -> int:
    return offered.api.spec.pool.generation


def _add_newest(mine: list[OfferedSlice], offered: OfferedSlice) -> None:
    if mine and _generation(offered) < _generation(mine[0]):
        return
    if mine and _generation(offered) > _generation(mine[0]):
        mine.clear()
    mine.append(offered)


def _pool(
    mine: Sequence[OfferedSlice],
    everywhere: Iterable[OfferedSlice],
    node: NodeFacts,
    *,
    partitionable_devices: bool,
) -> VisiblePool | None:
    """Build a pool from the slices that the node sees; None if a new generation replaces it."""
    id_ = mine[0].pool
    count = mine[0].api.spec.pool.resource_slice_count
    whole = mine
    if len(mine) != count:
        # Slices may be missing only because the node does not see them.
        others = sorted(everywhere, key=lambda item: item.api.name)
        if any(_generation(other) > _generation(mine[0]) for other in others):
            return None
        whole = [other for other in others if _generation(other) == _generation(mine[0])]
        if len(whole) != count:
            return VisiblePool(id_, is_incomplete=True)
    counters = {name: found for part in mine for name, found in part.counter_sets}
    fault = _fault(mine, whole)
    if fault is None and partitionable_devices:
        fault = _fault_of_counters(whole, counters)
    if fault is not None:
        return VisiblePool(id_, fault=fault)
    pool = VisiblePool(id_)
    pool.counters = counters
    pool.members = tuple(device for part in whole for device in part.devices)
    pool.devices = tuple(
        VisibleDevice(device, pool, part.device_is_reached_from(device.device, node))
        for part in mine
        for device in part.devices
    )
    pool.positions = {device.offered.id.device: i for i, device in enumerate(pool.devices)}
    return pool


def _fault(mine: Sequence[OfferedSlice], whole: Sequence[OfferedSlice]) -> str | None:
    """Return why the pool contradicts itself, or None.

    Names are compared among the slices the node sees only, as in the reference.
    """
    for part in whole:
        if part.fault is not None:
            return part.fault
    names = [device.id.device for part in mine for device in part.devices]
    if (name := _repeated(names)) is not None:
        return f"duplicate device name {name}"
    sets = [name for part in mine for name, _ in part.counter_sets]
    if (name := _repeated(sets)) is not None:
        return f"duplicate counter set name {name}"
    return None


def _fault_of_counters(whole: Sequence[OfferedSlice], counters: Counters) -> str | None:
    for part in whole:
        for device in part.devices:
            for set_name, consumed in device.consumes.items():
                if set_name not in counters:
                    return f"counter set {set_name} not found"
                for name in sorted(consumed.keys() - counters[set_name].keys()):
                    return f"counter {name} not found in counter set {set_name}"
    return None


def _repeated(names: Sequence[str]) -> str | None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None
