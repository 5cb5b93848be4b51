"""The log lines of attempts, by verbosity; `score_log` has those of level 10.

Every function asks whether its level is on before it builds a line.

Notes
-----
Messages and levels: kubernetes v1.36 ``pkg/scheduler/schedule_one.go`` and ``default_binder.go``;
the trace is ``utiltrace.LogIfLong(100ms)`` of ``schedulePod``. The number of an attempt is ours.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final

from moorage.api.pod import Pod
from moorage.base.clock import NS_PER_SECOND
from moorage.base.verbosity import V0, V2, V3, V5, ObjectName, tell
from moorage.engine.decision import Decision
from moorage.state.queued_pod import QueuedPod

_log = logging.getLogger(__name__)

LONG_NS: Final = NS_PER_SECOND // 10
"""An attempt whose decision takes longer is traced."""


def attempt_begins(queued: QueuedPod) -> None:
    """Log that a pod was popped and is being decided, with the number of its attempt."""
    if _log.isEnabledFor(V3):
        pod = _object_name(queued.pod)
        tell(_log, V3, "Attempting to schedule pod", pod=pod, attempt=queued.attempts)


def group_attempt_begins(group: str, pods: int) -> None:
    """Log that the members of a group are being decided together."""
    if _log.isEnabledFor(V3):
        tell(_log, V3, "Attempting to schedule pod group", podGroup=group, pods=pods)


def decided(decision: Decision) -> None:
    """Log the numbers of evaluated and feasible nodes, and the result of PostFilter."""
    if not _log.isEnabledFor(V5):
        return
    pod = ObjectName(decision.pod.name, decision.pod.namespace)
    tell(
        _log,
        V5,
        "Found feasible nodes for pod",
        pod=pod,
        evaluatedNodes=decision.evaluated,
        feasibleNodes=decision.feasible,
        **({} if decision.total_score is None else {"score": decision.total_score}),
    )
    if decision.nomination is not None and decision.nomination.node_name:
        tell(
            _log,
            V5,
            "Status after running PostFilter plugins for pod",
            pod=pod,
            nominatedNode=decision.nomination.node_name,
            victims=" ".join(victim.full_name for victim in decision.victims),
        )


def trace(pod: ObjectName, took_ns: int, parts: Mapping[str, int]) -> None:
    """Log the parts of a long decision; time outside extension points is ``other``."""
    other_ns = max(took_ns - sum(parts.values()), 0)
    durations = {point: _milliseconds(ns) for point, ns in parts.items()}
    tell(
        _log,
        V0,
        "Trace: scheduling took long",
        pod=pod,
        total=_milliseconds(took_ns),
        **durations,
        other=_milliseconds(other_ns),
    )


def binding_begins(namespace: str, name: str, node_name: str) -> None:
    """Log that a pod is about to be bound."""
    if _log.isEnabledFor(V3):
        pod = ObjectName(name, namespace)
        tell(_log, V3, "Attempting to bind pod to node", pod=pod, node=node_name)


def bound(queued: QueuedPod, decision: Decision) -> None:
    """Log that a pod is bound, with the number of its attempt."""
    if _log.isEnabledFor(V2):
        tell(
            _log,
            V2,
            "Successfully bound pod to node",
            pod=_object_name(queued.pod),
            node=decision.node_name,
            evaluatedNodes=decision.evaluated,
            feasibleNodes=decision.feasible,
            attempt=queued.attempts,
        )


def failed(queued: QueuedPod, message: str, *, rejected: bool) -> None:
    """Log that an attempt ended without a node: no node fits, or a plugin broke."""
    if _log.isEnabledFor(V2):
        what = "Unable to schedule pod; no fit; waiting" if rejected else _BROKE
        tell(_log, V2, what, pod=_object_name(queued.pod), err=message, attempt=queued.attempts)


_BROKE: Final = "Error scheduling pod; retrying"


def _object_name(pod: Pod) -> ObjectName:
    return ObjectName(pod.metadata.name, pod.metadata.namespace)


def _milliseconds(duration_ns: int) -> str:
    return f"{duration_ns / 1e6:.1f}ms"
