"""The attempt of a group in a profile with extenders: two looks, as for a single pod.

At the first look the members are tried one after another, and the extenders are asked about each
member next to the members before it. While an extender is asked, the trial is suspended, and events
flow. At the second look nothing is awaited: every member is tried again on the node it got. If a
member no longer passes there, or its node is gone, all answers are forgotten and the group is
looked at anew.

Rules: scheduling spec, cycle sections 7 and 9; decision 5.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Final

import msgspec

from moorage.engine.attempt import Scope
from moorage.engine.decision import Decision, Outcome
from moorage.engine.extenders.cycle import ExtendedCycle
from moorage.engine.groups.cycle import GroupCycle
from moorage.engine.groups.decision import GroupDecision, GroupOutcome, Member
from moorage.engine.groups.trying import Apart, ClusterMovedError, MembersOnTrial
from moorage.framework.extender import take_part
from moorage.framework.group import Placement
from moorage.framework.status import error, unschedulable
from moorage.snapshot.pod_groups import GroupKey
from moorage.snapshot.pod_info import PodInfo

_ROUNDS: Final = 3
"""Most new looks at a group because the cluster moved. A guess, as for single pods."""

MOVED: Final = "the nodes changed while extenders were asked about the pod group"
NO_PREEMPTION: Final = (
    "workload aware preemption is not supported for pod groups whose pods extenders are asked about"
)


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
            for pod in pods if tried.begin(pods) else ():
                asking = self._cycle.asking(pod, scope)
                if asking is None:
                    decision = self._cycle.decide(pod, scope)
                else:
                    decision = await Apart(asking, tried)
                if not tried.add(decision):
                    break
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
