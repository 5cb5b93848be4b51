"""The attached volumes by which NodeVolumeLimits judges rows tried without some of their pods.

A pod that leaves its row frees the volumes that no other pod uses and that are not attached yet.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping

import numpy as np
from numpy.typing import NDArray

from moorage.framework.status import FilterAnswer
from moorage.plugins.volumes.attached import AttachedVolumes
from moorage.plugins.volumes.counts.freed import FreedVolumes
from moorage.plugins.volumes.resolver import VolumeId
from moorage.snapshot.importance import RankedPods
from moorage.snapshot.view import NodeView

IntArray = NDArray[np.int64]


class AttachedByRow:
    """`RowCounts` of NodeVolumeLimits: a count of volumes for each driver of the pod.

    Pods of one kind free as many volumes of each driver. A row that can attach all volumes of the
    pod now can do so without some of its pods, too, so only the pods of other rows are looked at.

    Parameters
    ----------
    attached, freed
        The attached volumes, and those that pods free.
    view, ranked
        The rows, and their pods by row.
    volumes
        The volumes of the pod, with a CSINode and without.
    judge
        Returns the plugin's answer; by driver, the number of volumes that pods freed on each row
        of the cluster, int64, (n,).

    Attributes
    ----------
    alone
        Rows with too little room where pods share a volume, with each other or with the pod, and
        rows whose volumes cannot be counted.
    """

    def __init__(
        self,
        attached: AttachedVolumes,
        freed: FreedVolumes,
        view: NodeView,
        ranked: RankedPods,
        *,
        volumes: Collection[VolumeId],
        judge: Callable[[Mapping[str, IntArray]], FilterAnswer | None],
    ) -> None:
        self._rows, self._n, self._judge = view.row_numbers(), view.size_of_all, judge
        wanted = Counter(driver for driver, _ in volumes)
        self._drivers = list(wanted)
        full_n = np.zeros(self._n, np.bool_)
        for driver, count in wanted.items():
            full_n |= attached.room(driver) < count
        alone_n = np.zeros(self._n, np.bool_)
        for volume in volumes:
            alone_n[attached.rows_with(volume)] = True
        alone_n &= full_n
        alone_n[list(attached.faults())] = bool(wanted)
        self.kinds: IntArray = np.zeros(ranked.priority.shape, np.int64)
        full = np.flatnonzero(full_n[self._rows])
        self.kinds[full], shared = freed.take_rows(self._rows[full], ranked)
        alone_n[self._rows[full]] |= shared
        self.by_kind: IntArray = np.zeros((len(wanted), len(freed.numbers) + 1), np.int64)
        for drivers, number in freed.numbers.items():
            self.by_kind[:, number] = [drivers.count(driver) for driver in self._drivers]
        self.counting_rows: NDArray[np.bool_] = np.ones((len(wanted), len(self._rows)), np.bool_)
        self.alone: NDArray[np.bool_] = alone_n[self._rows]

    def judge_without(self, gone: IntArray) -> FilterAnswer | None:
        """Return the answer about the rows; None where all rows pass."""
        amounts: dict[str, IntArray] = {}
        for index, driver in enumerate(self._drivers):
            amounts[driver] = np.zeros(self._n, np.int64)
            amounts[driver][self._rows] = gone[index]
        return self._judge(amounts)
