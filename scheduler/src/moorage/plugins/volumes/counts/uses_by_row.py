"""The uses of volumes by which VolumeRestrictions judges rows tried without some of their pods.

As its AddPod and RemovePod, for many rows at once: a pod counts on its row by its kind.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from moorage.framework.status import FilterAnswer
from moorage.snapshot.importance import RankedPods
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.volume_pods import DiskKey, disk_key, volumes_of

IntArray = NDArray[np.int64]

_CLAIMS: Final = 0
_DISKS: Final = 1


class KindsByVolume:
    """The kinds of pods by the claims and the disks that they name.

    Attributes
    ----------
    by_claim
        By name of a claim, the kinds that name it; once for each volume.
    by_disk
        By key of a disk, the kinds that have it.
    """

    def __init__(self) -> None:
        self.by_claim: dict[str, list[int]] = {}
        self.by_disk: dict[DiskKey, dict[int, None]] = {}
        self._kinds: Sequence[PodInfo] = ()
        self._known = 0

    def follow(self, kinds: Sequence[PodInfo]) -> None:
        """Add the kinds that are new; a list that replaces another is read from its start."""
        if kinds is not self._kinds or len(kinds) < self._known:
            self._kinds, self._known = kinds, 0
            self.by_claim.clear()
            self.by_disk.clear()
        for kind in range(self._known, len(kinds)):
            volumes = volumes_of(kinds[kind])
            for claim in volumes.claims:
                if not claim.ephemeral:
                    self.by_claim.setdefault(claim.claim_name, []).append(kind)
            for disk in volumes.disks:
                key = disk_key(disk)
                assert key is not None, "an inline volume that cannot clash is among the disks"
                self.by_disk.setdefault(key, {})[kind] = None
        self._known = len(kinds)


class UsesByRow:
    """`RowCounts` of VolumeRestrictions: uses of one-pod claims, and pods with clashing disks.

    Parameters
    ----------
    ranked
        The pods of the rows, with kinds.
    by_claim
        The kinds that use a one-pod claim of the pod, once for each use.
    by_disk
        The kinds with a disk that clashes with one of the pod's.
    judge
        Returns the plugin's answer: the uses of claims that have left with the row's pods, and the
        rows with a clashing disk, are int64 and bool, (rows,).
    """

    def __init__(
        self,
        ranked: RankedPods,
        *,
        by_claim: Sequence[int],
        by_disk: Sequence[int],
        judge: Callable[[IntArray, NDArray[np.bool_]], FilterAnswer | None],
    ) -> None:
        self.kinds, self._judge = ranked.kind, judge
        self.by_kind: IntArray = np.zeros((2, len(ranked.of_kind) + 1), np.int64)
        np.add.at(self.by_kind[_CLAIMS], np.array(by_claim, np.int64), 1)
        self.by_kind[_DISKS, np.array(by_disk, np.int64)] = 1
        self.counting_rows: NDArray[np.bool_] = np.ones((2, len(ranked.kind)), np.bool_)
        self._clashing: IntArray = self.by_kind[_DISKS][ranked.kind].sum(axis=1)

    @property
    def alone(self) -> None:
        """None: every row can be judged so."""

    def judge_without(self, gone: IntArray) -> FilterAnswer | None:
        """Return the answer about the rows; None where all rows pass."""
        return self._judge(gone[_CLAIMS], self._clashing > gone[_DISKS])
