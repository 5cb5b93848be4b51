"""Wake-ups of kubernetes v1.20: any cluster event is worth another attempt of every waiting pod.

The `moorage.state.wakeups.Wakeups` of that version: no plugin is asked what may cure its rejection.
Two numbers stand for the events during an attempt: the number of the newest attempt, and that
number when waiting pods were last moved. If pods were moved since this attempt began, the pod is
tried again after backoff. Otherwise the pod waits, even when the attempt met an error.

Scheduling gates came in a later version and keep its rules: a gated pod is looked at again after an
event of its gate, or after an update of the pod.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TypeAlias

import msgspec

from moorage.api.changes import WILDCARD, Action, ClusterEvent, Resource
from moorage.api.claims import ClaimUsers
from moorage.api.meta import ObjectMeta
from moorage.api.pod import Pod, PodStatus
from moorage.snapshot.pod_affinity import required_terms
from moorage.state.in_flight import InFlight
from moorage.state.queued_pod import PodKey, QueuedPod
from moorage.state.wakeups import Requeue, WakingEvents

_log = logging.getLogger(__name__)

NamespaceLabels: TypeAlias = Callable[[str], Mapping[str, str]]
"""Name of a namespace -> its labels; no labels for an unknown namespace."""


class WakeupsV120:
    """Wakes every waiting pod on every event, except events about placed pods.

    An added or changed pod with a node wakes only the pods with a required affinity term that
    selects it.

    Parameters
    ----------
    namespace_labels
        For terms that choose namespaces by label.

    Notes
    -----
    Kubernetes v1.20 ``pkg/scheduler/internal/queue/scheduling_queue.go``. A term's namespace
    selector, which came later, is honoured.
    """

    keeps_events = False
    update_ends_backoff = True

    def __init__(self, namespace_labels: NamespaceLabels) -> None:
        self._namespace_labels = namespace_labels

    def of_interest(self, event: ClusterEvent) -> bool:
        """Answer yes: no plugin is asked."""
        return True

    def may_help(self, profile: str, rejectors: frozenset[str], event: ClusterEvent) -> bool:
        """Answer yes: the pod's rejectors do not matter."""
        return True

    def concerned(
        self,
        event: ClusterEvent,
        profile: str,
        rejectors: frozenset[str],
        *,
        old: object | None,
        new: object | None,
    ) -> Collection[PodKey | ClaimUsers] | None:
        """Return None: any waiting pod may be helped, so each is looked at."""
        return None

    def replicas_agree(self, event: ClusterEvent, profile: str, rejectors: frozenset[str]) -> bool:
        """Answer yes: only namespace and spec matter, and which pod a wildcard is about."""
        return True

    def worth_requeuing(
        self,
        queued: QueuedPod,
        event: ClusterEvent,
        old: object | None,
        new: object | None,
        *,
        pods: int = 1,
    ) -> Requeue:
        """Judge what an event means for equal pods."""
        if event.is_wildcard:
            targeted = isinstance(new, Pod) and new.uid != queued.uid
            return Requeue.SKIP if targeted else Requeue.AFTER_BACKOFF
        placed = event.resource == Resource.ASSIGNED_POD and event.action != Action.DELETE
        if placed and isinstance(new, Pod) and not self._has_affinity_to(queued.pod, new):
            return Requeue.SKIP
        return Requeue.AFTER_BACKOFF

    def after_update(
        self, queued: QueuedPod, events: Sequence[ClusterEvent], old: Pod | None, new: Pod
    ) -> Iterator[tuple[Requeue, ClusterEvent]]:
        """Send a pod that was really changed to activeQ, whatever its backoff."""
        changed = old is None or what_counts(old) != what_counts(new)
        yield Requeue.IMMEDIATELY if changed else Requeue.SKIP, events[0]

    def on_return(self, queued: QueuedPod, in_flight: InFlight) -> Requeue:
        """Answer AFTER_BACKOFF if waiting pods were moved since the attempt began, else SKIP."""
        moved = in_flight.move_request_cycle >= in_flight.scheduling_cycle
        return Requeue.AFTER_BACKOFF if moved else Requeue.SKIP

    def waking(self, queued: QueuedPod) -> WakingEvents:
        """Return every event; of a gated pod, its gate's."""
        if queued.gating_plugin:
            return {queued.gating_plugin: queued.gating_events}
        return {"": (WILDCARD,)}

    def _has_affinity_to(self, waiting: Pod, placed: Pod) -> bool:
        affinity = waiting.spec.affinity
        if affinity is None or affinity.pod_affinity is None:
            return False
        try:
            terms = required_terms(waiting.metadata.namespace, affinity.pod_affinity)
        except ValueError as problem:
            _log.error("pod affinity of %s cannot be read: %s", waiting.full_name, problem)
            return False
        metadata = placed.metadata
        around = self._namespace_labels(metadata.namespace)
        return any(term.selects_pod(metadata.namespace, metadata.labels, around) for term in terms)


def what_counts(pod: Pod) -> Pod:
    """Return a pod without the fields that change when its author changes nothing.

    Left out: status, resourceVersion, generation, finalizers (and managedFields, never decoded).
    """
    metadata: ObjectMeta = msgspec.structs.replace(
        pod.metadata, resource_version="", generation=0, finalizers=[]
    )
    return msgspec.structs.replace(pod, metadata=metadata, status=PodStatus())
