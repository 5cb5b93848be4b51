"""The attempt of a group in a profile with extenders: two looks, as for a single pod.

At the first look the members are tried one after another, and the extenders are asked about each
member next to the members before it. While an extender is asked, the trial is suspended, and events
flow. At the second look nothing is awaited: every member is tried again on the node it got. If a
member no longer passes there, or its node is gone, all answers are forgotten and the group is
looked at anew.

Rules: scheduling spec, cycle sections 7 and 9; decision 5.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Sequence
from itertools import islice
from typing import Final

import msgspec

from moorage.engine.attempt import Scope
from moorage.engine.decision import Decision, Outcome
from moorage.engine.extenders.cycle import ExtendedCycle
from moorage.engine.extenders.decisions_ahead import DecisionAhead, DecisionsAhead
from moorage.engine.extenders.replies import ExtenderReplies
from moorage.engine.groups.cycle import GroupCycle
from moorage.engine.groups.decision import GroupDecision, GroupOutcome, Member
from moorage.engine.groups.trying import Apart, ClusterMovedError, Mark, MembersOnTrial
from moorage.framework.extender import take_part
from moorage.framework.group import Placement
from moorage.framework.status import error, unschedulable
from moorage.snapshot.pod_groups import GroupKey
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot

_ROUNDS: Final = 3
"""Most new looks at a group because the cluster moved. A guess, as for single pods."""

_LOT_MOST: Final = 16
"""Most members decided ahead: about 4 ms, while nothing else has its turn."""

MOVED: Final = "the nodes changed while extenders were asked about the pod group"
NO_SUB_GROUPS: Final = (
    "sub-groups are not supported for groups whose pods extenders are asked about"
)
NO_PREEMPTION: Final = (
    "workload aware preemption is not supported for pod groups whose pods extenders are asked about"
)


class _Lot:
    """Decides about some members ahead, and then asks about each of them.

    The members are off their nodes while extenders are asked, so each lot costs as much as all
    members before it. A lot is twice the lot before it if all replies came as expected. It ends
    with the first reply that is not, and when the cluster changes: the next member is then tried
    by itself, on the cluster as it is.
    """

    def __init__(
        self, cycle: ExtendedCycle, snapshot: Snapshot, tried: MembersOnTrial, scope: Scope
    ) -> None:
        self._cycle = cycle
        self._snapshot = snapshot
        self._tried = tried
        self._scope = scope
        self._ahead = DecisionsAhead(cycle)
        self._most = 1

    async def next(self, left: deque[PodInfo]) -> bool:
        """Try the next members, and take them out of those left; False if no other is to be tried.

        Raises
        ------
        ClusterMovedError
            The members tried so far have lost their nodes.
        """
        decided, goes_on = self._decided_ahead(left)
        replies = await self._ask(decided, left) if decided else None
        if decided and replies is None:
            self._most = min(2 * self._most, _LOT_MOST)
            return goes_on
        if decided:
            self._most = 1
        return await self._next_by_itself(left.popleft(), replies)

    def _decided_ahead(
        self, left: Sequence[PodInfo]
    ) -> tuple[list[tuple[DecisionAhead, Mark]], bool]:
        """Put members on the nodes that are expected for them; tell whether to go on after them."""
        decided: list[tuple[DecisionAhead, Mark]] = []
        for pod in islice(left, self._most):
            ahead = self._ahead.decide(pod, self._scope)
            if ahead is None:
                break
            decided.append((ahead, self._tried.mark()))
            if not self._tried.add(ahead.decision):
                return decided, False
        return decided, True

    async def _ask(
        self, decided: Sequence[tuple[DecisionAhead, Mark]], left: deque[PodInfo]
    ) -> ExtenderReplies | None:
        """Ask about members that were decided ahead.

        Returns
        -------
        ExtenderReplies or None
            The replies about the first member left, if its decision does not hold.
        """
        self._tried.suspend()
        changes = self._snapshot.changes
        for ahead, mark in decided:
            replies = await self._ahead.ask(ahead)
            moved = self._snapshot.changes != changes
            decision = None if moved else self._ahead.confirmed(ahead, replies)
            if decision is None:
                self._tried.rewind(mark)
                self._tried.resume()
                self._ahead.take_back(ahead)
                return replies
            self._tried.confirm(mark, decision.note)
            left.popleft()
        self._tried.resume()
        return None

    async def _next_by_itself(self, pod: PodInfo, replies: ExtenderReplies | None) -> bool:
        if not self._cycle.asks(pod.pod):
            return self._tried.add(self._cycle.decide(pod, self._scope))
        asking = self._cycle.decide_asking(
            pod, self._scope, replies=replies, on_replies=self._ahead.learn
        )
        return self._tried.add(await Apart(asking, self._tried))


class AskingGroupCycle:
    """Decides about groups with the help of extenders.

    Parameters
    ----------
    cycle
        The cycle of the profile that all members name.
    """

    def __init__(self, cycle: ExtendedCycle) -> None:
        self._groups = GroupCycle(cycle)
        self._cycle = cycle
        self._profile = cycle.profile
        self._snapshot = cycle.snapshot

    def asking(self, key: GroupKey, pods: Sequence[PodInfo]) -> Awaitable[GroupDecision] | None:
        """Return the decision with extenders; None where no extender takes part.

        Parameters
        ----------
        key
            The group.
        pods
            Its pods without a place, in the order in which they are to be tried.
        """
        extenders = self._profile.extenders
        if not any(take_part(extenders, info.pod) for info in pods):
            return None
        return self._decide(key, pods)

    async def _decide(self, key: GroupKey, pods: Sequence[PodInfo]) -> GroupDecision:
        terms = self._snapshot.groups.source.terms_of(key)
        if terms is not None and terms.parts is not None:
            return GroupDecision(GroupOutcome.REJECTED, unschedulable(NO_SUB_GROUPS))
        for _ in range(_ROUNDS):
            try:
                found = await self._first_look(key, pods)
                return self._second_look(key, found)
            except ClusterMovedError:
                continue
        return GroupDecision(GroupOutcome.BROKEN, error(MOVED))

    # -- the first look ------------------------------------------------------------------------

    async def _first_look(self, key: GroupKey, pods: Sequence[PodInfo]) -> GroupDecision:
        """Try every placement, asking the extenders.

        Raises
        ------
        ClusterMovedError
            The members tried so far have lost their nodes.
        """
        choice = self._groups.placements.choice(key, pods)
        if isinstance(choice, GroupDecision):
            return choice
        if choice is None:
            decision = await self._try(pods, self._groups.everywhere)
            return self._explained(self._groups.keep_places(pods, decision))
        while (placement := choice.next()) is not None:
            # Rows may have moved while the placement before this one was tried.
            within = self._now(key, placement.name, preferred=placement.preferred).within
            decision = await self._try(pods, choice.scope(self._groups.everywhere, within))
            if decision.outcome is GroupOutcome.BROKEN:
                return decision
            choice.tried(decision)
        return self._explained(
            choice.best(lambda each: self._now(key, each.name, preferred=each.preferred))
        )

    def _explained(self, decision: GroupDecision) -> GroupDecision:
        """Return a rejection with the reason why no pod is evicted for the group as a whole."""
        if self._groups.preempts and decision.outcome is GroupOutcome.REJECTED:
            reasons = (*decision.status.reasons, NO_PREEMPTION)
            decision = msgspec.structs.replace(decision, status=unschedulable(*reasons))
        return decision

    async def _try(self, pods: Sequence[PodInfo], scope: Scope) -> GroupDecision:
        bounded = scope.within is not None
        with MembersOnTrial(self._profile, self._snapshot, bounded=bounded) as tried:
            lot = _Lot(self._cycle, self._snapshot, tried, scope)
            left = deque(pods if tried.begin(pods) else ())
            goes_on = True
            while left and goes_on:
                goes_on = await lot.next(left)
            return tried.group_decision()

    def _now(self, key: GroupKey, name: str, *, preferred: bool) -> Placement:
        """Return a placement with the rows that it has now."""
        for placement in self._groups.placements.generated(key)[0]:
            if placement.name == name and placement.preferred is preferred:
                return placement
        raise ClusterMovedError

    # -- the second look -----------------------------------------------------------------------

    def _second_look(self, key: GroupKey, decision: GroupDecision) -> GroupDecision:
        """Return the decision with every member tried again on its node, without awaiting.

        Raises
        ------
        ClusterMovedError
            The members do not fit where they did.
        """
        if decision.outcome in {GroupOutcome.REJECTED, GroupOutcome.BROKEN}:
            return decision
        within = self._now(key, decision.placement, preferred=decision.preferred)
        with MembersOnTrial(self._profile, self._snapshot) as tried:
            for member in decision.members:
                if not tried.add(self._again(member, within)):
                    raise ClusterMovedError
            again = tried.group_decision()
        if again.outcome is not decision.outcome:
            raise ClusterMovedError
        return msgspec.structs.replace(
            again,
            placement=decision.placement,
            preferred=decision.preferred,
            generator=decision.generator,
        )

    def _again(self, member: Member, within: Placement) -> Decision:
        first = member.decision
        if not member.node_name:
            return first
        row = self._snapshot.row_of(member.node_name)
        if row is None or self._snapshot.table.pod_info(first.pod.uid) is not None:
            raise ClusterMovedError
        if within.within is not None and row not in within.within.row_numbers():
            raise ClusterMovedError
        if first.outcome is not Outcome.BIND:  # its place is free only after evictions
            return first
        here = Scope(within=self._snapshot.rows([row]), post_filter=False)
        second = self._cycle.decide(first.pod, here)
        if second.outcome is not Outcome.BIND:
            raise ClusterMovedError
        return msgspec.structs.replace(first, state=second.state)
