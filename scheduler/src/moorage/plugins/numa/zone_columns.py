"""The zones of all nodes as arrays: one column a NUMA node, one row a node.

The arrays follow a source of zones, such as the objects of the API, by names of changed nodes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from moorage.api.custom.node_topology import NodeResourceTopology
from moorage.plugins.numa.zones import POD, SINGLE_NUMA_NODE, NodeZones, zones_of
from moorage.snapshot.listers import Lister
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot
from moorage.snapshot.view import NodeView

ABSENT: Final = -1
"""Available amount of a resource that a NUMA node does not report."""

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

_SHAPES_MOST: Final = 65_536  # remembered; a guess: some tens of megabytes


class ZoneSource(Protocol):
    """Where the zones of a node come from."""

    @property
    def position(self) -> int:
        """Rises with every change."""
        ...

    def zones(self, node: str) -> NodeZones | None:
        """Return the zones of a node as pods may use them; None without a topology."""
        ...

    def is_stale(self, node: str) -> bool:
        """Whether it is not known what is left on the node."""
        ...

    def changed_since(self, position: int) -> list[str] | None:
        """Return the nodes that changed since a position; None where any may have changed."""
        ...

    def note_rejection(self, nodes: Iterable[str]) -> None:
        """Remember nodes where a pod was not aligned."""
        ...

    def reserve(self, pod: PodInfo, node: str) -> None:
        """Take in that a pod was placed."""
        ...

    def unreserve(self, pod: PodInfo, node: str) -> None:
        """Undo `reserve`."""
        ...

    def forget_bound(self, pod: PodInfo, node: str) -> None:
        """Take in that a placed pod is bound."""
        ...


class ApiZones:
    """The zones as the API has them, without what the scheduler assumes."""

    def __init__(self, lister: Lister[NodeResourceTopology]) -> None:
        self._lister = lister

    @property
    def position(self) -> int:
        """Rises with every change of an object."""
        return self._lister.log.position

    def zones(self, node: str) -> NodeZones | None:
        """Return the zones of the node's object."""
        topology = self._lister.get(node)
        return None if topology is None else zones_of(topology)

    def is_stale(self, node: str) -> bool:
        """Return False: the API is believed."""
        del node
        return False

    def changed_since(self, position: int) -> list[str] | None:
        """Return the names of changed objects."""
        keys = self._lister.log.since(position) if position >= 0 else None
        return None if keys is None else [name for _, name in keys]

    def note_rejection(self, nodes: Iterable[str]) -> None:
        """Do nothing: the API is believed."""

    def reserve(self, pod: PodInfo, node: str) -> None:
        """Do nothing."""

    def unreserve(self, pod: PodInfo, node: str) -> None:
        """Do nothing."""

    def forget_bound(self, pod: PodInfo, node: str) -> None:
        """Do nothing."""


class ZoneColumns:
    """The zones by row.

    Parameters
    ----------
    snapshot
        The nodes.
    source
        Their zones.
    """

    def __init__(self, snapshot: Snapshot, source: ZoneSource) -> None:
        self._snapshot = snapshot
        self._source = source
        self._position = self._structure = -1
        self._available: dict[str, IntArray] = {}
        self._zones: list[NodeZones | None] = []
        self._shapes: dict[NodeZones, int] = {}
        self._next_shape = 0
        self._present_zn: BoolArray = np.zeros((0, 0), np.bool_)
        self.known_n: BoolArray = np.zeros(0, np.bool_)
        """Whether the node has a topology."""
        self.stale_n: BoolArray = np.zeros(0, np.bool_)
        """Whether it is not known what is left on the node."""
        self.single_n: BoolArray = np.zeros(0, np.bool_)
        """Whether the policy of the node is single-numa-node."""
        self.whole_n: BoolArray = np.zeros(0, np.bool_)
        """Whether the scope of the node is the pod, not the container."""
        self.shape_n: IntArray = np.zeros(0, np.int64)
        """The same number for nodes with equal zones; only for rows with a topology."""

    def follow(self) -> None:
        """Take in what changed since the last call."""
        names, source = self._snapshot.names, self._source
        changed = source.changed_since(self._position)
        if changed is None or self._structure != self._snapshot.table.columns.structure:
            self._restart(len(names))
            changed = list(names)
        self._position = source.position
        for name in changed:
            row = self._snapshot.row_of(name)
            if row is not None:
                self._read(row, name)

    def zones(self, row: int) -> NodeZones | None:
        """Return the zones of a row; None without a topology."""
        return self._zones[row]

    def present(self, view: NodeView) -> BoolArray:
        """Return bool, (zones, rows): whether the node has such a NUMA node; not to be changed."""
        return self._present_zn[:, view.index]

    def available(self, resource: str, view: NodeView) -> IntArray | None:
        """Return int64, (zones, rows): what is left; None where no node reports the resource.

        `ABSENT` where a NUMA node does not report it. Not to be changed.
        """
        amounts_zn = self._available.get(resource)
        return None if amounts_zn is None else amounts_zn[:, view.index]

    def _restart(self, count: int) -> None:
        self._structure = self._snapshot.table.columns.structure
        self._available = {}
        self._zones = [None] * count
        self._shapes.clear()
        self._present_zn = np.zeros((0, count), np.bool_)
        self.known_n, self.stale_n = np.zeros(count, np.bool_), np.zeros(count, np.bool_)
        self.single_n, self.whole_n = np.zeros(count, np.bool_), np.zeros(count, np.bool_)
        self.shape_n = np.zeros(count, np.int64)

    def _read(self, row: int, name: str) -> None:
        zones = self._zones[row] = self._source.zones(name)
        self.stale_n[row] = self._source.is_stale(name)
        self.known_n[row] = zones is not None
        self._present_zn[:, row] = False
        for amounts_zn in self._available.values():
            amounts_zn[:, row] = ABSENT
        if zones is None:
            return
        self.single_n[row] = zones.manager.policy == SINGLE_NUMA_NODE
        self.whole_n[row] = zones.manager.scope == POD
        self.shape_n[row] = self._shape_of(zones)
        self._grow(len(zones.numa_nodes))
        for at, numa_node in enumerate(zones.numa_nodes):
            self._present_zn[at, row] = True
            for resource, amount in numa_node.available:
                self._column(resource)[at, row] = amount

    def _shape_of(self, zones: NodeZones) -> int:
        shape = self._shapes.get(zones)
        if shape is None:
            if len(self._shapes) >= _SHAPES_MOST:
                self._shapes.clear()  # numbers go on rising: none gets a second meaning
            shape = self._shapes[zones] = self._next_shape
            self._next_shape += 1
        return shape

    def _column(self, resource: str) -> IntArray:
        amounts_zn = self._available.get(resource)
        if amounts_zn is None:
            amounts_zn = np.full(self._present_zn.shape, ABSENT, np.int64)
            self._available[resource] = amounts_zn
        return amounts_zn

    def _grow(self, zones: int) -> None:
        more = zones - len(self._present_zn)
        if more <= 0:
            return
        added = ((0, more), (0, 0))
        self._present_zn = np.pad(self._present_zn, added)
        for resource, amounts_zn in self._available.items():
            self._available[resource] = np.pad(amounts_zn, added, constant_values=ABSENT)
