"""The scheduling queue: pods wait here for their next attempt, and events or timers move them.

Flow: ``service/intake/ingest`` reports pods (`add`, `update`, `delete`) and cluster events
(`move_all`); ``service/attempts/pump`` takes pods out (`pop`) and gives failed pods back
(`add_unschedulable_if_not_present`) or reports a pod `end_in_flight`; timers call the two flushes.

                        PreEnqueue rejects
    add ---------------------------------------------> gated
     |                                                   | its gate's own event
     v                                                   v
    active <---- backoff over ---- backoff <--- event --- unschedulable
     | pop                           ^  | pop, if nothing is active      ^
     v                               |  v                                |
    in flight --- error, or an event came meanwhile -----+--- rejected --+

Nothing here awaits: `pop` returns None when no pod is due, and ``on_wake`` is called when a pod
may be due. Mirrors kubernetes v1.36
``pkg/scheduler/backend/queue/scheduling_queue.go`` with queueing hints.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from moorage.api.changes import (
    FORCE_ACTIVATE,
    UNSCHEDULABLE_TIMEOUT,
    Action,
    ClusterEvent,
    pod_changes,
)
from moorage.api.pod import Pod
from moorage.base.clock import Clock
from moorage.state.activations import Activations
from moorage.state.attempts import Attempts
from moorage.state.companions import Companions, GroupOf
from moorage.state.contracts import (
    HintMap,
    NullObserver,
    Precheck,
    PreEnqueueMap,
    QueueObserver,
    QueueSettings,
    SortKey,
)
from moorage.state.hints import HintIndex
from moorage.state.in_flight import InFlight
from moorage.state.judging import Judging
from moorage.state.lifecycle import ATTEMPTED, QUEUED, Lifecycle, PodState
from moorage.state.nominations import NominatingInfo, Nominator
from moorage.state.pending import PendingSummary, QueueCounts, pending_pod
from moorage.state.pre_enqueue import PreEnqueueGates
from moorage.state.queue_plugins import QueuePlugins
from moorage.state.queue_reader import QueueReader
from moorage.state.queue_version import V1_36, QueueVersion
from moorage.state.queued_pod import QueuedPod
from moorage.state.sub_queues import POD_ADD, POD_UPDATE, SubQueues
from moorage.state.wakeups import Requeue

_BACKOFF_COMPLETE = "BackoffComplete"

# Under names of their own: finding a member in its class takes ten times as long.
_ACTIVE, _BACKOFF, _UNSCHEDULABLE = PodState.ACTIVE, PodState.BACKOFF, PodState.UNSCHEDULABLE
_SKIP = Requeue.SKIP


class SchedulingQueue:
    """Pods that wait to be scheduled.

    Parameters
    ----------
    clock
        Source of the current time; wall-clock readings are used.
    sort_key
        The order in which active pods are popped.
    pre_enqueue
        The PreEnqueue plugins of each profile.
    hints
        The requeue hints of each profile.
    nominator
        The nominations, which the snapshot reads as well.
    activations
        The pods that plugins want tried again; None where no plugin can ask.
    version
        The Kubernetes version whose queue this is.
    settings
        Times and switches; None takes the settings of the version.
    observer
        Receives metric facts; None drops the facts.
    lifecycle
        The lifecycle shared with cache and service; made here when not given.
    on_wake
        Called when a waiting `pop` should be tried again.
    group_of
        Tells which pods are tried together, so that an event wakes one of them; None where every
        pod is tried by itself.
    """

    def __init__(  # noqa: PLR0913 - the room's seam: one keyword for each thing handed in
        self,
        *,
        clock: Clock,
        sort_key: SortKey,
        pre_enqueue: PreEnqueueMap,
        hints: HintMap,
        nominator: Nominator,
        activations: Activations | None = None,
        version: QueueVersion = V1_36,
        settings: QueueSettings | None = None,
        observer: QueueObserver | None = None,
        lifecycle: Lifecycle | None = None,
        on_wake: Callable[[], None] | None = None,
        group_of: GroupOf | None = None,
    ) -> None:
        self._clock = clock
        self.settings = settings if settings is not None else version.settings
        watching = observer if observer is not None else NullObserver()
        index = HintIndex(hints, watching)
        self._wakeups = version.wakeups(index)
        self.lifecycle = lifecycle if lifecycle is not None else Lifecycle(clock)
        gates = PreEnqueueGates(pre_enqueue, index, watching)
        self._sub_queues = SubQueues(
            clock=clock,
            settings=self.settings,
            backoff_times=version.backoff_times(self.settings),
            sort_key=sort_key,
            pre_enqueue=gates,
            lifecycle=self.lifecycle,
            nominator=nominator,
            observer=watching,
        )
        self._in_flight = InFlight(
            self.settings.in_flight_events_max, watching, keeps_events=self._wakeups.keeps_events
        )
        self._attempts = Attempts(
            clock=clock,
            sub_queues=self._sub_queues,
            in_flight=self._in_flight,
            wakeups=self._wakeups,
            lifecycle=self.lifecycle,
        )
        self.plugins = QueuePlugins(gates, index, self._sub_queues, self.move_all)
        """The plugins that are asked, which a reload replaces."""
        self.reader = QueueReader(self._sub_queues, self._in_flight, self._wakeups)
        """Reads the queue for reports."""
        self.nominator = nominator
        self._activations = Activations() if activations is None else activations
        self._on_wake = on_wake
        # A queue that keeps no events has no hints that could spare a companion.
        self.companions = (
            Companions(group_of, self._sub_queues, activate=self.activate)
            if group_of is not None and self._wakeups.keeps_events
            else None
        )
        """The members of a group that were not woken, as one was; None where all are."""

    def __len__(self) -> int:
        """Return the number of pods queued; pods in flight are not counted."""
        return len(self._sub_queues)

    # --- pods come and go ------------------------------------------------------------------------

    def add(self, pod: Pod) -> None:
        """Queue a pod the API showed as new; replaces a queued one of the same name."""
        self._enter(pod, POD_ADD)

    def update(self, old: Pod | None, new: Pod, *, assumed: bool = False) -> None:
        """Take over a new version of a pod that has no node.

        A pod that is active or in backoff stays there. A waiting pod moves if a hint says that the
        change may help. The change of a pod in flight is looked at when the pod comes back. An
        unknown pod is queued. In v1.20 a pod in backoff becomes active, and a second copy of a pod
        in flight is queued.

        The change of an assumed pod counts only if Permit turns the pod away: it is kept while the
        pod is in flight. After that, the pod comes back by an error, for which no event is needed.
        """
        uid = new.metadata.uid
        if not assumed and old is not None and old.metadata.uid != uid:
            # A delete was missed. kube-scheduler would carry the attempts over to the new pod.
            self.delete(old)
            self.add(new)
            return
        events = pod_changes(old, new) if old is not None else [POD_UPDATE]
        if self._updated_in_flight(old, new, events) or assumed:
            return
        queued = self._sub_queues.find(new.key)
        if queued is None or queued.uid != uid:
            self._enter(new, POD_UPDATE)
        elif queued.key in self._sub_queues.unschedulable:
            self._update_waiting(queued, old, new, events)
        elif old is None:
            self._enter(new, POD_UPDATE)
        else:
            self._update_in_place(queued, old, new, event=events[0])

    def _updated_in_flight(self, old: Pod | None, new: Pod, events: list[ClusterEvent]) -> bool:
        """Keep the change of a pod in flight until it comes back; False for any other pod."""
        if new.metadata.uid not in self._in_flight or not self._wakeups.keeps_events:
            return False
        for event in events:
            self._in_flight.record_event(event, old, new)
        self.lifecycle.add_entry(new, "updated in flight", cause=events[0].label)
        return True

    def delete(self, pod: Pod) -> None:
        """Drop a pod that was deleted or got a node; does not touch it while it is in flight."""
        self.nominator.withdraw_nomination(pod)
        queued = self._sub_queues.take_pod(pod.key)
        uid = pod.metadata.uid
        if queued is not None and self.lifecycle.known(queued.uid) in QUEUED:
            self.lifecycle.end_history(queued.uid, cause="deleted from the queue")
        elif self.lifecycle.known(uid) in ATTEMPTED:
            self.lifecycle.add_entry(pod, "deleted while being scheduled", cause="delete")
        if queued is not None and self.companions is not None:
            # Also where another scheduler has bound it: then the cache has ended its wait before.
            self.companions.pass_on(queued.pod)

    # --- attempts --------------------------------------------------------------------------------

    def pop(self) -> QueuedPod | None:
        """Take out the next pod to try and mark it as in flight; None if no pod can be tried.

        The caller must end its attempt by `add_unschedulable_if_not_present` or `end_in_flight`.
        """
        self._take_activations()
        held = None if self.companions is None else self.companions.would_take_unbound
        while (queued := self._sub_queues.take_next(held)) is not None:
            if self._attempts.begin_attempt(queued, cause="pop"):
                return queued
        return None

    def pop_specific(self, pod: Pod) -> QueuedPod | None:
        """Take out one pod, activating it first if it waits; for members of a pod group.

        Returns
        -------
        QueuedPod or None
            None if the pod cannot be tried now: gated, in flight or unknown.
        """
        self.activate([pod], news=False)
        key = pod.key
        if key not in self._sub_queues.active:
            return None
        queued = self._sub_queues.take_pod(key)
        assert queued is not None, "a pod in activeQ cannot be taken"
        return queued if self._attempts.begin_attempt(queued, cause="pop of its group") else None

    def add_unschedulable_if_not_present(self, queued: QueuedPod) -> None:
        """Give back a pod whose attempt failed.

        A pod with rejectors goes to unschedulablePods, unless an event that came meanwhile may
        help. In that case, and without rejectors (an error), it goes to backoffQ. This ends the
        pod's time in flight.

        If the pod is queued already, the queued copy stays and the other is dropped.
        """
        self._take_activations()
        self._wake_if(self._is_poppable(self._attempts.give_back(queued)))

    def end_in_flight(self, uid: str) -> None:
        """End a pod's time in flight; a second call does nothing.

        To be called when the pod's binding is certain to be tried (after Permit), or when it is not
        to be tried again.
        """
        self._attempts.end_in_flight(uid)

    def nominate(self, pod: Pod, info: NominatingInfo | None) -> None:
        """Nominate a queued or in-flight pod: by the attempt; None means by the pod's status."""
        queued = self._sub_queues.find(pod.key)
        same = queued is not None and queued.uid == pod.uid
        self.nominator.add(pod, info, queued=queued.pod if same and queued is not None else None)

    # --- what moves waiting pods -----------------------------------------------------------------

    def move_all(
        self,
        event: ClusterEvent,
        old: object | None,
        new: object | None,
        *,
        precheck: Precheck | None = None,
        is_news: Precheck | None = None,
    ) -> None:
        """Move the waiting pods that a cluster event may help.

        An event that no plugin registered is ignored; other events are kept for the pods in flight,
        too.

        Parameters
        ----------
        event
            What happened.
        old, new
            The object before and after; None where it did not exist.
        precheck
            Waiting pods for which it answers False are left alone.
        is_news
            Pods for which it answers False may be moved, but have no news. None for news to all.
        """
        if not self._wakeups.of_interest(event):
            return
        self._in_flight.record_move(event, old, new)
        if self._sub_queues.unschedulable:
            judging = Judging(
                self._wakeups,
                self.companions,
                event,
                old=old,
                new=new,
                precheck=precheck,
                is_news=is_news,
            )
            self._move(self._sub_queues.unschedulable.candidates(judging), judging)

    def activate(self, pods: Iterable[Pod], *, news: bool = True) -> None:
        """Move pods to activeQ at once, whatever their hints or backoff say; PreEnqueue may refuse.

        A pod in flight comes back to backoffQ instead of waiting for an event; other pods are
        ignored.

        Parameters
        ----------
        pods
            The pods.
        news
            Whether the cause may change what is reported about them.
        """
        activated = False
        for pod in pods:
            key = pod.key
            waiting = self._sub_queues.unschedulable.get(key)
            if waiting is not None:
                waiting.has_news |= news
                activated |= self._sub_queues.to_active(waiting, FORCE_ACTIVATE.label)
            elif (backing_off := self._sub_queues.backoff.remove(key)) is not None:
                backing_off.has_news |= news
                activated |= self._sub_queues.to_active(
                    backing_off, FORCE_ACTIVATE.label, from_backoff=True
                )
            elif pod.uid in self._in_flight:
                self._in_flight.record_move(FORCE_ACTIVATE, None, pod)
        self._wake_if(activated)

    def flush_backoff(self) -> None:
        """Move every pod whose backoff is over to activeQ; to be called once a second."""
        activated = False
        for queued in self._sub_queues.backoff.pop_completed():
            activated |= self._sub_queues.to_active(queued, _BACKOFF_COMPLETE, from_backoff=True)
        self._wake_if(activated)

    def flush_unschedulable_leftover(self) -> None:
        """Move pods that waited too long for an event; to be called every 30 seconds.

        Gated pods stay: only the gating plugin can let them in.
        """
        now_ns = self._clock.now_ns()
        overdue = [
            queued
            for queued in self._sub_queues.unschedulable.queued_pods()
            if now_ns - queued.timestamp_ns > self.settings.unschedulable_max_ns
        ]
        for queued in overdue:
            queued.was_flushed = True
        if overdue:
            self._in_flight.record_move(UNSCHEDULABLE_TIMEOUT, None, None)
            timeout = Judging(
                self._wakeups, self.companions, UNSCHEDULABLE_TIMEOUT, old=None, new=None
            )
            self._move([(queued, None) for queued in overdue], timeout)

    # --- looking ---------------------------------------------------------------------------------

    def counts(self) -> QueueCounts:
        """Return the number of pods in each sub-queue, and the attempt numbers; it costs little."""
        gated = self._sub_queues.unschedulable.gated_count
        return QueueCounts(
            active=len(self._sub_queues.active),
            backoff=len(self._sub_queues.backoff),
            unschedulable=len(self._sub_queues.unschedulable) - gated,
            gated=gated,
            in_flight=len(self._in_flight),
            scheduling_cycle=self._in_flight.scheduling_cycle,
            move_request_cycle=self._in_flight.move_request_cycle,
        )

    def pending(self) -> PendingSummary:
        """Return records of all queued pods; the cost grows with their number."""
        waiting = self._sub_queues.unschedulable.queued_pods()
        return PendingSummary(
            active=tuple(map(pending_pod, self._sub_queues.active.queued_pods())),
            backoff=tuple(map(pending_pod, self._sub_queues.backoff.queued_pods())),
            unschedulable=tuple(pending_pod(queued) for queued in waiting if not queued.gated),
            gated=tuple(pending_pod(queued) for queued in waiting if queued.gated),
            in_flight=tuple(self._in_flight.uids()),
            scheduling_cycle=self._in_flight.scheduling_cycle,
        )

    def validate(self) -> None:
        """Check every invariant of the queue; for tests.

        Raises
        ------
        AssertionError
            Some invariant does not hold; the message names the pod.
        """
        self._sub_queues.validate()
        self._in_flight.validate()
        for uid in self._in_flight.uids():
            state = self.lifecycle.state(uid)
            assert state not in QUEUED, f"pod {uid} is in flight, its lifecycle says {state}"
        queued = {pod.uid for pod in self._sub_queues.queued_pods()}
        for state in QUEUED:
            lost = [uid for uid in self.lifecycle.in_state(state) if uid not in queued]
            assert not lost, f"{state.value}, but in no sub-queue: {lost}"

    # --- leaves ----------------------------------------------------------------------------------

    def _take_activations(self) -> None:
        if self._activations:
            self.activate(self._activations.take_all())

    def _enter(self, pod: Pod, event: ClusterEvent) -> None:
        queued = QueuedPod(pod, self._clock.now_ns())
        self._wake_if(self._sub_queues.to_active(queued, event.label))

    def _update_waiting(
        self, queued: QueuedPod, old: Pod | None, new: Pod, events: list[ClusterEvent]
    ) -> None:
        queued.update(new)  # the pod is filed again below, wherever it goes
        self.nominator.update(old, new)
        for answer, event in self._wakeups.after_update(queued, events, old, new):
            went_to = self._sub_queues.requeue(queued, answer, event.label)
            if went_to is not _UNSCHEDULABLE:
                queued.has_news = True
                self._wake_if(self._is_poppable(went_to))
                return

    def _update_in_place(
        self, queued: QueuedPod, old: Pod, new: Pod, *, event: ClusterEvent
    ) -> None:
        if self.companions is not None:
            self.companions.updated(old, new)
        queued.has_news |= event.action != Action.UPDATE  # a report about it is no news
        self._sub_queues.resort(queued, new)
        self.nominator.update(old, new)
        if self._wakeups.update_ends_backoff and queued.key in self._sub_queues.backoff:
            self._sub_queues.backoff.remove(queued.key)
            self._wake_if(self._sub_queues.to_active(queued, event.label))

    def _move(self, waiting: list[tuple[QueuedPod, Requeue | None]], judging: Judging) -> None:
        poppable, companions = False, self.companions
        for queued, answer in waiting:
            if not judging.is_open_to(queued):
                continue
            own = judging.judge_pod(queued) if answer is None else answer
            if own is _SKIP:
                continue
            queued.has_news |= judging.is_news_to(queued)
            self._sub_queues.unschedulable.remove(queued.key)
            went_to = self._sub_queues.requeue(queued, own, judging.event.label)
            if self._is_poppable(went_to):
                poppable = True
                if companions is not None:
                    companions.woke(queued)
        self._wake_if(poppable)

    def _is_poppable(self, sub_queue: PodState | None) -> bool:
        if sub_queue is _BACKOFF:
            return self.settings.pop_from_backoff
        return sub_queue is _ACTIVE

    def _wake_if(self, poppable: bool) -> None:
        if poppable and self._on_wake is not None:
            self._on_wake()
