"""Nominated pods as numbers: what they would add to the sums of their rows.

For attempts whose Filters see the pods of a row only as sums, all rows with nominated pods are
judged in one pass instead of a trial each.

Rules: scheduling spec, cycle section 3.4.
"""

from __future__ import annotations

from collections.abc import Sequence

from moorage.framework.cycle_state import CycleState
from moorage.framework.points import Reads
from moorage.framework.profile import Profile
from moorage.snapshot.pod_info import PodInfo
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


def filters_by_sums(profile: Profile, state: CycleState) -> tuple[int, ...] | None:
    """Return which Filters read the pods of a row as sums; None if one reads more than that.

    A Filter that reads its row's node alone answers the same whatever pods are there.
    """
    found: list[int] = []
    for index, plugin in enumerate(profile.filters):
        if plugin.name in state.skip_filter or plugin.filter_reads == Reads.NODE:
            continue
        if not getattr(plugin, "filter_sees_sums", False):
            return None
        found.append(index)
    followers = any(plugin.name not in state.skip_filter for plugin in profile.extensions)
    return None if followers else tuple(found)
