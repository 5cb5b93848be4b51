"""DefaultPreemption: finds a node where evicting other pods makes room for a pod.

PostFilter returns a node to nominate and its victims. ``service`` evicts the victims. Until all
evictions are sent, PreEnqueue keeps the pod out of the queue.

Rules mirrored: kubernetes v1.36 ``pkg/scheduler/framework/plugins/defaultpreemption`` and
``pkg/scheduler/framework/preemption``, and v1.37 for groups.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from moorage.api.pod import Pod
from moorage.base.errors import ConfigError
from moorage.config.gate_table import TOPOLOGY_AWARE, V1_36, WORKLOAD_PREEMPTION
from moorage.config.plugin_args import DefaultPreemptionArgs, validate_default_preemption_args
from moorage.framework.capabilities import Capabilities
from moorage.framework.cycle_state import CycleState
from moorage.framework.group import GroupWhatIf
from moorage.framework.handle import Handle
from moorage.framework.points import EventRegistration, PostFilterResult
from moorage.framework.preemption import makes_room
from moorage.framework.roles import Role
from moorage.framework.status import Status, unschedulable
from moorage.framework.what_if import WHAT_IF, WhatIf
from moorage.plugins.preemption.evaluator import (
    POLICY_NEVER,
    TERMINATING,
    Evaluator,
    enough_candidates,
    gate_looked_at,
)
from moorage.plugins.preemption.group import UnitBudgets, UnitRules, find_victims
from moorage.snapshot.pod_groups import GroupTerms
from moorage.snapshot.pod_info import PodInfo

GROUP_MISSING: Final = "pod group for pod not found"
IN_PLACEMENT: Final = "not eligible due to placement-based pod group scheduling limitation"
ONGOING: Final = "ongoing preemption on nominated nodes"
WHOLE_GROUPS: Final = "not eligible due to workload aware preemption enabled"
_PREFIX: Final = "preemption: "


class DefaultPreemption:
    """PreEnqueue and PostFilter plugin.

    Raises
    ------
    ConfigError
        The arguments would try no node at all, or a number is out of bounds.
    """

    name = "DefaultPreemption"
    roles = Role.PREEMPTS

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
        self._evaluator = Evaluator(handle, prefix=_PREFIX)
        self._of_1_37 = handle.gates.version != V1_36
        self._unit_budgets = UnitBudgets(
            handle.snapshot.listers.pod_disruption_budgets, of_1_37=self._of_1_37
        )

    def capabilities(self) -> Capabilities:
        """Declare which pods are rejected alike, and the counters of preemption."""
        return Capabilities(rejects_by_shape=True, own_metrics=self._evaluator.counts.metrics())

    def pre_enqueue(self, pod: Pod) -> Status:
        """Reject the pod while victims of its preemption are still to be evicted."""
        return self._evaluator.gate(pod)

    def post_filter(
        self, state: CycleState, pod: PodInfo, node_to_status: Mapping[str, Status]
    ) -> tuple[PostFilterResult | None, Status]:
        """Find the node where preemption costs least, or return why no node qualifies.

        Raises
        ------
        StateMissingError
            No engine provides the failed search of this attempt.
        """
        del node_to_status
        narrowed = self._evaluator.narrowed(state)
        if narrowed is not None:
            return narrowed
        reason = self._group_reason(pod) or self._reason(state.read(WHAT_IF), pod)
        if reason:
            return self._evaluator.refused(reason)
        return self._evaluator.preempt(state, pod, self._where)

    def post_filter_group(
        self, terms: GroupTerms | None, pods: Sequence[PodInfo], what_if: GroupWhatIf
    ) -> tuple[Sequence[Pod], Status]:
        """Find the pods, or groups of pods, whose eviction makes room for a whole group."""
        victims, status = self._victims_for_group(terms, pods, what_if)
        self._evaluator.counts.group_attempted(status)
        return victims, status

    def _victims_for_group(
        self, terms: GroupTerms | None, pods: Sequence[PodInfo], what_if: GroupWhatIf
    ) -> tuple[Sequence[Pod], Status]:
        if any(pod.pod.spec.preemption_policy == "Never" for pod in pods):
            return (), unschedulable(POLICY_NEVER)
        priority = 0 if terms is None else terms.priority
        if self._of_1_37 and self._waits_for_victims(priority, pods):
            return (), Status(reasons=(ONGOING,))
        counts = self._evaluator.counts
        since_ns = counts.meter_ns()
        victims, status = find_victims(
            self._snapshot,
            self._unit_budgets,
            what_if,
            priority=priority,
            now_ns=self._clock.now_ns(),
            leaves=lambda pod: self._evictions.will_leave(pod.pod),
        )
        counts.evaluated("podgroup", status, since_ns=since_ns)
        number = len(victims.pods)
        counts.chosen(
            "podgroup", victims=number, violations=victims.violations, groups=victims.groups
        )
        if status.ok and self._of_1_37:
            text = f"found a placement for podgroup, preempting {number} victims"
            status = Status(reasons=(text,))
        return [victim.pod for victim in victims.pods], status

    def _waits_for_victims(self, priority: int, pods: Sequence[PodInfo]) -> bool:
        """Whether a victim of preemption is about to leave the nominated node of a member.

        Where nominations hold room, the cycle of the group keeps such places by itself. A group
        that is rejected all the same has lost a place, and does not wait for the others.
        """
        if self._snapshot.nominated_everywhere:
            return False
        rows = {self._snapshot.nominated_level(pod)[1] for pod in pods}
        rules = UnitRules(self._snapshot.groups, self._of_1_37)
        return any(
            rules.priority_of(victim) < priority and self._evictions.is_leaving(victim.pod)
            for row in rows
            if row is not None
            for victim in self._snapshot.pods(row)
        )

    def events_to_register(self) -> Sequence[EventRegistration]:
        """Register pod deletions for PreEnqueue only; other plugins decide which pods to queue."""
        return (gate_looked_at(),)

    # -- eligible preemptors -------------------------------------------------------------------

    def _group_reason(self, pod: PodInfo) -> str:
        """Return why a member of a group may not preempt alone; "" when it may."""
        groups = self._snapshot.groups
        key = groups.key_of(pod.pod)
        if key is None:
            return ""
        terms = groups.source.terms_of(key)
        if self._by_placement and terms is None:
            return GROUP_MISSING
        if terms is not None and terms.confined and (self._by_placement or key.source):
            return IN_PLACEMENT
        return WHOLE_GROUPS if self._whole_groups else ""

    def _reason(self, what_if: WhatIf, pod: PodInfo) -> str:
        """Return why the pod may not preempt; "" when it may."""
        if pod.pod.spec.preemption_policy == "Never":
            return POLICY_NEVER
        row = self._evaluator.nominated_row(what_if, pod)
        if row is None:
            return ""
        leaving = makes_room(self._snapshot.pods(row), pod.priority, self._evictions)
        return TERMINATING if leaving else ""

    # -- nodes to try --------------------------------------------------------------------------

    def _where(self, potential: int) -> tuple[int, int]:
        """Return a random first row, and the number of candidates that are enough."""
        args = self._args
        enough = enough_candidates(
            potential,
            percentage=args.min_candidate_nodes_percentage,
            absolute=args.min_candidate_nodes_absolute,
        )
        return self._draws.randrange(potential), enough
