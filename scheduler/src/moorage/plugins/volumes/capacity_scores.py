"""Scores by storage: the share of a node's storage that a pod's claims would use, by class.

Rules mirrored: kubernetes v1.37 ``pkg/scheduler/framework/plugins/volumebinding``, ``Score`` of
volume_binding.go and scorer.go.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from moorage.api.quantity import value
from moorage.api.volume import PersistentVolumeClaim
from moorage.framework.points import ScoreArray
from moorage.framework.utilization_shape import scores_by_percent
from moorage.plugins.volumes.claims import (
    capacity_nano,
    claim_class,
    requested_nano,
    volume_class,
)
from moorage.plugins.volumes.finder import Match, NodeCapacity, VolumesByRow
from moorage.plugins.volumes.free import NONE, RankArray

BoolArray = NDArray[np.bool_]
Int64Array = NDArray[np.int64]


CapacityOf = Callable[[PersistentVolumeClaim], NodeCapacity | None]
"""Returns the capacity for a claim to provision; None where its driver tracks none."""


class _ClassUse:
    """Requested bytes and capacity of one storage class by row."""

    def __init__(self, n: int) -> None:
        self.requested_n = np.zeros(n, np.int64)
        self.capacity_n = np.zeros(n, np.int64)
        self.used_n = np.zeros(n, np.bool_)


class CapacityScorer:
    """Scores rows by the storage that a pod's claims would use of it.

    Parameters
    ----------
    points
        (utilization, score) of the arguments, by rising utilization.
    """

    def __init__(self, points: Sequence[tuple[int, int]]) -> None:
        self._by_percent = scores_by_percent(points)

    def scores(self, volumes: VolumesByRow, n: int, capacity_of: CapacityOf) -> ScoreArray:
        """Return int64, (n,): the mean score of the storage classes on each row.

        A row on which a claim gets an existing volume is scored by such volumes alone.

        Parameters
        ----------
        volumes
            The volumes found for the claims.
        n
            Number of rows.
        capacity_of
            The capacity for a claim to provision.
        """
        uses: dict[str, _ClassUse] = {}
        static_n = np.zeros(n, np.bool_)
        for match in volumes.matches:
            if match.chosen_n is not None:
                static_n |= match.chosen_n != NONE
                _add_volumes(uses, match, match.chosen_n, n)
        provisioned = [(claim, ~static_n) for claim in volumes.selected]
        for match in volumes.matches:
            open_n = ~static_n
            if match.chosen_n is not None:
                open_n &= match.chosen_n == NONE
            provisioned.append((match.claim, open_n))
        for claim, open_n in provisioned:
            capacity = capacity_of(claim) if open_n.any() else None
            if capacity is not None:
                _add_provision(uses, claim, open_n & capacity.known_n, capacity.bytes_n)
        return self._mean([use for _, use in sorted(uses.items())], n)

    def _mean(self, uses: Sequence[_ClassUse], n: int) -> ScoreArray:
        total_n, count_n = np.zeros(n, np.int64), np.zeros(n, np.int64)
        for use in uses:
            full_n = (use.capacity_n == 0) | (use.requested_n > use.capacity_n)
            percent_n = use.requested_n * 100 // np.maximum(use.capacity_n, 1)
            percent_n[full_n] = 100
            total_n += np.where(use.used_n, self._by_percent[percent_n], 0)
            count_n += use.used_n
        # (2t + c) // 2c is t / c rounded half up, for non-negative integers.
        np.maximum(count_n, 1, out=count_n)
        scores: ScoreArray = (2 * total_n + count_n) // (2 * count_n)
        return scores


def _use_of(uses: dict[str, _ClassUse], class_name: str, n: int) -> _ClassUse:
    use = uses.get(class_name)
    if use is None:
        use = uses[class_name] = _ClassUse(n)
    return use


def _add_volumes(uses: dict[str, _ClassUse], match: Match, chosen_n: RankArray, n: int) -> None:
    """Add the volumes chosen for a claim, which stand for their own capacity."""
    requested = value(requested_nano(match.claim) or 0)
    for index in np.unique(chosen_n).tolist():
        if index == NONE:
            continue
        volume = match.volumes[index]
        use, here_n = _use_of(uses, volume_class(volume), n), chosen_n == index
        use.requested_n[here_n] += requested
        use.capacity_n[here_n] += value(capacity_nano(volume))
        use.used_n |= here_n


def _add_provision(
    uses: dict[str, _ClassUse],
    claim: PersistentVolumeClaim,
    here_n: BoolArray,
    bytes_n: Int64Array,
) -> None:
    """Add a claim to provision; claims of one class share the capacity."""
    use = _use_of(uses, claim_class(claim), len(here_n))
    use.requested_n[here_n] += value(requested_nano(claim) or 0)
    use.capacity_n[here_n] = bytes_n[here_n]
    use.used_n |= here_n
