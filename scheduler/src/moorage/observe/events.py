"""The numbers of watch events taken in."""

from __future__ import annotations

from moorage.base.clock import Clock
from moorage.observe.catalogue import BUCKETS
from moorage.observe.series import Durations, Histogram

_SECONDS = BUCKETS["scheduler_event_handling_duration_seconds"]


class EventFacts:
    """Durations of taking in watch events.

    Parameters
    ----------
    clock
        For durations.

    Notes
    -----
    kube-scheduler v1.36 evaluates most of these durations as the handler begins, so its numbers
    mean next to nothing; here durations end with the handler.
    """

    def __init__(self, clock: Clock) -> None:
        self.now_ns = clock.monotonic_ns
        """Returns the time to hand in as the beginning, monotonic nanoseconds."""
        self._durations: dict[str, Durations] = {}

    @property
    def durations(self) -> dict[str, Histogram]:
        """Seconds, by the label of the cluster event."""
        return {event: told.histogram for event, told in self._durations.items()}

    def handled(self, event: str, *, since_ns: int) -> None:
        """Note that a cluster event was taken in."""
        told = self._durations.get(event)
        if told is None:
            told = self._durations[event] = Durations(_SECONDS)
        told.add(self.now_ns() - since_ns)
