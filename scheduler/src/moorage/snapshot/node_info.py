"""A node as an object: the facade for plugins that judge one node at a time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from moorage.api.node import Node
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.shape import amount_of
from moorage.snapshot.table import NodeTable


class NodeInfo:
    """A node, the pods on the node and the sums of their requests, read from the columns."""

    __slots__ = ("_row", "_table")

    def __init__(self, table: NodeTable, row: int) -> None:
        self._table = table
        self._row = row

    def __repr__(self) -> str:
        return f"NodeInfo({self.name})"

    @property
    def name(self) -> str:
        """The node's name."""
        return self._table.names[self._row]

    @property
    def node(self) -> Node:
        """The API object."""
        return self._table.nodes[self._row]

    @property
    def labels(self) -> Mapping[str, str]:
        """The node's labels."""
        return self.node.metadata.labels

    @property
    def annotations(self) -> Mapping[str, str]:
        """The node's annotations."""
        return self.node.metadata.annotations

    @property
    def pods(self) -> Iterable[PodInfo]:
        """The pods counted on the node, assumed ones included."""
        return self._table.pods_by_row[self._row].values()

    def allocatable(self, resource: str) -> float:
        """Return allocatable: cores for cpu, bytes or counts for any other resource."""
        return amount_of(resource, self._value("allocatable", resource))

    def requested(self, resource: str) -> float:
        """Return the sum of requests of the pods on the node, in the units of `allocatable`."""
        return amount_of(resource, self._value("requested", resource))

    def free(self, resource: str) -> float:
        """Return allocatable without requested, below 0 on an overcommitted node.

        ``pod.requests(resource) <= node.free(resource)`` is exact. Sums and differences of cores
        are not: 0.1 + 0.2 is more than 0.3.
        """
        free = self._value("allocatable", resource) - self._value("requested", resource)
        return amount_of(resource, free)

    @property
    def pod_count(self) -> int:
        """Number of pods counted on the node."""
        return int(self._table.columns.ensure("pod_count")[self._row])

    @property
    def allowed_pods(self) -> int:
        """Number of pods the node takes."""
        return int(self._table.columns.ensure("allowed_pods")[self._row])

    def _value(self, family: str, resource: str) -> int:
        key = (family, resource)
        if not self._table.columns.has(key):
            return 0
        return int(self._table.columns.ensure(key)[self._row])
