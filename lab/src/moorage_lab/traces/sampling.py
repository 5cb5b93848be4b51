"""The series of a run: what is in use, fragmented, waiting and evicted, point by point.

A point is a row for each metric, scope and resource, so that a table of several runs can be
filtered and drawn by any library.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from moorage.snapshot.snapshot import Snapshot
from moorage_lab.traces.fragmentation import Shapes, fragmentation
from moorage_lab.traces.records import Records

COLUMNS: Final = ("seconds", "metric", "scope", "of", "resource", "value")
"""The columns of the table of series. `scope` is ``cluster``, ``domain`` or ``namespace``, and `of`
which one of them."""

IntArray = NDArray[np.int64]
Row = tuple[float, str, str, str, str, float]


class Series:
    """The points of a run.

    Parameters
    ----------
    snapshot
        The nodes, with the pods on them.
    records
        The pods.
    shapes
        The usual pods, for fragmentation.
    resources
        The resources that are told.
    domain
        Label of nodes by which utilisation is told apart.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        records: Records,
        *,
        shapes: Shapes,
        resources: Sequence[str],
        domain: str,
    ) -> None:
        self._snapshot = snapshot
        self._records = records
        self._shapes = shapes
        self._resources = resources
        self._domain = domain
        self._domains_known: tuple[list[str], IntArray] = [], np.zeros(0, np.int64)
        self._domains_version = (-1, -1)
        self.rows: list[Row] = []

    def sample(self) -> None:
        """Add a point for now; a second one for the same moment takes the place of the first."""
        now = self._records.now
        while self.rows and self.rows[-1][0] == now:
            self.rows.pop()
        self.rows += self._point(now)

    def table(self) -> dict[str, list[Any]]:
        """Return the columns of the table of series."""
        return {name: [row[n] for row in self.rows] for n, name in enumerate(COLUMNS)}

    def means(self) -> dict[tuple[str, str], float]:
        """Return the mean over time of each metric of the cluster, by metric and resource."""
        points: dict[tuple[str, str], list[tuple[float, float]]] = {}
        for seconds, metric, scope, _of, resource, value in self.rows:
            if scope == "cluster":
                points.setdefault((metric, resource), []).append((seconds, value))
        return {key: _mean(found) for key, found in points.items()}

    def _point(self, now: float) -> Iterator[Row]:
        records = self._records
        waits = [now - records.pods[uid].arrived for uid in records.pending]
        counts = {
            "pending": len(waits),
            "waiting": sum(waits) / len(waits) if waits else 0.0,
            "evictions": records.evicted,
        }
        for metric, value in counts.items():
            yield now, metric, "cluster", "", "", float(value)
        for resource, value in fragmentation(self._snapshot, self._shapes, self._resources).items():
            yield now, "fragmentation", "cluster", "", resource, value
        for resource in self._resources:
            yield from self._utilisation(now, resource)

    def _utilisation(self, now: float, resource: str) -> Iterator[Row]:
        requested = self._snapshot.requested(resource)
        allocatable = self._snapshot.allocatable(resource)
        total = float(allocatable.sum())
        if not total:
            return
        yield now, "utilisation", "cluster", "", resource, float(requested.sum()) / total
        for name, used, there in self._by_domain(requested, allocatable):
            if there:
                yield now, "utilisation", "domain", name, resource, used / there
        for namespace, amounts in self._records.requested.items():
            share = amounts.get(resource, 0) / total
            yield now, "utilisation", "namespace", namespace, resource, share

    def _by_domain(self, *columns: Any) -> Iterator[tuple[Any, ...]]:
        """Yield each domain with the sums of columns over its nodes."""
        known, index = self._domains()
        sums = [np.bincount(index, weights=each, minlength=len(known) + 1) for each in columns]
        for number, name in enumerate(known):
            yield name, *(float(each[number]) for each in sums)

    def _domains(self) -> tuple[list[str], IntArray]:
        """Return the domains, and the number of each node's domain; read again after a change."""
        table = self._snapshot.table
        version = (table.columns.structure, table.node_log.position)
        if version != self._domains_version:
            names = [node.metadata.labels.get(self._domain, "") for node in table.nodes]
            known = sorted(set(names) - {""})
            numbers = {name: number for number, name in enumerate(known)}
            index = np.array([numbers.get(name, len(known)) for name in names], np.int64)
            self._domains_known, self._domains_version = (known, index), version
        return self._domains_known


def _mean(points: list[tuple[float, float]]) -> float:
    """Return the mean over time of values that hold until the next point."""
    span = points[-1][0] - points[0][0]
    if not span:
        return points[-1][1]
    held = sum(
        value * (after - seconds) for (seconds, value), (after, _) in itertools.pairwise(points)
    )
    return held / span
