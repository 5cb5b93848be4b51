"""The resources of nodes and the requests of their pods, as arrays of amounts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from moorage.snapshot.columns import AnyArray
from moorage.snapshot.schema import FAMILIES
from moorage.snapshot.table import NodeTable

# Above this, (allocatable * 100) is no longer exact in float64 and integer division is used.
_FLOAT_EXACT = 2**53 // 100


class ResourceColumns:
    """Reads the resource columns of a table; a resource without amounts reads as zeros.

    Parameters
    ----------
    table
        The columns.
    """

    def __init__(self, table: NodeTable) -> None:
        self.table = table
        self._zeros: dict[str, AnyArray] = {}
        self._everywhere: dict[str, bool] = {}
        self._everywhere_of = (-1, -1)

    def allocatable(self, resource: str) -> NDArray[np.int64]:
        """Return int64, (n,): millicores for cpu, bytes or units for the rest."""
        found = self.table.columns.views.get(("allocatable", resource))
        return self._column("allocatable", resource) if found is None else found

    def requested(self, resource: str) -> NDArray[np.int64]:
        """Return int64, (n,): sums of the requests of counted pods, same units."""
        found = self.table.columns.views.get(("requested", resource))
        return self._column("requested", resource) if found is None else found

    def allocatable_float(self, resource: str) -> NDArray[np.float64]:
        """Return float64, (n,): `allocatable`, for division."""
        found = self.table.columns.views.get(("allocatable_float", resource))
        return self._column("allocatable_float", resource) if found is None else found

    def exact_float(self, resource: str) -> bool:
        """Whether ``floor(x * 100 / allocatable)`` is exact in float64 on every node.

        True while allocatable * 100 stays below 2**53 (memory: about 81 TiB a node).
        """
        return self.table.exact_limit.get(resource, 0) < _FLOAT_EXACT

    def everywhere(self, resource: str) -> bool:
        """Whether every node has some of a resource; found once for nodes as they are."""
        of_nodes = (self.table.node_log.position, self.table.columns.structure)
        if of_nodes != self._everywhere_of:
            self._everywhere_of = of_nodes
            self._everywhere.clear()
        found = self._everywhere.get(resource)
        if found is None:
            found = self._everywhere[resource] = bool(self.allocatable(resource).all())
        return found

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

    def _column(self, family: str, resource: str) -> AnyArray:
        columns = self.table.columns
        key = (family, resource)
        if columns.has(key):
            return columns.view(key)
        zeros = self._zeros.get(family)
        if zeros is None or len(zeros) != columns.n:
            spec = FAMILIES[family]
            zeros = self._zeros[family] = np.full(columns.n, spec.fill, spec.dtype)
            zeros.flags.writeable = False
        return zeros
