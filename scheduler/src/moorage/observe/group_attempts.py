"""The numbers of pod groups' attempts, under kube-scheduler's names: their ends and durations."""

from __future__ import annotations

from collections import Counter

from moorage.base.clock import NS_PER_SECOND, Clock
from moorage.observe.catalogue import BUCKETS
from moorage.observe.series import Histogram, Histograms

_BUCKETS = BUCKETS["scheduler_podgroup_scheduling_attempt_duration_seconds"]


class GroupAttemptFacts:
    """Numbers about attempts of pod groups, as kube-scheduler counts them.

    Parameters
    ----------
    clock
        For durations.

    Attributes
    ----------
    results
        Attempts by (result, profile).
    durations
        Seconds of attempts, until every member is on its way or back in the queue, by (result,
        profile).
    algorithm
        Seconds of their deciding part.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.results: Counter[tuple[str, str]] = Counter()
        self.durations: Histograms[tuple[str, str]] = Histograms(_BUCKETS)
        self.algorithm = Histogram(_BUCKETS)

    def meter_ns(self) -> int:
        """Return the time to hand in as the beginning, monotonic nanoseconds."""
        return self._clock.monotonic_ns()

    def decided(self, *, since_ns: int) -> int:
        """Note that the deciding part of an attempt is over; return how long it took, ns."""
        took_ns = self.meter_ns() - since_ns
        self.algorithm.observe(took_ns / NS_PER_SECOND)
        return took_ns

    def ended(self, result: str, profile: str, *, since_ns: int) -> None:
        """Note that an attempt is over.

        Parameters
        ----------
        result
            ``scheduled``, ``unschedulable``, ``waiting_on_preemption`` or ``error``.
        """
        key = result, profile
        self.results[key] += 1
        self.durations[key].observe((self.meter_ns() - since_ns) / NS_PER_SECOND)
