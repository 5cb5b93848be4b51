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
    attached
        The attached volumes.
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
        self.by_kind = self._number_kinds(attached, ranked, full_n & ~alone_n, alone_n)
        self.counting_rows: NDArray[np.bool_] = np.ones((len(wanted), len(self._rows)), np.bool_)
        self.alone: NDArray[np.bool_] = alone_n[self._rows]

    def judge_without(self, gone: IntArray) -> FilterAnswer | None:
        """Return the answer about the rows; None where all rows pass."""
        freed: dict[str, IntArray] = {}
        for index, driver in enumerate(self._drivers):
            freed[driver] = np.zeros(self._n, np.int64)
            freed[driver][self._rows] = gone[index]
        return self._judge(freed)

    def _number_kinds(
        self,
        attached: AttachedVolumes,
        ranked: RankedPods,
        full_n: NDArray[np.bool_],
        alone_n: NDArray[np.bool_],
    ) -> IntArray:
        """Give a kind to each pod of full rows by what it frees; return what each kind adds."""
        numbers: dict[tuple[str, ...], int] = {(): 0}
        for position in np.flatnonzero(full_n[self._rows]).tolist():
            row = self._rows.item(position)
            releases = attached.releases(row)
            alone_n[row] |= releases.shared
            if not releases.by_pod:
                continue
            for rank, pod in enumerate(ranked.pods_by_row[row]):
                freed = releases.by_pod.get(pod.uid)
                if freed is not None:
                    self.kinds[position, rank] = numbers.setdefault(freed, len(numbers))
        by_kind = np.zeros((len(self._drivers), len(numbers) + 1), np.int64)
        for freed, number in numbers.items():
            by_kind[:, number] = [freed.count(driver) for driver in self._drivers]
        return by_kind
