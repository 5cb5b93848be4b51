"""The score of a share of use, by a line through the points of a configuration.

Rules mirrored: kubernetes v1.37 ``pkg/scheduler/framework/plugins/helper/shape_score.go``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from moorage.framework.points import MAX_NODE_SCORE

_MAX_SHAPE_SCORE: Final = 10


def scores_by_percent(points: Sequence[tuple[int, int]]) -> NDArray[np.int64]:
    """Return int64, (101,): the score of each share of use in percent, 0 to 100.

    Parameters
    ----------
    points
        (utilization, score) with scores 0 to 10, by rising utilization; at least one.
    """
    scaled = [(at, score * MAX_NODE_SCORE // _MAX_SHAPE_SCORE) for at, score in points]
    return np.array([_interpolate(scaled, percent) for percent in range(101)], np.int64)


def _interpolate(points: Sequence[tuple[int, int]], at: int) -> int:
    for index, (right, right_score) in enumerate(points):
        if at > right:
            continue
        if index == 0:
            return right_score
        left, left_score = points[index - 1]
        rise = (right_score - left_score) * (at - left)
        # Go truncates toward zero, also on falling lines.
        step = abs(rise) // (right - left)
        return left_score + (step if rise >= 0 else -step)
    return points[-1][1]
