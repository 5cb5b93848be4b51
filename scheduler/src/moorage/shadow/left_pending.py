"""Compares the pods that the real scheduler leaves pending with what a configuration would do.

A pod counts once it has been rejected and has waited for a while. The configuration decides about
it again and again on the state of that moment. Only an answer that stays the same is told, since a
real scheduler needs a moment to try a pod again.
"""

from __future__ import annotations

from typing import Final

import msgspec

from moorage.api.pod import Pod
from moorage.base.clock import NS_PER_SECOND, rfc3339_micro
from moorage.engine.decision import Decision
from moorage.engine.decision import Outcome as Decided
from moorage.shadow.comparison import Comparison, Outcome
from moorage.shadow.decision_comparer import DecisionComparer, OnComparison

WAIT_SECONDS: Final = 30
"""Time that a pod is pending before it is looked at: a guess, three times the longest backoff
of ten seconds."""
STAY_SECONDS: Final = 15
"""Time from a binding by the configuration until it is told: longer than the longest
backoff, after which the real scheduler has tried it again."""
_LOOK_NS: Final = 5 * NS_PER_SECOND
# Decisions at one look, so that it takes a fraction of a second at 5000 nodes; the next look goes
# on with other pods.
_PODS_AT_A_LOOK: Final = 50


class _Looked(msgspec.Struct):
    """The findings about a pod.

    Parameters
    ----------
    pod
        The pod.
    at_ns
        When it was looked at last.
    since_ns
        Since when the configuration would act; 0 while it would not.
    is_reported
        Whether that was reported.
    """

    pod: Pod
    at_ns: int
    since_ns: int = 0
    is_reported: bool = False


class LeftPending:
    """Compares pods that stay pending.

    Parameters
    ----------
    beside
        The cluster as it is, and the decisions of the configuration.
    report
        Takes every comparison.
    """

    def __init__(self, beside: DecisionComparer, report: OnComparison) -> None:
        self._beside = beside
        self._report = report
        self._looked: dict[str, _Looked] = {}
        self._look_ns = 0

    def look(self) -> None:
        """Look at the pods that have waited longest for a look, if it is time."""
        now_ns = self._beside.shadow_now_ns
        if now_ns - self._look_ns < _LOOK_NS:
            return
        self._look_ns = now_ns
        waiting = {pod.uid: pod for pod in self._waiting(now_ns)}
        self._looked = {uid: each for uid, each in self._looked.items() if uid in waiting}
        order = sorted(waiting, key=self._looked_ns)
        for uid in order[:_PODS_AT_A_LOOK]:
            self._look_at(waiting[uid], now_ns)

    def close(self) -> None:
        """Report the pods that both leave pending; they still wait, and were looked at."""
        for each in self._looked.values():
            if not each.since_ns:
                self._report(self._comparison(each.pod, Outcome.SAME))
        self._looked.clear()

    def _looked_ns(self, uid: str) -> int:
        found = self._looked.get(uid)
        return 0 if found is None else found.at_ns

    def _waiting(self, now_ns: int) -> list[Pod]:
        """Return the pods that the real scheduler has rejected, and that have waited for long."""
        core, last_ns = self._beside.half.core, now_ns - WAIT_SECONDS * NS_PER_SECOND
        return [
            pod
            for pod in core.store.all_pods()
            if not pod.spec.node_name
            and self._beside.serves(pod)
            and not pod.metadata.deletion_timestamp
            and not pod.status.nominated_node_name
            and _rejected(pod)
            and self._beside.since_ns(pod) <= last_ns
            and core.snapshot.groups.key_of(pod) is None
        ]

    def _look_at(self, pod: Pod, now_ns: int) -> None:
        looked = self._looked.setdefault(pod.uid, _Looked(pod, now_ns))
        looked.pod, looked.at_ns = pod, now_ns
        reason, node = self._would_act(pod)
        if not reason:
            looked.since_ns = 0
            return
        looked.since_ns = looked.since_ns or now_ns
        if not looked.is_reported and now_ns - looked.since_ns >= STAY_SECONDS * NS_PER_SECOND:
            looked.is_reported = True
            self._report(self._comparison(pod, Outcome.PLACED, node=node, reason=reason))

    def _would_act(self, pod: Pod) -> tuple[str, str]:
        """Return what the configuration would do, and the node; "" where it leaves the pod too."""
        info = self._beside.half.core.store.info(pod.namespace, pod.name)
        if info is None or self._beside.gated_reason(pod) is not None:
            return "", ""
        decision = self._beside.decider.decide(info)
        if not isinstance(decision, Decision):
            return "", ""
        if decision.outcome is Decided.BIND:
            return "it waits really, and the configuration would bind it", decision.node_name
        nomination = decision.nomination
        if decision.victims and nomination is not None:
            names = ", ".join(sorted(each.full_name for each in decision.victims))
            told = f"it waits really, and the configuration would evict {names}"
            return told, nomination.node_name
        return "", ""

    def _comparison(
        self, pod: Pod, outcome: Outcome, *, node: str = "", reason: str = ""
    ) -> Comparison:
        return Comparison(
            time=rfc3339_micro(self._beside.shadow_now_ns),
            pod=pod.full_name,
            about="pending",
            outcome=outcome,
            shadow_node=node,
            reason=reason,
        )


def _rejected(pod: Pod) -> bool:
    return any(
        each.type == "PodScheduled" and each.status == "False" and each.reason == "Unschedulable"
        for each in pod.status.conditions
    )
