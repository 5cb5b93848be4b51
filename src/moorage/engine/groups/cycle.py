"""The scheduling cycle of a pod group: members placed one after another in a trial.

Every member is tried beside the earlier members, each on its node with Reserve and Permit run, in a
trial of the snapshot. Permit says whether the members with a place are enough. The outcome is a
`GroupDecision`; `service` carries it out, or returns the members with their reasons.

The answers of plugins are reused inside the trial as outside of it: a replica costs only the rows
that earlier members changed. Undone rows count as changed, so no answer from a trial is kept.

Rules: scheduling spec, cycle section 9 and gang sections A4 to A6 (kubernetes v1.36
``pkg/scheduler/schedule_one_podgroup.go``).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import cast

import msgspec
import numpy as np

from moorage.api.pod import Pod
from moorage.config.feature_gates import TOPOLOGY_AWARE, WORKLOAD_PREEMPTION
from moorage.engine.attempt import Scope
from moorage.engine.cycle import Cycle
from moorage.engine.decision import CLEAR_NOMINATION, Outcome
from moorage.engine.groups.decision import (
    GROUP_UNSCHEDULABLE,
    WAITS_FOR_PREEMPTION,
    GroupDecision,
    GroupOutcome,
    Member,
)
from moorage.framework.containment import contained
from moorage.framework.diagnosis import of_one_node
from moorage.framework.group import (
    GROUP_PHASE,
    ON_TRIAL,
    FilledPlacement,
    Placement,
    PlacementGeneratePlugin,
    PlacementScorePlugin,
)
from moorage.framework.points import MAX_NODE_SCORE, MIN_NODE_SCORE
from moorage.framework.runner import run_permit, run_reserve, run_unreserve
from moorage.framework.status import SUCCESS, Code, Status, error, unschedulable
from moorage.snapshot.pod_groups import GroupKey
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.trial import Trial
from moorage.snapshot.view import NodeView

NO_PLACEMENTS = "no feasible placements found"
NO_PLUGIN = "default preemption plugin is not registered, workload aware preemption is disabled"
CONSTRAINED = (
    "workload aware preemption is not supported for pod groups with scheduling constraints"
)


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
        self._cycle = cycle
        self._profile = cycle.profile
        self._snapshot = cycle.snapshot
        self._groups = cycle.snapshot.groups
        self._explain = explain
        gates = cycle.profile.handle.gates
        self._by_placement = gates(TOPOLOGY_AWARE)
        self._preempts = gates(WORKLOAD_PREEMPTION)
        points = cycle.profile.points
        self._generators = cast("Sequence[PlacementGeneratePlugin]", points["placementGenerate"])
        self._scorers = cast("Sequence[PlacementScorePlugin]", points["placementScore"])
        self._post_filters = cycle.profile.group_post_filters

    def decide(
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
        if within is not None:
            return self._found(key, pods, Scope(within=within, post_filter=False))
        found = self._found(key, pods, Scope(explain=self._explain))
        if self._preempts and found.outcome is GroupOutcome.REJECTED:
            found = self._preempted(key, pods, found)
        return found

    def decide_without(
        self, key: GroupKey, pods: Sequence[PodInfo], uids: Collection[str]
    ) -> GroupDecision:
        """Decide as if some pods on nodes were gone; no other pod is evicted for the group."""
        with self._snapshot.trial() as trial:
            for uid in uids:
                trial.remove_pod(uid)
            return self._found(key, pods, Scope(post_filter=False))

    def _found(self, key: GroupKey, pods: Sequence[PodInfo], scope: Scope) -> GroupDecision:
        return self._placed(key, pods, scope) if self._by_placement else self._try(pods, scope)

    # -- one try -------------------------------------------------------------------------------

    def _try(self, pods: Sequence[PodInfo], scope: Scope) -> GroupDecision:
        """Place the pods one after another, and undo every placement."""
        status, outcome = unschedulable(GROUP_UNSCHEDULABLE), GroupOutcome.REJECTED
        members: list[Member] = []
        with self._snapshot.trial() as trial:
            try:
                for pod in pods:
                    member = self._member(pod, scope, trial)
                    members.append(member)
                    if member.broke:
                        text = f"failed to schedule other pod from a pod group: {member.message}"
                        return GroupDecision(GroupOutcome.BROKEN, error(text), tuple(members))
                    if member.node_name and member.permit.ok:
                        preempting = any(each.preempts for each in members)
                        outcome = GroupOutcome.PREEMPTING if preempting else GroupOutcome.PLACED
            finally:
                self._take_back(members)
        if outcome is GroupOutcome.PLACED:
            status = SUCCESS
        elif outcome is GroupOutcome.PREEMPTING:
            status = unschedulable(GROUP_UNSCHEDULABLE, WAITS_FOR_PREEMPTION)
        return GroupDecision(outcome, status, tuple(members))

    def _member(self, pod: PodInfo, scope: Scope, trial: Trial) -> Member:
        """Find a node for one member and count it there, even where victims must leave first."""
        decision = self._cycle.decide(pod, scope)
        node_name = decision.node_name
        if not node_name and decision.outcome is Outcome.REJECT and decision.nomination:
            node_name = decision.nomination.node_name
        row = self._snapshot.row_of(node_name) if node_name else None
        if row is None:
            return Member(decision)
        trial.add_pod(pod, row)
        self._groups.assume(pod.uid)
        decision.state.write(GROUP_PHASE, ON_TRIAL)
        status = run_reserve(self._profile, decision.state, pod, node_name)
        if status.ok:
            permit = run_permit(self._profile, decision.state, pod, node_name).status
            if permit.ok or permit.code is Code.WAIT:
                return Member(decision, node_name, permit)
            status = permit
        run_unreserve(self._profile, decision.state, pod, node_name)
        self._groups.forget(pod.uid)
        trial.remove_pod(pod.uid)
        decision.state.delete(GROUP_PHASE)
        diagnosis = of_one_node(node_name, status) if status.rejected else None
        return Member(
            msgspec.structs.replace(
                decision,
                outcome=Outcome.REJECT if status.rejected else Outcome.ERROR,
                status=status,
                node_name="",
                diagnosis=diagnosis,
                nomination=CLEAR_NOMINATION,
            )
        )

    def _take_back(self, members: Sequence[Member]) -> None:
        for member in reversed(members):
            if member.node_name:
                state, pod = member.decision.state, member.decision.pod
                run_unreserve(self._profile, state, pod, member.node_name)
                self._groups.forget(pod.uid)
                state.delete(GROUP_PHASE)

    # -- one placement of several --------------------------------------------------------------

    def _placed(self, key: GroupKey, pods: Sequence[PodInfo], scope: Scope) -> GroupDecision:
        """Try every placement and take the best of those in which the group fits."""
        placements, status = self._generated(key)
        if not status.ok:
            return GroupDecision(GroupOutcome.BROKEN, status)
        if not placements:
            return GroupDecision(GroupOutcome.REJECTED, unschedulable(NO_PLACEMENTS))
        tried: list[GroupDecision] = []
        for placement in placements:
            within = self._shared(scope.within, placement.within)
            bounded = msgspec.structs.replace(scope, within=within)
            found = self._try(pods, bounded)
            if found.outcome is GroupOutcome.BROKEN:
                return found
            tried.append(msgspec.structs.replace(found, placement=placement.name))
        fitting = [i for i, found in enumerate(tried) if found.outcome is not GroupOutcome.REJECTED]
        if not fitting:
            text = (
                f"0/{len(placements)} placements are available, first placement status: "
                f"{tried[0].status.message}"
            )
            return msgspec.structs.replace(tried[0], status=unschedulable(text))
        best = 0
        if len(fitting) > 1:
            filled = [self._filled(placements[i], tried[i]) for i in fitting]
            best, status = self._best(key, filled)
            if not status.ok:
                return GroupDecision(GroupOutcome.BROKEN, status)
        return tried[fitting[best]]

    def _shared(self, one: NodeView | None, other: NodeView | None) -> NodeView | None:
        """Return the rows of both views; None stands for every row."""
        if one is None or other is None:
            return one if other is None else other
        return self._snapshot.rows(np.intersect1d(one.row_numbers(), other.row_numbers()))

    def _generated(self, key: GroupKey) -> tuple[Sequence[Placement], Status]:
        if not self._generators:
            return [Placement()], SUCCESS
        plugin = self._generators[0]
        try:
            return plugin.generate_placements(key, self._groups.source.terms_of(key))
        except Exception as problem:
            return [], contained(plugin.name, "PlacementGenerate", problem)

    def _filled(self, placement: Placement, found: GroupDecision) -> FilledPlacement:
        rows = [(each, self._snapshot.row_of(each.node_name)) for each in found.members]
        return FilledPlacement(
            placement, tuple((each.decision.pod, row) for each, row in rows if row is not None)
        )

    def _best(self, key: GroupKey, filled: Sequence[FilledPlacement]) -> tuple[int, Status]:
        """Return the placement with the best score, the first among equals."""
        total = np.zeros(len(filled), np.int64)
        for plugin in self._scorers:
            try:
                scores, status = plugin.score_placements(key, filled)
            except Exception as problem:
                return 0, contained(plugin.name, "PlacementScore", problem)
            if not status.ok:
                return 0, status.by(plugin.name)
            wrong = scores[(scores < MIN_NODE_SCORE) | (scores > MAX_NODE_SCORE)]
            if len(wrong):
                return 0, error(
                    f'plugin "{plugin.name}" returns an invalid score {wrong[0]}, it should in the '
                    "range of [0, 100] after normalizing"
                )
            total += self._profile.weights.get(plugin.name, 1) * scores
        return int(np.argmax(total)), SUCCESS

    # -- making room for the whole group -------------------------------------------------------

    def _preempted(
        self, key: GroupKey, pods: Sequence[PodInfo], found: GroupDecision
    ) -> GroupDecision:
        """Ask which pods must leave for the group as a whole, and amend the decision."""
        terms = self._groups.source.terms_of(key)
        victims: Sequence[Pod] = ()
        if not self._post_filters:
            status = unschedulable(NO_PLUGIN)
        elif self._by_placement and terms is not None and terms.topology_key:
            status = unschedulable(CONSTRAINED)
        else:
            plugin = self._post_filters[0]
            try:
                victims, status = plugin.post_filter_group(terms, pods, _Without(self, pods))
            except Exception as problem:
                status = contained(plugin.name, "PostFilter", problem)
        if status.ok:
            return msgspec.structs.replace(
                found, outcome=GroupOutcome.PREEMPTING, victims=tuple(victims)
            )
        if not status.rejected:
            return msgspec.structs.replace(found, outcome=GroupOutcome.BROKEN, status=status)
        reasons = (*found.status.reasons, *status.reasons)
        return msgspec.structs.replace(found, status=unschedulable(*reasons))

    def try_without(self, pods: Sequence[PodInfo], uids: Collection[str]) -> Status:
        """Try the group as if some pods on nodes were gone; no other pod is evicted for it."""
        with self._snapshot.trial() as trial:
            for uid in uids:
                trial.remove_pod(uid)
            return self._try(pods, Scope(post_filter=False)).status


class _Without:
    """`GroupWhatIf` of one attempt."""

    def __init__(self, cycle: GroupCycle, pods: Sequence[PodInfo]) -> None:
        self._cycle = cycle
        self._pods = pods

    def without(self, uids: Collection[str]) -> Status:
        """Try the whole group again as if these pods were gone; nothing is evicted for it."""
        return self._cycle.try_without(self._pods, uids)
