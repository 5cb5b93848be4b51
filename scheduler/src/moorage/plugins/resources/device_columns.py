"""The devices of a class by row: how many a node reaches, and how many of these are in use.

The rule: a row's two numbers depend on the node's object, on the slices, and on the use of the
pools that the node reaches. So a row is read again when its node changes, and a set of devices is
counted again when the use of one of its pools changes. Nodes that reach the same devices share one
set. `device_totals` starts again when a slice changes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from moorage.api.node import Node
from moorage.snapshot.table import NodeTable

if TYPE_CHECKING:
    from moorage.plugins.claims.devices.allocated import AllocatedState
    from moorage.plugins.claims.devices.contract import DeviceID

Int64Array = NDArray[np.int64]
Devices = tuple["DeviceID", ...]
"""In the order of the slices; a device is there twice if two slices have it."""

_SETS_OF_A_ROW_MAX: Final = 4
"""Sets of devices for each row, of which old ones are dropped beyond this limit; a guess."""


class DeviceColumns:
    """Counts for one class, kept from one attempt to the next.

    Parameters
    ----------
    table
        The nodes.
    reach
        Returns the devices of the class that a node reaches, while the slices stay as they are.
    """

    def __init__(self, table: NodeTable, reach: Callable[[Node], Devices]) -> None:
        self._table = table
        self._reach = reach
        self._structure = -1
        self._position = 0
        self._nodes: list[Node] = []
        self._set_n: Int64Array = np.zeros(0, np.int64)
        self._numbers: dict[Devices, int] = {}
        self._sets: list[Devices] = []
        self._sets_of_pool: dict[tuple[str, str], dict[int, None]] = {}
        self._state: AllocatedState | None = None
        self._state_position = 0
        self._used: list[int] = []
        # int64, (sets,), made from the lists again after a change.
        self._counts: tuple[Int64Array, Int64Array] | None = None

    def counts(self, state: AllocatedState) -> tuple[Int64Array, Int64Array]:
        """Return int64, (all rows,), twice: devices that a row reaches, and those in use.

        Parameters
        ----------
        state
            The allocated devices.
        """
        self._follow_nodes()
        self._follow_uses(state)
        if self._counts is None:
            reached = np.array([len(each) for each in self._sets], np.int64)
            self._counts = reached, np.array(self._used, np.int64)
        reached_k, used_k = self._counts
        return reached_k[self._set_n], used_k[self._set_n]

    def _follow_nodes(self) -> None:
        table = self._table
        before, self._position = self._position, table.node_log.position
        if self._structure == table.columns.structure:
            if before == self._position:
                return
            changed = table.node_log.since(before)
            if changed is not None and len(self._sets) <= _SETS_OF_A_ROW_MAX * len(self._nodes):
                for row in changed:
                    self._read(row)
                return
        self._restart()

    def _restart(self) -> None:
        """Read every row again; nodes that are the same objects reach what they reached."""
        table = self._table
        reached = {
            id(node): self._sets[number]
            for node, number in zip(self._nodes, self._set_n.tolist(), strict=True)
        }
        self._structure = table.columns.structure
        nodes_before, self._nodes = self._nodes, list(table.nodes)
        self._numbers, self._sets, self._used = {}, [], []
        self._sets_of_pool, self._state, self._counts = {}, None, None
        numbers = []
        assert len(nodes_before) >= len(reached), "an id is of one object while the object lives"
        for node in self._nodes:
            devices = reached.get(id(node))
            numbers.append(self._number(self._reach(node) if devices is None else devices))
        self._set_n = np.array(numbers, np.int64)

    def _read(self, row: int) -> None:
        node = self._table.nodes[row]
        if node is not self._nodes[row]:
            self._nodes[row] = node
            self._set_n[row] = self._number(self._reach(node))

    def _number(self, devices: Devices) -> int:
        """Return the number of a set of devices; a new set is counted with the next answer."""
        number = self._numbers.setdefault(devices, len(self._sets))
        if number == len(self._sets):
            self._sets.append(devices)
            self._used.append(0)
            for device in devices:
                self._sets_of_pool.setdefault((device.driver, device.pool), {})[number] = None
            self._state = self._counts = None
        return number

    def _follow_uses(self, state: AllocatedState) -> None:
        before, self._state_position = self._state_position, state.log.position
        pools = None
        if state is self._state:
            if before == self._state_position:
                return
            pools = state.log.since(before)
        self._state = state
        if pools is None:
            sets = dict.fromkeys(range(len(self._sets)))
        else:
            sets = {number: None for pool in pools for number in self._sets_of_pool.get(pool, ())}
        for number in sets:
            used = sum(map(state.is_used, self._sets[number]))
            if used != self._used[number]:
                self._used[number] = used
                self._counts = None
