"""The volumes that each pod frees when it leaves its row, kept row by row.

A row is computed when it is first asked for, and again when its pods or its volumes changed.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from moorage.plugins.volumes.attached import AttachedVolumes
from moorage.snapshot.importance import RankedPods
from moorage.snapshot.snapshot import Snapshot

IntArray = NDArray[np.int64]

_FIRST_RANKS: Final = 8


class FreedVolumes:
    """The kinds of pods by the volumes that they free.

    Parameters
    ----------
    snapshot, attached
        The cluster and its attached volumes.

    Attributes
    ----------
    numbers
        By the drivers of the freed volumes, a driver once for each volume, the number of the kind.
    """

    def __init__(self, snapshot: Snapshot, attached: AttachedVolumes) -> None:
        self._snapshot, self._attached = snapshot, attached
        self._basis = (-1, -1)
        self._positions = (0, 0, 0)
        self.numbers: dict[tuple[str, ...], int] = {(): 0}
        self._reset(0)

    def take_rows(self, rows: IntArray, ranked: RankedPods) -> tuple[IntArray, NDArray[np.bool_]]:
        """Return the kinds of pods of some rows, and the rows where pods share a volume.

        Parameters
        ----------
        rows
            int64: which rows.
        ranked
            The pods of these rows, and of others.

        Returns
        -------
        tuple
            int64, (rows, ranks) and bool, (rows,).
        """
        self._follow()
        ranks = ranked.priority.shape[1]
        if ranks > self._kind.shape[1]:
            self._reset(len(self._stale), max(ranks, 2 * self._kind.shape[1]))
        for row in rows[self._stale[rows]].tolist():
            self._fill(row, ranked)
        return self._kind[rows, :ranks], self._shared[rows]

    def _follow(self) -> None:
        table, attached = self._snapshot.table, self._attached
        logs = (table.pod_log, table.version_log, attached.recounted)
        basis = (table.columns.structure, attached.beginnings)
        changed = [log.since(at) for log, at in zip(logs, self._positions, strict=True)]
        if basis != self._basis or None in changed:
            self._basis = basis
            self._reset(self._snapshot.num_nodes)
        else:
            for rows in changed:
                self._stale[rows or []] = True
        self._positions = (logs[0].position, logs[1].position, logs[2].position)

    def _reset(self, n: int, ranks: int = _FIRST_RANKS) -> None:
        self._stale = np.ones(n, np.bool_)
        self._shared = np.zeros(n, np.bool_)
        self._kind: IntArray = np.zeros((n, ranks), np.int64)

    def _fill(self, row: int, ranked: RankedPods) -> None:
        releases = self._attached.releases(row)
        self._stale[row] = False
        self._shared[row] = releases.shared
        self._kind[row] = 0
        if not releases.by_pod:
            return
        for rank, pod in enumerate(ranked.pods_by_row[row]):
            freed = releases.by_pod.get(pod.uid)
            if freed is not None:
                self._kind[row, rank] = self.numbers.setdefault(freed, len(self.numbers))
