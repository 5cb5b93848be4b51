"""Numbers of devices of a class that each node can reach, and of allocated devices.

Plugins that score by use need these numbers when devices provide an extended resource that is
configured for scoring.

Rules mirrored: kubernetes v1.36
``pkg/scheduler/framework/plugins/noderesources/resource_allocation.go``, where every slice counts,
also of an older generation or of a pool that is incomplete.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from moorage.api.node import Node
from moorage.framework.handle import Handle
from moorage.plugins.resources.device_classes import DeviceClassNames, may_be_devices
from moorage.plugins.resources.device_columns import DeviceColumns, Devices
from moorage.snapshot.view import NodeView

if TYPE_CHECKING:
    from moorage.plugins.claims.books import Holdings
    from moorage.plugins.claims.devices.allocated import AllocatedState
    from moorage.plugins.claims.devices.contract import DeviceID
    from moorage.plugins.claims.devices.offered import OfferedSlice

Int64Array = NDArray[np.int64]


class DeviceTotals:
    """Counts devices for extended resources.

    Parameters
    ----------
    handle
        The handle, with listers of classes, slices and claims.
    """

    def __init__(self, handle: Handle) -> None:
        self._snapshot = handle.snapshot
        self._gates = handle.gates
        self._classes = DeviceClassNames(handle.snapshot.listers.device_classes)
        self._holdings: Holdings | None = None
        self._slices = _Slices()
        self._generation = -1
        self._columns: dict[tuple[str, ...], DeviceColumns] = {}
        """By the selectors of a class; classes with equal selectors share the counts."""

    def totals_of(self, view: NodeView, resource: str) -> tuple[Int64Array, Int64Array] | None:
        """Return int64, (rows,), twice: devices that provide a resource, and allocated devices.

        The result is None for a resource that no device class provides.
        """
        if not may_be_devices(resource) or not self._gates("DRAExtendedResource"):
            return None
        device_class = self._classes.find(resource)
        if device_class is None:
            return None
        expressions = tuple(each.cel.expression for each in device_class.spec.selectors if each.cel)
        offered, state = self._offered(), self._allocated_state()
        columns = self._columns.get(expressions)
        if columns is None:
            reach = partial(_reached, offered, expressions)
            columns = self._columns[expressions] = DeviceColumns(self._snapshot.table, reach)
        there_n, taken_n = columns.counts(state)
        return view.take_rows(there_n), view.take_rows(taken_n)

    # Imported when a pod is scored by devices, which few configurations do.

    def _allocated_state(self) -> AllocatedState:
        from moorage.plugins.claims.books import holdings_of

        if self._holdings is None:
            by_capacity = self._gates("DRAConsumableCapacity")
            self._holdings = holdings_of(self._snapshot.claims, consumable_capacity=by_capacity)
        return self._holdings.now()

    def _offered(self) -> _Slices:
        from moorage.plugins.claims.devices.offered import KindTable, offer

        lister = self._snapshot.listers.resource_slices
        if lister.generation != self._generation:
            kinds, by_capacity = KindTable(), self._gates("DRAConsumableCapacity")
            self._slices = _Slices()
            for each in lister.all():
                self._slices.add(offer(each, kinds, consumable_capacity=by_capacity))
            self._columns.clear()
            self._generation = lister.generation
        return self._slices


class _Slices:
    """The slices, so that a node does not look at those of every other node."""

    def __init__(self) -> None:
        self._of_node: dict[str, list[OfferedSlice]] = {}
        self._others: list[OfferedSlice] = []

    def add(self, slice_: OfferedSlice) -> None:
        """Take in a slice; counters are for all nodes."""
        spec = slice_.api.spec
        only = spec.node_name if not spec.shared_counters else ""
        (self._of_node.setdefault(only, []) if only else self._others).append(slice_)

    def near(self, node_name: str) -> Iterator[OfferedSlice]:
        """Return the slices that a node may reach."""
        return chain(self._of_node.get(node_name, ()), self._others)


def _reached(offered: _Slices, expressions: Sequence[str], node: Node) -> Devices:
    """Return the devices of a class that a node can reach; none after an error."""
    from moorage.plugins.claims.devices.contract import AllocationError, NodeFacts

    facts = NodeFacts(node.name, node.metadata.labels)
    devices: list[DeviceID] = []
    try:
        for slice_ in offered.near(node.name):
            if not slice_.is_reached_from(facts):
                continue
            for device in slice_.devices:
                answers = map(device.kind.fulfils_selector, expressions)
                no = next((answer for answer in answers if answer is not True), True)
                if not isinstance(no, bool):
                    return ()  # an expression failed
                if no and slice_.device_is_reached_from(device.device, facts):
                    devices.append(device.id)
    except AllocationError:
        return ()
    return tuple(devices)
