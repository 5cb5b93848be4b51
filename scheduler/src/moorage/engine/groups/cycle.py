"""The scheduling cycle of a pod group: members placed one after another in a trial.

Every member is tried next to the earlier members, each on its node with Reserve and Permit run, in
a trial of the snapshot. Permit says whether the members with a place are enough. The outcome is a
`GroupDecision`; `service` carries it out, or returns the members with their reasons.

The answers of plugins are reused inside the trial as outside of it: a replica costs only the rows
that earlier members changed. Undone rows count as changed, so no answer from a trial is kept.

Rules: scheduling spec, cycle section 9 and gang sections A4 to A6 (kubernetes v1.36
``pkg/scheduler/schedule_one_podgroup.go``).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

import msgspec

from moorage.config.gate_table import V1_36, WORKLOAD_PREEMPTION
from moorage.engine.attempt import Preemption, Scope
from moorage.engine.cycle import Cycle
from moorage.engine.decision import Decision
from moorage.engine.groups.decision import (
    GroupDecision,
    GroupOutcome,
    SearchEnd,
    SearchReport,
)
from moorage.engine.groups.group_preemption import GroupPreemption
from moorage.engine.groups.near_members import TogetherSearch, near_members
from moorage.engine.groups.nominated_places import NominatedPlaces
from moorage.engine.groups.orders import ORDERS, OtherOrders
from moorage.engine.groups.placements import Placements, shared_rows
from moorage.engine.groups.places_search import PlacesSearch, SearchPauses
from moorage.engine.groups.sub_groups.trying import SubGroups
from moorage.engine.groups.trying import MembersOnTrial, Steps, take_all_steps
from moorage.framework.status import Status
from moorage.snapshot.pod_groups import GroupKey
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.view import NodeView

_POSTPONED: Final = SearchReport(end=SearchEnd.POSTPONED)
_WITHOUT_PLACES = frozenset({GroupOutcome.REJECTED, GroupOutcome.PREEMPTING})

Try: TypeAlias = Callable[[Sequence[PodInfo], Scope], Steps]
"""Tries the members within the rows of a scope."""

NO_SCOPES: Final[Mapping[str, Scope]] = {}


class GroupCycle:
    """Decides about pod groups with the help of the cycle that decides about their pods.

    Parameters
    ----------
    cycle
        The cycle of the profile that all members name.
    explain
        Whether preemption writes its reports.
    pauses
        Bounds the time of searches; None where no other pod waits for them.
    """

    def __init__(
        self, cycle: Cycle, *, explain: bool = False, pauses: SearchPauses | None = None
    ) -> None:
        self.cycle = cycle
        self._profile = cycle.profile
        self._snapshot = cycle.snapshot
        self._groups = cycle.snapshot.groups
        gates = cycle.profile.handle.gates
        self._orders = cycle.profile.handle.group_orders
        self._complete = cycle.profile.handle.complete_groups
        self._pauses = pauses
        self.placements = Placements(cycle)
        self._places = PlacesSearch(cycle, self.placements)
        self._nominated = NominatedPlaces(cycle)
        self._sub_groups = SubGroups(cycle)
        self.preempts = gates(WORKLOAD_PREEMPTION)
        """Whether pods are evicted for a group as a whole."""
        self._preemption = GroupPreemption(cycle, self)
        # In 1.37 PostFilter is asked about the group as a whole, and about no member.
        of_members = not self.preempts or gates.version == V1_36
        self.everywhere = Scope(post_filter=of_members, explain=explain)
        """The bounds of an attempt for a member that may go anywhere."""

    def decide_group(
        self, key: GroupKey, pods: Sequence[PodInfo], *, within: NodeView | None = None
    ) -> GroupDecision:
        """Find nodes for as many pods of a group as possible; too few means none.

        Parameters
        ----------
        key
            The group.
        pods
            Its pods without a place, in the order in which they are to be tried.
        within
            The nodes that the group may take, without preemption; None for all nodes.
        """
        return take_all_steps(self.deciding(key, pods, within=within))

    def deciding(
        self, key: GroupKey, pods: Sequence[PodInfo], *, within: NodeView | None = None
    ) -> Steps:
        """Decide as `decide_group` does, in steps: a large group takes seconds.

        Many placements take long, and so do members that preempt.

        Between two steps no node may come or go, and no other attempt may be made.
        """
        if within is not None:
            scope = Scope(within=within, post_filter=False)
            decision = yield from self._in_placements(key, pods, scope)
            return (yield from self._in_other_orders(key, pods, decision, within=within))
        decision = yield from self._in_placements(key, pods, self.everywhere)
        decision = yield from self._in_other_orders(key, pods, decision)
        if not self._has_confined_parts(key):
            decision = yield from self._keeping_places(pods, decision)
        postponed = decision.search == _POSTPONED
        if decision.outcome is GroupOutcome.REJECTED and self._searches(key) and not postponed:
            decision = yield from self._near_one_another(key, pods, decision, self.everywhere)
        if self.preempts and decision.outcome is GroupOutcome.REJECTED:
            decision = self._preemption.preempted(key, pods, decision)
        return decision

    def would_fit(self, pods: Sequence[PodInfo], least: int) -> bool:
        """Whether so many of some members find nodes next to each other, after evictions.

        Parameters
        ----------
        pods
            The members without a node, in the order in which they are to be tried.
        least
            Number of members that have to find a node.
        """
        scope = Scope(preemption=Preemption.ALONE)
        leaving = self._nominated.after_leaving
        if self._is_enough((leaving(self.cycle.decide(pod, scope)) for pod in pods), pods, least):
            return True
        # A member that is tried before the others may take what they are nominated to.
        rows = {pod.uid: self._snapshot.nominated_level(pod)[1] for pod in pods}
        if not self._snapshot.nominated_everywhere or all(row is None for row in rows.values()):
            return False
        return self._is_enough(self._decisions_by_place(pods, rows, scope), pods, least)

    def _is_enough(
        self, decisions: Iterator[Decision], pods: Sequence[PodInfo], least: int
    ) -> bool:
        """Whether so many members have a place, if each is decided about after the one before."""
        left = len(pods)
        with MembersOnTrial(self._profile, self._snapshot) as tried:
            for decision in decisions:
                if not tried.add(decision):
                    return False
                if tried.placed >= least and not self._lacks_members(pods[0]):
                    return True
                left -= 1
                if tried.placed + left < least:
                    return False
        return False

    def _lacks_members(self, pod: PodInfo) -> bool:
        """Whether a sub-group of a pod's group needs more members than those on trial."""
        terms = self._groups.terms_of(pod.pod)
        return terms is not None and terms.parts is not None and self._groups.missing_for(terms) > 0

    def decide_without(
        self, key: GroupKey, pods: Sequence[PodInfo], uids: Collection[str] = ()
    ) -> GroupDecision:
        """Decide as if some pods on nodes were gone; no other pod is evicted for the group."""
        with self._snapshot.trial() as trial:
            for uid in uids:
                trial.remove_pod(uid)
            decision = take_all_steps(self._in_placements(key, pods, Scope(post_filter=False)))
            return take_all_steps(self._in_other_orders(key, pods, decision))

    def _in_other_orders(
        self,
        key: GroupKey,
        pods: Sequence[PodInfo],
        first: GroupDecision,
        *,
        within: NodeView | None = None,
    ) -> Steps:
        """Return the decision for other places that need no evictions, else the first.

        The complete search comes first: if it proves that there are no places, no order finds any.
        """
        if first.outcome not in _WITHOUT_PLACES:
            return first
        steps, pauses = self._searched(key, pods, first, within=within), self._pauses
        if pauses is None or not (self._order_count(key) or self._searches(key)):
            return (yield from steps)
        # Places without evictions are always searched before pods are evicted.
        evicts = self.preempts or first.outcome is GroupOutcome.PREEMPTING
        if evicts or pauses.allows():
            return (yield from pauses.timed(steps))
        return msgspec.structs.replace(first, search=_POSTPONED)

    def _searched(
        self,
        key: GroupKey,
        pods: Sequence[PodInfo],
        first: GroupDecision,
        *,
        within: NodeView | None,
    ) -> Steps:
        if self._searches(key):
            scope = Scope(within=within, post_filter=False)
            decision = yield from self._near_one_another(key, pods, first, scope)
            if decision.outcome is GroupOutcome.PLACED:
                return decision
            first = yield from self._places.searched(key, pods, first, within=within)
            report = first.search
            if report is not None and report.end is not SearchEnd.GAVE_UP:
                return first
        orders, decision = OtherOrders(self._snapshot, pods, count=self._order_count(key)), first
        while (order := orders.after(decision)) is not None:
            scope = Scope(within=within, post_filter=False)
            decision = yield from self._in_placements(key, order, scope)
            if decision.outcome is GroupOutcome.PLACED:
                return decision
        return first

    def _order_count(self, key: GroupKey) -> int:
        if self._orders is not None:
            return self._orders
        return ORDERS if key.source else 0

    def _searches(self, key: GroupKey) -> bool:
        """Whether places are searched that one order does not find.

        The search knows no topology of sub-groups.
        """
        if self._has_confined_parts(key):
            return False
        if self._complete is not None:
            return self._complete
        return self._order_count(key) > 0

    def _has_confined_parts(self, key: GroupKey) -> bool:
        terms = self._groups.source.terms_of(key)
        return terms is not None and terms.parts is not None and terms.parts.confined

    def _near_one_another(
        self, key: GroupKey, pods: Sequence[PodInfo], first: GroupDecision, scope: Scope
    ) -> Steps:
        """Return the decision with members together that must be near one another, else the first.

        Evictions count only where the first decision has no places at all.
        """
        near = near_members(self._snapshot, pods)
        if near is None:
            return first
        search = TogetherSearch(self.cycle, near, places=self._places, attempt=self._try, key=key)
        found = yield from self._in_placements(key, near.pods, scope, search.searched)
        return first if found.outcome is GroupOutcome.REJECTED else found

    # -- places of the attempt before -------------------------------------------------------------

    def keep_places(self, pods: Sequence[PodInfo], decision: GroupDecision) -> GroupDecision:
        """Return a decision in which members keep their nominated nodes, if it evicts no more.

        A member has no place while pods on its nominated node still stop, its own victims or those
        of another preemptor. It may take the room of another member meanwhile. Without this, the
        group gives up places or evicts again, though it has only to wait.

        Parameters
        ----------
        pods
            The members, in the order in which they were tried.
        decision
            The decision so far.
        """
        return take_all_steps(self._keeping_places(pods, decision))

    def _keeping_places(self, pods: Sequence[PodInfo], before: GroupDecision) -> Steps:
        snapshot = self._snapshot
        if before.outcome not in _WITHOUT_PLACES or not snapshot.nominated_everywhere:
            return before
        rows = {pod.uid: snapshot.nominated_level(pod)[1] for pod in pods}
        if all(row is None for row in rows.values()):
            return before
        with MembersOnTrial(self._profile, snapshot) as tried:
            for decision in self._decisions_by_place(pods, rows, self.everywhere):
                if not tried.add(decision):
                    break
                yield tried
            better = tried.group_decision()
        if better.outcome not in {GroupOutcome.PLACED, GroupOutcome.PREEMPTING}:
            return before
        rejected = before.outcome is GroupOutcome.REJECTED
        return (
            better
            if rejected or self._nominated.evictions(better) <= self._nominated.evictions(before)
            else before
        )

    def _decisions_by_place(
        self, pods: Sequence[PodInfo], rows: Mapping[str, int | None], scope: Scope
    ) -> Iterator[Decision]:
        """Decide about the members whose nominated node stands first, and then about the others.

        A member may fit on its node only next to others, as with a hard spread. So those that do
        not fit are tried again, as long as others find their place meanwhile. The nominations of
        members that are being tried hold no room against one another. The scope is that of the
        others.
        """
        left, before = list(pods), len(pods) + 1
        while len(left) < before:
            before, tried, left = len(left), left, []
            for pod in tried:
                row = rows[pod.uid]
                decision = None if row is None else self._nominated.decide_there(pod, row)
                if decision is None:
                    left.append(pod)
                else:
                    yield decision
        for pod in left:
            yield self.cycle.decide(pod, scope)

    # -- one try -------------------------------------------------------------------------------

    def _in_placements(
        self, key: GroupKey, pods: Sequence[PodInfo], scope: Scope, attempt: Try | None = None
    ) -> Steps:
        """Try the placements and take the best of those in which the group fits."""
        choice, attempt = self.placements.choice(key, pods), attempt or self._try
        if choice is None:
            return (yield from attempt(pods, scope))
        if isinstance(choice, GroupDecision):
            return choice
        while (placement := choice.next()) is not None:
            within = shared_rows(self._snapshot, scope.within, placement.within)
            found = yield from attempt(pods, choice.scope(scope, within))
            if found.outcome is GroupOutcome.BROKEN:
                return found
            choice.tried(found)
            yield None
        return choice.best()

    def _try(
        self, pods: Sequence[PodInfo], scope: Scope, scopes: Mapping[str, Scope] = NO_SCOPES
    ) -> Steps:
        """Place the pods one after another, some in a scope of their own; undo every placement."""
        terms = self._groups.terms_of(pods[0].pod) if pods else None
        if terms is not None and terms.parts is not None:
            return (yield from self._sub_groups.tried(terms, pods, scope, scopes))
        with MembersOnTrial(self._profile, self._snapshot) as tried:
            for pod in pods if tried.begin(pods) else ():
                if not tried.add(self.cycle.decide(pod, scopes.get(pod.uid, scope))):
                    break
                yield tried
            return tried.group_decision()

    def decide_at(self, pods: Sequence[PodInfo], places: Mapping[str, str]) -> GroupDecision:
        """Decide with members on the nodes that are named for their uids, in that order.

        Members without such a node come last, and may go anywhere.
        """
        rows = self._snapshot.table.rows_of
        scopes = {
            uid: Scope(within=self._snapshot.rows(rows([name])), post_filter=False)
            for uid, name in places.items()
        }
        ranks = {uid: rank for rank, uid in enumerate(places)}
        in_order = sorted(pods, key=lambda pod: ranks.get(pod.uid, len(ranks)))
        return take_all_steps(self._try(in_order, Scope(post_filter=False), scopes))

    def try_without(self, pods: Sequence[PodInfo], uids: Collection[str]) -> Status:
        """Try the group as if some pods on nodes were gone; no other pod is evicted for it."""
        with self._snapshot.trial() as trial:
            for uid in uids:
                trial.remove_pod(uid)
            return take_all_steps(self._try(pods, Scope(post_filter=False))).status
