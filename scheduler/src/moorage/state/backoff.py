"""backoffQ: pods that wait after a failed attempt, longer after each failure.

Two heaps. Rejected pods may be popped early when nothing else is to do; pods that met an error may
not, because an error says nothing about room in the cluster. Nor may a pod that would take along
one that had a node and failed. Where no pod is popped early, both heaps behave as one.

Times are wall-clock, as in kube-scheduler. A `BackoffTimes` (`moorage.state.backoff_times`)
computes how long the backoff of a pod is and when it ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Protocol

from moorage.base.clock import Clock
from moorage.state.contracts import BACKOFF, QueueObserver, SortKey
from moorage.state.keyed_heap import KeyedHeap
from moorage.state.queued_pod import PodKey, QueuedPod


class BackoffTimes(Protocol):
    """The length of the backoff of a failed pod."""

    def ends_ns(self, queued: QueuedPod) -> int:
        """Return when a pod's backoff ends, wall-clock nanoseconds; 0 if it has none."""
        ...

    def release_ns(self, end_ns: int) -> int:
        """Return the first moment at which a backoff with this end no longer holds its pod."""
        ...


class BackoffQueue:
    """Pods waiting out their backoff.

    Parameters
    ----------
    clock
        Source of the current time.
    times
        Computes the backoff of each pod.
    sort_key
        Order of pods whose backoff ends together, where they may be popped early.
    observer
        Counts the pods.
    popped_early
        Whether pods may be popped before their backoff is over.
    queued
        The pods of all sub-queues by key, in which those of this one are kept.
    """

    def __init__(
        self,
        clock: Clock,
        times: BackoffTimes,
        sort_key: SortKey,
        observer: QueueObserver,
        *,
        popped_early: bool,
        queued: dict[PodKey, QueuedPod],
    ) -> None:
        self._clock = clock
        self._times = times
        on_size = partial(observer.pending, BACKOFF)
        if popped_early:
            self.rejected = KeyedHeap(lambda p: (self.expiry_ns(p), sort_key(p)), on_size, queued)
        else:
            self.rejected = KeyedHeap(self.expiry_ns, on_size, queued)
        """Pods that at least one plugin rejected; these may be popped early."""
        self.errored = KeyedHeap(self.expiry_ns, on_size, queued)
        """Pods whose attempt met an error, and pods that may not be popped early."""

    def __len__(self) -> int:
        return len(self.rejected) + len(self.errored)

    def __contains__(self, key: PodKey) -> bool:
        return key in self.rejected or key in self.errored

    def expiry_ns(self, queued: QueuedPod) -> int:
        """Return when a pod's backoff ends, wall-clock nanoseconds; 0 if it has none.

        The answer is kept in the pod until it comes back from another attempt.
        """
        if queued.backoff_expiration_ns == 0:
            queued.backoff_expiration_ns = self._times.ends_ns(queued)
        return queued.backoff_expiration_ns

    def is_backing_off(self, queued: QueuedPod) -> bool:
        """Whether a pod's backoff still holds it."""
        return self._clock.now_ns() < self.release_ns(queued)

    def release_ns(self, queued: QueuedPod) -> int:
        """Return the first moment at which a pod's backoff no longer holds it, wall-clock ns."""
        return self._times.release_ns(self.expiry_ns(queued))

    def put_pod(self, queued: QueuedPod) -> None:
        """Add a pod, which must not be here yet, to the half its rejectors ask for."""
        assert queued.key not in self, f"{queued!r} is in backoffQ already"
        has_rejectors = bool(queued.unschedulable_plugins or queued.pending_plugins)
        (self.rejected if has_rejectors else self.errored).put_pod(queued)

    def update(self, queued: QueuedPod) -> None:
        """Sort a pod that is here again, within its half."""
        (self.rejected if queued.key in self.rejected else self.errored).put_pod(queued)

    def get(self, key: PodKey) -> QueuedPod | None:
        """Return the pod of this key, or None."""
        return self.rejected.get(key) or self.errored.get(key)

    def remove(self, key: PodKey) -> QueuedPod | None:
        """Take a pod out; None if it is not here."""
        return self.rejected.remove(key) or self.errored.remove(key)

    def pop_early(self, may_leave: Callable[[QueuedPod], bool] | None = None) -> QueuedPod | None:
        """Take out a rejected pod although its backoff may still run, or return None.

        Parameters
        ----------
        may_leave
            Pods for which it answers True wait for the end of their backoff; None holds no pod.
        """
        while (first := self.rejected.pop()) is not None:
            if may_leave is None or not may_leave(first):
                return first
            self.errored.put_pod(first)
        return None

    def pop_completed(self) -> Iterator[QueuedPod]:
        """Take out, one by one, the pods whose backoff is over, rejected ones first."""
        for heap in (self.rejected, self.errored):
            while (first := heap.peek()) is not None and not self.is_backing_off(first):
                heap.pop()
                yield first

    def queued_pods(self) -> list[QueuedPod]:
        """Return all pods, rejected ones first, each half in arrival order."""
        return self.rejected.queued_pods() + self.errored.queued_pods()

    def validate(self) -> None:
        """Check both halves, and that no pod is in both."""
        self.rejected.validate()
        self.errored.validate()
        both = [queued for queued in self.rejected.queued_pods() if queued.key in self.errored]
        assert not both, f"in both halves of backoffQ: {both}"
