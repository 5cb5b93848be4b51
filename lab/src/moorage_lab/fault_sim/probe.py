"""A look over the shoulder of one scheduler: which pod it takes, out of which."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from moorage.api.pod import Pod
from moorage.base.clock import Clock
from moorage.service.scheduler import Scheduler
from moorage.state.pending import PendingPod
from moorage.state.queued_pod import QueuedPod
from moorage_lab.fault_sim.history import History

OnBreach = Callable[[str, str], None]
"""Gets the name of an invariant, and how it does not hold."""

# A pod may be tried once for each event: where nothing else is to be tried, backoff holds nothing
# back. The users of a simulation cause some fifty events in this time, a loop causes thousands. A
# garbage collector and a controller that sees late can cause as many, so their writes are counted.
_TRIES_MOST = 200
_SECOND_NS = 10**9
_WITHIN_NS = 10 * _SECOND_NS
_BACKOFF_MOST_NS = 10 * _SECOND_NS
# In half a minute; groups that do not fit come back by backoff, each ten seconds, and wake others.
_TRIES_AT_REST = 10


class Probe:
    """Notes each pod that a scheduler takes out of its queue.

    Parameters
    ----------
    scheduler
        Looked at. Its queue is asked through this probe from now on.
    clock
        The scheduler's own clock, whose time of day jumps with a fault.
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
        # Of each pod whose last attempts met errors, by uid: how many, and when the last one ended.
        self._errors: dict[str, tuple[int, int]] = {}
        # Of each of these pods that waits in activeQ since, by uid: when its backoff ended.
        self._ended: dict[str, int] = {}
        # Of each pod, by uid: how many of its attempts a plugin rejected.
        self._rejections: dict[str, int] = {}
        # The uid of the pod that was taken out last.
        self._last = ""
        self._pop = self._queue.pop
        self._give_back = self._queue.add_unschedulable_if_not_present
        self._flush = self._queue.flush_backoff
        self._activate = self._queue.activate
        self._update = self._queue.update
        vars(self._queue).update(
            pop=self.pop,
            add_unschedulable_if_not_present=self.give_back,
            flush_backoff=self.flush_backoff,
            activate=self.activate,
            update=self.update,
        )

    def pop(self) -> QueuedPod | None:
        """Take the next pod out, as the queue does, and judge the choice."""
        pending = self._queue.pending()
        active = [each.pod.priority for each in pending.active]
        self._look_at_growth(pending.backoff)
        queued = self._pop()
        if queued is not None:
            if self._by_priority and active and queued.priority < max(active):
                self._on_breach(
                    "order",
                    f"{queued.pod.full_name} of priority {queued.priority} is tried before a pod "
                    f"of {max(active)}",
                )
            self._count(queued)
            self._look_at_backoff(queued)
        return queued

    def give_back(self, queued: QueuedPod) -> None:
        """Take a pod back whose attempt failed, as the queue does, and note whether by an error."""
        self._ended.pop(queued.uid, None)  # where it was taken out with its group
        if queued.rejectors:
            self._errors.pop(queued.uid, None)
            self._rejections[queued.uid] = self._rejections.get(queued.uid, 0) + 1
        else:
            errors, _ = self._errors.get(queued.uid, (0, 0))
            self._errors[queued.uid] = errors + 1, self._clock.now_ns()
        self._give_back(queued)

    def flush_backoff(self) -> None:
        """Activate pods whose backoff is over, as the queue does, and note when it ended."""
        self._flush()
        for each in self._queue.pending().active:
            if each.pod.uid in self._errors:
                self._ended.setdefault(each.pod.uid, self._clock.now_ns())

    def activate(self, pods: Iterable[Pod], *, news: bool = True) -> None:
        """Activate pods, as the queue does; these need not wait out their backoff."""
        pods = list(pods)
        for pod in pods:
            self._errors.pop(pod.uid, None)
        self._activate(pods, news=news)

    def update(self, old: Pod | None, new: Pod, *, assumed: bool = False) -> None:
        """Take over a new version of a pod, as the queue does, and look whether a promise stays."""
        nominator, uid = self._queue.nominator, new.uid
        before = nominator.node_of(uid)
        self._update(old, new, assumed=assumed)
        nominated = new.status.nominated_node_name or (old and old.status.nominated_node_name)
        if before and not nominated and nominator.node_of(uid) != before:
            self._on_breach(
                "promise-kept",
                f"{new.full_name} is promised {before} no more, for an update that does not say so",
            )

    def _look_at_growth(self, backing_off: Iterable[PendingPod]) -> None:
        """Judge the backoffs of rejected pods: each is twice the last one, up to the longest."""
        for each in backing_off:
            times = self._rejections.get(each.pod.uid, 0)
            lasts_ns = each.backoff_expiration_ns - each.since_ns
            if times and each.unschedulable_plugins and lasts_ns < _least_wait_ns(times):
                self._on_breach(
                    "backoff",
                    f"{each.pod.full_name} waits for {lasts_ns / _SECOND_NS:.3f} s after {times} "
                    "rejections",
                )

    def _look_at_backoff(self, queued: QueuedPod) -> None:
        """Judge when a pod is tried again after errors: each wait is twice the last one.

        A backoff ends at a time of day, as in kube-scheduler: a clock that jumps ends it early. A
        pod may wait in activeQ afterwards, and a clock that jumps back does not undo the end.
        """
        errors, since_ns = self._errors.get(queued.uid, (0, 0))
        waited_ns = self._ended.pop(queued.uid, self._clock.now_ns()) - since_ns
        if errors and waited_ns < _least_wait_ns(errors):
            self._on_breach(
                "backoff",
                f"{queued.pod.full_name} is tried {waited_ns / _SECOND_NS:.3f} s after error "
                f"{errors} in a row",
            )

    def _count(self, queued: QueuedPod) -> None:
        now_ns, writes = self._history.history_now_ns, self._history.writes_of_others
        self._history.popped_ns[queued.uid] = now_ns
        self._history.pops += 1
        self._history.popped_at[queued.uid] = self._history.pops
        self._history.first_popped_ns.setdefault(queued.uid, now_ns)
        self._history.tried_after[queued.uid], self._last = self._last, queued.uid
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
        tries_by_uid = self._tries.items()
        return [uid for uid, tries in tries_by_uid if len(_after(tries, since_ns)) > _TRIES_AT_REST]


def _least_wait_ns(failures: int) -> int:
    """Return the shortest backoff after so many failures in a row; its end is on a whole second."""
    return min(_SECOND_NS << (failures - 1), _BACKOFF_MOST_NS) - _SECOND_NS


def _after(tries: list[tuple[int, int]], since_ns: int) -> list[int]:
    return [at_ns for at_ns, _ in tries if at_ns > since_ns]
