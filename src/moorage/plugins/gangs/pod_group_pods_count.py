"""PodGroupPodsCount: a placement of more pods of the group scores higher.

Rules mirrored: kubernetes v1.36 ``pkg/scheduler/framework/plugins/podgrouppodscount``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from moorage.framework.group import FilledPlacement
from moorage.framework.handle import Handle
from moorage.framework.points import MAX_NODE_SCORE, ScoreArray
from moorage.framework.status import SUCCESS, Status, error
from moorage.snapshot.pod_groups import GroupKey

NOBODY = "no pods from pod group are assigned to any of the candidate placements"


class PodGroupPodsCount:
    """PlacementScore plugin; takes no arguments."""

    name = "PodGroupPodsCount"

    def __init__(self, args: object, handle: Handle) -> None:
        del args
        self._snapshot = handle.snapshot

    def score_placements(
        self, key: GroupKey, filled: Sequence[FilledPlacement]
    ) -> tuple[ScoreArray, Status]:
        """Return each number of placed members in percent of the greatest number, rounded down."""
        placed = self._snapshot.groups.members(key).placed
        counts = np.array([placed + len(each.pods) for each in filled], np.int64)
        most = int(counts.max(initial=0))
        if most == 0:
            return counts, error(NOBODY)
        return counts * MAX_NODE_SCORE // most, SUCCESS
