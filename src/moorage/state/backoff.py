"""backoffQ: pods that wait out a growing pause after a failed attempt.

Two heaps. Rejected pods may be popped early when nothing else is to do; pods that met an error may
not, because an error says nothing about the cluster having room.

Times are wall-clock, as kube-scheduler's; with ``pop_from_backoff`` they count in whole seconds, so
that pods of one window leave together and in order of priority.
"""

from __future__ import annotations

from collections.abc import Iterator

from moorage.base.clock import NS_PER_SECOND, Clock
from moorage.state.contracts import BACKOFF, QueueObserver, QueueSettings, SortKey
from moorage.state.keyed_heap import KeyedHeap
from moorage.state.queued_pod import PodKey, QueuedPod


def backoff_duration_ns(count: int, settings: QueueSettings) -> int:
    """Return the pause after the given number of failures, nanoseconds.

    Doubles with each failure from the initial pause up to the longest one.

    Parameters
    ----------
    count
        Failures so far, at least 1.
    settings
        The initial and the longest pause.

    Notes
    -----
    Kubernetes v1.36 ``pkg/scheduler/backend/queue/backoff_queue.go`` calculateBackoffDuration.
    """
    assert count >= 1, "a pod that never failed has no backoff"
    longest = settings.backoff_max_ns
    shift = count - 1
    # Shifting the longest pause down rather than the first one up keeps the numbers small.
    if settings.backoff_initial_ns > longest >> shift:
        return longest
    return settings.backoff_initial_ns << shift


class BackoffQueue:
    """Pods waiting out their backoff.

    Parameters
    ----------
    clock
        Source of the current time.
    settings
        Lengths of the pauses, and whether pods may be popped early.
    sort_key
        Order of pods whose backoff ends in the same window.
    observer
        Told about the number of pods.
    """

    def __init__(
        self, clock: Clock, settings: QueueSettings, sort_key: SortKey, observer: QueueObserver
    ) -> None:
        self._clock = clock
        self._settings = settings

        def on_size(delta: int) -> None:
            observer.pending(BACKOFF, delta)

        if settings.pop_from_backoff:
            self.rejected = KeyedHeap(lambda p: (self.expiry_ns(p), sort_key(p)), on_size)
        else:
            self.rejected = KeyedHeap(self.expiry_ns, on_size)
        """Pods that at least one plugin rejected; these may be popped early."""
        self.errored = KeyedHeap(self.expiry_ns, on_size)
        """Pods whose attempt met an error."""

    def __len__(self) -> int:
        return len(self.rejected) + len(self.errored)

    def __contains__(self, key: PodKey) -> bool:
        return key in self.rejected or key in self.errored

    def expiry_ns(self, queued: QueuedPod) -> int:
        """Return when a pod's backoff ends, wall-clock nanoseconds; 0 if it has none.

        The answer is kept in the pod until it comes back from another attempt.
        """
        if self._settings.backoff_max_ns == 0:
            return 0
        # Errors win: they are the more recent failure, or their count would have been reset.
        count = queued.consecutive_errors_count or queued.unschedulable_count
        if count == 0:
            return 0
        if queued.backoff_expiration_ns == 0:
            end_ns = queued.timestamp_ns + backoff_duration_ns(count, self._settings)
            queued.backoff_expiration_ns = self._align(end_ns)
        return queued.backoff_expiration_ns

    def is_backing_off(self, queued: QueuedPod) -> bool:
        """Whether a pod's backoff is not over; at the very moment of its end it is not."""
        return not self.expiry_ns(queued) < self._align(self._clock.now_ns())

    def put(self, queued: QueuedPod) -> None:
        """Add a pod, which must not be here yet, to the half its rejectors ask for."""
        assert queued.key not in self, f"{queued!r} is in backoffQ already"
        has_rejectors = bool(queued.unschedulable_plugins or queued.pending_plugins)
        (self.rejected if has_rejectors else self.errored).put(queued)

    def update(self, queued: QueuedPod) -> None:
        """Give a pod that is here its place anew, in the half it is in."""
        (self.rejected if queued.key in self.rejected else self.errored).put(queued)

    def get(self, key: PodKey) -> QueuedPod | None:
        """Return the pod of this key, or None."""
        return self.rejected.get(key) or self.errored.get(key)

    def remove(self, key: PodKey) -> QueuedPod | None:
        """Take a pod out; None if it is not here."""
        return self.rejected.remove(key) or self.errored.remove(key)

    def pop_completed(self) -> Iterator[QueuedPod]:
        """Take out, one by one, the pods whose backoff is over, rejected ones first."""
        for heap in (self.rejected, self.errored):
            while (first := heap.peek()) is not None and not self.is_backing_off(first):
                heap.pop()
                yield first

    def next_release_ns(self) -> int | None:
        """Return when `pop_completed` will next have a pod, wall-clock nanoseconds, or None."""
        firsts = [heap.peek() for heap in (self.rejected, self.errored)]
        ends = [self.expiry_ns(first) for first in firsts if first is not None]
        if not ends:
            return None
        step_ns = NS_PER_SECOND if self._settings.pop_from_backoff else 1
        return min(ends) + step_ns

    def pods(self) -> list[QueuedPod]:
        """Return all pods, rejected ones first, each half in arrival order."""
        return self.rejected.pods() + self.errored.pods()

    def validate(self) -> None:
        """Check both halves, and that no pod is in both."""
        self.rejected.validate()
        self.errored.validate()
        both = [queued for queued in self.rejected.pods() if queued.key in self.errored]
        assert not both, f"in both halves of backoffQ: {both}"

    def _align(self, time_ns: int) -> int:
        if self._settings.pop_from_backoff:
            return time_ns - time_ns % NS_PER_SECOND
        return time_ns
