"""The loads and capacities of all nodes as arrays, by row."""

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

FloatArray = NDArray[np.float64]


class LoadColumns:
    """One type of load over all rows, for as long as loads and nodes stay the same.

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
        self._nodes = (-1, -1)
        self.mean_n: FloatArray = np.zeros(0)
        """Percent of the capacity on average; 0 where there is none."""
        self.newest_n: FloatArray = np.full(0, np.nan)
        """Percent by the last metric that is an average or the latest; NaN where there is none."""
        self.deviation_n: FloatArray = np.zeros(0)
        """Standard deviation in percent of the capacity."""
        self.known_n: NDArray[np.bool_] = np.zeros(0, np.bool_)
        """Whether the node has a metric of the type."""
        self.cpu_capacity_n: FloatArray = np.zeros(0)
        """Millicores."""

    def follow(self) -> NodeLoads | None:
        """Take in new loads and nodes; return the loads."""
        table = self._snapshot.table
        nodes = (table.columns.structure, table.node_log.position)
        loads = self._report.latest
        if loads is not self._loads or nodes != self._nodes:
            self._loads, self._nodes = loads, nodes
            self._read(loads)
        return loads

    def _read(self, loads: NodeLoads | None) -> None:
        names = self._snapshot.names
        by_node = {} if loads is None else loads.by_node
        found = [_statistics(by_node.get(name, ()), self._type) for name in names]
        columns = np.array(found, np.float64).reshape(len(names), 4).T
        self.known_n = columns[0] > 0
        self.mean_n, self.deviation_n, self.newest_n = columns[1], columns[2], columns[3]
        nodes = (self._snapshot.node(row) for row in range(len(names)))
        capacities = [milli(parse_quantity(each.status.capacity.get(CPU, 0))) for each in nodes]
        self.cpu_capacity_n = np.array(capacities, np.float64)


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
