"""Callables and Protocols that the queue and the cache are given.

The seam between this room and the rooms above: ``service`` builds these from a profile's plugins
and hands them in, so the queue never learns what a plugin is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, Protocol, TypeAlias

import msgspec

from moorage.api.changes import ClusterEvent
from moorage.api.claims import ClaimUsers
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.base.clock import NS_PER_SECOND
from moorage.snapshot.pod_info import PodInfo
from moorage.state.queued_pod import QueuedPod

ACTIVE = "active"
BACKOFF = "backoff"
UNSCHEDULABLE = "unschedulable"
GATED = "gated"
"""Names of the sub-queues as metrics spell them."""


class Hint(Enum):
    """The answer of a requeue hint about one waiting pod and one cluster event."""

    SKIP = "QueueSkip"
    """The event cannot help this pod: it keeps waiting."""
    QUEUE = "Queue"
    """The event may help: try the pod again, after its backoff if it has one left."""


BROKEN_HINT = "Error"
"""The label in metrics for a hint that broke."""

HintFn: TypeAlias = Callable[[Pod, object | None, object | None], Hint]
"""(waiting pod, old object, new object) -> `Hint`. A hint that raises counts as QUEUE."""

ConcernsFn: TypeAlias = Callable[[object | None, object | None], Iterable[Pod] | ClaimUsers | None]
"""(old object, new object) -> the pods a hint may say QUEUE about; None for any."""


class RegisteredHint(msgspec.Struct, frozen=True):
    """A cluster event that may cure the rejections of a plugin, as the plugin declares.

    Parameters
    ----------
    plugin
        Name of the plugin that rejected the pods.
    event
        Resource and actions.
    hint
        Asked about each pod the plugin rejected; None means always QUEUE.
    concerns
        Returns the pods for which the hint has to be asked; None means every pod.
    replicas_agree
        Whether the answer is the same for all pods with equal namespace, labels and spec, except
        for a pod that the event is about. The hint is then asked once for all of them.
    """

    plugin: str
    event: ClusterEvent
    hint: HintFn | None = None
    concerns: ConcernsFn | None = None
    replicas_agree: bool = False


HintMap: TypeAlias = Mapping[str, Sequence[RegisteredHint]]
"""Profile name to the hints of its plugins, in the order they are asked."""

GateResult: TypeAlias = tuple[str, tuple[str, ...]]
"""(name of the status code, reasons) of a PreEnqueue plugin that keeps a pod out."""

PreEnqueueFn: TypeAlias = Callable[[Pod], GateResult | None]
"""A PreEnqueue plugin; None lets the pod in."""

PreEnqueueMap: TypeAlias = Mapping[str, Sequence[tuple[str, PreEnqueueFn]]]
"""Profile name to its (plugin name, function) pairs, in order."""


class Comparable(Protocol):
    """Anything a heap can order."""

    def __lt__(self, other: Any, /) -> Any:
        """Whether this one comes first."""
        ...


SortKey: TypeAlias = Callable[[QueuedPod], Comparable]
"""A pod's place in the order as a value: the least is popped first."""

PodLookup: TypeAlias = Callable[[str, str], Pod | None]
"""(namespace, name) -> the pod as the API last showed it, or None."""

Precheck: TypeAlias = Callable[[Pod], bool]
"""Whether a waiting pod is to be considered for a cluster event at all."""


class QueueSettings(msgspec.Struct, frozen=True):
    """Times and bounds of the scheduling queue.

    Parameters
    ----------
    backoff_initial_ns
        Wait after the first failure, nanoseconds (``podInitialBackoffSeconds``).
    backoff_max_ns
        Longest wait, nanoseconds (``podMaxBackoffSeconds``); 0 turns backoff off.
    unschedulable_max_ns
        How long a pod may wait for an event before it is retried anyway, nanoseconds.
    pop_from_backoff
        Feature gate SchedulerPopFromBackoffQ: with nothing active, pods whose backoff still runs
        are popped, and backoff is counted in whole seconds.
    in_flight_events_max
        Most cluster events kept for pods in flight. Beyond it the oldest are dropped, and the pods
        that would have needed these events are retried after backoff as if an event had helped. A
        guess: minutes of a busy cluster's events, tens of megabytes.
    """

    backoff_initial_ns: int = NS_PER_SECOND
    backoff_max_ns: int = 10 * NS_PER_SECOND
    unschedulable_max_ns: int = 300 * NS_PER_SECOND
    pop_from_backoff: bool = True
    in_flight_events_max: int = 100_000


class QueueObserver(Protocol):
    """Receives the facts that metrics are made of; every method must return quickly."""

    def incoming(self, queue: str, event: str, pod: Pod) -> None:
        """Count a pod that entered a sub-queue because of an event."""
        ...

    def pending(self, queue: str, delta: int) -> None:
        """Change the number of pods in ``active``, ``backoff``, ``unschedulable``, ``gated``."""
        ...

    def unschedulable_pods(self, plugin: str, profile: str, delta: int) -> None:
        """Change the number of queued pods last rejected by a plugin."""
        ...

    def in_flight_events(self, event: str, delta: int) -> None:
        """Change the number of entries kept for pods in flight, by event label."""
        ...

    def observer_now_ns(self) -> int:
        """Return the time to hand in as a beginning, nanoseconds."""
        ...

    def hint_asked(
        self, plugin: str, event: str, answer: str, *, since_ns: int, pods: int = 1
    ) -> None:
        """Note how long a hint took for a number of equal pods, and its answer or `BROKEN_HINT`."""
        ...

    def pre_enqueue_asked(self, profile: str, *, since_ns: int) -> None:
        """Note how long the PreEnqueue plugins of a profile took together."""
        ...


class NullObserver:
    """An observer that ignores every fact."""

    def incoming(self, queue: str, event: str, pod: Pod) -> None:
        """Do nothing."""

    def pending(self, queue: str, delta: int) -> None:
        """Do nothing."""

    def unschedulable_pods(self, plugin: str, profile: str, delta: int) -> None:
        """Do nothing."""

    def in_flight_events(self, event: str, delta: int) -> None:
        """Do nothing."""

    def observer_now_ns(self) -> int:
        """Return 0: durations are not used."""
        return 0

    def hint_asked(
        self, plugin: str, event: str, answer: str, *, since_ns: int, pods: int = 1
    ) -> None:
        """Do nothing."""

    def pre_enqueue_asked(self, profile: str, *, since_ns: int) -> None:
        """Do nothing."""


class NodeTableLike(Protocol):
    """The snapshot's table, as the cache feeds it: one row a node, kept current by deltas."""

    def add_node(self, node: Node) -> None:
        """Add the row of a node."""
        ...

    def update_node(self, node: Node) -> None:
        """Rewrite the row of a node."""
        ...

    def remove_node(self, name: str) -> None:
        """Remove the row; pods still on the node are kept hidden."""
        ...

    def has_node(self, name: str) -> bool:
        """Whether a row of this name exists."""
        ...

    @property
    def hidden_nodes(self) -> Collection[str]:
        """Names of unknown nodes on which pods are counted."""
        ...

    def add_pod(self, pod: Pod | PodInfo, node_name: str) -> None:
        """Count a pod on a node; on an unknown node it is kept hidden until the node arrives."""
        ...

    def update_pod(self, pod: Pod, node_name: str) -> None:
        """Count a newer version of a pod; the node may differ from where it was counted."""
        ...

    def remove_pod(self, uid: str) -> None:
        """Stop counting a pod."""
        ...
