"""PodGroupPodsCount: a placement of more pods of the group scores higher.

Rules mirrored: kubernetes v1.36 ``pkg/scheduler/framework/plugins/podgrouppodscount``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from moorage.framework.group import FilledPlacement
from moorage.framework.handle import Handle
from moorage.framework.points import ScoreArray
from moorage.framework.status import SUCCESS, Status, error
from moorage.plugins.gangs.topology_domains import percent_of_most
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
        if key.source:  # counted by Coscheduling
            return np.zeros(len(filled), np.int64), SUCCESS
        placed = self._snapshot.groups.members(key).placed
        scores = percent_of_most(placed, [len(each.pods) for each in filled])
        return scores, SUCCESS if scores.any() else error(NOBODY)
