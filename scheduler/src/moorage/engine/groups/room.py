"""An upper bound on the members of a group that could have a place, from columns alone.

A group that waits is woken by every event that may help one of its members. The bound says without
an attempt that too few members could have a place. It never says so of a group that fits: a node
takes no more members than its free cpu, memory and number of pods allow.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from moorage.framework.profile import Profile
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.shape import RESOURCES
from moorage.snapshot.snapshot import Snapshot


def fits_at_most(snapshot: Snapshot, pods: Sequence[PodInfo]) -> int:
    """Return a number of pods that is never exceeded by those that fit at once, at most all.

    Unlike pods count with the smallest request of each resource.

    Parameters
    ----------
    snapshot
        The cluster.
    pods
        Pods without a place.
    """
    return min(len(pods), int(places(snapshot, pods).sum()))


def places(snapshot: Snapshot, pods: Sequence[PodInfo]) -> NDArray[np.int64]:
    """Return int64, (n,): how many of these pods fit each row at most, as `fits_at_most` counts."""
    places_n = snapshot.allowed_pods - snapshot.pod_count
    requests = [pod.part(RESOURCES).value.filter for pod in pods]
    for name in ("cpu", "memory"):
        least = min(each.get(name, 0) for each in requests)
        if least > 0:
            free_n = snapshot.allocatable(name) - snapshot.requested(name)
            places_n = np.minimum(places_n, free_n // least)
    return places_n.clip(min=0)


def judges_of_room(profile: Profile) -> frozenset[str]:
    """Return the names of a profile's Filter plugins that judge whether requests fit."""
    # Such a plugin reads requests and the sums of a row.
    return frozenset(
        each.name
        for each in profile.filter_forms
        if each.by_sums and RESOURCES in (profile.capabilities[each.name].shape_parts or ())
    )


def all_rank_as_high(snapshot: Snapshot, priority: int) -> bool:
    """Whether no pod on a node has a priority below that of a group: none could be evicted."""
    rows = range(snapshot.num_nodes)
    return all(pod.priority >= priority for row in rows for pod in snapshot.pods(row))
