"""Makes the records: told of every decision, of each step after it, and of its end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from moorage.base.clock import Clock
from moorage.engine.decision import Decision
from moorage.framework.preemption import CHOSEN_BY
from moorage.framework.status import SUCCESS, Code, Status
from moorage.observe.records.record import DROPPED, AttemptRecord, End, Failure, Step, TwoEntries
from moorage.observe.records.ring import BYTES_MAX, RecordRing
from moorage.observe.traces.attempts import Traces
from moorage.state.history import Histories, HistoryEntry
from moorage.state.queued_pod import QueuedPod

OnEnd = Callable[[AttemptRecord], None]
"""Called with each record whose attempt has ended."""

_POPPED: Final = "-> in-flight"
_FEW: Final = 8
_TWO: Final = 2


class Recorder:
    """Keeps a record of each attempt.

    Parameters
    ----------
    clock
        The time of the records.
    bytes_max
        Memory of all records.
    on_end
        Takes the records of ended attempts; None where no part wants them.
    traces
        Makes spans from records; None where nothing is traced. Also an attribute.

    Attributes
    ----------
    ring
        The records.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        bytes_max: int = BYTES_MAX,
        on_end: OnEnd | None = None,
        traces: Traces | None = None,
    ) -> None:
        self.traces = traces
        self.ring = RecordRing(bytes_max)
        self._now_ns = clock.now_ns
        self._on_end = on_end
        self._number = 0

    def decided(
        self, queued: QueuedPod, decision: Decision, histories: Histories, *, took_ns: int = 0
    ) -> None:
        """Record an attempt that has come to a decision.

        Parameters
        ----------
        queued
            The pod's entry in the queue, with the rejectors of its last attempt.
        decision
            The decision, with the note of the attempt.
        histories
            What happened to each pod before.
        took_ns
            How long the decision took, nanoseconds.
        """
        self._number += 1
        node_name = decision.node_name
        history = histories.get(queued.uid)
        if history is None:
            before: tuple[HistoryEntry, ...] | TwoEntries = ()
        elif queued.attempts == 1 and len(history.newest) < _FEW:
            kept = history.newest
            before = TwoEntries(kept[0], kept[1]) if len(kept) == _TWO else tuple(kept)
        else:
            before = _since_last_attempt(history.newest)
        record = AttemptRecord(
            self._number,
            queued.uid,
            queued.key,
            queued.pod.spec.scheduler_name,
            queued.attempts,
            self._now_ns(),
            took_ns,
            before,
            queued.rejectors if queued.pending_plugins else queued.unschedulable_plugins,
            node_name,
            decision.total_score,
            decision.feasible,
            decision.evaluated,
            decision.ties,
            decision.note,
        )
        if node_name:
            self.ring.add(record)
        else:
            record.failure = _rejection(decision)  # before the ring counts its bytes
            self.ring.add(record)
            self.ended(queued.uid, "requeued")

    def stepped(self, uid: str, name: str, status: Status, *, took_ns: int) -> None:
        """Add a step to the attempt of a pod whose binding is under way."""
        record = self.ring.unbound.get(uid)
        if record is not None and not record.end:
            record.steps += (Step(name, status.code.text, took_ns, status.plugin),)
            if self.traces is not None:
                self.traces.stepped(uid)

    def ended(self, uid: str, end: End, message: str = "", *, status: Status = SUCCESS) -> None:
        """Note how the binding of a pod ended; nothing happens for any other pod.

        Parameters
        ----------
        uid, end
            The pod, and the end.
        message, status
            Why it is not bound, and the status that tells the plugin whose failure is the cause.
        """
        unbound = self.ring.unbound
        record = unbound.pop(uid, None)
        if record is None:
            return
        if record.end:
            unbound[uid] = record
            return
        if end == "requeued" and record.size != DROPPED:
            unbound[uid] = record  # an attempt follows
        record.end, record.ended_ns = end, self._now_ns()
        if message:
            record.failure = Failure(message=message, broken_by=_broken_by(status))
        if self._on_end is not None:
            self._on_end(record)
        if self.traces is not None:
            self.traces.ended(record)


def _broken_by(status: Status) -> str:
    """Return the plugin whose failure a status tells; "" for any other status."""
    return status.plugin if status.code is Code.ERROR else ""


def _rejection(decision: Decision) -> Failure:
    """Return why no node was chosen, and what follows from it."""
    nomination, victims = decision.nomination, decision.victims
    return Failure(
        outcome=decision.outcome.value,
        message=decision.message,
        broken_by=_broken_by(decision.status),
        nominated=None if nomination is None else nomination.node_name,
        victims=tuple([each.full_name for each in victims]),
        chosen_by=(decision.state.find(CHOSEN_BY) or "") if victims else "",
    )


def _since_last_attempt(entries: list[HistoryEntry]) -> tuple[HistoryEntry, ...]:
    """Return the entries since the attempt before the newest, oldest first."""
    first = len(entries) - 1
    while first > 0 and entries[first - 1].what != _POPPED:
        first -= 1
    return tuple(entries[max(first, 0) :])
