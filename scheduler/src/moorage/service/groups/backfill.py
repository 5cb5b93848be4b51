"""Holds room back for a pod group that has waited for long (``holdBackAfterSeconds``).

`GroupAttempts` reports the outcome of each group's attempt. A group that has been rejected for the
configured time becomes the head, if it would fit once running pods with a known end have ended.
Pods and groups that come after it in rank are then decided about within the nodes that
`moorage.engine.groups.reserved_room` leaves open. They are tried again when the head has started,
or when it can no longer start.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from moorage.api.pod import Pod
from moorage.base.clock import NS_PER_SECOND, Clock
from moorage.engine.attempt import WHOLE, Scope
from moorage.engine.cycle import Cycle
from moorage.engine.decision import Decision, Outcome
from moorage.engine.groups.cycle import GroupCycle
from moorage.engine.groups.decision import GroupOutcome
from moorage.engine.groups.reserved_room import Head, Rank, Reservation, ReservedRoom
from moorage.estimates.known_ends import known_end_ns
from moorage.service.core import Core
from moorage.snapshot.pod_groups import GroupKey
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.view import NodeView
from moorage.state.queued_pod import QueuedPod

_log = logging.getLogger(__name__)

_AGAIN_NS: Final = 10 * NS_PER_SECOND
"""Time before a new look at a group that no known end helps: the longest backoff of a pod."""


class Backfill:
    """Chooses the head, and says which nodes all other pods and groups may take meanwhile.

    Parameters
    ----------
    core
        The state and the snapshot.
    after_seconds
        How long a group waits before room is held for it, by profile; a profile that is absent
        never has room held.
    clock
        Waits count by monotonic time, ends of pods by wall-clock time.
    """

    def __init__(
        self,
        core: Core,
        *,
        after_seconds: Mapping[str, float],
        clock: Clock,
    ) -> None:
        self._queue = core.queue
        self._snapshot = core.snapshot
        self._groups = core.snapshot.groups
        self._jobs = core.snapshot.listers.jobs
        self._cycles = {name: GroupCycle(cycle) for name, cycle in core.cycles.items()}
        self._after_seconds = after_seconds
        self._clock = clock
        self._room = ReservedRoom(core.snapshot, self._end_of)
        # Since when a group has been rejected, and when it may next become the head; monotonic ns.
        self._since_ns: dict[GroupKey, int] = {}
        self._not_before_ns: dict[GroupKey, int] = {}
        # When a group will have waited for the configured time; monotonic ns.
        self._due_ns: dict[GroupKey, int] = {}
        # Pods that were rejected while room was held: by uid.
        self._delayed: dict[str, Pod] = {}

    @property
    def head(self) -> GroupKey | None:
        """The group that room is held for; None while no room is held."""
        held = self._room.reservation
        return None if held is None else held.head.key

    @property
    def needs_look(self) -> bool:
        """Whether a group waits for its time, or room is held."""
        return bool(self._due_ns) or self._room.reservation is not None

    def look(self) -> None:
        """Try groups that have waited for the configured time, and judge the head again.

        It is called every second: no event says that time has passed, or that room is taken away.
        """
        now_ns = self._clock.monotonic_ns()
        for key in [key for key, due_ns in self._due_ns.items() if due_ns <= now_ns]:
            del self._due_ns[key]
            self._queue.activate(self._groups.members(key).waiting_pods()[:1])
        self._judge_head()

    # -- groups --------------------------------------------------------------------------------

    def attempted(self, key: GroupKey, entries: Sequence[QueuedPod], outcome: GroupOutcome) -> None:
        """Note the outcome of a group's attempt; a group that waits too long becomes the head."""
        if outcome is GroupOutcome.PLACED:
            self._since_ns.pop(key, None)
            self._due_ns.pop(key, None)
            if self.head == key:
                self._let_go()
            return
        after_seconds = self._after_seconds.get(entries[0].profile)
        if after_seconds is None or outcome is not GroupOutcome.REJECTED:
            return
        self._forget_gone()
        now_ns = self._clock.monotonic_ns()
        known = key in self._since_ns
        waited_ns = now_ns - self._since_ns.setdefault(key, now_ns)
        if not known:
            self._due_ns[key] = now_ns + round(after_seconds * NS_PER_SECOND)
        if waited_ns < after_seconds * NS_PER_SECOND or now_ns < self._not_before_ns.get(key, 0):
            return
        self._consider(Head(key, tuple(each.info for each in entries), _first(entries)), entries[0])

    def _consider(self, head: Head, first: QueuedPod) -> None:
        reservation, wall_ns = self._room.reservation, self._clock.now_ns()
        if reservation is not None:
            if reservation.head.key == head.key and self._stands(reservation):
                return  # the head keeps its reservation until the start that was computed
            if reservation.head.key != head.key and reservation.head.rank <= head.rank:
                return
        if self._room.reserve(self._cycles[first.profile].decide_without, head, now_ns=wall_ns):
            assert self._room.reservation is not None, "room was held"
            seconds = (self._room.reservation.start_ns - wall_ns) / NS_PER_SECOND
            _log.info(
                "room is held back for pod group %s, which can start in %.0f s",
                head.key.full_name,
                seconds,
            )
            return
        self._not_before_ns[head.key] = self._clock.monotonic_ns() + _AGAIN_NS
        if reservation is None or reservation.head.key == head.key:
            self._let_go()

    def _forget_gone(self) -> None:
        known = self._groups.all_groups()
        if len(self._since_ns) > 2 * len(known) + 64:  # a guess: seldom enough to cost nothing
            self._since_ns = {k: at for k, at in self._since_ns.items() if k in known}
            self._not_before_ns = {k: at for k, at in self._not_before_ns.items() if k in known}

    # -- pods and groups next to the head -------------------------------------------------------

    def open_to(self, entries: Sequence[QueuedPod], key: GroupKey | None) -> NodeView | None:
        """Return the nodes that a pod, or all members of a group, may take; None for all."""
        held = self._room.reservation
        if held is None or key == held.head.key or self._is_moot(held.head):
            return None
        infos = [each.info for each in entries]
        return self._room.open_to(infos, _first(entries), now_ns=self._clock.now_ns())

    def decide_pod(self, cycle: Cycle, queued: QueuedPod) -> Decision:
        """Decide about a single pod within the nodes that are open to it."""
        view = self.open_to([queued], self._groups.key_of(queued.pod))
        if view is None:
            return cycle.decide(queued.info, WHOLE)
        decision = cycle.decide(queued.info, Scope(within=view, post_filter=False))
        if decision.outcome is not Outcome.REJECT or decision.diagnosis is None:
            return decision
        self.is_delayed([queued])
        return self._explained(decision, view)

    def is_delayed(self, entries: Sequence[QueuedPod]) -> None:
        """Note pods that found no place among the open nodes, to be tried when room is let go."""
        self._delayed.update((each.uid, each.pod) for each in entries)

    def _explained(self, decision: Decision, view: NodeView) -> Decision:
        held, diagnosis = self._room.reservation, decision.diagnosis
        assert held is not None, "nodes are closed for a group"
        assert diagnosis is not None, "a rejection has a diagnosis"
        reason = f"node(s) held back for pod group {held.head.key.full_name}"
        every = self._snapshot.num_nodes
        counts = {**diagnosis.reason_counts, reason: every - len(view)}
        told = msgspec.structs.replace(diagnosis, num_nodes=every, reason_counts=counts)
        return msgspec.structs.replace(decision, diagnosis=told)

    # -- leaves --------------------------------------------------------------------------------

    def _is_moot(self, head: Head) -> bool:
        """Whether the head cannot start any more, or has; then its room is let go."""
        members, terms = self._groups.members(head.key), self._groups.source.terms_of(head.key)
        if (
            terms is not None
            and members.waiting
            and not members.pods_missing(terms)
            and self._groups.missing_for(terms) > 0
        ):
            return False
        self._let_go()
        return True

    def _judge_head(self) -> None:
        """Compute the head's start anew if its room is gone, or hold nothing any more."""
        reservation = self._room.reservation
        if reservation is None or self._is_moot(reservation.head) or self._stands(reservation):
            return
        profile = reservation.head.pods[0].pod.spec.scheduler_name
        held_back, self._delayed = self._delayed, {}
        if not self._room.reserve(
            self._cycles[profile].decide_without, reservation.head, now_ns=self._clock.now_ns()
        ):
            self._not_before_ns[reservation.head.key] = self._clock.monotonic_ns() + _AGAIN_NS
            self._room.release()
        # Also where the head has other nodes now: those that it had are open.
        self._queue.activate(held_back.values())

    def _stands(self, reservation: Reservation) -> bool:
        """Whether the head can still start on its nodes, by the start that was computed."""
        now_ns = self._clock.now_ns()
        return now_ns <= reservation.start_ns and self._room.stands(now_ns=now_ns)

    def _let_go(self) -> None:
        """Hold nothing, and have all pods tried again that were held back."""
        self._room.release()
        held_back, self._delayed = self._delayed, {}
        self._queue.activate(held_back.values())

    def _end_of(self, info: PodInfo, now_ns: int) -> int | None:
        pod = info.pod
        job = None
        for owner in pod.metadata.owner_references:
            if owner.kind == "Job" and owner.controller:
                job = self._jobs.get(owner.name, pod.metadata.namespace)
        return known_end_ns(pod, job, now_ns=now_ns)


def _first(entries: Sequence[QueuedPod]) -> Rank:
    """Return the rank of a pod, or of the first member of a group."""
    return min((-each.priority, each.initial_attempt_ns or each.timestamp_ns) for each in entries)
