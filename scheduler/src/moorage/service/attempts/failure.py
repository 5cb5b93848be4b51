"""Handles a pod whose attempt failed: back to the queue, a nomination, an Event, a status.

Rules: scheduling spec, cycle section 6. The order matters: requeue first, then nominate, then the
Event, then the patch.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Protocol

from moorage.api.meta import Condition
from moorage.api.pod import Pod
from moorage.client.event_series import EventNote
from moorage.client.events import EventRecorder
from moorage.engine.decision import Nomination
from moorage.framework.diagnosis import Diagnosis
from moorage.framework.status import Status
from moorage.observe.attempts import AttemptFacts
from moorage.service.attempts.attempt_log import failed
from moorage.service.binding.pod_writes import reference, sendable
from moorage.state.nominations import NominatingInfo
from moorage.state.queue import SchedulingQueue
from moorage.state.queued_pod import QueuedPod

_log = logging.getLogger(__name__)

PodLookup = Callable[[str, str], Pod | None]


class GroupReasons(Protocol):
    """Knows why groups wait whose members are tried one by one."""

    def tried_too_soon(self, queued: QueuedPod, status: Status) -> bool:
        """Whether a pod was refused only because its group failed a moment ago."""
        ...

    def repeats(self, queued: QueuedPod, status: Status) -> bool:
        """Whether a rejection tells nothing that is not reported already."""
        ...

    def message_of(
        self, queued: QueuedPod, status: Status, diagnosis: Diagnosis | None, message: str
    ) -> str:
        """Return the message about a failed pod with the reason of its group added."""
        ...


class StatusReports(Protocol):
    """Receives a pod's condition and nomination; `PodWrites` sends them to the API server."""

    def report_status(
        self, pod: Pod, condition: Condition | None, *, nominated: str | None
    ) -> None:
        """Report the status that an attempt leads to."""
        ...


class FailureHandler:
    """Returns failed pods to the queue and reports why.

    Parameters
    ----------
    queue
        Receives the pod.
    lookup
        The pod as the API last showed it.
    recorder, writes
        Receives the report; None where nothing is written (benchmarks of the engine alone).
    attempts
        Counts every attempt that ends here; None where attempts are not counted.
    group_reasons
        Completes the messages of members of groups; None where no profile places members one by
        one.
    """

    def __init__(
        self,
        queue: SchedulingQueue,
        lookup: PodLookup,
        *,
        recorder: EventRecorder | None,
        writes: StatusReports | None,
        attempts: AttemptFacts | None = None,
        group_reasons: GroupReasons | None = None,
    ) -> None:
        self._queue = queue
        self._lookup = lookup
        self._recorder = recorder
        self._writes = writes
        self._tells = recorder is not None or writes is not None
        self._attempts = attempts
        self._group_reasons = group_reasons

    def handle(
        self,
        queued: QueuedPod,
        status: Status,
        diagnosis: Diagnosis | None,
        *,
        message: str,
        nomination: Nomination | None,
    ) -> None:
        """Take back a pod whose attempt ended without a binding.

        Parameters
        ----------
        queued
            The entry that was popped.
        status
            Rejected or Error.
        diagnosis
            The plugins that rejected the pod: it waits for an event that may cure the rejection.
            None when the failure has no rejector: the pod comes back by backoff.
        message
            Text for the Event and the condition.
        nomination
            Change to the pod's nomination; None leaves the nomination alone.
        """
        reasons = self._group_reasons
        if reasons is not None:
            if reasons.tried_too_soon(queued, status):
                diagnosis = None  # only time helps, and no event
            if reasons.repeats(queued, status):
                self.repeat(queued, status, diagnosis, nomination=nomination)
                return
            message = reasons.message_of(queued, status, diagnosis, message)
        current = self._give_back(queued, status, diagnosis, message=message, nomination=nomination)
        if current is not None and self._tells:
            self._report(current, status, message=sendable(message), nomination=nomination)

    def repeat(
        self,
        queued: QueuedPod,
        status: Status,
        diagnosis: Diagnosis | None,
        *,
        nomination: Nomination | None,
    ) -> None:
        """Take back a pod that was rejected as before, with nothing in between; report no reason.

        Ties are broken at random, so the reason may be another one. The reported reason stays. A
        nomination is reported: one that stands in the status after its end would count again.
        Parameters are as in `handle`.
        """
        message = queued.message
        current = self._give_back(queued, status, diagnosis, message=message, nomination=nomination)
        if current is not None and nomination is not None:
            self._report_status(current, None, nomination)

    def _give_back(
        self,
        queued: QueuedPod,
        status: Status,
        diagnosis: Diagnosis | None,
        *,
        message: str,
        nomination: Nomination | None,
    ) -> Pod | None:
        """Return a pod to the queue; return its newest version, None if the pod is gone."""
        if self._attempts is not None:
            self._attempts.returned(
                queued.uid, queued.profile, rejected=status.rejected, message=message
            )
        queued.rejected_by(
            diagnosis.unschedulable_plugins | diagnosis.preemption_rejectors if diagnosis else (),
            diagnosis.pending_plugins if diagnosis else (),
            message=message,
            news=not status.rejected,
        )
        failed(queued, message, rejected=status.rejected)
        namespace, name = queued.key
        current = self._lookup(namespace, name)
        if current is not None and current.metadata.uid != queued.uid:
            self._queue.end_in_flight(queued.uid)  # another pod of that name; the old one is gone
            return None
        if current is None or current.spec.node_name:
            self._queue.end_in_flight(queued.uid)
        else:
            queued.update(current)
            self._queue.add_unschedulable_if_not_present(queued)
        info = None
        if nomination is not None:
            info = NominatingInfo(nomination.node_name, nomination.victims)
            if nomination.node_name:
                queued.note_nomination(nomination.node_name)
        self._queue.nominate(queued.pod, info)
        return current

    def _report(
        self, pod: Pod, status: Status, *, message: str, nomination: Nomination | None
    ) -> None:
        if self._recorder is not None:
            self._recorder.record_event(failed_scheduling(pod, message))
        condition = Condition(
            type="PodScheduled",
            status="False",
            reason="Unschedulable" if status.rejected else "SchedulerError",
            message=message,
            observed_generation=pod.metadata.generation,
        )
        self._report_status(pod, condition, nomination)

    def _report_status(
        self, pod: Pod, condition: Condition | None, nomination: Nomination | None
    ) -> None:
        if self._writes is None or pod.spec.node_name:
            return  # a bound pod is scheduled, whatever this attempt thought
        nominated = None if nomination is None else nomination.node_name
        self._writes.report_status(pod, condition, nominated=nominated)


def failed_scheduling(pod: Pod, note: str) -> EventNote:
    """Build the Event of a failed attempt."""
    return EventNote(
        regarding=reference(pod),
        controller=pod.spec.scheduler_name,
        type="Warning",
        reason="FailedScheduling",
        action="Scheduling",
        note=note,
    )
