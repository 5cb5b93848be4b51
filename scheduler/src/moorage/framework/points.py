"""The extension points, as Protocols; a plugin is any object that has some of these methods.

Deciding points (PreEnqueue ... Permit) are synchronous and pure: they read the snapshot and
answer. PreBind, Bind and PostBind run in the binding task and may be ``async def``.

Filter and Score come in two forms. The *vector* form answers for every row of a view at once and is
what in-tree plugins use. The *scalar* form answers for one node; the framework adapts it. A plugin
declares its further capabilities as `moorage.framework.capabilities`.

Rules mirrored: kubernetes v1.36 ``staging/src/k8s.io/kube-scheduler/framework/interface.go``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import msgspec
import numpy as np
from numpy.typing import NDArray

from moorage.api.changes import ClusterEvent
from moorage.api.claims import ClaimUsers
from moorage.api.pod import Pod
from moorage.base.no_names import NO_NAMES
from moorage.framework.cycle_state import CycleState
from moorage.framework.status import FilterAnswer, Status
from moorage.snapshot.node_info import NodeInfo
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot
from moorage.snapshot.view import NodeView

MAX_NODE_SCORE = 100
MIN_NODE_SCORE = 0

ScoreArray = NDArray[np.int64]
HintFunction = Callable[[Pod, object | None, object | None], bool]
ConcernsFunction = Callable[[object | None, object | None], Iterable[Pod] | ClaimUsers | None]


class EventRegistration(msgspec.Struct, frozen=True):
    """A cluster event that may cure a rejection by the plugin.

    Parameters
    ----------
    event
        Resource and actions.
    hint
        ``(waiting pod, old object, new object) -> worth retrying``; None means always. A hint that
        raises counts as True: errors fail towards progress.
    concerns
        ``(old object, new object) -> pods``: the pods for which the hint may return anything but
        False, or `ClaimUsers` for every pod that names a claim. The hint is not called for other
        pods, so the cost of an event does not grow with the waiting pods. Any pod may be concerned
        where the function or its answer is None.
    replicas_agree
        Whether replicas get the same answer: of the waiting pod, the hint reads nothing but
        namespace, labels and spec, and whether the event is about this pod. The hint is then asked
        once for all waiting replicas. False is always right.
    """

    event: ClusterEvent
    hint: HintFunction | None = None
    concerns: ConcernsFunction | None = None
    replicas_agree: bool = False


class PreFilterResult(msgspec.Struct, frozen=True):
    """The node names a PreFilter plugin restricts the search to; None means every node."""

    node_names: frozenset[str] | None = None


class PreFilterOutcome(msgspec.Struct, frozen=True):
    """The outcome of all PreFilter plugins together.

    Parameters
    ----------
    status
        Success, the rejection that stands for every node, or Error.
    node_names
        The nodes the search is restricted to; None means all.
    plugins
        Names recorded for requeueing: the rejecting plugin, or the restricting plugins.
    results
        Each plugin's own status where it was not Success, in order.
    restricted_by
        Each restricting plugin's own node names.
    """

    status: Status
    node_names: frozenset[str] | None = None
    plugins: frozenset[str] = NO_NAMES
    results: Mapping[str, Status] = {}
    restricted_by: Mapping[str, frozenset[str]] = {}


class PostFilterResult(msgspec.Struct, frozen=True):
    """The proposal of a PostFilter plugin.

    Parameters
    ----------
    nominated_node
        The node to nominate; "" clears the nomination, None leaves it alone.
    victims
        The pods to evict.
    rejectors
        Names of the plugins that reject the pod even after evictions. Their events may help too.
    """

    nominated_node: str | None = None
    victims: tuple[Pod, ...] = ()
    rejectors: frozenset[str] = NO_NAMES


@runtime_checkable
class Plugin(Protocol):
    """The contract of every plugin: the name by which it is configured."""

    name: str


@runtime_checkable
class EventsToRegister(Plugin, Protocol):
    """Declares the events that may make a pod rejected by the plugin schedulable."""

    def events_to_register(self) -> Sequence[EventRegistration]:
        """Return the registrations; read once at start. Empty: no event ever moves its pods."""
        ...


@runtime_checkable
class PreEnqueuePlugin(Plugin, Protocol):
    """May keep a pod out of the queue (gated)."""

    def pre_enqueue(self, pod: Pod) -> Status:
        """Answer Success to let the pod in; anything else gates it."""
        ...


@runtime_checkable
class QueueSortPlugin(Plugin, Protocol):
    """Orders the active queue."""

    def sort_key(self, priority: int, timestamp_ns: int, pod: Pod) -> tuple[Any, ...]:
        """Return a key, immutable and totally ordered; the pod with the smaller key comes first."""
        ...


class QueuedPodInfo(msgspec.Struct, frozen=True):
    """A pod in the queue, as a comparator sees it.

    Parameters
    ----------
    pod
        The pod.
    priority
        Its priority, 0 where absent.
    timestamp_ns
        When it was queued, nanoseconds of a clock without a meaning of its own.
    """

    pod: PodInfo
    priority: int
    timestamp_ns: int


@runtime_checkable
class ComparingQueueSortPlugin(Plugin, Protocol):
    """Orders the active queue by comparing two pods; for plugins from outside.

    A `QueueSortPlugin` is faster: it makes one key of each pod.
    """

    def less(self, first: QueuedPodInfo, second: QueuedPodInfo) -> bool:
        """Return whether the first pod comes before the second: a strict, transitive order."""
        ...


@runtime_checkable
class PreFilterPlugin(Plugin, Protocol):
    """Looks at the pod once per attempt; may skip its Filter, reject, or restrict the nodes."""

    def pre_filter(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot
    ) -> tuple[PreFilterResult | None, Status]:
        """Answer Success, Skip, Unschedulable or UnschedulableAndUnresolvable (or Error)."""
        ...


@runtime_checkable
class PreFilterExtensions(Plugin, Protocol):
    """Keeps a PreFilter result right while pods are added to or removed from one row in a trial.

    Both methods write a changed *copy* of the plugin's value into the given state, which is a copy
    as well. The trial itself changes the columns of the row.
    """

    def add_pod(self, state: CycleState, pod: PodInfo, added: PodInfo, *, row: int) -> None:
        """Account for a pod that is put on a row."""
        ...

    def remove_pod(self, state: CycleState, pod: PodInfo, removed: PodInfo, *, row: int) -> None:
        """Account for a pod that is taken off a row."""
        ...


@runtime_checkable
class FilterPlugin(Plugin, Protocol):
    """Vector form of Filter: says which rows of a view can take the pod."""

    def filter(self, state: CycleState, pod: PodInfo, view: NodeView) -> FilterAnswer | None:
        """Answer for every row of the view; None when all pass."""
        ...


@runtime_checkable
class NodeFilterPlugin(Plugin, Protocol):
    """Scalar form of Filter, for plugins written by users."""

    def filter_node(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        """Answer for one node."""
        ...


@runtime_checkable
class PostFilterPlugin(Plugin, Protocol):
    """Runs when no node is feasible; may propose a node and victims (preemption)."""

    def post_filter(
        self, state: CycleState, pod: PodInfo, node_to_status: Mapping[str, Status]
    ) -> tuple[PostFilterResult | None, Status]:
        """Answer Success, Unschedulable (go on) or UnschedulableAndUnresolvable (stop)."""
        ...


@runtime_checkable
class PreScorePlugin(Plugin, Protocol):
    """Prepares scoring; runs when two or more nodes are feasible."""

    def pre_score(self, state: CycleState, pod: PodInfo, feasible: NodeView) -> Status:
        """Answer Success, or Skip to leave the plugin out of scoring."""
        ...


@runtime_checkable
class ScorePlugin(Plugin, Protocol):
    """Vector form of Score: says how good each row of a view is."""

    def score(self, state: CycleState, pod: PodInfo, view: NodeView) -> ScoreArray:
        """Return int64, (rows of the view,). Without `normalize`: 0 to 100."""
        ...


@runtime_checkable
class NodeScorePlugin(Plugin, Protocol):
    """Scalar form of Score, for plugins written by users."""

    def score_node(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        """Return the raw score of one node."""
        ...


@runtime_checkable
class NormalizePlugin(Plugin, Protocol):
    """Brings the raw scores of all feasible nodes into 0 to 100."""

    def normalize(self, state: CycleState, pod: PodInfo, raw_n: ScoreArray) -> ScoreArray:
        """Return int64, same shape, values 0 to 100. Does not change its argument.

        Where all raw scores are the same, the result must not depend on their number.
        """
        ...


@runtime_checkable
class ReservePlugin(Plugin, Protocol):
    """Keeps its own records about the chosen node, and can undo a record."""

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Record the pod on the node; a rejection undoes the attempt."""
        ...

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        """Undo `reserve`; idempotent, and may be called without it."""
        ...


