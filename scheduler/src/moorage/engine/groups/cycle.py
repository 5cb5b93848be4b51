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

from moorage.api.pod import Pod
from moorage.config.gate_table import TOPOLOGY_AWARE, V1_36, WORKLOAD_PREEMPTION
from moorage.engine.attempt import Preemption, Scope
from moorage.engine.cycle import Cycle
from moorage.engine.decision import Decision, Nomination
from moorage.engine.groups.decision import (
    GroupDecision,
    GroupOutcome,
    Member,
    SearchEnd,
)
from moorage.engine.groups.near_members import TogetherSearch, near_members
from moorage.engine.groups.nominated_places import NominatedPlaces
from moorage.engine.groups.orders import ORDERS, OtherOrders
from moorage.engine.groups.placements import Placements, shared_rows
from moorage.engine.groups.places_search import PlacesSearch
from moorage.engine.groups.trying import MembersOnTrial, Steps
from moorage.framework.containment import contained
from moorage.framework.status import Status, unschedulable
from moorage.snapshot.pod_groups import GroupKey
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.view import NodeView

NO_PLUGIN = "default preemption plugin is not registered, workload aware preemption is disabled"
CONSTRAINED = (
    "workload aware preemption is not supported for pod groups with scheduling constraints"
)

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
    """

    def __init__(self, cycle: Cycle, *, explain: bool = False) -> None:
        self.cycle = cycle
        self._profile = cycle.profile
        self._snapshot = cycle.snapshot
        self._groups = cycle.snapshot.groups
        self._explain = explain
        gates = cycle.profile.handle.gates
        self._orders = cycle.profile.handle.group_orders
        self._complete = cycle.profile.handle.complete_groups
        self._gate = gates(TOPOLOGY_AWARE)
        self.placements = Placements(cycle)
        self._places = PlacesSearch(cycle, self.placements)
        self._nominated = NominatedPlaces(cycle)
        self.preempts = gates(WORKLOAD_PREEMPTION)
        """Whether pods are evicted for a group as a whole."""
        self._post_filters = cycle.profile.group_post_filters
        self._of_1_37 = gates.version != V1_36

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
        return _decision(self.deciding(key, pods, within=within))

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
        decision = yield from self._in_placements(key, pods, Scope(explain=self._explain))
        decision = yield from self._in_other_orders(key, pods, decision)
        decision = yield from self._keeping_places(pods, decision)
        if decision.outcome is GroupOutcome.REJECTED and self._searches(key):
            scope = Scope(explain=self._explain)
            decision = yield from self._near_one_another(key, pods, decision, scope)
        if self.preempts and decision.outcome is GroupOutcome.REJECTED:
            decision = self._preempted(key, pods, decision)
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
        scope, left = Scope(preemption=Preemption.ALONE), len(pods)
        with MembersOnTrial(self._profile, self._snapshot) as tried:
            for pod in pods:
                decision = self._nominated.after_leaving(self.cycle.decide(pod, scope))
                if not tried.add(decision):
                    return False
                if tried.placed >= least:
                    return True
                left -= 1
                if tried.placed + left < least:
                    return False
        return False

    def decide_without(
        self, key: GroupKey, pods: Sequence[PodInfo], uids: Collection[str]
    ) -> GroupDecision:
        """Decide as if some pods on nodes were gone; no other pod is evicted for the group."""
        with self._snapshot.trial() as trial:
            for uid in uids:
                trial.remove_pod(uid)
            found = _decision(self._in_placements(key, pods, Scope(post_filter=False)))
            return _decision(self._in_other_orders(key, pods, found))

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
        """Whether places are searched that one order does not find."""
        if self._complete is not None:
            return self._complete
        return self._order_count(key) > 0

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
        return _decision(self._keeping_places(pods, decision))

    def _keeping_places(self, pods: Sequence[PodInfo], before: GroupDecision) -> Steps:
        snapshot = self._snapshot
        if before.outcome not in _WITHOUT_PLACES or not snapshot.nominated_everywhere:
            return before
        rows = {pod.uid: snapshot.nominated_level(pod)[1] for pod in pods}
        if all(row is None for row in rows.values()):
            return before
        with MembersOnTrial(self._profile, snapshot) as tried:
            for decision in self._decisions_by_place(pods, rows):
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
        self, pods: Sequence[PodInfo], rows: Mapping[str, int | None]
    ) -> Iterator[Decision]:
        """Decide about the members whose nominated node stands first, and then about the others.

        The nominations of members that are being tried hold no room against one another.
        """
        others = []
        for pod in pods:
            row = rows[pod.uid]
            decision = None if row is None else self._nominated.decide_there(pod, row)
            if decision is None:
                others.append(pod)
            else:
                yield decision
        yield from map(self.cycle.decide, others)

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
        with MembersOnTrial(self._profile, self._snapshot) as tried:
            for pod in pods if tried.begin(pods) else ():
                if not tried.add(self.cycle.decide(pod, scopes.get(pod.uid, scope))):
                    break
                yield tried
            return tried.group_decision()

    # -- making room for the whole group -------------------------------------------------------

    def _preempted(
        self, key: GroupKey, pods: Sequence[PodInfo], decision: GroupDecision
    ) -> GroupDecision:
        """Ask which pods must leave for the group as a whole, and amend the decision."""
        terms = self._groups.source.terms_of(key)
        victims: Sequence[Pod] = ()
        if not self._post_filters:
            status = unschedulable(NO_PLUGIN)
        elif terms is not None and terms.topology_key and (self._gate or key.source):
            status = unschedulable(CONSTRAINED)
        else:
            plugin = self._post_filters[0]
            try:
                victims, status = plugin.post_filter_group(terms, pods, _Without(self, pods))
            except Exception as problem:
                status = contained(plugin.name, "PostFilter", problem)
        if status.ok:
            decision = msgspec.structs.replace(
                decision, outcome=GroupOutcome.PREEMPTING, victims=tuple(victims)
            )
            if self._of_1_37:
                text = f"found a placement for podgroup, preempting {len(victims)} victims"
                decision = _with_preemption(decision, text)
            if not self._snapshot.nominated_everywhere:
                return decision  # as kube-scheduler 1.36, for its recordings
            # The members are nominated to the room: otherwise the pods that controllers make in
            # place of the victims take it, and the group preempts again.
            after = self.decide_without(key, pods, [victim.uid for victim in victims])
            return msgspec.structs.replace(decision, members=_nominated(decision.members, after))
        if not status.rejected:
            return msgspec.structs.replace(decision, outcome=GroupOutcome.BROKEN, status=status)
        if self._of_1_37:
            return _with_preemption(decision, status.message)
        reasons = (*decision.status.reasons, *status.reasons)
        return msgspec.structs.replace(decision, status=unschedulable(*reasons))

    def try_without(self, pods: Sequence[PodInfo], uids: Collection[str]) -> Status:
        """Try the group as if some pods on nodes were gone; no other pod is evicted for it."""
        with self._snapshot.trial() as trial:
            for uid in uids:
                trial.remove_pod(uid)
            return _decision(self._try(pods, Scope(post_filter=False))).status


def _decision(steps: Steps) -> GroupDecision:
    """Take every step at once."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            decision: GroupDecision = end.value
            return decision


