"""Reads the scheduling queue for reports: the order of the pods, their times, what may wake them.

Nothing here changes the queue. `moorage.service.questions` makes the answer of ``moorage queue``
from these records.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

import msgspec

from moorage.api.pod import Pod
from moorage.state.in_flight import InFlight
from moorage.state.pending import PendingPod, QueueCounts, pending_pod
from moorage.state.queued_pod import QueuedPod
from moorage.state.sub_queues import SubQueues
from moorage.state.wakeups import Wakeups, WakingEvents


class QueuedRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A queued pod, with what moves it out of its sub-queue.

    Parameters
    ----------
    pending
        The pod at this moment.
    release_ns
        backoffQ only: the first moment at which the backoff no longer holds the pod, wall-clock
        nanoseconds; otherwise 0.
    errored
        backoffQ only: whether the last attempt met an error. Such a pod is never popped early.
    waking
        unschedulablePods only: the events that may wake the pod, by plugin.
    """

    pending: PendingPod
    release_ns: int = 0
    errored: bool = False
    waking: WakingEvents = {}


class QueueRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The first pods of each sub-queue at one moment.

    Parameters
    ----------
    counts
        The size of each sub-queue, whatever the number of records.
    active
        Next pod first.
    backoff
        Earliest end of backoff first; rejected pods before errored pods.
    unschedulable, gated
        Longest waiting first.
    in_flight
        Uids of all popped pods that are not done, longest in flight first.
    """

    counts: QueueCounts
    active: tuple[QueuedRecord, ...]
    backoff: tuple[QueuedRecord, ...]
    unschedulable: tuple[QueuedRecord, ...]
    gated: tuple[QueuedRecord, ...]
    in_flight: tuple[str, ...]


class QueueReader:
    """Makes records of the queue.

    Parameters
    ----------
    sub_queues, in_flight
        The pods.
    wakeups
        Knows the events that wake a waiting pod.
    """

    def __init__(self, sub_queues: SubQueues, in_flight: InFlight, wakeups: Wakeups) -> None:
        self._sub_queues = sub_queues
        self._in_flight = in_flight
        self._wakeups = wakeups

    def was_tried_before(self, pod: Pod, other: QueuedPod) -> bool:
        """Whether a queued pod's last attempt began before that of another pod."""
        queued = self._sub_queues.find(pod.key)
        return queued is not None and queued.attempt_number < other.attempt_number

    def is_only_reported(self, pod: Pod) -> bool:
        """Whether the nominated node of a queued pod only says where the pod was placed."""
        queued = self._sub_queues.find(pod.key)
        return queued is not None and queued.uid == pod.uid and queued.only_reported

    def last_failure(self, pod: Pod) -> str:
        """Return why the last attempt of a queued pod failed; "" where none did."""
        queued = self._sub_queues.find(pod.key)
        return "" if queued is None or queued.gated else queued.message

    def first(self, count: int, *, counts: QueueCounts) -> QueueRecord:
        """Return records of the first pods of each sub-queue.

        Parameters
        ----------
        count
            Most pods of each sub-queue; the cost grows with this number.
        counts
            The size of each sub-queue now.
        """
        backoff = self._sub_queues.backoff
        rejected = backoff.rejected.first(count)
        errored = backoff.errored.first(count - len(rejected))
        waiting = self._sub_queues.unschedulable.queued_pods()
        return QueueRecord(
            counts=counts,
            active=tuple(
                QueuedRecord(pending=pending_pod(queued))
                for queued in self._sub_queues.active.first(count)
            ),
            backoff=tuple(
                QueuedRecord(
                    pending=pending_pod(queued),
                    release_ns=backoff.release_ns(queued),
                    errored=queued.key in backoff.errored,
                )
                for queued in [*rejected, *errored]
            ),
            unschedulable=self._waiting((each for each in waiting if not each.gated), count),
            gated=self._waiting((each for each in waiting if each.gated), count),
            in_flight=tuple(self._in_flight.uids()),
        )

    def _waiting(self, pods: Iterable[QueuedPod], count: int) -> tuple[QueuedRecord, ...]:
        return tuple(
            QueuedRecord(pending=pending_pod(queued), waking=self._wakeups.waking(queued))
            for queued in islice(pods, count)
        )
