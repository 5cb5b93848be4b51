"""Every pod's history: what happened to it, when, and because of what.

The lifecycle and the queue write histories and never read them for a decision. Each history has a
bounded number of entries. Each pending pod has one history, and a bounded number of histories of
pods that were bound or are gone is kept.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Final

import msgspec

from moorage.base.clock import Clock, rfc3339_micro
from moorage.state.queued_pod import PodKey

_ENTRIES_MAX = 50
"""Entries kept for a pod; a guess: some ten attempts."""

_FINISHED_MAX = 4096
"""Histories kept of bound and gone pods; a guess: a few megabytes."""


class HistoryEntry(msgspec.Struct, frozen=True, gc=False):
    """An entry of a pod's history.

    Parameters
    ----------
    at_ns
        Wall-clock time, nanoseconds since the Unix epoch.
    what
        The fact, as a short phrase.
    cause
        The stimulus of the entry: a cluster event's label, or the name of a call.
    """

    at_ns: int
    what: str
    cause: str

    def __str__(self) -> str:
        return f"{rfc3339_micro(self.at_ns)} {self.what} ({self.cause})"


class PodHistory(msgspec.Struct, eq=False):
    """The entries of one pod, oldest first; the oldest are dropped first.

    Parameters
    ----------
    uid, key
        The pod.
    dropped
        Number of entries dropped to stay within the bound.
    newest
        The entries kept, oldest first; written by `Histories` and `Lifecycle` alone.
    """

    uid: str
    key: PodKey
    dropped: int = 0
    newest: list[HistoryEntry] = []

    @property
    def entries(self) -> tuple[HistoryEntry, ...]:
        """The entries kept, oldest first."""
        return tuple(self.newest)

    def drop_oldest(self) -> None:
        """Drop one entry to stay within the bound."""
        del self.newest[0]
        self.dropped += 1

    def by_cause(self, cause: str) -> tuple[HistoryEntry, ...]:
        """Return the entries with exactly this cause, oldest first."""
        return tuple(entry for entry in self.newest if entry.cause == cause)


class Histories:
    """The histories of all pods, by uid and by name.

    Parameters
    ----------
    clock
        Source of the entries' times.
    entries_max
        Entries kept for each pod.
    finished_max
        Histories kept after a pod was bound or is gone; the longest finished is dropped first.
    """

    def __init__(
        self, clock: Clock, *, entries_max: int = _ENTRIES_MAX, finished_max: int = _FINISHED_MAX
    ) -> None:
        self.now_ns = clock.now_ns
        self.entries_max = entries_max
        self._finished_max = finished_max
        self._by_uid: dict[str, PodHistory] = {}
        self.get: Final = self._by_uid.get  # not a method around it: asked at each attempt
        """Returns a pod's history by uid, or None if there is none."""
        self._uid_by_key: dict[PodKey, str] = {}
        # Insertion order is the order of finishing. Values are unused.
        self._finished: OrderedDict[str, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._by_uid)

    def __iter__(self) -> Iterator[PodHistory]:
        return iter(self._by_uid.values())

    def add_entry(self, uid: str, key: PodKey, what: str, *, cause: str) -> None:
        """Add an entry to a pod's history, beginning the history if there is none."""
        history = self._by_uid.get(uid) or self.begin_history(uid, key)
        history.newest.append(HistoryEntry(self.now_ns(), what, cause))
        if len(history.newest) > self.entries_max:
            history.drop_oldest()

    def begin_history(self, uid: str, key: PodKey) -> PodHistory:
        """Return a new history, without entries, of a pod that has none."""
        history = self._by_uid[uid] = PodHistory(uid, key)
        self._uid_by_key[key] = uid
        return history

    def history_of(self, uid: str) -> tuple[HistoryEntry, ...]:
        """Return what is known to have happened to a pod, oldest first; empty if unknown."""
        history = self._by_uid.get(uid)
        return history.entries if history is not None else ()

    def find(self, namespace: str, name: str) -> PodHistory | None:
        """Return the history of the newest pod of this name, or None."""
        uid = self._uid_by_key.get((namespace, name))
        return self._by_uid.get(uid) if uid is not None else None

    def by_cause(self, cause: str) -> dict[str, tuple[HistoryEntry, ...]]:
        """Return, by uid, the entries of all pods that have exactly this cause."""
        found = {uid: history.by_cause(cause) for uid, history in self._by_uid.items()}
        return {uid: entries for uid, entries in found.items() if entries}

    def finish(self, uid: str) -> None:
        """Mark a history as finished: it is kept until enough others finished after it."""
        if uid not in self._by_uid:
            return
        self._finished[uid] = None
        self._finished.move_to_end(uid)
        while len(self._finished) > self._finished_max:
            oldest, _ = self._finished.popitem(last=False)
            history = self._by_uid.pop(oldest)
            if self._uid_by_key.get(history.key) == oldest:
                del self._uid_by_key[history.key]

    def reopen(self, uid: str) -> None:
        """Take back `finish`: the pod is on its way again."""
        self._finished.pop(uid, None)
