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
from moorage.engine.groups.decision import GroupDecision, GroupOutcome
from moorage.engine.groups.orders import ORDERS, OtherOrders
from moorage.engine.groups.trying import MembersOnTrial
from moorage.framework.containment import contained
from moorage.framework.group import (
    FilledPlacement,
    Placement,
    PlacementGeneratePlugin,
    PlacementScorePlugin,
)
from moorage.framework.points import MAX_NODE_SCORE, MIN_NODE_SCORE
from moorage.framework.status import SUCCESS, Status, error, unschedulable
from moorage.snapshot.pod_groups import GroupKey
from moorage.snapshot.pod_info import PodInfo
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
        self.cycle = cycle
        self._profile = cycle.profile
        self._snapshot = cycle.snapshot
        self._groups = cycle.snapshot.groups
        self._explain = explain
        gates = cycle.profile.handle.gates
        self._orders = cycle.profile.handle.group_orders
        self._by_placement = gates(TOPOLOGY_AWARE)
        self.preempts = gates(WORKLOAD_PREEMPTION)
        """Whether pods are evicted for a group as a whole."""
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
            found = self._in_placements(key, pods, Scope(within=within, post_filter=False))
            return self._in_other_orders(key, pods, found, within=within)
        found = self._in_placements(key, pods, Scope(explain=self._explain))
        found = self._in_other_orders(key, pods, found)
        if self.preempts and found.outcome is GroupOutcome.REJECTED:
            found = self._preempted(key, pods, found)
        return found

    def decide_without(
        self, key: GroupKey, pods: Sequence[PodInfo], uids: Collection[str]
    ) -> GroupDecision:
        """Decide as if some pods on nodes were gone; no other pod is evicted for the group."""
        with self._snapshot.trial() as trial:
            for uid in uids:
                trial.remove_pod(uid)
            found = self._in_placements(key, pods, Scope(post_filter=False))
            return self._in_other_orders(key, pods, found)

    def _in_other_orders(
        self,
        key: GroupKey,
        pods: Sequence[PodInfo],
        first: GroupDecision,
        *,
        within: NodeView | None = None,
    ) -> GroupDecision:
        """Return the decision of another order that fits without evictions, else the first."""
        count = self._orders
        if count is None:
            count = ORDERS if key.source else 0
        if not count or first.outcome not in {GroupOutcome.REJECTED, GroupOutcome.PREEMPTING}:
            return first
        orders, found = OtherOrders(self._snapshot, pods, count=count), first
        while (order := orders.after(found)) is not None:
            found = self._in_placements(key, order, Scope(within=within, post_filter=False))
            if found.outcome is GroupOutcome.PLACED:
                return found
        return first

    # -- one try -------------------------------------------------------------------------------

    def _in_placements(self, key: GroupKey, pods: Sequence[PodInfo], scope: Scope) -> GroupDecision:
        """Try every placement and take the best of those in which the group fits."""
        placements, rejection = self.placements(key)
        if rejection is not None:
            return rejection
        tried: list[GroupDecision] = []
        for placement in placements:
            within = self._shared(scope.within, placement.within)
            found = self._try(pods, msgspec.structs.replace(scope, within=within))
            if found.outcome is GroupOutcome.BROKEN:
                return found
            tried.append(msgspec.structs.replace(found, placement=placement.name))
        return self.best(key, placements, tried)

    def _try(self, pods: Sequence[PodInfo], scope: Scope) -> GroupDecision:
        """Place the pods one after another, and undo every placement."""
        with MembersOnTrial(self._profile, self._snapshot) as tried:
            for pod in pods:
                if not tried.add(self.cycle.decide(pod, scope)):
                    break
            return tried.found()

    # -- one placement of several --------------------------------------------------------------

    def placements(self, key: GroupKey) -> tuple[Sequence[Placement], GroupDecision | None]:
        """Return the placements to try, one at least; or the decision where there are none."""
        if not self._by_placement or not self._generators:
            return (Placement(),), None
        plugin = self._generators[0]
        try:
            found, status = plugin.generate_placements(key, self._groups.source.terms_of(key))
        except Exception as problem:
            found, status = (), contained(plugin.name, "PlacementGenerate", problem)
        if not status.ok:
            return (), GroupDecision(GroupOutcome.BROKEN, status)
        if not found:
            return (), GroupDecision(GroupOutcome.REJECTED, unschedulable(NO_PLACEMENTS))
        return found, None

    def best(
        self, key: GroupKey, placements: Sequence[Placement], tried: Sequence[GroupDecision]
    ) -> GroupDecision:
        """Return the decision for the best placement; a rejection if the group fits in none.

        Parameters
        ----------
        key
            The group.
        placements, tried
            The placements, and the decision for each.
        """
        fitting = [i for i, found in enumerate(tried) if found.outcome is not GroupOutcome.REJECTED]
        if not fitting:
            return self._none_fits(tried)
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

    def _none_fits(self, tried: Sequence[GroupDecision]) -> GroupDecision:
        if not self._by_placement:
            return tried[0]
        text = (
            f"0/{len(tried)} placements are available, first placement status: "
            f"{tried[0].status.message}"
        )
        return msgspec.structs.replace(tried[0], status=unschedulable(text))

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