@runtime_checkable
class PermitPlugin(Plugin, Protocol):
    """May hold or reject the pod at the end of the scheduling cycle."""

    def permit(self, state: CycleState, pod: PodInfo, node_name: str) -> tuple[Status, float]:
        """Answer Success, Wait or a rejection, and the longest wait in seconds."""
        ...


@runtime_checkable
class PreBindPreFlightPlugin(Plugin, Protocol):
    """Says before the binding cycle whether PreBind has anything to do."""

    def pre_bind_pre_flight(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Answer Success (there is work), Skip (there is none) or Error."""
        ...


@runtime_checkable
class PreBindPlugin(Plugin, Protocol):
    """Does what must be done before the pod is bound (volumes, claims).

    An ``async def`` may be cancelled at any of its awaits: when another plugin of its group fails,
    when a pod of higher priority takes the place, and when the scheduler ends.
    """

    def pre_bind(
        self, state: CycleState, pod: PodInfo, node_name: str
    ) -> Status | Awaitable[Status]:
        """Do the work; any answer but Success undoes the attempt."""
        ...


@runtime_checkable
class BindPlugin(Plugin, Protocol):
    """Binds the pod to the node through the API."""

    def bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | Awaitable[Status]:
        """Bind the pod; after Skip the next Bind plugin is asked."""
        ...


@runtime_checkable
class PostBindPlugin(Plugin, Protocol):
    """Told after a pod was bound."""

    def post_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Awaitable[None] | None:
        """Clean up; the attempt cannot fail any more."""
        ...
