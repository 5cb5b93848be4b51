"""Nominated pods as numbers: what they would add to the sums of their rows.

For attempts whose Filters see the pods of a row only as sums, all rows with nominated pods are
judged in one pass instead of a trial each.

Rules: scheduling spec, cycle section 3.4.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from moorage.engine.filter_pass import PASSES, RowVerdict
from moorage.framework.cycle_state import CycleState
from moorage.framework.profile import Profile
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.shifted import RowSums
from moorage.snapshot.snapshot import Snapshot


def nominated_first(
    snapshot: Snapshot, pod: PodInfo, nominated: Sequence[PodInfo]
) -> list[PodInfo]:
    """Return the nominated pods that a pod has to leave room for.

    Those are of equal or higher priority, not the pod itself, and not on a node already.
    """
    return [
        other
        for other in nominated
        if other.priority >= pod.priority
        and other.uid != pod.uid
        and snapshot.table.node_of_pod(other.uid) is None
    ]


def comes_first(snapshot: Snapshot, pod: PodInfo, row: int) -> bool:
    """Whether a pod has to leave room on a row for no other that is nominated there."""
    alone = snapshot.only_nominated
    if (alone is not None and alone(pod.uid, snapshot.names[row])) or not snapshot.nominations:
        return True
    positions, _ = snapshot.nominated_among(pod, np.array([row]))
    return not len(positions)


def judge_row(
    profile: Profile,
    by_sums: Sequence[int],
    state: CycleState,
    pod: PodInfo,
    row: int,
    *,
    more: RowSums,
) -> RowVerdict | None:
    """Ask the Filters that read sums about one row that holds more; None where it takes arrays.

    Parameters
    ----------
    profile, state, pod
        The attempt, after PreFilter.
    by_sums
        Their indexes.
    row, more
        The row, and what it holds besides.
    """
    for index in by_sums:
        judge = profile.filter_forms[index].judge_row
        if judge is None:
            return None
        try:
            code, reason = judge(state, pod, row, more)
        except Exception:  # it is asked again with arrays, and contained there
            return None
        if code:
            return index, code, reason
    return PASSES
