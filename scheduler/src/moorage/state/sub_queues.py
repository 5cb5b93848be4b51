"""The sub-queues together: moving a pod from one to another, with its gauges and its history.

Below the queue's entry points (`moorage.state.queue`), above the single sub-queues. Keeps what
`validate` checks: a queued pod is in exactly one sub-queue, its lifecycle state names that
sub-queue, and the pod counts once in each gauge.

A pod may be queued a second time while an attempt owns it (the API may show it as added again).
This *second copy* does not change the pod's state, which stays with the attempt. If the attempt
ends without giving the pod back, the copy takes over.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from moorage.api.changes import Action, ClusterEvent, Resource
from moorage.api.pod import Pod
from moorage.base.clock import Clock
from moorage.base.no_names import NO_NAMES
from moorage.state.backoff import BackoffQueue, BackoffTimes
from moorage.state.contracts import (
    ACTIVE,
    BACKOFF,
    UNSCHEDULABLE,
    QueueObserver,
    QueueSettings,
    SortKey,
)
from moorage.state.keyed_heap import KeyedHeap
from moorage.state.lifecycle import ATTEMPTED, Lifecycle, PodState
from moorage.state.nominations import Nominator
from moorage.state.pre_enqueue import PreEnqueueGates
from moorage.state.queued_pod import PodKey, QueuedPod
from moorage.state.unschedulable import UnschedulablePods
from moorage.state.wakeups import Requeue

POD_ADD = ClusterEvent(Resource.UNSCHEDULABLE_POD, Action.ADD)
POD_UPDATE = ClusterEvent(Resource.UNSCHEDULABLE_POD, Action.UPDATE)
POP_FROM_BACKOFF = "PopFromBackoffQ"

_NOMINATING = frozenset({POD_ADD.label, POD_UPDATE.label})
"""Causes on which a pod that becomes active is nominated as its status says."""

# Under names of their own: finding a member in its class takes ten times as long.
_ACTIVE, _BACKOFF, _GATED = PodState.ACTIVE, PodState.BACKOFF, PodState.GATED
_UNSCHEDULABLE, _IN_FLIGHT = PodState.UNSCHEDULABLE, PodState.IN_FLIGHT
_SKIP, _AFTER_BACKOFF = Requeue.SKIP, Requeue.AFTER_BACKOFF

_HELD_ELSEWHERE = ATTEMPTED | {PodState.BOUND}


class SubQueues:
    """activeQ, backoffQ, unschedulablePods and the nominations, kept consistent.

    Parameters
    ----------
    clock
        Source of the current time.
    settings
        Times and switches.
    backoff_times
        Computes the backoff of a failed pod.
    sort_key
        The order of activeQ.
    pre_enqueue
        Asked before a pod enters activeQ or backoffQ.
    lifecycle
        Keeps the state of each pod.
    nominator
        The nominations; told which nominated pods are here.
    observer
        Counts for the metrics.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        settings: QueueSettings,
        backoff_times: BackoffTimes,
        sort_key: SortKey,
        pre_enqueue: PreEnqueueGates,
        lifecycle: Lifecycle,
        nominator: Nominator,
        observer: QueueObserver,
    ) -> None:
        self._clock = clock
        self._settings = settings
        self._pre_enqueue = pre_enqueue
        self._lifecycle = lifecycle
        self._observer = observer
        # Every queued pod; the sub-queues keep it, so that one look tells whether a pod is queued.
        self._queued: dict[PodKey, QueuedPod] = {}
        self.active = KeyedHeap(sort_key, partial(observer.pending, ACTIVE), self._queued)
        self.backoff = BackoffQueue(
            clock,
            backoff_times,
            sort_key,
            observer,
            popped_early=settings.pop_from_backoff,
            queued=self._queued,
        )
        self.unschedulable = UnschedulablePods(observer, self._queued)
        self.nominator = nominator

    def __len__(self) -> int:
        return len(self._queued)

    def find(self, key: PodKey) -> QueuedPod | None:
        """Return the queued pod of this key, wherever it waits, or None."""
        return self._queued.get(key)

    def sub_queue_of(self, key: PodKey) -> PodState | None:
        """Return which sub-queue holds a key, as a lifecycle state, or None."""
        if key in self.active:
            return _ACTIVE
        if key in self.backoff:
            return _BACKOFF
        waiting = self.unschedulable.get(key)
        return None if waiting is None else _waiting_state(waiting)

    def to_active(self, queued: QueuedPod, cause: str, *, from_backoff: bool = False) -> bool:
        """Move a pod to activeQ, or hold it if PreEnqueue rejects it; returns whether it was moved.

        A pod straight from backoffQ is not asked again if it was asked on its way in.
        """
        if not (from_backoff and self._settings.pop_from_backoff):
            self._pre_enqueue.run(queued)
        if queued.gating_plugin:
            self._refused(queued, cause)
            return False
        if queued.initial_attempt_ns is None:
            queued.initial_attempt_ns = self._clock.now_ns()
        if queued.key in self._queued:
            self._displaced(self.unschedulable.remove(queued.key), queued)
            self._displaced(self.backoff.remove(queued.key), queued)
        self._displaced(self.active.put_pod(queued), queued)
        self._entered(queued, _ACTIVE, cause)
        self._observer.incoming(ACTIVE, cause, queued.pod)
        if cause in _NOMINATING:
            self.nominator.add(queued.pod, None, queued=queued.pod)
        return True

    def to_backoff(self, queued: QueuedPod, cause: str) -> bool:
        """Move a pod to backoffQ; returns whether it was moved.

        With pop_from_backoff PreEnqueue is asked, since the pod may be popped from backoffQ. About
        a gated pod PreEnqueue is always asked, because a gated pod has no backoff to wait for.
        """
        if self._settings.pop_from_backoff or queued.gated:
            self._pre_enqueue.run(queued)
            if queued.gating_plugin:
                self._refused(queued, cause)
                return False
        # The pod waited, or it comes back from an attempt and has no queued copy.
        self.unschedulable.remove(queued.key)
        self.backoff.put_pod(queued)
        self._entered(queued, _BACKOFF, cause)
        self._observer.incoming(BACKOFF, cause, queued.pod)
        return True

    def to_unschedulable(self, queued: QueuedPod, cause: str) -> None:
        """Let a pod wait, gated or not, for an event that may help."""
        if self.unschedulable.put_pod(queued):
            self._observer.incoming(UNSCHEDULABLE, cause, queued.pod)
        self._entered(queued, _waiting_state(queued), cause)

    def requeue(self, queued: QueuedPod, answer: Requeue, cause: str) -> PodState:
        """Move a pod to the sub-queue of an answer; returns ACTIVE, BACKOFF or UNSCHEDULABLE."""
        if answer is _SKIP:
            self.to_unschedulable(queued, cause)
            return _UNSCHEDULABLE
        if answer is _AFTER_BACKOFF and self.backoff.is_backing_off(queued):
            return _BACKOFF if self.to_backoff(queued, cause) else _UNSCHEDULABLE
        return _ACTIVE if self.to_active(queued, cause) else _UNSCHEDULABLE

    def resort(self, queued: QueuedPod, pod: Pod) -> None:
        """Take over a new version of a pod that stays where it is."""
        sub_queue = self.sub_queue_of(queued.key)
        queued.update(pod)
        if sub_queue is PodState.ACTIVE:
            self.active.put_pod(queued)
        elif sub_queue is PodState.BACKOFF:
            self.backoff.update(queued)
        else:
            self.unschedulable.put_pod(queued)

    def take_next(self, may_leave: Callable[[QueuedPod], bool] | None = None) -> QueuedPod | None:
        """Take out the pod to try next, or None.

        With nothing active, a rejected pod is taken although its backoff still runs. A pod that
        met an error is not, nor a pod for which `may_leave` answers True.
        """
        queued = self.active.pop()
        if queued is None and self._settings.pop_from_backoff:
            queued = self.backoff.pop_early(may_leave)
            if queued is not None:
                self._observer.incoming(ACTIVE, POP_FROM_BACKOFF, queued.pod)
        if queued is not None:
            self._left(queued)
        return queued

    def take_pod(self, key: PodKey) -> QueuedPod | None:
        """Take a pod out wherever it waits, or return None."""
        if key not in self._queued:
            return None
        queued = self.active.remove(key) or self.backoff.remove(key)
        queued = queued or self.unschedulable.remove(key)
        if queued is not None:
            self._left(queued)
        return queued

    def queued_pods(self) -> list[QueuedPod]:
        """Return all queued pods: active, backoff, waiting; each in arrival order."""
        return (
            self.active.queued_pods()
            + self.backoff.queued_pods()
            + self.unschedulable.queued_pods()
        )

    def validate(self) -> None:
        """Check every sub-queue, that no pod is in two, and that lifecycle and gauges agree."""
        for part in (self.active, self.backoff, self.unschedulable, self.nominator):
            part.validate()
        keys = [queued.key for queued in self.queued_pods()]
        assert len(keys) == len(set(keys)), f"a pod is in two sub-queues: {sorted(keys)}"
        here = {queued.key: queued for queued in self.queued_pods()}
        assert self._queued == here, "the queued pods and those of the sub-queues differ"
        for queued in self.queued_pods():
            sub_queue, state = self.sub_queue_of(queued.key), self._lifecycle.state(queued.uid)
            agree = state is sub_queue or state in _HELD_ELSEWHERE
            assert agree, f"{queued!r} is in {sub_queue}, its lifecycle says {state}"
            assert queued.counted_rejectors == queued.rejectors, f"{queued!r} is miscounted"
            if sub_queue is not PodState.GATED:
                assert not queued.gated, f"{queued!r} is gated in {sub_queue}"
        versions = {queued.uid: queued.pod for queued in self.queued_pods()}
        for uid, _ in self.nominator:
            told = self.nominator.queued_version(uid)
            assert told is versions.get(uid), f"the nominator has {told} of pod {uid}"

    def _refused(self, queued: QueuedPod, cause: str) -> None:
        # Only a fresh copy of a queued pod is there already: the queued pod stays.
        if queued.key in self.active or queued.key in self.backoff:
            self._lifecycle.add_entry(queued.pod, "fresh copy refused by PreEnqueue", cause=cause)
            return
        before = self.unschedulable.get(queued.key)
        self.to_unschedulable(queued, cause)
        if before is not queued:
            self._displaced(before, queued)
        # Members of a group are refused until the group is complete. After a restart their victims
        # are still stopping, and without nominations other pods would take the room.
        if cause in _NOMINATING and queued.pod.status.nominated_node_name:
            self.nominator.add(queued.pod, None, queued=queued.pod)

    def _entered(self, queued: QueuedPod, state: PodState, cause: str) -> None:
        self._recount(queued, queued.rejectors)
        lifecycle, uid = self._lifecycle, queued.uid
        held = lifecycle.known(uid)
        # A pod that comes back from its attempt was popped at least once; a second copy never was.
        returns = held is _IN_FLIGHT and queued.attempts > 0
        if held in _HELD_ELSEWHERE and not returns:
            lifecycle.add_entry(queued.pod, f"second copy -> {state.value}", cause=cause)
        else:
            lifecycle.move(queued.pod, state, cause=cause)
        self.nominator.entered(queued.pod)

    def _left(self, queued: QueuedPod) -> None:
        if queued.counted_rejectors:
            self._recount(queued, NO_NAMES)
        self.nominator.left(queued.uid)

    def _displaced(self, displaced: QueuedPod | None, by: QueuedPod) -> None:
        """Take the counts off a queued pod whose key another pod object takes over."""
        if displaced is None or displaced is by:
            return
        self._recount(displaced, NO_NAMES)
        if displaced.uid != by.uid:
            self.nominator.withdraw_nomination(displaced.pod)
            if self._lifecycle.known(displaced.uid) not in _HELD_ELSEWHERE:
                cause = "replaced by a pod of the same name"
                self._lifecycle.move(displaced.pod, PodState.GONE, cause=cause)

    def _recount(self, queued: QueuedPod, rejectors: frozenset[str]) -> None:
        """Make the pod count for exactly these plugins in ``unschedulable_pods``.

        kube-scheduler leaves a count behind when it deletes or replaces a pod in activeQ or
        backoffQ; here each pod gives back its counts.
        """
        before = queued.counted_rejectors
        if before is rejectors or before == rejectors:
            return
        observer, profile = self._observer, queued.pod.spec.scheduler_name
        for plugin in sorted(rejectors - before) if rejectors else ():
            observer.unschedulable_pods(plugin, profile, 1)
        for plugin in sorted(before - rejectors) if before else ():
            observer.unschedulable_pods(plugin, profile, -1)
        queued.counted_rejectors = rejectors


def _waiting_state(queued: QueuedPod) -> PodState:
    return _GATED if queued.gating_plugin else _UNSCHEDULABLE
