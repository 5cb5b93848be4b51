"""Counts and the last decisions, for showing how the scheduler is doing."""

from __future__ import annotations

from collections import Counter, deque

import msgspec

from moorage.api.pod import Pod
from moorage.base.clock import Clock
from moorage.engine.decision import Decision, Outcome
from moorage.framework.status import Status
from moorage.observe.attempts import AttemptFacts
from moorage.observe.catalogue import BUCKETS
from moorage.observe.events import EventFacts
from moorage.observe.group_attempts import GroupAttemptFacts
from moorage.observe.points import PointFacts
from moorage.observe.series import Histogram
from moorage.observe.waiting_groups import WaitingGroups

_DECISIONS_MAX = 200  # decisions; enough for a screen and a debugging session


class DecisionRecord(msgspec.Struct, frozen=True):
    """A decision as a line of a log.

    Parameters
    ----------
    at_ns
        Wall-clock time, nanoseconds.
    pod
        ``namespace/name``.
    node
        The chosen node, "" when there is none.
    message
        Why there is no node, "" when there is one.
    """

    at_ns: int
    pod: str
    node: str
    message: str


class Facts:
    """Running totals of one scheduler process.

    Attributes
    ----------
    decisions, rejected, errors
        Attempts decided; rejected for want of a node; ended by an error.
    bound, bind_failures
        Bindings that the API server accepted, and bindings that failed.
    undecodable
        Objects left alone because they cannot be read or their values make no sense.
    attempts, group_attempts, points, events
        Numbers for metrics: of attempts, of pod groups' attempts, of the extension points from
        Reserve on, and of the watch events taken in.
    loop_stalls
        Seconds by which timers of the event loop were late, where somebody watches it.
    groups
        The pod groups that were tried and wait, with the start of their wait.
    reloads
        Reloads of the configuration, by result: ``taken over`` or ``refused``.
    recent
        The last decisions, oldest first.
    """

    def __init__(self, clock: Clock, *, group_attempts: GroupAttemptFacts | None = None) -> None:
        self._clock = clock
        self.decisions = 0
        self.rejected = 0
        self.errors = 0
        self.bound = 0
        self.bind_failures = 0
        self.undecodable = 0
        self.attempts = AttemptFacts(clock)
        self.group_attempts = group_attempts or GroupAttemptFacts(clock)
        self.points = PointFacts(clock)
        self.groups = WaitingGroups(clock)
        self.events = EventFacts(clock)
        self.loop_stalls = Histogram(BUCKETS["moorage_event_loop_stall_seconds"])
        self.reloads: Counter[str] = Counter()
        self.recent: deque[DecisionRecord] = deque(maxlen=_DECISIONS_MAX)

    def note_bound(self) -> None:
        """Count a binding that the API server accepted."""
        self.bound += 1

    def note_bind_failure(self) -> None:
        """Count a binding that failed."""
        self.bind_failures += 1

    def note_undecodable(self) -> None:
        """Count an object that is left alone."""
        self.undecodable += 1

    def note_error(self) -> None:
        """Count an attempt that broke before it came to a decision."""
        self.errors += 1

    def note_failure(self, pod: Pod, status: Status, message: str) -> None:
        """Count an attempt that ended without a node, for a pod that was not decided on alone."""
        self.decisions += 1
        self.rejected += status.rejected
        self.errors += not status.rejected
        self.recent.append(DecisionRecord(self._clock.now_ns(), pod.full_name, "", message))

    def count_decision(self, decision: Decision) -> int:
        """Count a decision; return how long it took, nanoseconds."""
        took_ns = self.attempts.decided(decision.pod.uid)
        if decision.victims:
            self.attempts.preempted(len(decision.victims))
        self.decisions += 1
        self.rejected += decision.outcome is Outcome.REJECT
        self.errors += decision.outcome is Outcome.ERROR
        message = "" if decision.outcome is Outcome.BIND else decision.message
        record = DecisionRecord(self._clock.now_ns(), decision.pod.key, decision.node_name, message)
        self.recent.append(record)
        return took_ns
