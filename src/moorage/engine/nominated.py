"""Nominated pods as numbers: what they would add to the sums of their rows.

For attempts whose Filters see the pods of a row only as sums, all rows with nominated pods are
judged in one pass instead of a trial each.

Rules: scheduling spec, cycle section 3.4.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from moorage.framework.cycle_state import CycleState, StateKey
from moorage.framework.points import Reads
from moorage.framework.profile import Profile
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.shape import RESOURCES
from moorage.snapshot.snapshot import Snapshot

IntArray = NDArray[np.int64]


class NominatedSums(msgspec.Struct, frozen=True):
    """The rows with nominated pods that a pod leaves room for, and what those would add.

    Parameters
    ----------
    rows
        int64, ascending.
    amounts
        By resource that the pod requests, int64, (rows,).
    pods
        int64, (rows,): their number.
    """

    rows: IntArray
    amounts: dict[str, IntArray]
    pods: IntArray

    def among(self, rows: IntArray) -> tuple[IntArray, NominatedSums]:
        """Return where in some rows there are such pods, and the sums of just those rows.

        Parameters
        ----------
        rows
            int64, each row at most once, in any order.
        """
        positions = np.flatnonzero(np.isin(rows, self.rows))
        mine = np.searchsorted(self.rows, rows[positions])
        amounts = {name: array[mine] for name, array in self.amounts.items()}
        return positions, NominatedSums(rows[positions], amounts, self.pods[mine])


_SUMS: StateKey[NominatedSums] = StateKey("nominated sums")


def nominated_sums(snapshot: Snapshot, state: CycleState, pod: PodInfo) -> NominatedSums:
    """Return what nominated pods that come first would add; added up once an attempt."""
    found = state.find(_SUMS)
    if found is None:
        found = _added_up(snapshot, pod)
        state.write(_SUMS, found)
    return found


def _added_up(snapshot: Snapshot, pod: PodInfo) -> NominatedSums:
    resources = [name for name, amount in pod.part(RESOURCES).value.filter.items() if amount]
    found: list[tuple[int, list[PodInfo]]] = []
    for name, nominated in snapshot.nominations.items():
        row = snapshot.row_of(name) if nominated else None
        if row is not None and (added := nominated_first(snapshot, pod, nominated)):
            found.append((row, added))
    found.sort(key=lambda each: each[0])
    # One entry a pod, summed by numpy: this is run over every nomination there is.
    at = [i for i, (_, added) in enumerate(found) for _ in added]
    requests = [other.part(RESOURCES).value.balanced for _, added in found for other in added]
    amounts = {}
    for resource in resources:
        amounts[resource] = np.zeros(len(found), np.int64)
        np.add.at(amounts[resource], at, [each.get(resource, 0) for each in requests])
    rows = np.array([row for row, _ in found], np.int64)
    return NominatedSums(rows, amounts, np.bincount(np.array(at, np.int64), minlength=len(found)))


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
