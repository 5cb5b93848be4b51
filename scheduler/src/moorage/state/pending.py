"""Waiting pods as frozen records: for debug dumps, explaining and comparing."""

from __future__ import annotations

import msgspec

from moorage.api.pod import Pod
from moorage.state.queued_pod import QueuedPod


class PendingPod(msgspec.Struct, frozen=True):
    """A queued pod at one moment.

    Parameters
    ----------
    pod
        The pod as the queue knows it.
    attempts
        Number of attempts.
    since_ns
        When the pod arrived or last came back, wall-clock nanoseconds.
    unschedulable_plugins, pending_plugins
        The plugins that rejected the pod last, sorted.
    gating_plugin
        The PreEnqueue plugin that keeps the pod out; empty = not gated.
    gating_reasons
        The reasons of the gating plugin.
    backoff_expiration_ns
        End of the pod's backoff, wall-clock nanoseconds; 0 = none.
    message
        Why the pod's last attempt failed; empty before its first failure.
    first_queued_ns
        When the pod first entered activeQ, wall-clock nanoseconds; None = never.
    """

    pod: Pod
    attempts: int
    since_ns: int
    unschedulable_plugins: tuple[str, ...]
    pending_plugins: tuple[str, ...]
    gating_plugin: str
    gating_reasons: tuple[str, ...]
    backoff_expiration_ns: int
    message: str = ""
    first_queued_ns: int | None = None


class QueueCounts(msgspec.Struct, frozen=True):
    """The size of each sub-queue, and the numbers of the attempts.

    Parameters
    ----------
    active, backoff, unschedulable, gated
        Pods in each sub-queue.
    in_flight
        Popped pods that are not done.
    scheduling_cycle
        Number of pods popped so far: the number of the newest attempt.
    move_request_cycle
        `scheduling_cycle` when waiting pods were last asked to move; -1 before.
    """

    active: int
    backoff: int
    unschedulable: int
    gated: int
    in_flight: int
    scheduling_cycle: int
    move_request_cycle: int


class PendingSummary(msgspec.Struct, frozen=True):
    """All pods of the queue at one moment.

    Parameters
    ----------
    active, backoff, unschedulable, gated
        The pods of each sub-queue, in arrival order; backoff has rejected ones before errored ones.
    in_flight
        Uids of popped pods that are not done, longest in flight first.
    scheduling_cycle
        Number of pods popped so far.
    """

    active: tuple[PendingPod, ...]
    backoff: tuple[PendingPod, ...]
    unschedulable: tuple[PendingPod, ...]
    gated: tuple[PendingPod, ...]
    in_flight: tuple[str, ...]
    scheduling_cycle: int

    @property
    def summary_text(self) -> str:
        """The numbers as kube-scheduler's debugger prints them; gated pods count as waiting."""
        waiting = len(self.unschedulable) + len(self.gated)
        return (
            f"activeQ:{len(self.active)}; backoffQ:{len(self.backoff)}; unschedulablePods:{waiting}"
        )

    def queued_pods(self) -> list[Pod]:
        """Return every queued pod; pods in flight are not queued."""
        parts = (self.active, self.backoff, self.unschedulable, self.gated)
        return [pending.pod for part in parts for pending in part]


def pending_pod(queued: QueuedPod) -> PendingPod:
    """Record a queued pod as it is now."""
    return PendingPod(
        pod=queued.pod,
        attempts=queued.attempts,
        since_ns=queued.timestamp_ns,
        unschedulable_plugins=tuple(sorted(queued.unschedulable_plugins)),
        pending_plugins=tuple(sorted(queued.pending_plugins)),
        gating_plugin=queued.gating_plugin,
        gating_reasons=queued.gating_result[1] if queued.gating_result else (),
        backoff_expiration_ns=queued.backoff_expiration_ns,
        message=queued.message,
        first_queued_ns=queued.initial_attempt_ns,
    )
