"""Other orders in which the members of a group are tried, after one order did not fit.

Members are placed one after another and never moved, so a group of unlike pods may fit in one order
and not in another. The first other order is by size: the largest request of the scarcest resource
first. Each later order moves the members that found no node to the front. The number of orders and
the number of members tried are bounded, so the time is bounded too, and a replay tries the same
orders.

This is moorage's own; kube-scheduler v1.36 tries one order (docs, deviations).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

from moorage.engine.groups.decision import GroupDecision
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.shape import NODE_AFFINITY, PORTS, RESOURCES, TOLERATIONS, PartKind
from moorage.snapshot.snapshot import Snapshot

ORDERS: Final = 4
"""Other orders for groups that pods name by labels, unless the profile says otherwise. A guess:
with random groups of up to six pods more orders found next to nothing (decision 5)."""

MEMBERS_MAX: Final = 2048
"""Members tried in all other orders of one attempt, so that a large group blocks no pod for long:
about half a second at 0.25 ms a member."""


class OtherOrders:
    """The other orders of one attempt.

    Parameters
    ----------
    snapshot
        The cluster; the free amounts say which resource is the scarcest.
    pods
        The members in the order that was tried first.
    count
        How many other orders may be tried.
    """

    def __init__(self, snapshot: Snapshot, pods: Sequence[PodInfo], *, count: int) -> None:
        self._kinds = {info.uid: kind_of(info) for info in pods}
        unlike = len({*self._kinds.values()}) > 1
        self._left = min(count, MEMBERS_MAX // len(pods)) if unlike else 0
        self._signatures = {self._signature(pods)}
        self._by_size = [*_by_size(snapshot, pods)] if self._left else []

    def after(self, decision: GroupDecision) -> Sequence[PodInfo] | None:
        """Return the next order to try; None when there is none.

        Parameters
        ----------
        decision
            The decision with the order before; its members without a node are moved to the front.
        """
        if not self._left:
            return None
        for order in (*self._by_size[:1], _failed_first(decision), *self._by_size[1:]):
            signature = self._signature(order)
            if signature not in self._signatures:
                self._signatures.add(signature)
                self._left -= 1
                return order
        return None

    def _signature(self, pods: Sequence[PodInfo]) -> tuple[object, ...]:
        """Return the same value for orders that differ only in which of like pods comes first."""
        return tuple(self._kinds[info.uid] for info in pods)


_ALIKE: Final[tuple[PartKind[Any], ...]] = (RESOURCES, NODE_AFFINITY, TOLERATIONS, PORTS)


def kind_of(info: PodInfo) -> tuple[int, ...]:
    """Return the same value for pods that any order may swap."""
    spec = info.pod.spec
    parts = [info.part(kind).id for kind in _ALIKE]
    if spec.affinity or spec.topology_spread_constraints or spec.volumes or spec.resource_claims:
        parts.append(info.spec_id)
    return (*parts, info.priority)


def _by_size(snapshot: Snapshot, pods: Sequence[PodInfo]) -> Iterator[Sequence[PodInfo]]:
    """Yield the pods by decreasing request of one resource, the scarcest resource first.

    Equal requests are ordered by the next scarcest resource, then as given.
    """
    requests = {info.uid: info.part(RESOURCES).value.filter for info in pods}
    asked: Counter[str] = Counter()
    for request in requests.values():
        asked.update(request)
    shares = {name: amount / max(1, _free(snapshot, name)) for name, amount in asked.items()}
    names = sorted(shares, key=lambda name: (-shares[name], name))
    for name in names:
        ranked = [name, *(other for other in names if other != name)]
        yield sorted(pods, key=lambda info: [-requests[info.uid].get(each, 0) for each in ranked])


def _free(snapshot: Snapshot, resource: str) -> int:
    free_n = snapshot.allocatable(resource) - snapshot.requested(resource)
    return int(free_n.clip(min=0).sum())


def _failed_first(decision: GroupDecision) -> Sequence[PodInfo]:
    without = [each.decision.pod for each in decision.members if not each.node_name]
    return [*without, *(each.decision.pod for each in decision.members if each.node_name)]
