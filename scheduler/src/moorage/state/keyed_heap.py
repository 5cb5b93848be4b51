"""A heap of queued pods, by order, with access by key; activeQ and both halves of backoffQ.

On top of ``heapq``: an entry that is removed or re-sorted leaves its old place in the heap behind,
to be skipped when it surfaces. A sifting heap that moves entries in place was rejected because
every comparison would run in Python.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import TypeAlias

from moorage.state.contracts import Comparable, SortKey
from moorage.state.queued_pod import PodKey, QueuedPod

OnSize: TypeAlias = Callable[[int], None]

_STALE_MIN = 64
"""Left-behind places tolerated before the heap is rebuilt; keeps small heaps from rebuilding."""


class KeyedHeap:
    """Pods ordered by a sort key, pods of equal keys by arrival.

    Parameters
    ----------
    sort_key
        A pod's place in the order. Read once each time the pod is put.
    on_size
        Called with +1 or -1 when the number of pods changes.
    queued
        The pods of all sub-queues by key, in which those of this heap are kept; None for a heap
        by itself.
    """

    def __init__(
        self, sort_key: SortKey, on_size: OnSize, queued: dict[PodKey, QueuedPod] | None = None
    ) -> None:
        self._sort_key = sort_key
        self._on_size = on_size
        self._queued = {} if queued is None else queued
        # (sort key, arrival, stamp, key); stamps are unique, so comparing never reaches the key.
        self._heap: list[tuple[Comparable, int, int, PodKey]] = []
        # key -> (stamp, arrival, pod). A heap place is live iff its stamp is the one here.
        self._live: dict[PodKey, tuple[int, int, QueuedPod]] = {}
        self._stamp = 0

    def __len__(self) -> int:
        return len(self._live)

    def __contains__(self, key: PodKey) -> bool:
        return key in self._live

    def get(self, key: PodKey) -> QueuedPod | None:
        """Return the pod of this key, or None."""
        found = self._live.get(key)
        return found[2] if found is not None else None

    def put_pod(self, queued: QueuedPod) -> QueuedPod | None:
        """Add a pod, or sort a known pod again; returns the pod that was replaced, if any.

        A pod put again keeps its rank among the pods of equal sort keys.
        """
        self._stamp = stamp = self._stamp + 1
        entry = self._live.get(queued.key)
        arrival = stamp if entry is None else entry[1]
        self._live[queued.key] = (stamp, arrival, queued)
        self._queued[queued.key] = queued
        heapq.heappush(self._heap, (self._sort_key(queued), arrival, stamp, queued.key))
        if entry is None:
            self._on_size(1)
            return None
        self._sweep()
        return entry[2]

    def remove(self, key: PodKey) -> QueuedPod | None:
        """Take a pod out; returns None for an unknown key."""
        entry = self._live.pop(key, None)
        if entry is None:
            return None
        del self._queued[key]
        self._on_size(-1)
        self._sweep()
        return entry[2]

    def peek(self) -> QueuedPod | None:
        """Return the first pod without taking it, or None."""
        while self._heap:
            _, _, stamp, key = self._heap[0]
            found = self._live.get(key)
            if found is not None and found[0] == stamp:
                return found[2]
            heapq.heappop(self._heap)
        return None

    def pop(self) -> QueuedPod | None:
        """Take the first pod out, or return None."""
        heap, live = self._heap, self._live
        while heap:
            _, _, stamp, key = heapq.heappop(heap)
            found = live.get(key)
            if found is not None and found[0] == stamp:
                del live[key], self._queued[key]
                self._on_size(-1)
                return found[2]
        return None

    def queued_pods(self) -> list[QueuedPod]:
        """Return all pods in arrival order."""
        return [queued for _, _, queued in sorted(self._live.values(), key=lambda item: item[1])]

    def first(self, count: int) -> list[QueuedPod]:
        """Return the first pods in the order in which they would be popped; takes none out.

        The cost grows with `count`, not with the number of pods: a place is looked at after the
        place above it only.
        """
        heap = self._heap
        first_pods: list[QueuedPod] = []
        edge = [(heap[0], 0)] if heap else []
        while edge and len(first_pods) < count:
            (_, _, stamp, key), index = heapq.heappop(edge)
            if self._is_live(key, stamp):
                first_pods.append(self._live[key][2])
            for below in (2 * index + 1, 2 * index + 2):
                if below < len(heap):
                    heapq.heappush(edge, (heap[below], below))
        return first_pods

    def validate(self) -> None:
        """Check that every pod has exactly one live place in the heap."""
        live = [key for _, _, stamp, key in self._heap if self._is_live(key, stamp)]
        assert sorted(live) == sorted(self._live), "heap places and pods differ"
        for key, (_, _, queued) in self._live.items():
            assert key == queued.key, f"{queued!r} is filed under {key}"
        for index in range(1, len(self._heap)):
            parent = self._heap[(index - 1) // 2]
            assert not self._heap[index] < parent, f"heap order broken at {index}"

    def _is_live(self, key: PodKey, stamp: int) -> bool:
        found = self._live.get(key)
        return found is not None and found[0] == stamp

    def _sweep(self) -> None:
        if len(self._heap) <= 2 * len(self._live) + _STALE_MIN:
            return
        self._heap = [place for place in self._heap if self._is_live(place[3], place[2])]
        heapq.heapify(self._heap)
