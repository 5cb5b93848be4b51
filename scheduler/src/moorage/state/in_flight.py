"""Pods in flight, and the cluster events that came during their attempts.

An event that arrives during an attempt may cure the rejection that the attempt is about to get. The
event is kept and looked at when the pod comes back, so that no wake-up is lost:

    oldest -> newest:   [pod A] [event 1] [pod B] [event 2] [event 3] [pod C]

A pod's events are all events after its marker. An event is dropped when the last pod before it is
done. Mirrors kubernetes v1.36 ``pkg/scheduler/backend/queue/active_queue.go``.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import NamedTuple

from moorage.api.changes import ClusterEvent
from moorage.state.contracts import QueueObserver

POD_POPPED = "PodPopped"
"""The label under which pod markers are counted."""


class InFlightEvent(NamedTuple):
    """A cluster event kept for the pods that were in flight when it came."""

    position: int
    event: ClusterEvent
    old: object | None
    new: object | None


class InFlight:
    """The pods in flight, and the events since each was popped.

    Parameters
    ----------
    events_max
        Most events kept; the oldest are dropped beyond it.
    observer
        Counts the markers and events.
    keeps_events
        Whether events are kept at all; without them there are only the two numbers of kubernetes
        v1.20 (`scheduling_cycle` and `move_request_cycle`) to tell what happened meanwhile.

    Attributes
    ----------
    scheduling_cycle
        The number of pods popped so far: the number of the newest attempt.
    move_request_cycle
        `scheduling_cycle` when waiting pods were last asked to move; -1 before.
    """

    def __init__(
        self, events_max: int, observer: QueueObserver, *, keeps_events: bool = True
    ) -> None:
        self.scheduling_cycle = 0
        self.move_request_cycle = -1
        self._keeps_events = keeps_events
        self._events_max = events_max
        self._observer = observer
        # uid -> position of its marker. Ordered by position, because positions only grow; an
        # OrderedDict because taking the first of a plain dict gets slow as its head empties.
        self._markers: OrderedDict[str, int] = OrderedDict()
        # Events in order of position; none is older than the oldest marker.
        self._events: deque[InFlightEvent] = deque()
        self._position = 0
        # Events up to this position may have been dropped for lack of room.
        self._dropped_to = 0

    def __len__(self) -> int:
        return len(self._markers)

    def __contains__(self, uid: str) -> bool:
        return uid in self._markers

    def begin(self, uid: str) -> None:
        """Mark a pod as popped now."""
        assert uid not in self._markers, f"pod {uid} is in flight already"
        self.scheduling_cycle += 1
        self._position += 1
        self._markers[uid] = self._position
        self._observer.in_flight_events(POD_POPPED, 1)

    def record_move(self, event: ClusterEvent, old: object | None, new: object | None) -> None:
        """Keep an event because of which waiting pods were asked to move."""
        self.move_request_cycle = self.scheduling_cycle
        if self._markers:
            self.record_event(event, old, new)

    def record_event(self, event: ClusterEvent, old: object | None, new: object | None) -> None:
        """Keep an event for the pods in flight; without such pods it is dropped."""
        if not self._markers or not self._keeps_events:
            return
        self._position += 1
        self._events.append(InFlightEvent(self._position, event, old, new))
        self._observer.in_flight_events(event.label, 1)
        while len(self._events) > self._events_max:
            self._dropped_to = self._drop_oldest()

    def events_for(self, uid: str) -> list[InFlightEvent] | None:
        """Return the events since a pod was popped, oldest first; None if they are not known.

        The events are unknown for a pod that is not in flight, and after some had to be dropped.
        """
        marker = self._markers.get(uid)
        if marker is None or marker < self._dropped_to:
            return None
        events: list[InFlightEvent] = []
        for item in reversed(self._events):
            if item.position < marker:
                break
            events.append(item)
        events.reverse()
        return events

    def end_in_flight(self, uid: str) -> None:
        """Forget a pod and the events that no pod needs any more; a second call does nothing."""
        if self._markers.pop(uid, None) is None:
            return
        self._observer.in_flight_events(POD_POPPED, -1)
        if self._events:
            oldest = next(iter(self._markers.values()), None)
            while self._events and (oldest is None or self._events[0].position < oldest):
                self._drop_oldest()

    def uids(self) -> list[str]:
        """Return the pods in flight, longest in flight first."""
        return list(self._markers)

    def events(self) -> list[InFlightEvent]:
        """Return all events kept, oldest first."""
        return list(self._events)

    def validate(self) -> None:
        """Check the order, and that every event is kept for some pod."""
        positions = list(self._markers.values())
        assert positions == sorted(set(positions)), f"markers out of order: {positions}"
        kept = [item.position for item in self._events]
        assert kept == sorted(set(kept)), f"events out of order: {kept}"
        assert not kept or positions, "events kept for nobody"
        assert not kept or kept[0] > positions[0], "an event older than every pod in flight"
        assert self.move_request_cycle <= self.scheduling_cycle, "moved by an attempt to come"
        assert len(positions) <= self.scheduling_cycle, "more pods in flight than were popped"

    def _drop_oldest(self) -> int:
        item = self._events.popleft()
        self._observer.in_flight_events(item.event.label, -1)
        return item.position
