"""A heap of deadlines, one for each key: thousands of pods wait without a task of their own."""

from __future__ import annotations

import heapq
from collections.abc import Hashable
from typing import Generic, TypeVar

KeyT = TypeVar("KeyT", bound=Hashable)


class Timers(Generic[KeyT]):
    """Deadlines by key; setting a key again replaces its deadline."""

    __slots__ = ("_due", "_heap", "_number")

    def __init__(self) -> None:
        # (due, number, key); an entry counts only while its number is the key's latest.
        self._heap: list[tuple[int, int, KeyT]] = []
        self._due: dict[KeyT, tuple[int, int]] = {}
        self._number = 0

    def __len__(self) -> int:
        return len(self._due)

    def set(self, key: KeyT, due_ns: int) -> None:
        """Set or move the deadline of a key."""
        self._number += 1
        self._due[key] = (due_ns, self._number)
        heapq.heappush(self._heap, (due_ns, self._number, key))

    def cancel(self, key: KeyT) -> None:
        """Forget the deadline of a key, if it has one."""
        self._due.pop(key, None)

    def due_ns(self, key: KeyT) -> int | None:
        """Return the deadline of a key."""
        found = self._due.get(key)
        return found[0] if found else None

    def next_due_ns(self) -> int | None:
        """Return the earliest deadline; None if there is none."""
        self._drop_stale()
        return self._heap[0][0] if self._heap else None

    def pop_due(self, now_ns: int) -> list[KeyT]:
        """Remove and return the keys whose deadline has come, earliest first."""
        keys: list[KeyT] = []
        self._drop_stale()
        while self._heap and self._heap[0][0] <= now_ns:
            _, _, key = heapq.heappop(self._heap)
            del self._due[key]
            keys.append(key)
            self._drop_stale()
        return keys

    def _drop_stale(self) -> None:
        heap = self._heap
        while heap and self._due.get(heap[0][2], (0, 0))[1] != heap[0][1]:
            heapq.heappop(heap)
