"""Whether another attempt of a waiting pod is worth it: asked by the queue before it moves the pod.

`moorage.state.hints` answers as kubernetes v1.36 does, plugin by plugin.
`moorage.state.wakeups_v1_20` answers as v1.20 did: after any event. `moorage.state.queue_version`
chooses between them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from enum import Enum
from typing import Protocol, TypeAlias

from moorage.api.changes import ClusterEvent
from moorage.api.claims import ClaimUsers
from moorage.api.pod import Pod
from moorage.state.in_flight import InFlight
from moorage.state.queued_pod import PodKey, QueuedPod

WakingEvents: TypeAlias = Mapping[str, Sequence[ClusterEvent]]
"""Name of a plugin -> the cluster events after which it lets a waiting pod be tried again."""


class Requeue(Enum):
    """The move of a waiting pod after an event."""

    SKIP = "skip"
    """The pod keeps waiting."""
    AFTER_BACKOFF = "after-backoff"
    """To backoffQ, or to activeQ if its backoff is over."""
    IMMEDIATELY = "immediately"
    """To activeQ: a plugin that the pod was pending on says that the wait is over."""


class Wakeups(Protocol):
    """Tells the cluster events and the updates that are worth another attempt."""

    @property
    def keeps_events(self) -> bool:
        """Whether the queue keeps the events for each pod in flight, one by one.

        Where it does not, an update of a pod in flight queues a second copy of it.
        """
        ...

    @property
    def update_ends_backoff(self) -> bool:
        """Whether a pod in backoffQ becomes active when it is updated."""
        ...

    def of_interest(self, event: ClusterEvent) -> bool:
        """Whether any pod could move because of an event."""
        ...

    def may_help(self, profile: str, rejectors: frozenset[str], event: ClusterEvent) -> bool:
        """Whether `worth_requeuing` could wake any pod with these rejectors."""
        ...

    def concerned(
        self,
        event: ClusterEvent,
        profile: str,
        rejectors: frozenset[str],
        *,
        old: object | None,
        new: object | None,
    ) -> Collection[PodKey | ClaimUsers] | None:
        """Return the pods with these rejectors that an event may help; None means all of them."""
        ...

    def replicas_agree(self, event: ClusterEvent, profile: str, rejectors: frozenset[str]) -> bool:
        """Whether `worth_requeuing` answers the same for all equal pods with these rejectors.

        Not counting pods that the event is about.
        """
        ...

    def worth_requeuing(
        self,
        queued: QueuedPod,
        event: ClusterEvent,
        old: object | None,
        new: object | None,
        *,
        pods: int = 1,
    ) -> Requeue:
        """Judge an event, about the object before and after, for a number of equal pods."""
        ...

    def after_update(
        self, queued: QueuedPod, events: Sequence[ClusterEvent], old: Pod | None, new: Pod
    ) -> Iterator[tuple[Requeue, ClusterEvent]]:
        """Judge a waiting pod's own update: answers, each with its event, at least one.

        The answers are acted on one after another until the pod has moved.
        """
        ...

    def on_return(self, queued: QueuedPod, in_flight: InFlight) -> Requeue:
        """Judge a pod that comes back from its attempt by the events that came meanwhile."""
        ...

    def waking(self, queued: QueuedPod) -> WakingEvents:
        """Return the events that may wake a waiting pod, by the plugin that waits for them.

        The name is empty where the events do not depend on the plugin that rejected the pod.
        """
        ...
