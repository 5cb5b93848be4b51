"""CapacityScheduling: namespaces share a cluster by elastic quotas.

An ElasticQuota guarantees its namespace a minimum and bounds its use by a maximum. Up to the
maximum, a namespace borrows the unused minimums of other namespaces. A pod within the minimum of
its namespace may evict pods of borrowing namespaces. Pods of namespaces without a quota preempt
only one another. The plugin is not part of the default profile: a profile enables it at
``postFilter`` and disables DefaultPreemption.

Rules mirrored: scheduler-plugins ``pkg/capacityscheduling`` of 2026-08. Use is the sum over
the pods on nodes, assumed pods included. Upstream counts use at Reserve and from informers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from moorage.api.changes import Action, ClusterEvent, Resource
from moorage.api.pod import Pod
from moorage.framework.cycle_state import REJECTION_FIGURES, CycleState, StateKey
from moorage.framework.handle import Handle
from moorage.framework.points import EventRegistration, PostFilterResult, PreFilterResult
from moorage.framework.preemption import AWAITS_SHARE, EXPLAIN, leaving_pods
from moorage.framework.roles import Role
from moorage.framework.status import SUCCESS, Status, unschedulable
from moorage.framework.what_if import WHAT_IF
from moorage.plugins.preemption.evaluator import POLICY_NEVER, TERMINATING, Evaluator
from moorage.plugins.quotas.elastic_quotas import (
    NOTHING,
    Amounts,
    Claim,
    Quota,
    QuotaBooks,
    Usage,
    plus,
    request_of,
)
from moorage.plugins.quotas.victims import CapacityVictims
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot

NOT_LOOKED_AT: Final = "not eligible due to failed to read from cycleState"
STILL_COUNTED: Final = "not eligible due to terminating pods that still count in the quotas."


class _Looked(msgspec.Struct, frozen=True):
    """The result of PreFilter: quotas and their use, the pod's claim, and the resource exceeded."""

    usage: Usage
    claim: Claim | None = None
    excess: str = ""


_LOOKED: StateKey[_Looked] = StateKey("elastic quotas")


class CapacityScheduling:
    """PreEnqueue, PreFilter and PostFilter plugin; takes no arguments."""

    name = "CapacityScheduling"
    roles = Role.PREEMPTS

    def __init__(self, args: object, handle: Handle) -> None:
        del args
        self._snapshot = handle.snapshot
        self._clock = handle.clock
        self._effects = handle.effects
        self._books = QuotaBooks(handle.snapshot.listers.elastic_quotas, handle.snapshot.table)
        self._evaluator = Evaluator(handle)
        self._evictions = handle.evictions

    def pre_enqueue(self, pod: Pod) -> Status:
        """Reject the pod while victims of its preemption are still to be evicted."""
        return self._evaluator.gate(pod)

    def pre_filter(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot
    ) -> tuple[PreFilterResult | None, Status]:
        """Reject a pod that exceeds its namespace's maximum, or the sum of all minimums."""
        usage = self._books.usage()
        problem = self._books.unreadable.get(pod.namespace)
        if problem is not None:
            return None, unschedulable(f"{problem}; fix the quota")
        quota = usage.quotas.get(pod.namespace)
        if quota is None:
            state.write(_LOOKED, _Looked(usage))
            return None, SUCCESS
        claim = _claim(pod, usage, snapshot)
        reason, excess = _rejection(pod, quota, claim, usage)
        state.write(_LOOKED, _Looked(usage, claim, excess))
        if not reason:
            return None, SUCCESS
        state.write(REJECTION_FIGURES, excess)
        if self._rules(pod, claim, self._usage_without_leaving(usage)).within_quotas():
            state.write(AWAITS_SHARE, True)
        return None, unschedulable(reason)

    def post_filter(
        self, state: CycleState, pod: PodInfo, node_to_status: Mapping[str, Status]
    ) -> tuple[PostFilterResult | None, Status]:
        """Find the node where preemption within the quotas costs least; try every node.

        Raises
        ------
        StateMissingError
            No engine provides the failed search of this attempt.
        """
        del node_to_status
        narrowed = self._evaluator.narrowed(state)
        if narrowed is not None:
            return narrowed
        looked = state.find(_LOOKED)
        if looked is not None and looked.excess and not state.find(EXPLAIN):
            self._emit_excess(pod, looked.excess)
        if pod.pod.spec.preemption_policy == "Never":
            return self._evaluator.refused(POLICY_NEVER)
        if looked is None:
            return self._evaluator.refused(NOT_LOOKED_AT)
        rules = self._rules(pod, looked.claim, self._usage_without_leaving(looked.usage))
        awaits_share = state.find(AWAITS_SHARE) is True
        what_if = state.read(WHAT_IF)
        row = self._evaluator.nominated_row(what_if, pod)
        if row is not None:
            # The last pods to leave borrow nothing once they are left out of the use.
            with_leaving = self._rules(pod, looked.claim, looked.usage)
            if with_leaving.leaving(self._snapshot.pods(row), self._evictions):
                return self._evaluator.refused(TERMINATING)
            if awaits_share:
                # Victims on other nodes still stop. Once they are gone, the pod has its share.
                return self._evaluator.refused(STILL_COUNTED)
        elif awaits_share:
            free = self._evaluator.free_row(what_if)
            if free is not None:
                # The pod lacks nothing but these victims' share: its room is held, nobody evicted.
                result = PostFilterResult(nominated_node=self._snapshot.names[free])
                return result, unschedulable(STILL_COUNTED)
        return self._evaluator.preempt(state, pod, _every_node, rules)

    def _rules(self, pod: PodInfo, claim: Claim | None, usage: Usage) -> CapacityVictims:
        return CapacityVictims(pod, claim, usage=usage, now_ns=self._clock.now_ns())

    def events_to_register(self) -> Sequence[EventRegistration]:
        """Register events that make room in a quota: a deleted pod, and any change of a quota."""
        gone = ClusterEvent(Resource.POD, Action.DELETE)
        quota = ClusterEvent(Resource.ELASTIC_QUOTA, Action.ALL)
        return (EventRegistration(gone), EventRegistration(quota))

    def _usage_without_leaving(self, usage: Usage) -> Usage:
        """Return the use without the pods that are about to leave their nodes.

        A preemptor that waits for them is nominated, and counts in the claim. If its victims
        counted as well, each preemptor of a moment would evict one pod more than the one before
        it. A preemptor that lost its node can have the share of its victims somewhere else.
        """
        if not self._snapshot.nominated_everywhere:
            return usage
        leaving = leaving_pods(self._snapshot, self._evictions)
        if not leaving:
            return usage
        remaining = usage.copy()
        remaining.leave_out(leaving)
        return remaining

    def _emit_excess(self, pod: PodInfo, excess: str) -> None:
        """Emit an Event with the excess; the status has upstream's message, without figures."""
        self._effects.emit(
            pod.pod, kind="Warning", reason="ElasticQuotaExceeded", action="Scheduling", note=excess
        )


