"""The numbers of attempts: how long they took, how they ended, how many pods they evicted."""

from __future__ import annotations

from collections import Counter

from moorage.api.reasons.codes import code_of_message
from moorage.base.clock import NS_PER_SECOND, Clock
from moorage.observe.catalogue import BUCKETS
from moorage.observe.series import Histogram, Histograms

_ATTEMPTS_TOLD = 15
_SCHEDULED, _UNSCHEDULABLE, _ERROR = "scheduled", "unschedulable", "error"


class AttemptFacts:
    """Numbers about attempts, as kube-scheduler counts them.

    Parameters
    ----------
    clock
        Source of durations (monotonic time) and of the ages of pods (wall time).

    Notes
    -----
    Attempts under way are known by uid: an attempt begins when its pod is popped and ends when the
    pod is bound or goes back.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._began_ns: dict[str, int] = {}
        self.results: Counter[tuple[str, str]] = Counter()
        """Attempts by (result, profile)."""
        self.failures: Counter[tuple[str, str]] = Counter()
        """Attempts that came to no binding, by (code of the reason, profile)."""
        self.durations: Histograms[tuple[str, str]] = Histograms(
            BUCKETS["scheduler_scheduling_attempt_duration_seconds"]
        )
        """Durations of attempts, seconds, by (result, profile)."""
        self.algorithm = Histogram(BUCKETS["scheduler_scheduling_algorithm_duration_seconds"])
        self.attempts = Histogram(BUCKETS["scheduler_pod_scheduling_attempts"])
        self.sli: Histograms[str] = Histograms(
            BUCKETS["scheduler_pod_scheduling_sli_duration_seconds"]
        )
        """From first attempt to binding, seconds, by number of attempts."""
        self.victims = Histogram(BUCKETS["scheduler_preemption_victims"])
        self.slow_decisions = 0
        """Decisions that took longer than what is logged as long."""
        self.latest_slow_decision: tuple[str, float] | None = None
        """The pod of the latest of them, as ``namespace/name``, and how long it took, seconds."""

    @property
    def under_way(self) -> int:
        """Number of attempts that have begun and not ended."""
        return len(self._began_ns)

    def began(self, uid: str) -> None:
        """Note that an attempt for a pod begins."""
        self._began_ns[uid] = self._clock.monotonic_ns()

    def decided(self, uid: str) -> int:
        """Note that the deciding part is over; return how long it took, nanoseconds."""
        began_ns = self._began_ns.get(uid)
        if began_ns is None:
            return 0
        took_ns = self._clock.monotonic_ns() - began_ns
        self.algorithm.observe(took_ns / NS_PER_SECOND)
        return took_ns

    def decided_slowly(self, pod: str, took_ns: int) -> None:
        """Note that a decision about a pod, ``namespace/name``, was a long one."""
        self.slow_decisions += 1
        self.latest_slow_decision = pod, took_ns / NS_PER_SECOND

    def began_ns(self, uid: str) -> int:
        """Return when an attempt under way began, monotonic nanoseconds; 0 if none is."""
        return self._began_ns.get(uid, 0)

    def dropped(self, uid: str) -> None:
        """Forget an attempt that is not to be counted."""
        self._began_ns.pop(uid, None)

    def scheduled(
        self, uid: str, profile: str, *, attempts: int, first_attempt_ns: int | None
    ) -> None:
        """Note that a pod is bound.

        Parameters
        ----------
        attempts
            Number of the pod's attempts, this one included.
        first_attempt_ns
            When the pod first entered activeQ, wall-clock nanoseconds; None if not known.
        """
        self._ended(uid, _SCHEDULED, profile)
        self.attempts.observe(attempts)
        if first_attempt_ns is None:
            return
        told = str(attempts) if attempts < _ATTEMPTS_TOLD else f"{_ATTEMPTS_TOLD}+"
        self.sli[told].observe((self._clock.now_ns() - first_attempt_ns) / NS_PER_SECOND)

    def returned(self, uid: str, profile: str, *, rejected: bool, message: str) -> None:
        """Note that an attempt failed: rejected by plugins, or ended by an error, and why."""
        self.failures[code_of_message(message), profile] += 1
        self._ended(uid, _UNSCHEDULABLE if rejected else _ERROR, profile)

    def preempted(self, victims: int) -> None:
        """Note how many victims an attempt found."""
        self.victims.observe(victims)

    def _ended(self, uid: str, result: str, profile: str) -> None:
        key = result, profile
        self.results[key] += 1
        began_ns = self._began_ns.pop(uid, None)
        if began_ns is not None:
            took_ns = self._clock.monotonic_ns() - began_ns
            self.durations[key].observe(took_ns / NS_PER_SECOND)
