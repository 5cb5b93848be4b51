"""A column computed from other columns, brought up to date when it is read.

For what every new shape of pods would compute again for all rows although no pod matters, such as
the free part of each node.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from moorage.snapshot.table import NodeTable

T = TypeVar("T", bound=np.generic)

# From this share of the rows on, a pass over all costs less than following changes; a guess.
_SHARE: Final = 64


class DerivedColumn(Generic[T]):
    """A column of values that depend on a row's node, and on the sums of its pods.

    Parameters
    ----------
    table
        The rows.
    compute
        Returns a new array with the values of every row.
    of_row
        Returns the value of one row.
    """

    __slots__ = ("_compute", "_of_row", "_structure", "_table", "_until", "_values")

    def __init__(
        self,
        table: NodeTable,
        compute: Callable[[], NDArray[T]],
        of_row: Callable[[int], float],
    ) -> None:
        self._table = table
        self._compute = compute
        self._of_row = of_row
        self._structure = -1
        self._until = (0, 0)
        self._values: NDArray[T] | None = None

    def read(self) -> NDArray[T]:
        """Return the values of every row; not to be changed, and good until a row changes."""
        table, values = self._table, self._values
        until = table.node_log.position, table.pod_log.position
        if values is None or self._structure != table.columns.structure:
            values = self._all()
        elif until != self._until:
            nodes, pods = table.node_log.since(self._until[0]), table.pod_log.since(self._until[1])
            if nodes is None or pods is None or (len(nodes) + len(pods)) * _SHARE > len(values):
                values = self._all()
            else:
                of_row = self._of_row
                for row in (*nodes, *pods):
                    values[row] = of_row(row)
        self._until = until
        return values

    def _all(self) -> NDArray[T]:
        self._structure = self._table.columns.structure
        self._values = self._compute()
        return self._values
