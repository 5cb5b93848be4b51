"""The strategy LeastNUMANodes: scores by how many NUMA nodes a pod needs, and by their distance.

The score of one node is computed without arrays: sets of NUMA nodes are tried by their size. Nodes
with equal zones share a score.

Rules mirrored: scheduler-plugins v0.35 ``pkg/noderesourcetopology/least_numa.go``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Final

import numpy as np

from moorage.framework.points import MAX_NODE_SCORE, MIN_NODE_SCORE
from moorage.plugins.numa.requests import PodRequests, Request, is_numa_affine
from moorage.plugins.numa.zones import POD, NodeZones, NumaNode

_UNKNOWN_DISTANCE: Final = 255  # of the ACPI table of distances

_Left = list[dict[str, int]]
"""By NUMA node: what is left of each resource that it reports."""


def fewest_zones_score(zones: NodeZones, requests: PodRequests) -> int:
    """Return the score of a node for a pod, 0 to 100: 100 where no NUMA node is needed."""
    numa_nodes = zones.numa_nodes
    left = [dict(each.available) for each in numa_nodes]
    asks: Iterable[Request] = (requests.whole,)
    if zones.manager.scope != POD:
        asks = (*requests.init, *requests.regular)
    needed, nearest = 0, True
    for request in asks:
        if not any(name in each for each in left for name in request):
            continue
        chosen = _smallest_set(request, numa_nodes, left, guaranteed=requests.guaranteed)
        if chosen is None:
            return MIN_NODE_SCORE
        places, is_nearest = chosen
        needed, nearest = max(needed, len(places)), nearest and is_nearest
        _take(request, left, places)
    if needed == 0:
        return MAX_NODE_SCORE
    step = MAX_NODE_SCORE // zones.manager.zones_max
    score = MAX_NODE_SCORE - needed * step + (step // 2 if nearest else 0)
    return max(score, MIN_NODE_SCORE)


def _smallest_set(
    request: Request, numa_nodes: Sequence[NumaNode], left: _Left, *, guaranteed: bool
) -> tuple[tuple[int, ...], bool] | None:
    """Return the nearest of the smallest sets with room, and whether no set is nearer."""
    for size in range(1, len(numa_nodes) + 1):
        sets = list(combinations(range(len(numa_nodes)), size))
        distances = [_distance(numa_nodes, each) for each in sets]
        nearest = min(_UNKNOWN_DISTANCE, *distances)
        fitting = [
            (distance, at)
            for at, (each, distance) in enumerate(zip(sets, distances, strict=True))
            if _fits(request, [left[place] for place in each], guaranteed=guaranteed)
        ]
        if fitting:
            distance, at = min(fitting)
            return sets[at], distance == nearest
    return None


def _fits(request: Request, left: _Left, *, guaranteed: bool) -> bool:
    """Whether NUMA nodes together have a request, and each reports all of its resources."""
    if any(name not in each for each in left for name in request):
        return False
    return all(
        amount == 0
        or (not guaranteed and is_numa_affine(name))
        or sum(each[name] for each in left) >= amount
        for name, amount in request.items()
    )


def _distance(numa_nodes: Sequence[NumaNode], places: Sequence[int]) -> float:
    """Return the mean distance within a set, a NUMA node to itself included."""
    numbers = [numa_nodes[place].number for place in places]
    total = sum(
        costs.get(number, _UNKNOWN_DISTANCE)
        for costs in (dict(numa_nodes[place].costs) for place in places)
        for number in numbers
    )
    # In the precision of the original, because distances are compared for equality.
    return float(np.float32(total) / np.float32(len(places) ** 2))


def _take(request: Request, left: _Left, places: Iterable[int]) -> None:
    """Take a request from NUMA nodes, the lowest number first."""
    places = sorted(places)
    for name, amount in request.items():
        missing = amount
        for place in places:
            taken = min(missing, left[place].get(name, 0))
            if taken > 0:
                left[place][name] -= taken
                missing -= taken
