"""The cluster as one attempt sees it: columns, sets, labels, pods, nominations.

There is no copy: the columns are kept current between attempts, and no attempt awaits between
looking at them and assuming its pod. What does await (an attempt with HTTP extenders, explaining,
what-if) works on a `fork`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from moorage.api.node import Node, Taint
from moorage.snapshot.labels import LabelColumn
from moorage.snapshot.listers import Listers
from moorage.snapshot.node_info import NodeInfo
from moorage.snapshot.pod_columns import CountKey
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.sets import SetColumn
from moorage.snapshot.table import NodeTable, PortSet
from moorage.snapshot.trial import Trial
from moorage.snapshot.view import NodeView

# Above this, (allocatable * 100) is no longer exact in float64 and integer division is used.
_FLOAT_EXACT = 2**53 // 100

Nominations = Mapping[str, Sequence[PodInfo]]


class Snapshot:
    """What plugins read. Arrays are read-only and die at the next change of the table.

    Parameters
    ----------
    table
        The columns; a new, empty table when not given.
    listers
        Indexes of the other kinds.

    Attributes
    ----------
    nominations
        Pods nominated to a node, by node name; set by whoever owns the nominator.
    """

    def __init__(self, table: NodeTable | None = None, listers: Listers | None = None) -> None:
        self.table = NodeTable() if table is None else table
        self.listers = Listers() if listers is None else listers
        self.nominations: Nominations = {}
        self._zeros = np.zeros(0, np.int64)

    # -- rows ----------------------------------------------------------------------------------

    @property
    def num_nodes(self) -> int:
        """Number of nodes."""
        return self.table.columns.n

    @property
    def names(self) -> Sequence[str]:
        """Node names by row."""
        return self.table.names

    def row_of(self, name: str) -> int | None:
        """Return the row of a node, or None when there is no such node."""
        return self.table.row_of(name)

    def node(self, row: int) -> Node:
        """Return the API object of a row."""
        return self.table.nodes[row]

    def node_info(self, row: int) -> NodeInfo:
        """Return the scalar facade of a row."""
        return NodeInfo(self.table, row)

    def pods(self, row: int) -> Iterable[PodInfo]:
        """Return the pods counted on a row."""
        return self.table.pods_by_row[row].values()

    def all(self) -> NodeView:
        """Return the view of every row."""
        return NodeView(self.num_nodes)

    def rows(self, rows: Sequence[int] | NDArray[np.int64]) -> NodeView:
        """Return the view of these rows, in this order."""
        return NodeView(self.num_nodes, np.asarray(rows, np.int64))

    # -- resources -----------------------------------------------------------------------------

    def allocatable(self, resource: str) -> NDArray[np.int64]:
        """Return int64, (n,): millicores for cpu, bytes or units for the rest."""
        return self._resource("allocatable", resource)

    def requested(self, resource: str) -> NDArray[np.int64]:
        """Return int64, (n,): sums of the requests of counted pods, same units."""
        return self._resource("requested", resource)

    def allocatable_float(self, resource: str) -> NDArray[np.float64]:
        """Return float64, (n,): `allocatable`, for division."""
        if resource not in self.table.exact_limit:
            return np.zeros(self.num_nodes)
        return self.table.columns.view(("allocatable_float", resource))

    def exact_float(self, resource: str) -> bool:
        """Whether ``floor(x * 100 / allocatable)`` is exact in float64 on every node.

        True while allocatable * 100 stays below 2**53 (memory: about 81 TiB a node).
        """
        return self.table.exact_limit.get(resource, 0) < _FLOAT_EXACT

    def nonzero_requested(self, resource: str) -> NDArray[np.int64]:
        """Return int64, (n,): sums with defaults for pods without requests; cpu and memory."""
        return self.table.columns.view(f"nonzero_{resource}")

    @property
    def pod_count(self) -> NDArray[np.int64]:
        """int64, (n,): pods counted on each node."""
        return self.table.columns.view("pod_count")

    @property
    def allowed_pods(self) -> NDArray[np.int64]:
        """int64, (n,): pods each node takes."""
        return self.table.columns.view("allowed_pods")

    @property
    def unschedulable(self) -> NDArray[np.bool_]:
        """bool, (n,): ``spec.unschedulable``."""
        return self.table.columns.view("unschedulable")

    # -- sets, labels, images, counts ----------------------------------------------------------

    @property
    def taint_sets(self) -> SetColumn[tuple[Taint, ...]]:
        """The taints of each node, in the node's order."""
        return self.table.taints

    @property
    def feature_sets(self) -> SetColumn[frozenset[str]]:
        """The declared features of each node."""
        return self.table.features

    @property
    def port_sets(self) -> SetColumn[PortSet]:
        """The used host ports of each node as (ip, protocol, port)."""
        return self.table.ports

    def label_column(self, key: str) -> LabelColumn:
        """Return the values of a label key over all nodes."""
        return self.table.label_column(key)

    def image_presence(self, name: str) -> NDArray[np.bool_]:
        """Return bool, (n,): whether each node has the image."""
        return self.table.images.presence(name, self.table.image_sizes_by_row())

    def image_state(self, name: str) -> tuple[int, int] | None:
        """Return (size in bytes, nodes that have it), or None when no node has it."""
        return self.table.images.state(name)

    @property
    def image_epoch(self) -> int:
        """Rises whenever images or the number of nodes changed."""
        return self.table.images.epoch

    def count_column(self, key: CountKey) -> NDArray[np.int64]:
        """Return int64, (n,): pods on each node that match a selector; kept by increments."""
        return self.table.pods.counts(key)

    # -- what if -------------------------------------------------------------------------------

    def trial(self) -> Trial:
        """Return a context manager that changes rows and undoes the changes at its end."""
        return Trial(self.table)

    def fork(self) -> Snapshot:
        """Return an independent copy, for work that outlives the attempt or awaits."""
        twin = Snapshot(self.table.copy(), self.listers)
        twin.nominations = {name: tuple(pods) for name, pods in self.nominations.items()}
        return twin

    def _resource(self, family: str, resource: str) -> NDArray[np.int64]:
        key = (family, resource)
        if self.table.columns.has(key):
            return self.table.columns.view(key)
        if len(self._zeros) != self.num_nodes:
            self._zeros = np.zeros(self.num_nodes, np.int64)
            self._zeros.flags.writeable = False
        return self._zeros
