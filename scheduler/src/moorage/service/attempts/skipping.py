"""Finds the popped pods that need no attempt (scheduling spec, cycle section 1)."""

from __future__ import annotations

from moorage.api.pod import Pod
from moorage.client.events import EventRecorder
from moorage.service.attempts.failure import failed_scheduling
from moorage.service.process.facts import Facts
from moorage.state.cache import Cache
from moorage.state.queue import SchedulingQueue
from moorage.state.queued_pod import QueuedPod


class Skipping:
    """Drops popped pods that need no attempt: pods being deleted, and pods assumed already.

    Parameters
    ----------
    queue
        Ends the time in flight of a dropped pod.
    cache
        Knows which pods are assumed.
    recorder
        Takes the Event about a pod being deleted; None where no Events are written.
    facts
        Totals.
    """

    def __init__(
        self, queue: SchedulingQueue, cache: Cache, *, recorder: EventRecorder | None, facts: Facts
    ) -> None:
        self._queue = queue
        self._cache = cache
        self._recorder = recorder
        self._facts = facts

    def skips(self, queued: QueuedPod) -> bool:
        """Drop a popped pod if it needs no attempt; returns whether it was dropped."""
        if not self._needs_no_attempt(queued.pod):
            return False
        self._facts.attempts.dropped(queued.uid)
        self._queue.end_in_flight(queued.uid)
        return True

    def _needs_no_attempt(self, pod: Pod) -> bool:
        if not pod.metadata.deletion_timestamp:
            return self._cache.is_assumed(pod.metadata.uid)
        if self._recorder is not None:
            note = f"skip schedule deleting pod: {pod.full_name}"
            self._recorder.record_event(failed_scheduling(pod, note))
        return True
