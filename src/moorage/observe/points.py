"""The numbers of an attempt's binding half: durations of its extension points, and of waiting."""

from __future__ import annotations

from moorage.base.clock import NS_PER_SECOND, Clock
from moorage.observe.catalogue import METRICS
from moorage.observe.series import Histogram

_BOUNDS = {metric.name: metric.buckets for metric in METRICS}


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
        self._clock = clock
        self.durations: dict[tuple[str, str, str], Histogram] = {}
        self.waits: dict[tuple[str], Histogram] = {}

    def now_ns(self) -> int:
        """Return the time to hand in as the beginning, monotonic nanoseconds."""
        return self._clock.monotonic_ns()

    def ran(self, point: str, status: str, profile: str, *, since_ns: int) -> None:
        """Note that every plugin of a point has run."""
        key = point, status, profile
        histogram = self.durations.get(key)
        if histogram is None:
            bounds = _BOUNDS["scheduler_framework_extension_point_duration_seconds"]
            histogram = self.durations[key] = Histogram(bounds)
        histogram.observe((self._clock.monotonic_ns() - since_ns) / NS_PER_SECOND)

    def waited(self, status: str, *, since_ns: int) -> None:
        """Note that a pod stopped waiting at Permit."""
        histogram = self.waits.get((status,))
        if histogram is None:
            bounds = _BOUNDS["scheduler_permit_wait_duration_seconds"]
            histogram = self.waits[status,] = Histogram(bounds)
        histogram.observe((self._clock.monotonic_ns() - since_ns) / NS_PER_SECOND)
