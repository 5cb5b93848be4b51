"""A pod on its way through the queue: the object that sub-queues hold and an attempt works on.

The queue makes it when a pod arrives, ``pop`` hands it out, and
``add_unschedulable_if_not_present`` gives it back. The object changes while the pod waits.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import msgspec

from moorage.api.changes import ClusterEvent
from moorage.api.pod import Pod
from moorage.base.no_names import NO_NAMES
from moorage.config.gate_table import V1_36
from moorage.snapshot.pod_info import PodInfo, info_of

PodKey: TypeAlias = tuple[str, str]
"""(namespace, name)."""

Likeness: TypeAlias = tuple[int, frozenset[str], str]
"""(id of the spec, plugins that the pod is pending on, its gating plugin)."""


class QueuedPod(msgspec.Struct, eq=False):
    """A pod and the record that the queue keeps of its attempts.

    Parameters
    ----------
    pod
        The pod as the API last showed it.
    timestamp_ns
        When the pod arrived or last came back, wall-clock nanoseconds since the Unix epoch; kept
        across sub-queues.

    Notes
    -----
    Kubernetes v1.36 ``pkg/scheduler/framework/types.go`` QueuedPodInfo. The batching signature has
    no counterpart: replicas are recognised by pod shape in the snapshot.
    """

    pod: Pod
    timestamp_ns: int
    attempts: int = 0
    """Number of times that the pod was popped."""
    attempt_number: int = 0
    """Number of the last attempt among those of all pods; 0 before the first."""
    unschedulable_count: int = 0
    """Number of times that the pod came back with a rejector."""
    consecutive_errors_count: int = 0
    """Number of times in a row that the pod came back without a rejector."""
    backoff_expiration_ns: int = 0
    """End of the current backoff, wall-clock ns; 0 = not computed yet. Kept by `Backoff`."""
    initial_attempt_ns: int | None = None
    """When the pod first entered activeQ, wall-clock ns; gated time is not part of it."""
    unschedulable_plugins: frozenset[str] = NO_NAMES
    """Plugins that rejected the pod, PreEnqueue included."""
    pending_plugins: frozenset[str] = NO_NAMES
    """Plugins that answered Pending."""
    gating_plugin: str = ""
    """The PreEnqueue plugin that keeps the pod out; empty = not gated."""
    gating_result: tuple[str, tuple[str, ...]] | None = None
    """(code, reasons) of the gating plugin's last answer, for explaining."""
    gating_events: tuple[ClusterEvent, ...] = ()
    """Events the gating plugin registered; no others are looked at while gated."""
    message: str = ""
    """Reason of the last failed attempt, in the words of its Event; empty before a failure."""
    has_news: bool = True
    """Whether anything happened since the last attempt that may change its outcome. False while
    only time has passed since a rejection."""
    only_reported: bool = False
    """Whether the pod has no nomination but the report of a node that its last placement took. The
    binding cycle wakes other pods when it gives back that node."""
    was_flushed: bool = False
    """Whether the pod left unschedulablePods by the leftover flush since it last came back."""
    counted_rejectors: frozenset[str] = NO_NAMES
    """The rejectors that the pod counts for in ``unschedulable_pods``; kept by the queue."""
    info: PodInfo = msgspec.UNSET  # type: ignore[assignment]
    """The pod as attempts read it, with everything compiled from it."""
    uid: str = ""
    key: PodKey = ("", "")

    def __post_init__(self) -> None:
        self.info = info = info_of(self.pod)
        self.uid, self.key = info.uid, (info.namespace, info.name)

    def __repr__(self) -> str:
        return f"<QueuedPod {self.key[0]}/{self.key[1]} attempts={self.attempts}>"

    @property
    def gated(self) -> bool:
        """Whether a PreEnqueue plugin keeps the pod out."""
        return self.gating_plugin != ""

    @property
    def priority(self) -> int:
        """``spec.priority``; absent counts as 0."""
        return self.info.priority

    @property
    def profile(self) -> str:
        """``spec.schedulerName``: the profile that schedules the pod."""
        return self.pod.spec.scheduler_name

    @property
    def rejectors(self) -> frozenset[str]:
        """All plugins that rejected the pod or that the pod is pending on."""
        pending = self.pending_plugins
        return self.unschedulable_plugins | pending if pending else self.unschedulable_plugins

    @property
    def likeness(self) -> Likeness:
        """The same for equal pods: an event means the same for them if their rejectors agree."""
        return self.info.spec_id, self.pending_plugins, self.gating_plugin

    def update(self, pod: Pod) -> None:
        """Take over a newer version of the same pod.

        Raises
        ------
        AssertionError
            The version belongs to another pod (its uid differs).
        """
        if pod is self.pod:
            return
        info = info_of(pod, like=self.info)
        assert info.uid == self.uid, f"{self!r} updated with uid {info.uid}"
        self.pod, self.info = pod, info

    def note_nomination(self, node_name: str) -> None:
        """Note the nomination that an attempt decided, or with which it placed the pod."""
        self.only_reported = not node_name

    def rejected_by(
        self,
        unschedulable: Iterable[str],
        pending: Iterable[str] = (),
        *,
        message: str = "",
        news: bool = False,
    ) -> None:
        """Replace what earlier attempts left by the rejectors of the attempt that just failed.

        The failure handler calls this before the pod goes back to the queue. Without rejectors the
        attempt failed with an error, and what the next one finds is news.
        """
        self.message = message
        self.has_news = news
        self.unschedulable_plugins = frozenset(unschedulable)
        self.pending_plugins = frozenset(pending)
        self.gating_plugin = ""
        self.gating_result = None
        self.gating_events = ()


def member_order(queued: QueuedPod, version: str) -> tuple[object, ...]:
    """Return the rank of a pod among the members of its group: the smallest is tried first.

    Parameters
    ----------
    queued
        The member.
    version
        The emulated version of Kubernetes.

    Notes
    -----
    Kubernetes v1.37 ``pkg/scheduler/framework/types.go``: of members of equal priority the one with
    the most attempts comes first, then the one that waits for the longest time.
    """
    if version == V1_36:
        return -queued.priority, queued.initial_attempt_ns or 0, queued.key
    return -queued.priority, -queued.attempts, queued.timestamp_ns, queued.key
