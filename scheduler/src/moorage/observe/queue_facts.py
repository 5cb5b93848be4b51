"""The numbers of the scheduling queue, in plain dictionaries because every pod passes here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from moorage.base.clock import NS_PER_SECOND
from moorage.observe.catalogue import BUCKETS
from moorage.observe.plugin_facts import PluginFacts
from moorage.observe.series import Histograms

_HINT = BUCKETS["scheduler_queueing_hint_execution_duration_seconds"]


class QueueFacts:
    """A `QueueObserver` that counts.

    Parameters
    ----------
    plugins
        Keeps the durations of PreEnqueue.

    Attributes
    ----------
    plugins
        The same object.
    incoming_pods
        Pods that entered a sub-queue, by (queue, event).
    pending_pods
        Pods in each sub-queue now.
    rejected_pods
        Queued pods last rejected by a plugin, by (plugin, profile).
    events_in_flight
        Entries kept for pods in flight, by event.
    hints
        Seconds, by (plugin, event, answer).
    """

    __slots__ = (
        "events_in_flight",
        "hints",
        "incoming_pods",
        "observer_now_ns",
        "pending_pods",
        "plugins",
        "rejected_pods",
    )

    def __init__(self, plugins: PluginFacts) -> None:
        self.plugins = plugins
        self.observer_now_ns: Callable[[], int] = plugins.now_ns
        self.hints: Histograms[tuple[str, str, str]] = Histograms(_HINT)
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

    def hint_asked(
        self, plugin: str, event: str, answer: str, *, since_ns: int, pods: int = 1
    ) -> None:
        """Note how long a requeue hint took; of equal pods, each has an equal part of the time."""
        took_ns = self.observer_now_ns() - since_ns
        self.hints[plugin, event, answer].observe_equal(took_ns / NS_PER_SECOND / pods, pods)

    def pre_enqueue_asked(self, profile: str, *, since_ns: int) -> None:
        """Note how long PreEnqueue took, under the status Success for any answer, as upstream."""
        told = self.plugins.durations_of("PreEnqueue", "Success", profile)
        told.add(self.observer_now_ns() - since_ns)
