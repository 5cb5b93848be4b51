"""A pod on its way through the queue: the object that sub-queues hold and an attempt works on.

The queue makes it when a pod arrives, ``pop`` hands it out, and
``add_unschedulable_if_not_present`` gives it back. The object changes while the pod waits.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from moorage.api.changes import ClusterEvent
from moorage.api.pod import Pod
from moorage.snapshot.pod_info import PodInfo, info_of

PodKey: TypeAlias = tuple[str, str]
"""(namespace, name)."""


class QueuedPod:
    """A pod and the record that the queue keeps of its attempts.

    Parameters
    ----------
    pod
        The pod as the API last showed it.
    timestamp_ns
        Wall-clock time of arrival, nanoseconds since the Unix epoch.

    Notes
    -----
    Kubernetes v1.36 ``pkg/scheduler/framework/types.go`` QueuedPodInfo. The batching signature has
    no counterpart: replicas are recognised by pod shape in the snapshot.
    """

    __slots__ = (
        "attempts",
        "backoff_expiration_ns",
        "consecutive_errors_count",
        "counted_rejectors",
        "gating_events",
        "gating_plugin",
        "gating_result",
        "info",
        "initial_attempt_ns",
        "key",
        "pending_plugins",
        "pod",
        "timestamp_ns",
        "uid",
        "unschedulable_count",
        "unschedulable_plugins",
        "was_flushed",
    )

    def __init__(self, pod: Pod, timestamp_ns: int) -> None:
        self.pod = pod
        self.info: PodInfo = info_of(pod)
        """The pod as attempts read it, with everything compiled from it."""
        self.uid = self.info.uid
        self.key: PodKey = (self.info.namespace, self.info.name)
        self.timestamp_ns = timestamp_ns
        """When it arrived or last came back, wall-clock ns. Moves between sub-queues keep it."""
        self.attempts = 0
        """How often it was popped."""
        self.unschedulable_count = 0
        """How often it came back with a rejector."""
        self.consecutive_errors_count = 0
        """How often in a row it came back without one."""
        self.backoff_expiration_ns = 0
        """End of the current backoff, wall-clock ns; 0 = not computed yet. Kept by `Backoff`."""
        self.initial_attempt_ns: int | None = None
        """When it first entered activeQ, wall-clock ns; gated time is not part of it."""
        self.unschedulable_plugins: frozenset[str] = frozenset()
        """Plugins that rejected it, PreEnqueue included."""
        self.pending_plugins: frozenset[str] = frozenset()
        """Plugins that answered Pending."""
        self.gating_plugin = ""
        """The PreEnqueue plugin that keeps it out; empty = not gated."""
        self.gating_result: tuple[str, tuple[str, ...]] | None = None
        """(code, reasons) of the gating plugin's last answer, for explaining."""
        self.gating_events: tuple[ClusterEvent, ...] = ()
        """Events the gating plugin registered; no others are looked at while gated."""
        self.was_flushed = False
        """Whether it left unschedulablePods by the leftover flush since it last came back."""
        self.counted_rejectors: frozenset[str] = frozenset()
        """The rejectors it currently counts for in ``unschedulable_pods``; kept by the queue."""

    def __repr__(self) -> str:
        return f"<QueuedPod {self.key[0]}/{self.key[1]} attempts={self.attempts}>"

    @property
    def gated(self) -> bool:
        """Whether a PreEnqueue plugin keeps it out."""
        return self.gating_plugin != ""

    @property
    def priority(self) -> int:
        """``spec.priority``; absent counts as 0."""
        return self.pod.priority

    @property
    def profile(self) -> str:
        """``spec.schedulerName``: the profile that schedules it."""
        return self.pod.spec.scheduler_name

    @property
    def rejectors(self) -> frozenset[str]:
        """All plugins that rejected it or that it is pending on."""
        pending = self.pending_plugins
        return self.unschedulable_plugins | pending if pending else self.unschedulable_plugins

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

    def rejected_by(self, unschedulable: Iterable[str], pending: Iterable[str] = ()) -> None:
        """Replace what earlier attempts left by the rejectors of the attempt that just failed.

        The failure handler calls this before the pod goes back to the queue. Without rejectors the
        attempt failed with an error.
        """
        self.unschedulable_plugins = frozenset(unschedulable)
        self.pending_plugins = frozenset(pending)
        self.gating_plugin = ""
        self.gating_result = None
        self.gating_events = ()
