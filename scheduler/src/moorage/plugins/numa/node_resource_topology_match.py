"""NodeResourceTopologyMatch: a pod gets a node whose kubelet can align the pod's resources.

The topology manager of a kubelet may refuse a pod for which no single NUMA node has room. The pod
fails then, on a node that had enough in total. The plugin reads NodeResourceTopology objects, which
an exporter on each node writes, and leaves such nodes out. A node without an object, or with
another policy, is left alone. The plugin is not part of the default profile.

Rules mirrored: scheduler-plugins v0.35 ``pkg/noderesourcetopology`` (filter.go, score.go,
reserve.go).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Final, TypeVar, cast

import numpy as np

from moorage.api.changes import Action, ClusterEvent, Resource
from moorage.base.errors import ConfigError
from moorage.config.scheduler_plugins.numa import (
    BALANCED_ALLOCATION,
    LEAST_ALLOCATED,
    LEAST_NUMA_NODES,
    MOST_ALLOCATED,
    NodeResourceTopologyMatchArgs,
)
from moorage.config.scheduler_plugins.numa import (
    validate_node_resource_topology_match_args as validate,
)
from moorage.framework.cycle_state import CycleState
from moorage.framework.handle import Handle
from moorage.framework.points import MAX_NODE_SCORE, EventRegistration, ScoreArray
from moorage.framework.status import SUCCESS, Check, Code, FilterAnswer, Status
from moorage.plugins.numa.alignment import unaligned_containers, unaligned_pods
from moorage.plugins.numa.allocation_scores import (
    ZoneScorer,
    allocation_scores,
    balanced_allocation,
    least_allocated,
    most_allocated,
)
from moorage.plugins.numa.assumed_zones import AssumedUse, ReservedNodes
from moorage.plugins.numa.fewest_zones import fewest_zones_score
from moorage.plugins.numa.requests import NUMA_REQUESTS, PodRequests
from moorage.plugins.numa.zone_columns import ApiZones, ZoneColumns, ZoneSource
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.view import NodeView

T = TypeVar("T")

CONTAINER_REASON: Final = "cannot align container"
INIT_REASON: Final = "cannot align init container"
POD_REASON: Final = "cannot align pod"
STALE_REASON: Final = "invalid node topology data"

_SCORERS: Final[Mapping[str, ZoneScorer]] = {
    LEAST_ALLOCATED: least_allocated,
    MOST_ALLOCATED: most_allocated,
    BALANCED_ALLOCATION: balanced_allocation,
}


class NodeResourceTopologyMatch:
    """Filter, Score, Reserve and PostBind plugin.

    Raises
    ------
    ConfigError
        An argument has a fault.
    """

    name = "NodeResourceTopologyMatch"

    def __init__(self, args: NodeResourceTopologyMatchArgs, handle: Handle) -> None:
        faults = validate(args, "")
        if faults:
            raise ConfigError(faults, source=self.name)
        strategy = args.scoring_strategy
        self._strategy = strategy.type
        self._weights = {resource.name: resource.weight for resource in strategy.resources}
        self._snapshot = handle.snapshot
        self._zones = _source(args, handle)
        self._columns = ZoneColumns(handle.snapshot, self._zones)
        intern = handle.reasons.intern
        self._container, self._init = intern(CONTAINER_REASON), intern(INIT_REASON)
        self._pod, self._stale = intern(POD_REASON), intern(STALE_REASON)

    def filter(self, state: CycleState, pod: PodInfo, view: NodeView) -> FilterAnswer | None:
        """Reject rows where a container, or the pod, finds no NUMA node with room."""
        del state
        requests = pod.part(NUMA_REQUESTS).value
        if requests.is_free:
            return None
        columns = self._columns
        columns.follow()
        judged_n = view.take_rows(columns.known_n & columns.single_n & ~columns.stale_n)
        whole_n = view.take_rows(columns.whole_n)
        checks = [(view.take_rows(columns.stale_n), Code.UNSCHEDULABLE, self._stale)]
        of_pods_n, of_containers_n = judged_n & whole_n, judged_n & ~whole_n
        if of_pods_n.any():
            failed_n = unaligned_pods(requests, self._snapshot, columns, view) & of_pods_n
            checks.append((failed_n, Code.UNSCHEDULABLE, self._pod))
        if of_containers_n.any():
            init_n, others_n = unaligned_containers(requests, self._snapshot, columns, view)
            checks.append((init_n & of_containers_n, Code.UNSCHEDULABLE, self._init))
            checks.append((others_n & of_containers_n, Code.UNSCHEDULABLE, self._container))
        failing = [check for check in checks if check[0].any()]
        self._note_rejections(view, failing)
        return FilterAnswer.of_checks(*failing) if failing else None

    def score(self, state: CycleState, pod: PodInfo, view: NodeView) -> ScoreArray:
        """Score rows by the strategy; 100 for a pod that is not Guaranteed, 0 without topology."""
        del state
        requests = pod.part(NUMA_REQUESTS).value
        if not requests.guaranteed:
            return np.full(len(view), MAX_NODE_SCORE, np.int64)
        columns = self._columns
        columns.follow()
        usable_n = view.take_rows(columns.known_n & ~columns.stale_n)
        if self._strategy == LEAST_NUMA_NODES:
            return self._fewest_zones(requests, view, usable_n)
        scorer = _SCORERS[self._strategy]
        score_n = allocation_scores(scorer, requests, columns, view, weights=self._weights)
        return np.where(usable_n & view.take_rows(columns.single_n), score_n, 0)

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Take in that the pod was placed, where topologies are not believed as they are."""
        del state
        self._zones.reserve(pod, node_name)
        return SUCCESS

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        """Undo `reserve`."""
        del state
        self._zones.unreserve(pod, node_name)

    def post_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        """Take in that the pod is bound."""
        del state
        self._zones.forget_bound(pod, node_name)

    def events_to_register(self) -> Sequence[EventRegistration]:
        """Register what may leave more on a NUMA node: pods gone, nodes, and their topologies."""
        gone = ClusterEvent(Resource.POD, Action.DELETE)
        node = ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_NODE_ALLOCATABLE)
        topology = ClusterEvent(Resource.NODE_RESOURCE_TOPOLOGY, Action.ADD | Action.UPDATE)
        return tuple(EventRegistration(event) for event in (gone, node, topology))

    def _note_rejections(self, view: NodeView, checks: Sequence[Check]) -> None:
        rows = view.row_numbers()
        for failed_n, _, reason in checks:
            if reason != self._stale:
                self._zones.note_rejection(self._snapshot.names[row] for row in rows[failed_n])

    def _fewest_zones(
        self,
        requests: PodRequests,
        view: NodeView,
        usable_n: np.ndarray[tuple[int], np.dtype[np.bool_]],
    ) -> ScoreArray:
        """Score each shape of zones once."""
        shape_n = view.take_rows(self._columns.shape_n)
        rows = view.row_numbers()
        score_n = np.zeros(len(view), np.int64)
        for at in np.unique(np.where(usable_n, shape_n, -1), return_index=True)[1]:
            if usable_n[at]:
                zones = self._columns.zones(int(rows[at]))
                assert zones is not None, "a row with a topology"
                same_n = usable_n & (shape_n == shape_n[at])
                score_n[same_n] = fewest_zones_score(zones, requests)
        return score_n


def _source(args: NodeResourceTopologyMatchArgs, handle: Handle) -> ZoneSource:
    """Return where the zones come from; profiles with equal arguments share what they assume."""
    snapshot = handle.snapshot
    lister = snapshot.listers.node_topologies
    if args.discard_reserved_nodes:
        return _shared(handle, "reserved", lambda: ReservedNodes(lister))
    if args.cache_resync_period_seconds <= 0:
        return ApiZones(lister)
    schedulers = _shared(handle, "schedulers", set[str])
    schedulers.add(handle.profile_name)

    def assumed() -> AssumedUse:
        return AssumedUse(
            lister,
            snapshot.table,
            handle.clock,
            settings=args.cache,
            period_seconds=args.cache_resync_period_seconds,
            schedulers=schedulers,
        )

    return _shared(handle, (args.cache, args.cache_resync_period_seconds), assumed)


def _shared(handle: Handle, key: Hashable, make: Callable[[], T]) -> T:
    """Return the object that all profiles have under a key."""
    companions = handle.snapshot.companions
    if (__name__, key) not in companions:
        companions[(__name__, key)] = make()
    return cast(T, companions[(__name__, key)])
