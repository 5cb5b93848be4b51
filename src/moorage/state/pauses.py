"""How long a pod that failed pauses before it is tried again: as kubernetes v1.36, and as v1.20.

Both double from the initial pause up to the longest one. They differ in what they count, and in
the moment at which a pause is over.
"""

from __future__ import annotations

from moorage.base.clock import NS_PER_SECOND
from moorage.state.contracts import QueueSettings
from moorage.state.queued_pod import QueuedPod


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


class FailurePauses:
    """Counts failures of the same sort; a pause ends with a whole second where pods pop early.

    Pods of one window then leave together, in order of priority. A pod pauses until the whole
    window has passed.

    Parameters
    ----------
    settings
        Lengths of the pauses, and whether pods may be popped early.

    Notes
    -----
    Kubernetes v1.36 ``pkg/scheduler/backend/queue/backoff_queue.go``.
    """

    def __init__(self, settings: QueueSettings) -> None:
        self._settings = settings
        self._window_ns = NS_PER_SECOND if settings.pop_from_backoff else 1

    def ends_ns(self, queued: QueuedPod) -> int:
        """Return when a pod's pause ends: rejections count, or errors in a row."""
        # Errors win: they are the more recent failure, or their count would have been reset.
        count = queued.consecutive_errors_count or queued.unschedulable_count
        if count == 0 or self._settings.backoff_max_ns == 0:
            return 0
        end_ns = queued.timestamp_ns + backoff_duration_ns(count, self._settings)
        return end_ns - end_ns % self._window_ns

    def release_ns(self, end_ns: int) -> int:
        """Return the moment after the window in which the pause ends."""
        return end_ns + self._window_ns


class AttemptPauses:
    """Counts attempts, however each ended; a pause is over at its very end.

    Parameters
    ----------
    settings
        Lengths of the pauses.

    Notes
    -----
    Kubernetes v1.20 ``pkg/scheduler/internal/queue/scheduling_queue.go``
    calculateBackoffDuration, getBackoffTime.
    """

    def __init__(self, settings: QueueSettings) -> None:
        self._settings = settings

    def ends_ns(self, queued: QueuedPod) -> int:
        """Return when a pod's pause ends; one that was never tried has none."""
        if queued.attempts == 0 or self._settings.backoff_max_ns == 0:
            return 0
        pause_ns = self._settings.backoff_initial_ns
        for _ in range(1, queued.attempts):
            pause_ns *= 2
            if pause_ns > self._settings.backoff_max_ns:
                pause_ns = self._settings.backoff_max_ns
                break
        return queued.timestamp_ns + pause_ns

    def release_ns(self, end_ns: int) -> int:
        """Return the end itself."""
        return end_ns
