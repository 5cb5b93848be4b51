"""The pods that wait, and until when: the answer of ``moorage queue``, from the scheduler."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

import msgspec

from moorage.api.changes import ClusterEvent, action_names
from moorage.api.pod import Pod
from moorage.api.reasons.codes import ReasonCode, code_of_message
from moorage.base.clock import NS_PER_SECOND, Clock, rfc3339_micro
from moorage.service.core import Core
from moorage.service.questions.answers import (
    Queue,
    QueueAnswer,
    QueuedPod,
    QueueSizes,
    WakingEvents,
)
from moorage.service.questions.folding.folded_queue import FOLDING, folded_answer
from moorage.service.questions.groups import incomplete_groups, with_reason_of_group
from moorage.service.questions.pending import entry_names, pending_answer
from moorage.service.questions.question import Parameter, Question, QuestionParameters, whole_number
from moorage.service.scheduler import Scheduler
from moorage.state.lifecycle import PodState
from moorage.state.queue_reader import QueuedRecord

LIMIT: Final = 500
LIMIT_MAX: Final = 5000
"""Most pods listed of each place. A guess: a screen of an editor, and about a tenth of a second."""


def queue_question(scheduler: Scheduler, clock: Clock) -> Question:
    """Return the question where pods wait and until when."""

    async def ask(parameters: QuestionParameters) -> QueueAnswer:
        limit = whole_number(parameters, "limit", default=LIMIT, least=1, most=LIMIT_MAX)
        now_ns = clock.now_ns()
        if scheduler.only_watches:
            answer = pending_answer(scheduler.core, now_ns=now_ns, limit=limit)
        else:
            answer = queue_answer(
                scheduler.core, now_ns=now_ns, limit=limit, scheduling=scheduler.schedules
            )
        return folded_answer(answer, parameters)

    return Question(
        path="/queue",
        summary="Where pods wait and until when: active, backoff, unschedulable, gated, at Permit, "
        "in binding; and pod groups that are not complete",
        answer=QueueAnswer,
        ask=ask,
        parameters=(
            Parameter(
                name="limit",
                description="Most pods listed of each place; sizes always counts all pods.",
                schema={"type": "integer", "minimum": 1, "maximum": LIMIT_MAX, "default": LIMIT},
            ),
            *FOLDING,
        ),
    )


def queue_answer(core: Core, *, now_ns: int, limit: int, scheduling: bool) -> QueueAnswer:
    """Return where pods wait at this moment.

    Parameters
    ----------
    core
        The state; it is not changed.
    now_ns
        Wall-clock time, nanoseconds.
    limit
        Most pods of each place.
    scheduling
        Whether this scheduler schedules.
    """
    return _Report(core, now_ns, limit).queue_answer(scheduling=scheduling)


class _Report:
    """One look at the queue."""

    def __init__(self, core: Core, now_ns: int, limit: int) -> None:
        self._core = core
        self._now_ns = now_ns
        self._limit = limit
        self._groups = core.snapshot.groups
        assumed = core.cache.assumed()
        self._waiting_at_permit = [uid for uid in assumed if core.waiting.find(uid) is not None]
        held = set(self._waiting_at_permit)
        self._binding = [uid for uid in assumed if uid not in held]

    def queue_answer(self, *, scheduling: bool) -> QueueAnswer:
        """Return the whole answer."""
        core = self._core
        first_pods = core.queue.reader.first(self._limit, counts=core.queue.counts())
        lifecycle, counts = core.queue.lifecycle, first_pods.counts
        deciding = [
            uid for uid in first_pods.in_flight if lifecycle.state(uid) is PodState.IN_FLIGHT
        ]
        pods = [
            *(self._active(each, rank) for rank, each in enumerate(first_pods.active, 1)),
            *self._deciding(deciding),
            *map(self._backing_off, first_pods.backoff),
            *map(self._unschedulable, first_pods.unschedulable),
            *map(self._gated, first_pods.gated),
            *self._at_permit(),
            *self._in_binding(),
        ]
        groups = incomplete_groups(core, waiting_uids=self._waiting_at_permit)
        return QueueAnswer(
            time=rfc3339_micro(self._now_ns),
            scheduling=scheduling,
            sizes=QueueSizes(
                active=counts.active,
                in_flight=len(deciding),
                backoff=counts.backoff,
                unschedulable=counts.unschedulable,
                gated=counts.gated,
                permit=len(self._waiting_at_permit),
                binding=len(self._binding),
            ),
            pods=tuple(with_reason_of_group(pods, groups)),
            groups=groups,
        )

    # --- pods in the queue ----------------------------------------------------------------------

    def _active(self, record: QueuedRecord, rank: int) -> QueuedPod:
        return self._queued("active", record, position=rank)

    def _backing_off(self, record: QueuedRecord) -> QueuedPod:
        early = self._core.queue.settings.pop_from_backoff and not record.errored
        return self._queued("backoff", record, until_ns=record.release_ns, may_be_early=early)

    def _unschedulable(self, record: QueuedRecord) -> QueuedPod:
        longest_ns = self._core.queue.settings.unschedulable_max_ns
        return self._queued("unschedulable", record, until_ns=record.pending.since_ns + longest_ns)

    def _gated(self, record: QueuedRecord) -> QueuedPod:
        return self._queued("gated", record)

    def _queued(
        self,
        queue: Queue,
        record: QueuedRecord,
        *,
        until_ns: int = 0,
        position: int | None = None,
        may_be_early: bool = False,
    ) -> QueuedPod:
        pending = record.pending
        pod, first_ns = pending.pod, pending.first_queued_ns
        gate = pending.gating_plugin
        message = ", ".join(pending.gating_reasons) if gate else pending.message
        rejectors = {*pending.unschedulable_plugins, *pending.pending_plugins}
        return msgspec.structs.replace(
            entry_names(queue, pod),
            attempts=pending.attempts,
            since=rfc3339_micro(pending.since_ns),
            first_queued="" if first_ns is None else rfc3339_micro(first_ns),
            position=position,
            until=rfc3339_micro(until_ns) if until_ns else "",
            seconds_left=self._seconds_to(until_ns) if until_ns else None,
            may_be_early=may_be_early,
            plugins=(gate,) if gate else tuple(sorted(rejectors)),
            message=message,
            reason=code_of_message(message),
            woken_by=tuple(
                WakingEvents(plugin, tuple(_labels(events)))
                for plugin, events in record.waking.items()
            ),
            node=self._core.queue.nominator.node_of(pod.uid) or "",
            group=self._group_of(pod),
        )

    def _seconds_to(self, moment_ns: int) -> float:
        return max(moment_ns - self._now_ns, 0) / NS_PER_SECOND

    def _group_of(self, pod: Pod) -> str:
        key = self._groups.key_of(pod)
        return "" if key is None else key.full_name

    # --- pods of attempts -----------------------------------------------------------------------

    def _deciding(self, uids: list[str]) -> Iterator[QueuedPod]:
        for uid in islice(uids, self._limit):
            name = self._core.store.name_of(uid)
            pod = None if name is None else self._core.store.get(*name)
            if pod is not None and pod.uid == uid:
                yield self._attempted("in-flight", pod)

    def _at_permit(self) -> Iterator[QueuedPod]:
        waiting = self._core.waiting
        for uid in islice(self._waiting_at_permit, self._limit):
            waiting_pod, left = waiting.find(uid), waiting.seconds_left(uid)
            if waiting_pod is None or not left:
                continue
            seconds = min(left.values())
            yield self._attempted(
                "permit",
                waiting_pod.pod,
                node=waiting_pod.node_name,
                plugins=tuple(left),
                until_ns=self._now_ns + round(seconds * NS_PER_SECOND),
                message=self._waits_for(waiting_pod.pod),
                reason=ReasonCode.WAITING_FOR_GROUP
                if self._group_of(waiting_pod.pod)
                else ReasonCode.REJECTED_BY_PLUGIN,
            )

    def _in_binding(self) -> Iterator[QueuedPod]:
        core = self._core
        for uid in islice(self._binding, self._limit):
            pod = core.cache.get_pod(uid)
            step = "PreBind" if core.pre_binding.runs(uid) else "Bind"
            yield self._attempted("binding", pod, node=pod.spec.node_name, step=step)

    def _attempted(
        self,
        queue: Queue,
        pod: Pod,
        *,
        node: str = "",
        step: str = "",
        plugins: tuple[str, ...] = (),
        until_ns: int = 0,
        message: str = "",
        reason: str = "",
    ) -> QueuedPod:
        history = self._core.queue.lifecycle.histories.history_of(pod.uid)
        return msgspec.structs.replace(
            entry_names(queue, pod),
            since=rfc3339_micro(history[-1].at_ns) if history else "",
            until=rfc3339_micro(until_ns) if until_ns else "",
            seconds_left=self._seconds_to(until_ns) if until_ns else None,
            plugins=plugins,
            message=message,
            reason=reason,
            node=node or self._core.queue.nominator.node_of(pod.uid) or "",
            group=self._group_of(pod),
            step=step,
        )

    def _waits_for(self, pod: Pod) -> str:
        """Return how many members of a pod's group have a place; "" for a pod on its own."""
        key, terms = self._groups.key_of(pod), self._groups.terms_of(pod)
        if key is None or terms is None:
            return ""
        share = terms.share(self._groups.members(key).placed)
        return f"{share} members of group {key.full_name} have a place{terms.succeeded_note}"


def _labels(events: Iterable[ClusterEvent]) -> list[str]:
    """Return a label for each action of some events, each label once."""
    found = [f"{event.resource}{name}" for event in events for name in action_names(event.action)]
    return list(dict.fromkeys(found))
