"""Attempts as the queue sees them: a popped pod is marked, then given back or done.

In between the pod is *in flight*: it is in no sub-queue, and the events that come are kept for it
(`moorage.state.in_flight`).
"""

from __future__ import annotations

import logging

from moorage.base.clock import Clock
from moorage.snapshot.pod_info import keep_lately
from moorage.state.in_flight import InFlight
from moorage.state.lifecycle import Lifecycle, PodState
from moorage.state.queued_pod import QueuedPod
from moorage.state.sub_queues import SubQueues
from moorage.state.wakeups import Requeue, Wakeups

_log = logging.getLogger(__name__)

_FAILURE = "ScheduleAttemptFailure"
# Under names of their own: finding a member in its class takes ten times as long.
_IN_FLIGHT, _SKIP = PodState.IN_FLIGHT, Requeue.SKIP

_ASSUMED_OR_BOUND = frozenset(
    {PodState.ASSUMED, PodState.WAITING, PodState.BINDING, PodState.BOUND}
)


class Attempts:
    """Begins and ends attempts; below the queue's entry points, above its sub-queues.

    Parameters
    ----------
    clock
        Source of the current time.
    sub_queues
        Source of popped pods, and target of returned pods.
    in_flight
        Pods in flight, and the events since each was popped.
    wakeups
        Judges a pod whose attempt failed.
    lifecycle
        Keeps the state of each pod.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        sub_queues: SubQueues,
        in_flight: InFlight,
        wakeups: Wakeups,
        lifecycle: Lifecycle,
    ) -> None:
        self._clock = clock
        self._sub_queues = sub_queues
        self._in_flight = in_flight
        self._wakeups = wakeups
        self._lifecycle = lifecycle

    def begin_attempt(self, queued: QueuedPod, *, cause: str) -> bool:
        """Mark a pod just taken out of its sub-queue; False if its uid is in flight already."""
        queued.attempts += 1
        keep_lately(queued.info)
        if queued.uid in self._in_flight:
            _log.error(
                "the same pod is tracked in multiple places in the scheduler: %s/%s", *queued.key
            )
            self._lifecycle.add_entry(queued.pod, "second copy dropped", cause=cause)
            return False
        self._in_flight.begin(queued.uid)
        queued.attempt_number = self._in_flight.scheduling_cycle
        if self._lifecycle.known(queued.uid) in _ASSUMED_OR_BOUND:
            self._lifecycle.add_entry(queued.pod, "second copy popped", cause=cause)
        else:
            self._lifecycle.move(queued.pod, _IN_FLIGHT, cause=cause)
        return True

    def give_back(self, queued: QueuedPod) -> PodState | None:
        """Requeue a pod whose attempt failed; None if a copy is queued already: the copy stays."""
        sub_queue = self._sub_queues.sub_queue_of(queued.key)
        if sub_queue is not None:
            _log.error("Pod %s/%s is already present in the %s queue", *queued.key, sub_queue.value)
            self.end_in_flight(queued.uid)
            return None
        try:
            answer = self._wakeups.on_return(queued, self._in_flight)
        finally:
            self._in_flight.end_in_flight(queued.uid)
        if queued.unschedulable_plugins or queued.pending_plugins:
            queued.unschedulable_count += 1
            queued.consecutive_errors_count = 0
        else:
            queued.consecutive_errors_count += 1
        # Without a rejector the pod comes back by time, whatever happened meanwhile.
        if answer is not _SKIP and queued.rejectors:
            queued.has_news = True
        queued.timestamp_ns = self._clock.now_ns()
        queued.backoff_expiration_ns = 0
        queued.was_flushed = False
        return self._sub_queues.requeue(queued, answer, _FAILURE)

    def end_in_flight(self, uid: str) -> None:
        """End a pod's time in flight; a second call does nothing."""
        self._in_flight.end_in_flight(uid)
        if self._lifecycle.known(uid) is not _IN_FLIGHT:
            return
        key = self._lifecycle.pod_key_of(uid)
        copy = self._sub_queues.find(key)
        sub_queue = self._sub_queues.sub_queue_of(key)
        if copy is None or sub_queue is None or copy.uid != uid:
            self._lifecycle.end_history(uid, cause="done")
        else:
            self._lifecycle.move(copy.pod, sub_queue, cause="second copy takes over")
