"""Says which nodes of a cluster go first when it gets smaller. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

import msgspec

from moorage.api.node import Node
from moorage.api.pod import MIRROR, Pod

_FINISHED = ("Succeeded", "Failed")


class Removal(msgspec.Struct, frozen=True):
    """The nodes to remove.

    Parameters
    ----------
    names
        Names of the nodes, the first to go first.
    occupied
        The names among them of nodes with pods.
    pods
        Number of pods on the occupied nodes.
    """

    names: tuple[str, ...]
    occupied: tuple[str, ...]
    pods: int


def choose(nodes: Iterable[Node], pods: Iterable[Pod], count: int) -> Removal:
    """Choose nodes to remove: empty nodes before others, then the newest.

    Parameters
    ----------
    count
        Number of nodes to remove.
    """
    loads = load_by_node(pods)
    chosen = sorted(newest_first(nodes), key=lambda node: loads[node.name] > 0)[:count]
    occupied = tuple(node.name for node in chosen if loads[node.name])
    return Removal(
        names=tuple(node.name for node in chosen),
        occupied=occupied,
        pods=sum(loads[name] for name in occupied),
    )


def newest_first(nodes: Iterable[Node]) -> list[Node]:
    """Return nodes by age, and by number where they are of one second."""
    return sorted(nodes, key=_age, reverse=True)


def load_by_node(pods: Iterable[Pod]) -> Counter[str]:
    """Count the pods that keep a node from being empty, by node name."""
    return Counter(pod.spec.node_name for pod in pods if pod.spec.node_name and is_load(pod))


def is_load(pod: Pod) -> bool:
    """Whether a pod keeps its node from being empty.

    Finished pods, pods of DaemonSets and mirror pods do not, as with cluster-autoscaler.
    """
    if pod.status.phase in _FINISHED or MIRROR in pod.metadata.annotations:
        return False
    return not is_daemon(pod)


def is_daemon(pod: Pod) -> bool:
    """Whether a DaemonSet controls a pod."""
    owners = pod.metadata.owner_references
    return any(each.controller and each.kind == "DaemonSet" for each in owners)


def _age(node: Node) -> tuple[str, tuple[tuple[str, int], ...]]:
    """Return a key that is greater for a newer node; names count where the second is the same."""
    parts = re.findall(r"(\D*)(\d*)", node.name)
    name = tuple((text, int(number or -1)) for text, number in parts)
    return node.metadata.creation_timestamp or "", name
