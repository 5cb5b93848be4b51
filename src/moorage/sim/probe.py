"""A look over the shoulder of one scheduler: which pod it takes, out of which."""

from __future__ import annotations

from collections.abc import Callable

from moorage.base.clock import Clock
from moorage.service.scheduler import Scheduler
from moorage.sim.history import History
from moorage.state.queued_pod import QueuedPod

OnBreach = Callable[[str, str], None]
"""Gets the name of an invariant, and how it does not hold."""

# A pod may be tried once for each event: where nothing else is to be tried, backoff holds nothing
# back. The users of a simulation cause some fifty events in this time, a loop causes thousands. A
# garbage collector and a controller that sees late can cause as many, so their writes are counted.
_TRIES_MOST = 200
_WITHIN_NS = 10 * 10**9
# In half a minute; groups that do not fit come back by backoff, each ten seconds, and wake others.
_TRIES_AT_REST = 10


class Probe:
    """Notes each pod that a scheduler takes out of its queue.

    Parameters
    ----------
    scheduler
        Looked at. Its queue is asked through this probe from now on.
    clock
        Time of the loop.
    by_priority
        Whether the queue is sorted by priority first.
    history
        Notes when each pod is tried, and counts the changes that no scheduler made.
    on_breach
        Told of an invariant that does not hold.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        clock: Clock,
        *,
        by_priority: bool,
        history: History,
        on_breach: OnBreach,
    ) -> None:
        self._queue = scheduler.core.queue
        self._clock = clock
        self._by_priority = by_priority
        self._history = history
        self._on_breach = on_breach
        # Of each pod, by uid: when it was tried, and how many writes there had been.
        self._tries: dict[str, list[tuple[int, int]]] = {}
        self._pop = self._queue.pop
        vars(self._queue)["pop"] = self.pop

    def pop(self) -> QueuedPod | None:
        """Take the next pod out, as the queue does, and judge the choice."""
        active = [each.pod.priority for each in self._queue.pending().active]
        queued = self._pop()
        if queued is not None:
            if self._by_priority and active and queued.priority < max(active):
                self._on_breach(
                    "order",
                    f"{queued.pod.full_name} of priority {queued.priority} is tried before a pod "
                    f"of {max(active)}",
                )
            self._count(queued)
        return queued

    def _count(self, queued: QueuedPod) -> None:
        now_ns, writes = self._clock.monotonic_ns(), self._history.writes_of_others
        self._history.popped_ns[queued.uid] = now_ns
        self._history.first_popped_ns.setdefault(queued.uid, now_ns)
        tries = self._tries.setdefault(queued.uid, [])
        tries.append((now_ns, writes))
        del tries[:-_TRIES_MOST]
        since_ns, writes_then = tries[0]
        often = len(tries) == _TRIES_MOST and now_ns - since_ns < _WITHIN_NS
        if often and writes - writes_then < _TRIES_MOST:
            self._on_breach("tries", f"{queued.pod.full_name} is tried again and again")
            tries.clear()

    def tried_since(self, since_ns: int) -> list[str]:
        """Return the pods, by uid, that were tried more often than backoff lets them."""
        found = self._tries.items()
        return [uid for uid, tries in found if len(_after(tries, since_ns)) > _TRIES_AT_REST]


def _after(tries: list[tuple[int, int]], since_ns: int) -> list[int]:
    return [at_ns for at_ns, _ in tries if at_ns > since_ns]