def _with_preemption(decision: GroupDecision, text: str) -> GroupDecision:
    """Add to the message of a group what preemption came to, in the words of 1.37."""
    message = f"{decision.status.message}; pod group preemption: {text}"
    return msgspec.structs.replace(decision, status=unschedulable(message))


def _nominated(members: Sequence[Member], after: GroupDecision) -> tuple[Member, ...]:
    """Nominate the members of a rejected attempt to their places after the evictions."""
    nodes = {each.decision.pod.uid: each.node_name for each in after.members if each.node_name}
    nominated = []
    for member in members:
        decision = member.decision
        node_name = nodes.get(decision.pod.uid, member.node_name)
        if member.node_name:
            nominated.append(msgspec.structs.replace(member, node_name=node_name))
        elif node_name:
            decision = msgspec.structs.replace(decision, nomination=Nomination(node_name))
            nominated.append(msgspec.structs.replace(member, decision=decision))
        else:
            nominated.append(member)
    return tuple(nominated)


class _Without:
    """`GroupWhatIf` of one attempt."""

    def __init__(self, cycle: GroupCycle, pods: Sequence[PodInfo]) -> None:
        self._cycle = cycle
        self._pods = pods

    def without(self, uids: Collection[str]) -> Status:
        """Try the whole group again as if these pods were gone; nothing is evicted for it."""
        return self._cycle.try_without(self._pods, uids)
