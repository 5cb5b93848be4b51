"""Members that must be near one another, and the domains in which they can be together.

A member whose required affinity selects members of its own group goes where the first of them is.
That first one goes to the node with the best score, whether or not there is room for the others
near it. So a group that fits may find no places. Its members that belong together are then tried
within each domain of their topology keys.

This is moorage's own; kube-scheduler v1.36 places members one after another (docs, deviations).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

import msgspec
import numpy as np

from moorage.engine.attempt import Scope
from moorage.engine.cycle import Cycle
from moorage.engine.groups.complete import Limit
from moorage.engine.groups.decision import GROUP_UNSCHEDULABLE, GroupDecision, GroupOutcome
from moorage.engine.groups.numbers import GroupNumbers, ViewSums
from moorage.engine.groups.places_search import SETS_MOST, PlacesSearch
from moorage.engine.groups.trying import Steps
from moorage.framework.status import unschedulable
from moorage.snapshot.labels import ABSENT
from moorage.snapshot.pod_affinity import POD_AFFINITY, AffinityTerm
from moorage.snapshot.pod_groups import GroupKey
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot
from moorage.snapshot.view import NodeView

_TRIES_MAX: Final = 2048
"""Members tried in all domains of one attempt: about half a second at 0.25 ms a member."""


Try: TypeAlias = Callable[[Sequence[PodInfo], Scope, Mapping[str, Scope]], Steps]


class NearMembers(msgspec.Struct, frozen=True):
    """The members of a group that must be near one another.

    Parameters
    ----------
    pods
        All members without a place. Those that belong together come first, because others have more
        nodes to choose from; of these, the ones that need another one near them come last.
    uids
        The members that belong together.
    keys
        The topology keys of their terms, sorted.
    """

    pods: Sequence[PodInfo]
    uids: frozenset[str]
    keys: tuple[str, ...]


def near_members(snapshot: Snapshot, pods: Sequence[PodInfo]) -> NearMembers | None:
    """Return the members that must be near one another; None where no member must.

    Parameters
    ----------
    snapshot
        The cluster.
    pods
        The members of a group without a place.
    """
    uids, keys, dependent = set[str](), set[str](), set[str]()
    for pod in pods:
        for term in pod.part(POD_AFFINITY).value.required:
            near = [other.uid for other in pods if _selects(snapshot, term, other)]
            if near:
                uids.update(near, (pod.uid,))
                keys.add(term.topology_key)
                if pod.uid not in near:
                    dependent.add(pod.uid)
    if not keys:
        return None
    in_order = sorted(pods, key=lambda pod: (pod.uid not in uids, pod.uid in dependent))
    return NearMembers(in_order, frozenset(uids), tuple(sorted(keys)))


class TogetherSearch:
    """Tries the members that belong together in one domain after another.

    Parameters
    ----------
    cycle
        The cycle of the members' profile.
    near
        The members.
    places
        Searches the places of unlike members within a domain, with one limit for all domains.
    attempt
        Tries the members one after another, some within a scope of their own.
    key
        The group.
    """

    def __init__(
        self,
        cycle: Cycle,
        near: NearMembers,
        *,
        places: PlacesSearch,
        attempt: Try,
        key: GroupKey,
    ) -> None:
        self._snapshot = cycle.snapshot
        self._near = near
        self._places = places
        self._attempt = attempt
        self._key = key
        self._numbers = GroupNumbers(cycle, [pod for pod in near.pods if pod.uid in near.uids])
        self._limit = Limit(SETS_MOST)

    def searched(self, pods: Sequence[PodInfo], scope: Scope) -> Steps:
        """Return the first decision with places; a rejection where no domain has room.

        Parameters
        ----------
        pods
            The order in which they are tried.
        scope
            The bounds of the attempt. Where PostFilter may run, pods may be evicted for them.
        """
        near, numbers = self._near, self._numbers
        decision = GroupDecision(GroupOutcome.REJECTED, unschedulable(GROUP_UNSCHEDULABLE))
        # Where all belong together, the search knows the room of all of them.
        are_searched = len(near.uids) == len(pods) and len(numbers.classes) > 1
        for view in self._views(scope):
            within = msgspec.structs.replace(scope, within=view)
            decision = yield from self._attempt(pods, scope, dict.fromkeys(near.uids, within))
            if decision.outcome is not GroupOutcome.REJECTED:
                break
            yield None
            if are_searched and not scope.post_filter:
                decision = yield from self._places.search_rows(
                    self._key, pods, decision, numbers, within=view, limit=self._limit
                )
                if decision.outcome is GroupOutcome.PLACED:
                    break
        return decision

    def _views(self, scope: Scope) -> list[NodeView]:
        """Return the domains to try: first the fullest one with room for all near members.

        Without evictions, domains with too little room are left out.
        """
        near, number = self._near, len(self._near.uids)
        views = _domains(self._snapshot, near.keys, scope.within)
        if not views:
            return []
        missing = self._snapshot.groups.missing(self._key)
        least = max(1, missing - (len(near.pods) - number))
        ranked = sorted(
            (bound < number, bound if bound >= number else -bound, at)
            for at, bound in enumerate(self._numbers.bounds(ViewSums(views)))
            if scope.post_filter or bound >= least
        )
        return [views[at] for _, _, at in ranked[: max(1, _TRIES_MAX // len(near.pods))]]


def _selects(snapshot: Snapshot, term: AffinityTerm, pod: PodInfo) -> bool:
    namespace = snapshot.listers.namespaces.get(pod.namespace)
    labels = {} if namespace is None else namespace.metadata.labels
    return term.selects_pod(pod.namespace, pod.pod.metadata.labels, labels)


def _domains(snapshot: Snapshot, keys: Sequence[str], within: NodeView | None) -> list[NodeView]:
    """Return the rows of each combination of values of the labels, ordered by first row."""
    rows = (snapshot.all() if within is None else within).row_numbers()
    values_nk = np.stack([snapshot.label_column(key).ids[rows] for key in keys], axis=1)
    labelled = (values_nk != ABSENT).all(axis=1)
    rows, values_nk = rows[labelled], values_nk[labelled]
    if not len(rows):
        return []
    _, number_n = np.unique(values_nk, axis=0, return_inverse=True)
    order_n = np.argsort(number_n.ravel(), kind="stable")
    starts = np.flatnonzero(np.diff(number_n.ravel()[order_n])) + 1
    return [snapshot.rows(part) for part in np.split(rows[order_n], starts)]
