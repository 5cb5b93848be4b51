"""The numbers of an attempt's binding half: durations of its extension points, and of waiting."""

from __future__ import annotations

from moorage.base.clock import NS_PER_SECOND, Clock
from moorage.observe.catalogue import BUCKETS
from moorage.observe.series import Histograms


class PointFacts:
    """Durations of extension points and of waits at Permit.

    Parameters
    ----------
    clock
        For durations.

    Attributes
    ----------
    durations
        Seconds, by (extension point, status, profile).
    waits
        Seconds at Permit, by (status,).
    """

    def __init__(self, clock: Clock) -> None:
        self.now_ns = clock.monotonic_ns
        """Returns the time to hand in as the beginning, monotonic nanoseconds."""
        self.durations: Histograms[tuple[str, str, str]] = Histograms(
            BUCKETS["scheduler_framework_extension_point_duration_seconds"]
        )
        self.waits: Histograms[tuple[str]] = Histograms(
            BUCKETS["scheduler_permit_wait_duration_seconds"]
        )

    def ran(self, point: str, status: str, profile: str, *, since_ns: int) -> int:
        """Note that every plugin of a point has run; return how long they took, nanoseconds."""
        took_ns = self.now_ns() - since_ns
        self.durations[point, status, profile].observe(took_ns / NS_PER_SECOND)
        return took_ns

    def waited(self, status: str, *, since_ns: int) -> int:
        """Note that a pod stopped waiting at Permit; return how long it waited, nanoseconds."""
        took_ns = self.now_ns() - since_ns
        self.waits[status,].observe(took_ns / NS_PER_SECOND)
        return took_ns
