"""The loads of all nodes, and their capacities of cpu, as arrays by row."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from moorage.api.names import CPU
from moorage.api.quantity import milli, parse_quantity
from moorage.framework.loads.node_loads import (
    AVERAGE,
    LATEST,
    STANDARD_DEVIATION,
    Load,
    LoadReport,
    NodeLoads,
)
from moorage.snapshot.snapshot import Snapshot
from moorage.snapshot.table import NodeTable

FloatArray = NDArray[np.float64]


class LoadColumns:
    """One type of load over all rows, for as long as the loads and the rows stay the same.

    Parameters
    ----------
    snapshot
        The nodes.
    report
        The loads.
    type_
        The type of load, such as ``CPU``.
    """

    def __init__(self, snapshot: Snapshot, report: LoadReport, type_: str) -> None:
        self._snapshot = snapshot
        self._report = report
        self._type = type_
        self._loads: NodeLoads | None = None
        self._structure = -1
        self.mean_n: FloatArray = np.zeros(0)
        """Percent of the capacity on average; 0 where there is none."""
        self.newest_n: FloatArray = np.full(0, np.nan)
        """Percent by the last metric that is an average or the latest; NaN where there is none."""
        self.deviation_n: FloatArray = np.zeros(0)
        """Standard deviation in percent of the capacity."""
        self.known_n: NDArray[np.bool_] = np.zeros(0, np.bool_)
        """Whether the node has a metric of the type."""

    def follow(self) -> NodeLoads | None:
        """Take in new loads and rows; return the loads."""
        structure = self._snapshot.table.columns.structure
        loads = self._report.latest
        if loads is not self._loads or structure != self._structure:
            self._loads, self._structure = loads, structure
            self._read(loads)
        return loads

    def _read(self, loads: NodeLoads | None) -> None:
        names = self._snapshot.names
        by_node = {} if loads is None else loads.by_node
        found = [_statistics(by_node.get(name, ()), self._type) for name in names]
        columns = np.array(found, np.float64).reshape(len(names), 4).T
        self.known_n = columns[0] > 0
        self.mean_n, self.deviation_n, self.newest_n = columns[1], columns[2], columns[3]


class CpuCapacities:
    """The capacities of cpu over all rows.

    Parameters
    ----------
    table
        The nodes.
    """

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._structure = -1
        self._position = 0
        self._milli_n: FloatArray = np.zeros(0)

    def by_row(self) -> FloatArray:
        """Return float64, (nodes,): millicores; not to be changed."""
        table = self._table
        rows: Iterable[int] | None = table.node_log.since(self._position)
        if rows is None or self._structure != table.columns.structure:
            self._structure = table.columns.structure
            self._milli_n = np.zeros(len(table.nodes))
            rows = range(len(table.nodes))
        self._position = table.node_log.position
        for row in rows:
            capacity = table.nodes[row].status.capacity.get(CPU, 0)
            self._milli_n[row] = milli(parse_quantity(capacity))
        return self._milli_n


def _statistics(loads: Iterable[Load], type_: str) -> tuple[float, float, float, float]:
    """Return whether there is a metric, mean, deviation, and the newest average."""
    mean = deviation = 0.0
    newest = float("nan")
    known = has_average = False
    for load in loads:
        if load.type != type_:
            continue
        known = True
        if load.operator in (AVERAGE, LATEST):
            newest = load.value
        if load.operator == AVERAGE:
            mean, has_average = load.value, True
        elif load.operator == STANDARD_DEVIATION:
            deviation = load.value
        elif load.operator in ("", LATEST) and not has_average:
            mean = load.value
    return float(known), mean, deviation, newest