def _claim(pod: PodInfo, usage: Usage, snapshot: Snapshot) -> Claim:
    """Add up the requests of the pod and of the nominated pods that count before the pod.

    A member of a group that is on a node on trial counts in the use, not once more as nominated.
    """
    node_of = snapshot.table.node_of_pod
    in_quota = in_all = request_of(pod)
    for node_name, nominated in snapshot.nominations.items():
        if snapshot.row_of(node_name) is None:
            continue
        for other in nominated:
            if other.uid == pod.uid or other.namespace not in usage.quotas:
                continue
            if node_of(other.uid) is not None:
                continue
            if other.namespace != pod.namespace:
                if not usage.borrows(other.namespace):
                    in_all = plus(in_all, request_of(other))
            elif other.priority >= pod.priority:
                in_quota = plus(in_quota, request_of(other))
                in_all = plus(in_all, request_of(other))
    return Claim(in_quota, in_all)


def _rejection(pod: PodInfo, quota: Quota, claim: Claim, usage: Usage) -> tuple[str, str]:
    """Return the reason why a pod exceeds the quotas, and the figures; "" for no excess."""
    used = usage.used(pod.namespace)
    resource = quota.above_max(claim.in_quota, used)
    if resource:
        reason = (
            f"Pod {pod.key} is rejected in PreFilter because ElasticQuota {quota.namespace} is "
            "more than Max"
        )
        figures = _figures(resource, used, claim.in_quota, quota.maximum or NOTHING)
        return reason, f"ElasticQuota {quota.namespace}/{quota.name}: {figures} at most"
    resource = usage.above_total(claim.in_all)
    if resource:
        reason = (
            f"Pod {pod.key} is rejected in PreFilter because total ElasticQuota used is more than "
            "min"
        )
        figures = _figures(resource, usage.total, claim.in_all, usage.guaranteed)
        return reason, f"all ElasticQuotas together: {figures} guaranteed"
    return "", ""


def _figures(resource: str, used: Amounts, request: Amounts, bound: Amounts) -> str:
    unit = "m" if resource == "cpu" else ""
    amounts = [f"{each.get(resource, 0)}{unit}" for each in (used, request, bound)]
    return f"{resource} {amounts[0]} used and {amounts[1]} asked, {amounts[2]}"


def _every_node(potential: int) -> tuple[int, int]:
    return 0, potential
