"""Carries preemption out: takes away lower nominations, evicts the victims, wakes on failure.

The decision to preempt comes from the engine as data; here it becomes API calls, in a task of its
own, while scheduling goes on. PreEnqueue asks the `EvictionLedger` whether that task is over.
A victim that is not bound yet still waits in memory, so it is taken off its node there. The
victim's own binding task returns it to the queue.

Rules: scheduling spec, preemption section 5 (kubernetes v1.36
``pkg/scheduler/framework/preemption/executor.go``). When an eviction fails, upstream stops the
others under way; here the others end by themselves.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from typing import Protocol

import msgspec

from moorage.api.meta import Condition
from moorage.api.pod import Pod
from moorage.api.resources import PODS
from moorage.base import aio
from moorage.base.aio import TaskOwner
from moorage.base.clock import NS_PER_SECOND, Clock, parse_rfc3339, rfc3339
from moorage.base.errors import (
    ConflictError,
    MoorageError,
    NotFoundError,
    RefusedError,
    TransportError,
)
from moorage.client.event_series import EventNote
from moorage.client.events import EventRecorder
from moorage.client.pod_status import changed_condition, status_patch
from moorage.client.writes import Client
from moorage.engine.decision import Decision
from moorage.framework.preemption import is_preempted
from moorage.observe.catalogue import BUCKETS
from moorage.observe.series import Histograms
from moorage.service.binding.pod_writes import PodWrites, reference
from moorage.service.binding.waiting import CallOff
from moorage.snapshot.pod_groups import GroupKey
from moorage.state.contracts import PodLookup
from moorage.state.queue import SchedulingQueue

_log = logging.getLogger(__name__)

_SECONDS = BUCKETS["scheduler_preemption_goroutines_duration_seconds"]
_EXECUTION = BUCKETS["scheduler_preemption_execution_duration_seconds"]
# As the first backoff of the queue. Upstream is slowed by the rate limit of its client instead.
_RETRY_SECONDS = 1.0
# A kubelet that is busy takes seconds longer than the grace of a pod. A guess.
_OVERDUE_NS = 30 * NS_PER_SECOND
_FORGET_MIN = 64  # victims that have left are not looked for before; a guess
_IN_MEMORY = " (in kube-scheduler memory)."  # the words of kube-scheduler's Event


class Preemptor(msgspec.Struct, frozen=True):
    """The pod or pod group for which room is being made.

    Parameters
    ----------
    uid
        The uid of the pod, or of the group.
    pods
        The pod, or the members of the group that wait.
    node_name
        The node that the preemptor hopes for; the victims' Events name it.
    group
        Whether the preemptor is a group, which hopes for the cluster as a whole.
    """

    uid: str
    pods: tuple[Pod, ...]
    node_name: str
    group: bool = False

    @property
    def what(self) -> str:
        """The word for the preemptor in conditions and Events."""
        return "podgroup" if self.group else "pod"

    @property
    def scheduler_name(self) -> str:
        """Name of the profile that serves the preemptor."""
        return self.pods[0].spec.scheduler_name


class Evicting(Protocol):
    """Carries out the evictions of decisions; `Evictor` does, through the API server."""

    def start(self, decision: Decision) -> None:
        """Start evicting the victims of a decision about a pod."""
        ...

    def start_for_group(self, uid: str, pods: Sequence[Pod], victims: Sequence[Pod]) -> None:
        """Start evicting the victims of a pod group as a whole."""
        ...


class _Awaited(msgspec.Struct):
    """What a group waits for.

    Parameters
    ----------
    preemptors
        The uids whose evictions may not all be sent; they shrink as answers are asked for.
    victims
        The pods that may still be on their nodes; they shrink likewise.
    places
        The nodes on which the members have a place.
    overdue
        Victims that are not waited for any longer, and are still on their nodes.
    """

    preemptors: list[str]
    victims: list[Pod]
    places: tuple[str, ...]
    overdue: list[Pod] = msgspec.field(default_factory=list)


class EvictionLedger:
    """The evictions under way, by preemptor and by group; implements `EvictionsUnderWay`.

    Parameters
    ----------
    lookup
        The pod as the API last showed it.
    node_of
        The node that a pod is on or is assumed on, by uid; None for none.
    clock
        Tells which victims stay longer than their grace.
    """

    def __init__(
        self, lookup: PodLookup, node_of: Callable[[str], str | None], *, clock: Clock
    ) -> None:
        self._lookup = lookup
        self._node_of = node_of
        self._clock = clock
        self._last: dict[str, Pod | None] = {}
        # The victims whose eviction was decided, by uid, until somebody asks and they have left.
        self._requested: dict[str, Pod] = {}
        self._forget_at = _FORGET_MIN
        # The victims by preemptor; they shrink as answers are asked for.
        self._victims_of: dict[str, list[Pod]] = {}
        self._awaited: dict[GroupKey, _Awaited] = {}
        self.durations: Histograms[str] = Histograms(_SECONDS)
        """Seconds that evictions for one preemptor took, by ``success`` or ``error``."""
        self.executions: Histograms[tuple[str, str]] = Histograms(_EXECUTION)
        """The same by ``pod`` or ``podgroup``, and ``success`` or ``error``."""

    def begin_evictions(self, uid: str, all_victims: Sequence[Pod]) -> list[Pod]:
        """Note the start of evictions for a preemptor; return the victims still to be evicted.

        The members of a group, and other preemptors of one moment, name common victims. Nothing
        begins where all victims are leaving already; the preemptor waits for them all the same.
        """
        self._forget_the_gone()
        self._victims_of[uid] = [*all_victims]
        victims = [
            pod
            for pod in all_victims
            if not pod.metadata.deletion_timestamp and not self.is_leaving(pod)
        ]
        if not victims:
            return victims
        self._last[uid] = None
        self._requested.update((victim.uid, victim) for victim in victims)
        return victims

    def _forget_the_gone(self) -> None:
        """Forget victims that have left, once there are many entries."""
        if len(self._requested) + len(self._victims_of) < self._forget_at:
            return
        there = {uid: pod for uid, pod in self._requested.items() if self._on_its_node(pod)}
        self._requested = there
        for preemptor in list(self._victims_of):
            self.waits_for_victims(preemptor)
        self._forget_at = 2 * (len(there) + len(self._victims_of)) + _FORGET_MIN

    def give_up(self, victims: Sequence[Pod]) -> None:
        """Note that evictions failed: the victims may stay, and nobody waits for them."""
        for victim in victims:
            self._requested.pop(victim.uid, None)

    def forget_victim(self, uid: str) -> None:
        """Note that a pod is assumed on a node anew: it has left since its eviction was decided.

        A victim that waits at Permit, or prepares for its binding, is taken off its node without a
        deletion. It may come back to the same node, and nobody waits for it there.
        """
        self._requested.pop(uid, None)

    def wait_together(
        self,
        group: GroupKey,
        preemptors: Sequence[str],
        victims: Sequence[Pod],
        *,
        places: Iterable[str] = (),
    ) -> None:
        """Let no member of a group be tried before all victims of the group have left.

        A member that is tried earlier finds its own room free, and the room of the others not. The
        group would give up all of it, and evict again once other pods have taken the room.

        Parameters
        ----------
        group
            The group.
        preemptors
            The uids for which evictions begin.
        victims
            The victims of all of them, those that are terminating already among them.
        places
            The nodes on which the members have a place.
        """
        if victims:
            self._awaited[group] = _Awaited([*preemptors], [*victims], tuple(places))

    def only(self, uid: str, victim: Pod) -> None:
        """Note that one eviction is left.

        The watch may tell of the deletion before the call returns. No later event lets the
        preemptor in, so from here on the victim's state decides.
        """
        self._last[uid] = victim

    def end_evictions(self, uid: str) -> bool:
        """Note that every call was made, or that a call failed.

        Returns
        -------
        bool
            Whether the preemptor's group waits for nothing else. The event of the last victim may
            have come earlier, so the group has to be activated.
        """
        self._last.pop(uid, None)
        groups = [group for group, each in self._awaited.items() if uid in each.preemptors]
        return any(not self.awaited_by(group) for group in groups)

    def took(self, nanoseconds: int, *, preemptor: str, done: bool) -> None:
        """Note how long the evictions for a preemptor took, and whether all were made.

        Parameters
        ----------
        nanoseconds
            How long they took.
        preemptor
            ``pod`` or ``podgroup``.
        done
            Whether every victim was evicted.
        """
        result, seconds = "success" if done else "error", nanoseconds / NS_PER_SECOND
        self.durations[result].observe(seconds)
        self.executions[preemptor, result].observe(seconds)

    def running_for(self, uid: str) -> bool:
        """Whether some evictions for this preemptor have not reached the API yet."""
        if uid not in self._last:
            return False
        victim = self._last[uid]
        if victim is None:
            return True
        current = self._on_its_node(victim)
        return current is not None and not current.metadata.deletion_timestamp

    def waits_for_victims(self, uid: str) -> bool:
        """Whether a pod that was chosen as a victim for this preemptor is about to leave."""
        victims = self._victims_of.get(uid, [])
        while victims and not self.will_leave(victims[-1]):
            victims.pop()
        if not victims:
            self._victims_of.pop(uid, None)
        return bool(victims)

    def has_left(self, victim: Pod) -> bool:
        """Whether a victim is not on its node any more."""
        return self._node_of(victim.uid) != victim.spec.node_name

    def is_leaving(self, victim: Pod) -> bool:
        """Whether a victim of preemption still has its node, and gives it up soon.

        The watch shows the deletion later than the decision, so the decision counts, too. Of a
        victim that stays too long nobody may say yes: its preemptors would give their nominations
        up as groups, wait as pods, and wake each other by that for ever.
        """
        return (is_preempted(victim) or victim.uid in self._requested) and self.will_leave(victim)

    def will_leave(self, pod: Pod) -> bool:
        """Whether a pod still has its node, and is about to leave it, for whatever reason.

        A pod that stays long after its grace does not count: a finalizer may hold it for ever.
        """
        current = self._on_its_node(pod)
        if current is None:
            return False
        deleted = current.metadata.deletion_timestamp
        if not deleted:
            return pod.uid in self._requested
        return self._clock.now_ns() < parse_rfc3339(deleted) + _OVERDUE_NS

    @property
    def requested(self) -> Collection[str]:
        """The uids of the victims of preemption; some of them may have left their nodes."""
        return self._requested.keys()

    @property
    def groups_wait(self) -> bool:
        """Whether `awaited_by` may be true of any group."""
        return bool(self._awaited)

    def awaited_by(self, group: GroupKey) -> bool:
        """Whether a group waits for victims that its last attempt chose.

        A victim whose eviction failed is not waited for, nor one that stays long after its grace: a
        finalizer may hold it for ever.
        """
        awaited = self._awaited.get(group)
        if awaited is None:
            return False
        preemptors, victims = awaited.preemptors, awaited.victims
        while preemptors and not self.running_for(preemptors[-1]):
            preemptors.pop()
        while victims and not self.will_leave(victims[-1]):
            victim = victims.pop()
            if self._on_its_node(victim) is not None:
                awaited.overdue.append(victim)
        # Nothing is forgotten here: the gates of the other members still have to be asked.
        return bool(preemptors or victims)

    def release_groups(
        self, holds: Callable[[GroupKey, tuple[str, ...]], bool]
    ) -> dict[GroupKey, bool]:
        """Return the groups that need not wait any longer, in the order of their attempts.

        The value is whether an event has woken members already: their victims have left. No event
        tells that a victim is overdue, or that a group cannot have its places any more.

        Parameters
        ----------
        holds
            Whether a group may still have its places, the names of nodes.
        """
        released: dict[GroupKey, bool] = {}
        for group, awaited in self._awaited.items():
            if not holds(group, awaited.places):
                released[group] = False
            elif not self.awaited_by(group):
                released[group] = not awaited.overdue
        for group in released:
            del self._awaited[group]
        return released

    def _on_its_node(self, victim: Pod) -> Pod | None:
        """Return a victim as the API last showed it; None where it is gone or has left its node."""
        current = self._lookup(*victim.key)
        there = current is not None and current.uid == victim.uid and not self.has_left(victim)
        return current if there else None


class Evictor:
    """Evicts the victims of decisions.

    Parameters
    ----------
    ledger
        Keeps which evictions are under way.
    queue
        Holds the nominations, and takes back a preemptor whose evictions failed.
    call_off
        Takes a pod that waits, or prepares for its binding, off its node; False for any other pod.
    client, writes, recorder
        The API verbs, their order for each pod, and Events.
    tasks
        Owner of the tasks.
    clock
        For transition times.
    """

    def __init__(
        self,
        ledger: EvictionLedger,
        queue: SchedulingQueue,
        *,
        call_off: CallOff,
        client: Client,
        writes: PodWrites,
        recorder: EventRecorder,
        tasks: TaskOwner,
        clock: Clock,
    ) -> None:
        self._ledger = ledger
        self._queue = queue
        self._call_off = call_off
        self._client = client
        self._writes = writes
        self._recorder = recorder
        self._tasks = tasks
        self._clock = clock

    def start(self, decision: Decision) -> None:
        """Start evicting the victims of a decision; nothing happens when all are leaving already.

        Call this before the preemptor goes back to the queue, so that PreEnqueue knows.
        """
        if decision.nomination is not None:
            pod = decision.pod.pod
            preemptor = Preemptor(pod.uid, (pod,), decision.nomination.node_name)
            self._start_evictions(preemptor, decision.victims)

    def start_for_group(self, uid: str, pods: Sequence[Pod], victims: Sequence[Pod]) -> None:
        """Start evicting the victims of a pod group as a whole, as `start` does.

        Parameters
        ----------
        uid
            The group's uid.
        pods
            The members of the group that wait.
        victims
            Pods anywhere in the cluster, most important first.
        """
        self._start_evictions(Preemptor(uid, tuple(pods), "cluster", group=True), victims)

    def _start_evictions(self, preemptor: Preemptor, all_victims: Sequence[Pod]) -> None:
        victims = self._ledger.begin_evictions(preemptor.uid, all_victims)
        if not victims:
            if not preemptor.group:
                self._clear_lower_nominations(preemptor.pods[0], preemptor.node_name)
            return
        work = self._make_room(preemptor, victims)
        self._tasks.spawn(work, name=f"preemption for {preemptor.what} {preemptor.uid}")

    async def _make_room(self, preemptor: Preemptor, victims: Sequence[Pod]) -> None:
        began_ns, done = self._clock.monotonic_ns(), False
        unheard = last_of_group = False
        try:
            if not preemptor.group:
                lower = self._clear_lower_nominations(preemptor.pods[0], preemptor.node_name)
                await asyncio.gather(*[self._writes.settled(pod.uid) for pod in lower])
            *others, last = victims
            evictions = [self._evict(victim, preemptor) for victim in others]
            if all(await asyncio.gather(*evictions)):
                self._ledger.only(preemptor.uid, last)
                # Another client evicts the victim, or its binding failed. The event of that may
                # have come while the gate was shut.
                unheard = not self._ledger.running_for(preemptor.uid)
                done = await self._evict(last, preemptor)
        finally:
            last_of_group = self._ledger.end_evictions(preemptor.uid)
            took_ns = self._clock.monotonic_ns() - began_ns
            self._ledger.took(took_ns, preemptor=preemptor.what, done=done)
        if not done:
            self._ledger.give_up(victims)
            # A server that refuses at once would otherwise be asked a thousand times a second:
            # the preemptor chooses the same victims again.
            await aio.sleep(_RETRY_SECONDS)
            # Other preemptors counted on these victims as well, and no event tells them.
            nodes = dict.fromkeys(victim.spec.node_name for victim in victims)
            nominator = self._queue.nominator
            self._queue.activate([pod for name in nodes for pod in nominator.for_node(name)])
        if unheard or last_of_group or not done:
            self._queue.activate(preemptor.pods)

    def _clear_lower_nominations(self, preemptor: Pod, node_name: str) -> Sequence[Pod]:
        """Clear the nominations of lower pods to the same node; the pods look for another node.

        As upstream, a nomination that cannot be cleared now hinders no eviction. A preemptor whose
        victims are all leaving already clears them, too: the lower pods would hold a place that
        they cannot get, for as long as the victims take to stop.

        Returns
        -------
        Sequence
            The lower pods, whose status is being sent.
        """
        lower = [
            pod
            for pod in self._queue.nominator.for_node(node_name)
            if pod.priority < preemptor.priority
        ]
        for pod in lower:
            self._writes.report_status(pod, None, nominated="")
        return lower

    async def _evict(self, victim: Pod, preemptor: Preemptor) -> bool:
        """Mark a victim and delete it; a victim that is gone already needs no Event.

        A victim that is not bound yet is called off instead, if that is still possible. A victim
        whose binding failed meanwhile has made room by itself.
        """
        if self._ledger.has_left(victim):
            return True
        if self._call_off(victim.uid, preemptor.scheduler_name):
            self._recorder.record_event(_preempted(victim, preemptor, _IN_MEMORY))
            return True
        there = False

        async def write() -> None:
            nonlocal there
            body = self._disruption_patch(victim, preemptor)
            if body is not None:
                await self._client.patch_pod_status(reference(victim), body)
            try:
                there = await self._client.delete_pod(reference(victim), check_uid=True)
            except ConflictError:
                # The victim is gone, and another pod has its name; or the victim stays after all.
                if not await self._is_leaving(victim):
                    raise
                there = False
            except RefusedError:
                raise  # nothing was sent
            except TransportError:
                # The server may have deleted the pod, and its answer be lost.
                if not await self._is_leaving(victim):
                    raise
                there = True

        if not await self._written(victim, write, "evicting"):
            return False
        if there:
            self._recorder.record_event(_preempted(victim, preemptor))
        return True

    async def _is_leaving(self, victim: Pod) -> bool:
        """Ask the server whether a pod is gone or being deleted."""
        try:
            found = await self._client.get(PODS, victim.name, namespace=victim.metadata.namespace)
        except NotFoundError:
            return True
        metadata = found.get("metadata")
        if not isinstance(metadata, dict) or metadata.get("uid") != victim.uid:
            return True
        return "deletionTimestamp" in metadata

    def _disruption_patch(self, victim: Pod, preemptor: Preemptor) -> bytes | None:
        status = self._writes.status_in_hand(victim)
        condition = disruption_target(preemptor.scheduler_name, preemptor.what)
        now = rfc3339(self._clock.now_ns())
        changed = changed_condition(status.conditions, condition, now=now)
        return None if changed is None else status_patch(status, conditions=(changed,))

    async def _written(self, pod: Pod, write: Callable[[], Awaitable[None]], what: str) -> bool:
        """Write after earlier writes about the pod; False when the server refused the write."""
        failed = False

        async def contained() -> None:
            nonlocal failed
            try:
                await write()
            except NotFoundError:
                return
            except MoorageError as problem:
                failed = True
                _log.warning("%s pod %s failed: %s", what, pod.full_name, problem)

        task = self._writes.after_earlier(pod.uid, contained, name=f"{what} {pod.full_name}")
        await asyncio.wait([task])
        return not failed and not task.cancelled()


def disruption_target(scheduler_name: str, what: str) -> Condition:
    """Return the condition of a victim.

    Parameters
    ----------
    scheduler_name
        The name that the preemptor chose.
    what
        The word for the preemptor: ``pod`` or ``podgroup``.
    """
    return Condition(
        type="DisruptionTarget",
        status="True",
        reason="PreemptionByScheduler",
        message=f"{scheduler_name}: preempting to accommodate a higher priority {what}",
    )


def _preempted(victim: Pod, preemptor: Preemptor, how: str = "") -> EventNote:
    return EventNote(
        regarding=reference(victim),
        related=reference(preemptor.pods[0]),
        controller=preemptor.scheduler_name,
        type="Normal",
        reason="Preempted",
        action="Preempting",
        note=f"Preempted by {preemptor.what} {preemptor.uid} on node {preemptor.node_name}{how}",
    )
