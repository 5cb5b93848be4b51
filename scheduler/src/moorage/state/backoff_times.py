"""The backoff of a failed pod before its next attempt: as in kubernetes v1.36, and as in v1.20.

Both versions double the initial backoff up to the longest one. The versions differ in the attempts
that they count, and in the moment at which a backoff is over.
"""

from __future__ import annotations

from moorage.base.clock import NS_PER_SECOND
from moorage.state.contracts import QueueSettings
from moorage.state.queued_pod import QueuedPod


def backoff_duration_ns(count: int, settings: QueueSettings) -> int:
    """Return the backoff after the given number of failures, nanoseconds.

    The initial backoff doubles with each failure, up to the longest one.

    Parameters
    ----------
    count
        Failures so far, at least 1.
    settings
        The initial and the longest backoff.

    Notes
    -----
    Kubernetes v1.36 ``pkg/scheduler/backend/queue/backoff_queue.go`` calculateBackoffDuration.
    """
    assert count >= 1, "a pod that never failed has no backoff"
    longest = settings.backoff_max_ns
    shift = count - 1
    # Shifting the longest backoff down rather than the first one up keeps the numbers small.
    if settings.backoff_initial_ns > longest >> shift:
        return longest
    return settings.backoff_initial_ns << shift


class FailureBackoff:
    """Backoff by failures of the same sort; it ends on a whole second where pods pop early.

    Pods of one window then leave together, in order of priority. A pod waits until the whole
    window has passed.

    Parameters
    ----------
    settings
        Initial and longest backoff, and whether pods may be popped early.

    Notes
    -----
    Kubernetes v1.36 ``pkg/scheduler/backend/queue/backoff_queue.go``.
    """

    def __init__(self, settings: QueueSettings) -> None:
        self._settings = settings
        self._window_ns = NS_PER_SECOND if settings.pop_from_backoff else 1

    def ends_ns(self, queued: QueuedPod) -> int:
        """Return when a pod's backoff ends: rejections count, or errors in a row."""
        # Errors win: they are the more recent failure, or their count would have been reset.
        count = queued.consecutive_errors_count or queued.unschedulable_count
        if count == 0 or self._settings.backoff_max_ns == 0:
            return 0
        end_ns = queued.timestamp_ns + backoff_duration_ns(count, self._settings)
        return end_ns - end_ns % self._window_ns

    def release_ns(self, end_ns: int) -> int:
        """Return the moment after the window in which the backoff ends."""
        return end_ns + self._window_ns


class AttemptBackoff:
    """Backoff by attempts, whatever their outcome; it is over exactly at its end.

    Parameters
    ----------
    settings
        Initial and longest backoff.

    Notes
    -----
    Kubernetes v1.20 ``pkg/scheduler/internal/queue/scheduling_queue.go``
    calculateBackoffDuration, getBackoffTime.
    """

    def __init__(self, settings: QueueSettings) -> None:
        self._settings = settings

    def ends_ns(self, queued: QueuedPod) -> int:
        """Return when a pod's backoff ends; 0 for a pod without an attempt."""
        if queued.attempts == 0 or self._settings.backoff_max_ns == 0:
            return 0
        backoff_ns = self._settings.backoff_initial_ns
        for _ in range(1, queued.attempts):
            backoff_ns *= 2
            if backoff_ns > self._settings.backoff_max_ns:
                backoff_ns = self._settings.backoff_max_ns
                break
        return queued.timestamp_ns + backoff_ns

    def release_ns(self, end_ns: int) -> int:
        """Return the end itself."""
        return end_ns
