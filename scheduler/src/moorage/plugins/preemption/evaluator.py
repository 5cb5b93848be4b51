"""Preemption for one pod: the steps that all preemption plugins share.

A plugin decides which pods may preempt, which pods may be evicted and which nodes are tried. This
module runs the dry runs, lets extenders narrow the candidates, chooses one and builds messages.

Rules mirrored: kubernetes v1.36 ``pkg/scheduler/framework/preemption`` (Evaluator).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from moorage.api.changes import Action, ClusterEvent, Resource
from moorage.api.pod import Pod
from moorage.config.gate_table import V1_36, WORKLOAD_PREEMPTION
from moorage.framework.cycle_state import CycleState, StateKey
from moorage.framework.diagnosis import Diagnosis
from moorage.framework.handle import Handle
from moorage.framework.points import EventRegistration, PostFilterResult
from moorage.framework.preemption import (
    AWAITS_NOMINATED,
    CHOSEN_BY,
    EXPLAIN,
    NARROWING,
    PREEMPTION,
    TRIED,
    Candidate,
    Narrowing,
    PreemptionReport,
)
from moorage.framework.status import SUCCESS, Code, Status, error, unresolvable, unschedulable
from moorage.framework.what_if import WHAT_IF, WhatIf
from moorage.plugins.preemption.budgets import Budgets
from moorage.plugins.preemption.dry_runs import PreemptionInputs, costs_of_one
from moorage.plugins.preemption.group import UnitRules
from moorage.plugins.preemption.known_rows import Replicas
from moorage.plugins.preemption.preemption_counts import PreemptionCounts
from moorage.plugins.preemption.search import Search
from moorage.plugins.preemption.victims import VictimRules
from moorage.snapshot.importance import Importance
from moorage.snapshot.pod_info import PodInfo

EVICTING_FOR_GROUP: Final = "waiting for the preemption for this pod group to be finished"
EVICTING: Final = "waiting for the preemption for this pod to be finished"
POLICY_NEVER: Final = "not eligible due to preemptionPolicy=Never."
TERMINATING: Final = "not eligible due to a terminating pod on the nominated node."
NOT_HELPFUL: Final = "Preemption is not helpful for scheduling"
NOMINATED_FIRST: Final = "not eligible due to nominated pods that are not placed yet."
NO_NODES: Final = "no nodes available"
NO_CANDIDATE: Final = "no candidate node for preemption"

# Kept, because reading the enum each time costs more than a comparison.
_UNSCHEDULABLE: Final = Code.UNSCHEDULABLE

Answer = tuple[PostFilterResult | None, Status]
Rows = NDArray[np.int64]

_NO_ROWS: Final = np.empty(0, np.int64)

_SINCE: StateKey[int] = StateKey("PreemptionBegan")
"""When the evaluation began whose candidates extenders narrow; monotonic nanoseconds."""


class Evaluator:
    """Finds the node where preemption costs least.

    Parameters
    ----------
    handle
        The handle of the plugin.
    prefix
        Prefix of every message.

    Attributes
    ----------
    around
        The cluster.
    counts
        Numbers for metrics.
    """

    def __init__(self, handle: Handle, *, prefix: str = "") -> None:
        self._snapshot = handle.snapshot
        self._clock = handle.clock
        self._evictions = handle.evictions
        self._prefix = prefix
        self.counts = PreemptionCounts(handle)
        of_1_37 = handle.gates.version != V1_36
        budgets = Budgets(handle.snapshot.listers.pod_disruption_budgets, of_1_37=of_1_37)
        self.around = PreemptionInputs(
            handle.snapshot,
            Importance(handle.snapshot.table),
            budgets,
            Replicas(handle.snapshot, budgets),
            handle.evictions,
            groups_of_1_37=of_1_37 and handle.gates(WORKLOAD_PREEMPTION),
        )

    def gate(self, pod: Pod) -> Status:
        """Return PreEnqueue's status: reject the pod while its victims are still to be evicted.

        Otherwise the pod could be tried again and preempt again before its first victims leave. A
        member of a group waits until all victims of the group have left their nodes.
        """
        if self._evictions.running_for(pod.uid):
            return unresolvable(EVICTING)
        if self._evictions.groups_wait:
            key = self._snapshot.groups.key_of(pod)
            if key is not None and self._evictions.awaited_by(key):
                return unresolvable(EVICTING_FOR_GROUP)
        return SUCCESS

    def refused(self, reason: str) -> Answer:
        """Return the answer for a pod that may not preempt; the pod keeps its nomination."""
        return None, unschedulable(self._prefix + reason)

    def narrowed(self, state: CycleState) -> Answer | None:
        """Choose among the candidates that extenders left; None before any extender answered."""
        narrowing = state.find(NARROWING)
        if narrowing is None or not narrowing.answered:
            return None
        result, status = self._choose_narrowed(narrowing)
        self.counts.evaluated("pod", status, since_ns=state.read(_SINCE))
        return result, status

    def _choose_narrowed(self, narrowing: Narrowing) -> Answer:
        if narrowing.failure:
            return None, error(self._prefix + narrowing.failure)
        candidates = [each for each in narrowing.remaining if each.victims]
        if not candidates:
            return self.refused(NO_CANDIDATE)
        now_ns = self._clock.now_ns()
        leaves = self.around.leaves
        best = min(
            candidates,
            key=lambda each: (
                costs_of_one(each, now_ns, leaves=leaves),
                each.node_name.encode(),
            ),
        )
        self._count_victims(best)
        victims = tuple(victim.pod for victim in best.victims)
        return PostFilterResult(best.node_name, victims), SUCCESS

    def preempt(
        self,
        state: CycleState,
        pod: PodInfo,
        where: Callable[[int], tuple[int, int]],
        rules: VictimRules | None = None,
    ) -> Answer:
        """Find the node where preemption costs least, or return why no node qualifies.

        Parameters
        ----------
        state, pod
            The attempt that found no node.
        where
            Takes the number of potential rows, at least one. Returns the index of the row to try
            first, and the number of candidates that are enough.
        rules
            Which pods may be evicted; every pod of lower priority when None.

        Raises
        ------
        StateMissingError
            No engine provides the failed search of this attempt.
        """
        since_ns = self.counts.meter_ns()
        result, status = self._evaluate(state, pod, where, rules)
        narrowing = state.find(NARROWING)
        if narrowing is not None and narrowing.offered:
            state.write(_SINCE, since_ns)
        else:
            self.counts.evaluated("pod", status, since_ns=since_ns)
        return result, status

    def _evaluate(
        self,
        state: CycleState,
        pod: PodInfo,
        where: Callable[[int], tuple[int, int]],
        rules: VictimRules | None,
    ) -> Answer:
        what_if = state.read(WHAT_IF)
        if self._snapshot.num_nodes == 0:
            return None, error(self._prefix + NO_NODES)
        if what_if.awaits_nominated():
            return self._waits(what_if, pod)
        rows = what_if.rows_with(_UNSCHEDULABLE)
        search = Search(self.around, what_if, pod, now_ns=self._clock.now_ns(), rules=rules)
        if len(rows):
            first, enough = where(len(rows))
            search.run(rows, first, enough)
            state.write(TRIED, search.tried)
        ties = search.best()
        if len(search.rows_awaiting):
            later = self._with_nominated_placed(search, what_if, pod, rules)
            if later is not None:
                awaited_by = search.awaited_by
                search, ties = later, later.best_without_needed()
                if not len(ties):
                    state.write(AWAITS_NOMINATED, True)
                    result = PostFilterResult(nominated_node="", rejectors=awaited_by)
                    return result, unschedulable(self._prefix + NOMINATED_FIRST)
        if state.find(EXPLAIN):
            state.write(PREEMPTION, self._report(rows, search, ties))
        if not len(ties):
            return self._nothing(search.rejected())
        narrowing: Narrowing | None = state.find(NARROWING)
        if narrowing is not None:
            narrowing.offered = search.candidates()
            return None, unschedulable()
        row = search.chosen(ties)
        state.write(CHOSEN_BY, search.rule(ties))
        if self.counts.enabled:
            self._count_victims(search.candidate(row))
        victims = tuple([victim.pod for victim in search.victims(row)])
        return PostFilterResult(self._snapshot.names[row], victims), SUCCESS

    def _with_nominated_placed(
        self, search: Search, what_if: WhatIf, pod: PodInfo, rules: VictimRules | None
    ) -> Search | None:
        """Search again as if nominated pods were placed; return a search that costs less, or None.

        Some row may take the pod, after evictions, only next to pods that are nominated and not
        placed yet. If the pod waited for them before it evicts, it would wait twice as long, and a
        group would lose the room of its other members meanwhile. Another row may need more victims
        as long as these pods are not placed.
        """
        rows = search.rows_awaiting
        now_ns = self._clock.now_ns()
        again = Search(self.around, what_if, pod, now_ns=now_ns, rules=rules, nominated_placed=True)
        again.run(rows, 0, len(rows))
        return again if again.is_cheaper(search) else None

    def nominated_row(self, what_if: WhatIf, pod: PodInfo) -> int | None:
        """Return the row that a pod is nominated to; None where the pod may preempt elsewhere.

        The result is None for an unknown node, and for a node that no eviction can make fit. Where
        PreFilter rejected the pod, the Filters are asked about this node here: the search knows
        nothing of a node that was cordoned. kube-scheduler takes such a node for the pod's
        (PodEligibleToPreemptOthers), and waits until the victims there have left.
        """
        row = what_if.nominated()[1]
        if row is None:
            nominated = pod.pod.status.nominated_node_name
            row = self._snapshot.row_of(nominated) if nominated else None
        if row is None or what_if.status_of(row).code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
            return None
        if what_if.rejected_in_pre_filter:
            with what_if.on_row(row) as single:
                if single.judge().code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
                    return None
        return row

    def free_row(self, what_if: WhatIf) -> int | None:
        """Return the first row where every Filter takes the pod as the cluster is, if any.

        Such rows exist after a search that found none only where PreFilter rejected the pod: no
        Filter was asked.
        """
        rows = what_if.rows_with(_UNSCHEDULABLE)
        if what_if.independent(rows):
            with what_if.on_rows(rows) as many:
                judged = many.judge()
            passing = rows[judged.passed]
            if len(passing):
                return int(passing[0])
            rows = _NO_ROWS if judged.alone is None else rows[judged.alone]
        for row in rows.tolist():
            with what_if.on_row(row) as single:
                if single.judge().ok:
                    return int(row)
        return None

    def _count_victims(self, chosen: Candidate) -> None:
        units = UnitRules(self._snapshot.groups, of_1_37=True).units_of(chosen.victims)
        self.counts.chosen(
            "pod",
            victims=len(chosen.victims),
            violations=chosen.violations,
            groups=sum(unit.whole for unit in units),
        )

    def _waits(self, what_if: WhatIf, pod: PodInfo) -> Answer:
        """Return the answer for a pod that a node takes once nominated pods are placed.

        The pod evicts nobody meanwhile, and is nominated to such a node: other pods would take the
        room there, and be evicted for it. It keeps its nomination to such a node; a nomination to
        another node is cleared, because these pods could wait for this pod there. The nominations
        of members are those of their group.
        """
        row = self.nominated_row(what_if, pod)
        result = None
        if row is None or what_if.status_of(row).code is not Code.PENDING:
            if self._snapshot.groups.key_of(pod.pod) is None:
                first = what_if.rows_with(Code.PENDING).item(0)
                result = PostFilterResult(nominated_node=self._snapshot.names[first])
            elif row is not None:
                result = PostFilterResult(nominated_node="")
        return result, unschedulable(self._prefix + NOMINATED_FIRST)

    def _report(self, rows: Rows, search: Search, ties: Rows) -> PreemptionReport:
        names = self._snapshot.names
        return PreemptionReport(
            tuple(names[row] for row in rows.tolist()),
            search.candidates(),
            search.rejected(),
            tuple(sorted(names[row] for row in ties.tolist())),
        )

    def _nothing(self, rejected: Mapping[str, Status]) -> Answer:
        """Return the answer without a candidate; it clears the nomination, except after errors."""
        broken = [status.message for status in rejected.values() if status.code is Code.ERROR]
        if broken:
            return None, error(self._prefix + _joined(broken))
        counts: Counter[str] = Counter()
        for status in rejected.values():
            counts.update(status.reasons)
        untried = self._snapshot.num_nodes - len(rejected)
        if untried:
            counts[NOT_HELPFUL] += untried
        message = Diagnosis(self._snapshot.num_nodes, dict(counts)).message
        rejectors = frozenset(status.plugin for status in rejected.values() if status.plugin)
        result = PostFilterResult(nominated_node="", rejectors=rejectors)
        return result, unschedulable(self._prefix + message)


def gate_looked_at() -> EventRegistration:
    """Return the event for PreEnqueue only; other plugins decide which pods to queue."""
    return EventRegistration(ClusterEvent(Resource.POD, Action.DELETE), _never, replicas_agree=True)


def _never(waiting: Pod, old: object | None, new: object | None) -> bool:
    del waiting, old, new
    return False


def enough_candidates(potential: int, *, percentage: int, absolute: int) -> int:
    """Return the number of candidates that are enough, for this number of potential nodes."""
    return min(potential, max(potential * percentage // 100, absolute))


def _joined(texts: Iterable[str]) -> str:
    """Join error texts as kube-scheduler does, each text once."""
    once = list(dict.fromkeys(texts))
    return once[0] if len(once) == 1 else f"[{', '.join(once)}]"
