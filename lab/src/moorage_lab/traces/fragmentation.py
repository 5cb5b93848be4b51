"""Fragmentation: the share of what is free that the usual pods cannot use.

A free amount on a node counts for a pod if the pod fits there. Over the usual pods that ask for the
resource, weighted by how often they come, the fragmentation is the mean share of the free amounts
that does not count. After Weng et al., "Beware of Fragmentation", USENIX ATC 2023, with all
resources of a node in place of GPUs alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from moorage.snapshot.snapshot import Snapshot

Shapes = Sequence[tuple[Mapping[str, int], float]]


def free_amounts(snapshot: Snapshot, resource: str) -> NDArray[np.int64]:
    """Return int64, (n,): what is free of a resource on each node, at least 0."""
    free: NDArray[np.int64] = snapshot.allocatable(resource) - snapshot.requested(resource)
    return free.clip(min=0)


def fragmentation(snapshot: Snapshot, shapes: Shapes, resources: Sequence[str]) -> dict[str, float]:
    """Return the fragmentation of resources, each from 0 to 1; 0 where nothing is free.

    Parameters
    ----------
    snapshot
        The nodes.
    shapes
        Requests of the usual pods, by resource, and the share of each among the pods.
    resources
        The resources that are told; one that no usual pod asks for has fragmentation 0.
    """
    free = {name: free_amounts(snapshot, name) for name in resources}
    room = snapshot.pod_count < snapshot.allowed_pods
    usable = dict.fromkeys(resources, 0.0)
    requests = dict.fromkeys(resources, 0.0)
    for amounts, share in shapes:
        fits = room & ~snapshot.unschedulable
        for name, amount in amounts.items():
            if amount:
                there = free.get(name)
                fits = fits & ((free_amounts(snapshot, name) if there is None else there) >= amount)
        for name in resources:
            if amounts.get(name, 0):
                requests[name] += share
                usable[name] += share * float(free[name][fits].sum())
    shares = {}
    for name in resources:
        total = float(free[name].sum())
        known = total > 0 and requests[name] > 0
        shares[name] = 1.0 - usable[name] / requests[name] / total if known else 0.0
    return shares
