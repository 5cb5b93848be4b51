"""What the scheduling queue reports, counted in plain dictionaries: it is on every pod's way."""

from __future__ import annotations

from collections import Counter


class QueueFacts:
    """A `QueueObserver` that counts.

    Attributes
    ----------
    incoming_pods
        Pods that entered a part of the queue, by (queue, event).
    pending_pods
        Pods in each part now.
    rejected_pods
        Queued pods last rejected by a plugin, by (plugin, profile).
    events_in_flight
        Entries kept for pods in flight, by event.
    """

    __slots__ = ("events_in_flight", "incoming_pods", "pending_pods", "rejected_pods")

    def __init__(self) -> None:
        self.incoming_pods: Counter[tuple[str, str]] = Counter()
        self.pending_pods: Counter[str] = Counter(
            {"active": 0, "backoff": 0, "unschedulable": 0, "gated": 0}
        )
        self.rejected_pods: Counter[tuple[str, str]] = Counter()
        self.events_in_flight: Counter[str] = Counter()

    def incoming(self, queue: str, event: str) -> None:
        """Count a pod that entered a sub-queue because of an event."""
        self.incoming_pods[queue, event] += 1

    def pending(self, queue: str, delta: int) -> None:
        """Change the number of pods in a sub-queue."""
        self.pending_pods[queue] += delta

    def unschedulable_pods(self, plugin: str, profile: str, delta: int) -> None:
        """Change the number of queued pods last rejected by a plugin."""
        self.rejected_pods[plugin, profile] += delta

    def in_flight_events(self, event: str, delta: int) -> None:
        """Change the number of entries kept for pods in flight."""
        self.events_in_flight[event] += delta
