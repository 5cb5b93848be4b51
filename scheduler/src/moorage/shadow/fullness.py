"""The fullness of a cluster, from a snapshot: what pods request of what nodes offer."""

from __future__ import annotations

from typing import Final

import msgspec

from moorage.snapshot.snapshot import Snapshot

_SHOWN: Final = ("cpu", "memory")
# From this share on, a resource of a node counts as gone; as in `moorage top`.
_GONE_PERCENT: Final = 95


class Amount(msgspec.Struct, frozen=True, rename="camel"):
    """One resource over all nodes: cpu in millicores, memory in bytes.

    Parameters
    ----------
    resource
        Its name.
    requested, allocatable
        What the pods on nodes request, and what nodes offer.
    largest_free
        The most that one node has left.
    stranded
        Free amounts on nodes where the other resource is used to 95 % or more.
    """

    resource: str
    requested: int
    allocatable: int
    largest_free: int
    stranded: int


class Fullness(msgspec.Struct, frozen=True, rename="camel"):
    """The fullness of a cluster.

    Parameters
    ----------
    amounts
        cpu and memory.
    nodes, empty_nodes
        The number of nodes, and of nodes without a pod.
    pods, pending
        The number of pods on nodes, and of pods of the configuration's profiles without a node.
    """

    amounts: tuple[Amount, ...]
    nodes: int
    empty_nodes: int
    pods: int
    pending: int


def fullness_of(snapshot: Snapshot, *, pending: int) -> Fullness:
    """Return how full the cluster of a snapshot is."""
    counts = [sum(1 for _ in snapshot.pods(row)) for row in range(snapshot.num_nodes)]
    return Fullness(
        amounts=tuple(_amount(snapshot, name) for name in _SHOWN),
        nodes=snapshot.num_nodes,
        empty_nodes=sum(not count for count in counts),
        pods=sum(counts),
        pending=pending,
    )


def _amount(snapshot: Snapshot, resource: str) -> Amount:
    offered_n, asked_n = snapshot.allocatable(resource), snapshot.requested(resource)
    free_n = (offered_n - asked_n).clip(min=0)
    stranded = 0
    for other in _SHOWN:
        if other != resource:
            used_n, most_n = snapshot.requested(other), snapshot.allocatable(other)
            stranded += int(free_n[100 * used_n >= _GONE_PERCENT * most_n].sum())
    return Amount(
        resource=resource,
        requested=int(asked_n.sum()),
        allocatable=int(offered_n.sum()),
        largest_free=int(free_n.max(initial=0)),
        stranded=stranded,
    )
