"""DefaultPreemption: a pod that fits nowhere looks for a node where evicting others makes room.

PostFilter answers with a node to nominate and its victims; ``service`` evicts them. While that
goes on, PreEnqueue keeps the pod out of the queue.

Rules mirrored: kubernetes v1.36 ``pkg/scheduler/framework/plugins/defaultpreemption`` and
``pkg/scheduler/framework/preemption``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np

from moorage.api.changes import Action, ClusterEvent, Resource
from moorage.api.pod import Pod
from moorage.base.errors import ConfigError
from moorage.config.feature_gates import TOPOLOGY_AWARE, WORKLOAD_PREEMPTION
from moorage.config.plugin_args import DefaultPreemptionArgs, validate_default_preemption_args
from moorage.framework.cycle_state import CycleState
from moorage.framework.diagnosis import Diagnosis
from moorage.framework.group import GroupWhatIf
from moorage.framework.handle import Handle
from moorage.framework.points import EventRegistration, PostFilterResult
from moorage.framework.preemption import (
    EXPLAIN,
    NARROWING,
    PREEMPTION,
    TRIED,
    Narrowing,
    PreemptionReport,
)
from moorage.framework.status import SUCCESS, Code, Status, error, unresolvable, unschedulable
from moorage.framework.what_if import WHAT_IF, WhatIf
from moorage.plugins.group_preemption import UnitBudgets, find_victims
from moorage.plugins.preemption_budgets import Budgets
from moorage.plugins.preemption_search import Search, Surroundings, costs_of_one
from moorage.snapshot.importance import Importance
from moorage.snapshot.pod_groups import GroupTerms
from moorage.snapshot.pod_info import PodInfo

EVICTING: Final = "waiting for the preemption for this pod to be finished"
EVICTING_FOR_GROUP: Final = "waiting for the preemption for this pod group to be finished"
GROUP_MISSING: Final = "pod group for pod not found"
IN_PLACEMENT: Final = "not eligible due to placement-based pod group scheduling limitation"
WHOLE_GROUPS: Final = "not eligible due to workload aware preemption enabled"
POLICY_NEVER: Final = "not eligible due to preemptionPolicy=Never."
TERMINATING: Final = "not eligible due to a terminating pod on the nominated node."
NOT_HELPFUL: Final = "Preemption is not helpful for scheduling"
NO_CANDIDATE: Final = "no candidate node for preemption"
_PREFIX: Final = "preemption: "


class DefaultPreemption:
    """PreEnqueue and PostFilter plugin.

    Raises
    ------
    ConfigError
        No node would ever be tried, or a number is out of bounds.
    """

    name = "DefaultPreemption"

    def __init__(self, args: DefaultPreemptionArgs, handle: Handle) -> None:
        faults = validate_default_preemption_args(args, "")
        if faults:
            raise ConfigError(faults, source=self.name)
        self._args = args
        self._snapshot = handle.snapshot
        self._clock = handle.clock
        self._evictions = handle.evictions
        self._by_placement = handle.gates(TOPOLOGY_AWARE)
        self._whole_groups = handle.gates(WORKLOAD_PREEMPTION)
        self._draws = handle.streams.stream("preemption/offset")
        self._around = Surroundings(
            handle.snapshot,
            Importance(handle.snapshot.table),
            Budgets(handle.snapshot.listers.pod_disruption_budgets),
        )
        self._unit_budgets = UnitBudgets(handle.snapshot.listers.pod_disruption_budgets)

    def pre_enqueue(self, pod: Pod) -> Status:
        """Hold the pod while victims of its preemption are still to be evicted."""
        if self._evictions.running_for(pod.uid):
            return unresolvable(EVICTING)
        terms = self._snapshot.groups.terms_of(pod) if self._whole_groups else None
        if terms is not None and self._evictions.running_for(terms.uid):
            return unresolvable(EVICTING_FOR_GROUP)
        return SUCCESS

    def post_filter(
        self, state: CycleState, pod: PodInfo, node_to_status: Mapping[str, Status]
    ) -> tuple[PostFilterResult | None, Status]:
        """Find the node that loses least, or say why there is none.

        Raises
        ------
        StateMissingError
            Nothing lends the plugin the failed search.
        """
        del node_to_status
        narrowing = state.find(NARROWING)
        if narrowing is not None and narrowing.answered:
            return self._narrowed(narrowing)
        what_if = state.read(WHAT_IF)
        refusal = self._group_refusal(pod) or self._refusal(what_if, pod)
        if refusal:
            return None, unschedulable(_PREFIX + refusal)
        if self._snapshot.num_nodes == 0:
            return None, error(f"{_PREFIX}no nodes available")
        now_ns = self._clock.now_ns()
        search = Search(self._around, what_if, pod, now_ns=now_ns)
        rows = what_if.rows_with(Code.UNSCHEDULABLE)
        if len(rows):
            offset = self._draws.randrange(len(rows))
            search.run(np.roll(rows, -offset), self._candidates_wanted(len(rows)))
            state.write(TRIED, search.tried)
        ties = search.best()
        if state.find(EXPLAIN):
            names = tuple(self._snapshot.names[row] for row in rows.tolist())
            rejected = search.rejected()
            tied = tuple(sorted(self._snapshot.names[row] for row in ties.tolist()))
            report = PreemptionReport(names, search.candidates(), rejected, tied)
            state.write(PREEMPTION, report)
        if not len(ties):
            return self._nothing(search.rejected())
        if narrowing is not None:
            narrowing.offered = search.candidates()
            return None, unschedulable()
        row = search.chosen(ties)
        victims = tuple(victim.pod for victim in search.candidate(row).victims)
        return PostFilterResult(self._snapshot.names[row], victims), SUCCESS

    def post_filter_group(
        self, terms: GroupTerms | None, pods: Sequence[PodInfo], what_if: GroupWhatIf
    ) -> tuple[Sequence[Pod], Status]:
        """Find the pods, or groups of pods, whose going makes room for a whole group."""
        if any(pod.pod.spec.preemption_policy == "Never" for pod in pods):
            return (), unschedulable(POLICY_NEVER)
        victims, status = find_victims(
            self._snapshot,
            self._unit_budgets,
            what_if,
            priority=0 if terms is None else terms.priority,
            now_ns=self._clock.now_ns(),
        )
        return [victim.pod for victim in victims], status

    def events_to_register(self) -> Sequence[EventRegistration]:
        """Have the gate looked at again when a pod goes; who moves is for others to say."""
        return (EventRegistration(ClusterEvent(Resource.POD, Action.DELETE), _never),)

    # -- who may -------------------------------------------------------------------------------

    def _group_refusal(self, pod: PodInfo) -> str:
        """Return why a member of a group may not preempt on its own, "" when it may."""
        if not (self._by_placement or self._whole_groups):
            return ""
        groups = self._snapshot.groups
        key = groups.key_of(pod.pod)
        if key is None:
            return ""
        if self._by_placement:
            terms = groups.source.terms_of(key)
            if terms is None:
                return GROUP_MISSING
            if terms.topology_key:
                return IN_PLACEMENT
        return WHOLE_GROUPS if self._whole_groups else ""

    def _refusal(self, what_if: WhatIf, pod: PodInfo) -> str:
        """Return why the pod may not preempt at all, "" when it may."""
        if pod.pod.spec.preemption_policy == "Never":
            return POLICY_NEVER
        nominated = pod.pod.status.nominated_node_name
        row = self._snapshot.row_of(nominated) if nominated else None
        if row is None or what_if.status_of(row).code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
            return ""
        leaving = any(
            other.priority < pod.priority and _is_being_preempted(other.pod)
            for other in self._snapshot.pods(row)
        )
        return TERMINATING if leaving else ""

    # -- where ---------------------------------------------------------------------------------

    def _candidates_wanted(self, potential: int) -> int:
        share = potential * self._args.min_candidate_nodes_percentage // 100
        return min(potential, max(share, self._args.min_candidate_nodes_absolute))

    def _narrowed(self, narrowing: Narrowing) -> tuple[PostFilterResult | None, Status]:
        """Choose among the candidates that extenders left."""
        if narrowing.failure:
            return None, error(_PREFIX + narrowing.failure)
        kept = [each for each in narrowing.kept if each.victims]
        if not kept:
            return None, unschedulable(_PREFIX + NO_CANDIDATE)
        now_ns = self._clock.now_ns()
        best = min(kept, key=lambda each: (costs_of_one(each, now_ns), each.node_name.encode()))
        victims = tuple(victim.pod for victim in best.victims)
        return PostFilterResult(best.node_name, victims), SUCCESS

    def _nothing(self, rejected: Mapping[str, Status]) -> tuple[PostFilterResult | None, Status]:
        """Answer that no node can be made to fit: the nomination goes, unless something broke."""
        broken = [status.message for status in rejected.values() if status.code is Code.ERROR]
        if broken:
            return None, error(_PREFIX + _joined(broken))
        counts: Counter[str] = Counter()
        for status in rejected.values():
            counts.update(status.reasons)
        untried = self._snapshot.num_nodes - len(rejected)
        if untried:
            counts[NOT_HELPFUL] += untried
        message = Diagnosis(self._snapshot.num_nodes, dict(counts)).message
        return PostFilterResult(nominated_node=""), unschedulable(_PREFIX + message)


def _joined(texts: Iterable[str]) -> str:
    """Join error texts the way kube-scheduler lists several errors, each text once."""
    once = list(dict.fromkeys(texts))
    return once[0] if len(once) == 1 else f"[{', '.join(once)}]"


def _is_being_preempted(pod: Pod) -> bool:
    """Whether the pod is terminating because a scheduler evicted it."""
    if not pod.metadata.deletion_timestamp:
        return False
    reasons = [each for each in pod.status.conditions if each.type == "DisruptionTarget"]
    return bool(reasons) and (
        reasons[0].status == "True" and reasons[0].reason == "PreemptionByScheduler"
    )


def _never(waiting: Pod, old: object | None, new: object | None) -> bool:
    del waiting, old, new
    return False
