"""Places of members on their nominated nodes, as if the pods that are about to leave were gone.

A group that waits for its victims is tried again before they have left. A member whose own room is
not free yet has no place in such an attempt, and keeps its nomination if it fits without them.

A hard spread counts where pods will be. So a group may be nominated to nodes that take all its
members only after a pod that is nominated to another domain. If its room were given up when it is
tried before that pod, other pods would take the room and be evicted again.

Rules: the scheduling spec has none; kube-scheduler v1.36 gives these places up (docs, deviations).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from moorage.api.pod import Pod
from moorage.base.clock import NS_PER_SECOND
from moorage.engine.attempt import Scope
from moorage.engine.cycle import Cycle
from moorage.engine.decision import Decision, Nomination, Outcome
from moorage.engine.groups.decision import (
    GROUP_UNSCHEDULABLE,
    WAITS_FOR_PREEMPTION,
    GroupDecision,
)
from moorage.framework.preemption import leaving_pods
from moorage.framework.profile import Profile
from moorage.framework.status import unschedulable
from moorage.snapshot.pod_groups import GroupMembers
from moorage.snapshot.pod_info import PodInfo

_LONGEST_NS: Final = 30 * NS_PER_SECOND
"""A group waits so long at most, as for an overdue victim: the pods may wait for the group."""


class NominatedPlaces:
    """Decides about members on their nominated nodes.

    Parameters
    ----------
    cycle
        The cycle of the members' profile.
    """

    def __init__(self, cycle: Cycle) -> None:
        self._cycle = cycle
        self._snapshot = cycle.snapshot
        self._evictions = cycle.profile.handle.evictions

    def decide_there(self, pod: PodInfo, row: int) -> Decision | None:
        """Decide for a member on its node, without the pods that are about to leave if need be."""
        here = Scope(within=self._snapshot.rows([row]), post_filter=False)
        found = self._cycle.decide(pod, here)
        if found.outcome is Outcome.BIND:
            return found
        without = self._without_leaving(pod, row)
        if without is None:
            return None
        return msgspec.structs.replace(
            without,
            outcome=Outcome.REJECT,
            status=unschedulable(GROUP_UNSCHEDULABLE, WAITS_FOR_PREEMPTION),
            node_name="",
            nomination=Nomination(without.node_name),
        )

    def after_leaving(self, decision: Decision) -> Decision:
        """Let a member keep its nominated node if it fits there once pods there have left.

        Such a member may not preempt: pods are leaving its node already.
        """
        snapshot, rejected = self._snapshot, decision.outcome is Outcome.REJECT
        if not rejected or decision.nomination is not None or not snapshot.nominated_everywhere:
            return decision
        _, row = snapshot.nominated_level(decision.pod)
        without = None if row is None else self._without_leaving(decision.pod, row)
        if without is None:
            return decision
        # Reserve of the trial needs what Filter wrote for this node, such as the device of a claim.
        return msgspec.structs.replace(
            decision,
            nomination=Nomination(without.node_name),
            victims=without.victims,
            state=without.state,
        )

    def _without_leaving(self, pod: PodInfo, row: int) -> Decision | None:
        """Decide for a member on one row as if the pods that are about to leave were gone.

        The pods of the row go first. If that is too little, all others go too: they may still count
        in a quota. Of the others, the group waits for victims of preemption only, because a pod
        that somebody deleted may have a long grace and be of no concern.

        Returns
        -------
        Decision or None
            The binding, with the pods to wait for as its victims. None if no pod leaves, or it is
            too little.
        """
        evictions = self._evictions
        leaving = leaving_pods(self._snapshot, evictions)
        there = self._snapshot.table.pods_by_row[row]
        here = awaited = [each for each in leaving if each.uid in there]
        decision = self._as_if_gone(pod, row, here) if here else None
        if decision is None and len(here) < len(leaving):
            decision = self._as_if_gone(pod, row, leaving)
            awaited = [
                each for each in leaving if each.uid in there or evictions.is_leaving(each.pod)
            ]
        if decision is None:
            return None
        return msgspec.structs.replace(decision, victims=tuple(each.pod for each in awaited))

    def _as_if_gone(self, pod: PodInfo, row: int, leaving: Sequence[PodInfo]) -> Decision | None:
        """Decide for a member on one row without some pods; return a binding, or None."""
        snapshot = self._snapshot
        with snapshot.trial() as trial:
            for each in leaving:
                trial.remove_pod(each.uid)
            found = self._cycle.decide(pod, Scope(within=snapshot.rows([row]), post_filter=False))
        return found if found.outcome is Outcome.BIND else None

    def evictions(self, decision: GroupDecision) -> int:
        """Return the number of pods that a decision evicts and that would stay without it."""
        victims = {pod.uid: pod for each in decision.members for pod in each.decision.victims}
        return sum(not self._will_leave(pod) for pod in victims.values())

    def _will_leave(self, pod: Pod) -> bool:
        return self._evictions.will_leave(pod)


def with_nominations(
    decision: GroupDecision, members: GroupMembers, profile: Profile
) -> GroupDecision:
    """Return a decision that lets the nominations stand if the group waits for nominated pods.

    Parameters
    ----------
    decision
        The decision of an attempt.
    members
        The group; notes since when it waits.
    profile
        The profile of the attempt.
    """
    if not decision.awaits_nominated(profile.count_nominated):
        members.awaits_since_ns = None
        return decision
    now_ns = profile.handle.clock.monotonic_ns()
    if members.awaits_since_ns is None:
        members.awaits_since_ns = now_ns
    waits = now_ns - members.awaits_since_ns < _LONGEST_NS
    return msgspec.structs.replace(decision, waits=waits)
