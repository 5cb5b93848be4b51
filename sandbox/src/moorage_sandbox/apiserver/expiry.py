"""Expiry of Events: after an hour, as in Kubernetes, and the oldest ones above a bound.

Nothing runs in the background: every call to the server first drops expired Events. That is one
comparison when none has expired.
"""

from __future__ import annotations

from collections import deque

from moorage.base.clock import NS_PER_SECOND
from moorage_sandbox.apiserver.catalog import EVENTS
from moorage_sandbox.apiserver.world import World
from moorage_sandbox.storage.record import Record
from moorage_sandbox.storage.store import Key

# kube-apiserver --event-ttl.
EVENT_TTL_NS = 3600 * NS_PER_SECOND
# Bounds memory when a sick cluster writes events without end (a guess: about 50 MB).
EVENTS_MAX = 50_000


class EventExpiry:
    """Removes events an hour after they were last written.

    Parameters
    ----------
    world
        Holds the events.

    Attributes
    ----------
    due
        (time of expiry, event, its version), oldest first. An event written again has a new entry;
        its older entries are skipped because their version does not match.
    """

    def __init__(self, world: World, *, events_max: int = EVENTS_MAX) -> None:
        self._world = world
        self._served = world.catalog.by_plural(EVENTS)
        self._events_max = events_max
        self.due: deque[tuple[int, Key, int]] = deque()

    def load(self) -> None:
        """Let stored events live another hour; after a store has been restored."""
        shelf = self._world.store.shelf(EVENTS)
        for record in sorted(shelf.records(), key=lambda record: record.version):
            self.written(record)

    def written(self, record: Record) -> None:
        """Note that an event was written."""
        expires_ns = self._world.clock.monotonic_ns() + EVENT_TTL_NS
        self.due.append((expires_ns, record.key, record.version))

    def sweep(self) -> None:
        """Remove expired events, and the oldest ones above the bound."""
        now_ns = self._world.clock.monotonic_ns()
        shelf = self._world.store.shelf(EVENTS)
        while self.due and (self.due[0][0] <= now_ns or len(shelf) > self._events_max):
            _, key, version = self.due.popleft()
            record = shelf.get(key)
            if record is not None and record.version == version:
                self._world.remove(self._served, key)
