"""NodeResourcesFit: checks that a pod's requests fit a node, and scores nodes by use.

If a node does not offer an extended resource that a device class provides, DynamicResources
decides about that resource.

Rules mirrored: kubernetes v1.36 ``pkg/scheduler/framework/plugins/noderesources/fit.go``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from moorage.api.changes import Action, ClusterEvent, Resource
from moorage.api.devices import DeviceClass
from moorage.api.names import is_extended_resource, is_scalar_resource
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.quantity import parse_quantity
from moorage.api.requests import is_scheduling_resource, to_units
from moorage.base.errors import ConfigError
from moorage.config.plugin_args import (
    LEAST_ALLOCATED,
    MOST_ALLOCATED,
    NodeResourcesFitArgs,
    ScoringStrategy,
)
from moorage.config.plugin_args import validate_node_resources_fit_args as validate
from moorage.framework.capabilities import Capabilities, Reads, RowScorer
from moorage.framework.cycle_state import CycleState, StateKey
from moorage.framework.group import FilledPlacement
from moorage.framework.handle import Handle
from moorage.framework.points import (
    MAX_NODE_SCORE,
    EventRegistration,
    PreFilterResult,
    ScoreArray,
)
from moorage.framework.status import SUCCESS, Code, FilterAnswer, ReasonTable, Status
from moorage.framework.subjects import Subject
from moorage.framework.what_if import Room
from moorage.plugins.answers import memo_of
from moorage.plugins.pod_hints import holds_place
from moorage.plugins.resources.device_classes import (
    IMPLICIT_CLASS_PREFIX,
    DeviceClassNames,
    may_be_devices,
)
from moorage.plugins.resources.device_totals import DeviceTotals
from moorage.plugins.resources.free_shares import FreeShares
from moorage.plugins.resources.scoring import (
    SHARES,
    RequestedToCapacityRatio,
    ResourceUse,
    Strategy,
    is_counted,
    least_allocated,
    most_allocated,
    resource_use,
    use_of_devices,
)
from moorage.snapshot.pod_groups import GroupKey
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.shape import RESOURCES, Part, PodRequests
from moorage.snapshot.shifted import NOTHING_MORE, RowSums
from moorage.snapshot.snapshot import Snapshot
from moorage.snapshot.view import NodeView

TOO_MANY_PODS: Final = "Too many pods"
PODS: Final = "pods"

_FIRST: Final = ("cpu", "memory", "ephemeral-storage")
_WITH_DEFAULTS: Final = frozenset({"cpu", "memory"})
# Up to this number of failed checks, counting finds the distinct patterns without sorting.
_COUNTED_CHECKS_MAX: Final = 10


# Plain numbers, because a lookup in the enum takes longer than the use of the code.
_UNSCHEDULABLE: Final = int(Code.UNSCHEDULABLE)
_UNRESOLVABLE: Final = int(Code.UNSCHEDULABLE_AND_UNRESOLVABLE)

# Room for a resource that the row leaves to devices: no number of pods uses it up.
_ANY_AMOUNT: Final = 1 << 62


class _Check(msgspec.Struct, frozen=True, gc=False):
    """One amount that must fit: of a resource that a pod requests, or the pod itself.

    Parameters
    ----------
    resource, amount
        The resource and the requested amount, above 0.
    reason
        The reason for a row without this amount.
    may_be_devices
        Whether devices may provide the resource.
    """

    resource: str
    amount: int
    reason: str
    may_be_devices: bool


_ONE_POD: Final = _Check(PODS, 1, TOO_MANY_PODS, may_be_devices=False)

Checks = tuple[_Check, ...]
"""The requests of a pod in the order of the reasons; the pod itself comes before them."""

Column = NDArray[np.int64]
CheckedColumns = tuple[tuple[_Check, Column, Column], ...]
"""Each amount with the columns of allocatable and of requested amounts."""

ScoredColumns = tuple[tuple[Column, Column, int, int], ...]
"""(allocatable amounts, used amounts, request, weight) of the scored resources."""

Amount = TypeVar("Amount", int, NDArray[np.int64])

Terms = tuple[tuple[str, int, int], ...]
"""(resource, weight, request) of the scored resources."""

_PRE_FILTER: StateKey[Checks] = StateKey("PreFilterNodeResourcesFit")


class NodeResourcesFit:
    """PreFilter, Filter, PreScore and Score plugin.

    Parameters
    ----------
    args
        Ignored extended resources and the scoring strategy.
    handle
        Snapshot and reasons.

    Raises
    ------
    ConfigError
        The arguments are invalid; upstream, too, validates them here.
    """

    name = "NodeResourcesFit"

    def __init__(self, args: NodeResourcesFitArgs, handle: Handle) -> None:
        faults = validate(args, "")
        if faults:
            raise ConfigError(faults, source=self.name)
        assert args.scoring_strategy is not None, "validated: the strategy is there"
        self._args = args
        self._strategy_args = args.scoring_strategy
        self._snapshot = handle.snapshot
        self._classes = DeviceClassNames(handle.snapshot.listers.device_classes)
        self._devices = handle.gates("DRAExtendedResource")
        self._totals = DeviceTotals(handle)
        self._reasons = handle.reasons
        self._patterns = _FailurePatterns(handle.reasons)
        self._strategy = _strategy(args.scoring_strategy)
        self._share_of = SHARES.get(args.scoring_strategy.type)
        self._score_key = (self, "score")
        is_least = args.scoring_strategy.type == LEAST_ALLOCATED
        used_column = self._used_column
        self._free_shares = (
            FreeShares(self._snapshot, self._totals, used_column) if is_least else None
        )
        self._checks_before: Checks | None = None
        self._generation_before = -1
        self._columns_before: CheckedColumns = ()

    def capabilities(self) -> Capabilities:
        """Declare every form in which amounts and room can be judged."""
        return Capabilities(
            filter_reads=Reads.NODE | Reads.SUMS,
            score_reads=Reads.NODE | Reads.SUMS,
            shape_parts=(RESOURCES,),
            never_reused=self.never_reused,
            filter_room=self.filter_room,
            filter_row=self.filter_row,
            row_scorer=self.row_scorer,
            rejects_about=Subject.RESOURCES,
        )

    def pre_filter(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot
    ) -> tuple[PreFilterResult | None, Status]:
        """Keep the pod's requests; never skip, because every pod counts against the pod limit."""
        del snapshot
        state.write(_PRE_FILTER, memo_of(pod.part(RESOURCES), self, self._checks))
        return None, SUCCESS

    def filter(self, state: CycleState, pod: PodInfo, view: NodeView) -> FilterAnswer | None:
        """Reject rows without room, with a reason for each insufficient resource.

        Raises
        ------
        StateMissingError
            PreFilter of this plugin is not enabled.
        """
        del pod
        failures: list[tuple[str, NDArray[np.bool_]]] = []
        hopeless: NDArray[np.bool_] | None = None
        for check, capacity_n, used_n in self._columns(state.read(_PRE_FILTER)):
            capacity = view.take_rows(capacity_n)
            short = self._left(check, capacity, view.take_rows(used_n)) < check.amount
            if not np.count_nonzero(short):
                continue
            failures.append((check.reason, short))
            if check is not _ONE_POD:
                too_small = short & (capacity < check.amount)
                hopeless = too_small if hopeless is None else hopeless | too_small
        return self._patterns.filter_answer(failures, hopeless) if failures else None

    def filter_room(self, state: CycleState, pod: PodInfo, view: NodeView) -> Room:
        """Return the room that each row has left next to the pod.

        Raises
        ------
        StateMissingError
            PreFilter of this plugin is not enabled.
        """
        del pod
        room = {
            check.resource: self._left(check, view.take_rows(capacity), view.take_rows(used))
            - check.amount
            for check, capacity, used in self._columns(state.read(_PRE_FILTER))
        }
        pods = room.pop(PODS)
        return Room(room, pods)

    def filter_row(
        self, state: CycleState, pod: PodInfo, row: int, more: RowSums
    ) -> tuple[int, int]:
        """Judge one row as `filter` does, with additional requests on the row.

        Raises
        ------
        StateMissingError
            PreFilter of this plugin is not enabled.
        """
        del pod
        columns = self._columns(state.read(_PRE_FILTER))
        if more is NOTHING_MORE:  # nearly always, and then most rows have all amounts
            for check, capacity_n, used_n in columns:
                if capacity_n.item(row) - used_n.item(row) < check.amount:
                    break
            else:
                return 0, 0
        failures, code = [], _UNSCHEDULABLE
        added, left_of = more.amounts, self._left
        for check, capacity_n, used_n in columns:
            capacity, used = capacity_n.item(row), used_n.item(row)
            if check is _ONE_POD:
                used += more.pods
            elif added:
                used += added.get(check.resource, 0)
            amount = check.amount
            # Devices only add to the difference, so most rows need no second look.
            if capacity - used < amount and left_of(check, capacity, used) < amount:
                failures.append(check.reason)
                if capacity < amount and check is not _ONE_POD:
                    code = _UNRESOLVABLE
        return (code, self._reasons.intern(*failures)) if failures else (0, 0)

    def _left(self, check: _Check, capacity: Amount, used: Amount) -> Amount:
        """Return the amount that rows have left; every form of the Filter judges this amount.

        Parameters
        ----------
        check
            The amount that must fit.
        capacity, used
            Allocatable and requested amounts: an array for many rows, a number for one row.
        """
        left = capacity - used
        if check.may_be_devices and self._is_left(check.resource):
            left = left + (capacity == 0) * _ANY_AMOUNT
        return left

    def _columns(self, checks: Checks) -> CheckedColumns:
        """Return each amount with its columns; the pod itself comes first.

        Replicas ask one after another, so the last answer is kept while columns stay as they are.
        """
        snapshot = self._snapshot
        generation = snapshot.table.columns.generation
        if checks is not self._checks_before or generation != self._generation_before:
            self._checks_before, self._generation_before = checks, generation
            self._columns_before = (
                (_ONE_POD, snapshot.allowed_pods, snapshot.pod_count),
                *(
                    (each, snapshot.allocatable(each.resource), snapshot.requested(each.resource))
                    for each in checks
                ),
            )
        return self._columns_before

    def never_reused(self, pod: PodInfo) -> bool:
        """Whether devices provide a resource the pod requests: its device class may change."""
        return self._devices and self._classes.backs(pod)

    def _is_left(self, resource: str) -> bool:
        """Whether devices provide a resource on nodes that do not offer it."""
        return (
            self._devices and may_be_devices(resource) and self._classes.find(resource) is not None
        )

    def pre_score(self, state: CycleState, pod: PodInfo, feasible: NodeView) -> Status:
        """Do nothing: the requests are compiled with the pod's shape."""
        del state, pod, feasible
        return SUCCESS

    def score(self, state: CycleState, pod: PodInfo, view: NodeView) -> ScoreArray:
        """Score each row by its use with the pod placed there."""
        del state
        terms = memo_of(pod.part(RESOURCES), self._score_key, self._terms)
        wide = view.widened()
        if self._free_shares is not None and wide.is_all:
            score_n = self._free_shares.score(terms)
            if score_n is not None:
                return view.narrowed(score_n, wide)
        uses = [self._use(wide, *term) for term in terms]
        return view.narrowed(self._strategy(uses, len(wide)), wide)

    def score_placements(
        self, key: GroupKey, filled: Sequence[FilledPlacement]
    ) -> tuple[ScoreArray, Status]:
        """Score placements by the used share of the sums over their nodes; full nodes score higher.

        The strategy is always MostAllocated, whatever the strategy for nodes. A resource other than
        cpu, memory and ephemeral-storage counts if a pod of the group requests it.
        """
        del key
        return np.array([self._share_used(each) for each in filled], np.int64), SUCCESS

    def _share_used(self, filled: FilledPlacement) -> int:
        within = filled.placement.within
        view = self._snapshot.all() if within is None else within
        requests: Counter[str] = Counter()
        for pod, _ in filled.pods:
            requests.update(pod.part(RESOURCES).value.score)
        total = weights = 0
        for spec in self._strategy_args.resources:
            request = requests[spec.name]
            if spec.name not in _FIRST and not (is_scalar_resource(spec.name) and request):
                continue
            capacity = int(view.take_rows(self._snapshot.allocatable(spec.name)).sum())
            if capacity == 0:
                continue
            used = int(self._used(view, spec.name).sum())
            share = min(used + request, capacity) * MAX_NODE_SCORE // capacity
            total, weights = total + share * spec.weight, weights + spec.weight
        return total // weights if weights else 0

    def row_scorer(self, state: CycleState, pod: PodInfo) -> RowScorer | None:
        """Return what scores one row with integers; None where strategy or amounts need arrays."""
        del state
        share_of, columns = self._share_of, self._scored_columns(pod.part(RESOURCES))
        if share_of is None or columns is None:
            return None

        def score(row: int) -> int:
            total = weights = 0
            for capacity_n, used_n, request, weight in columns:
                capacity = capacity_n.item(row)
                if capacity:
                    total += share_of(used_n.item(row) + request, capacity) * weight
                    weights += weight
            return total // weights if weights else 0

        return score

    def events_to_register(self) -> Sequence[EventRegistration]:
        """Register pods and nodes that make room, and device classes that provide resources."""
        pod = ClusterEvent(Resource.POD, Action.DELETE | Action.UPDATE_POD_SCALE_DOWN)
        node = ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_NODE_ALLOCATABLE)
        device_class = ClusterEvent(Resource.DEVICE_CLASS, Action.ADD | Action.UPDATE)
        registrations = (
            EventRegistration(pod, _pod_hint, replicas_agree=True),
            EventRegistration(node, self._node_hint, replicas_agree=True),
        )
        if not self._devices:
            return registrations
        return (
            *registrations,
            EventRegistration(device_class, _device_class_hint, replicas_agree=True),
        )

    def _node_hint(self, waiting: Pod, old: object | None, new: object | None) -> bool:
        """Queue for a fitting node that is new or has more of a requested resource."""
        assert isinstance(new, Node)
        room = _allocatable(new)
        wanted, left = [], False
        for name, amount in _wanted_by(waiting):
            if not room.get(name) and self._is_left(name):
                left = True
            else:
                wanted.append((name, amount))
        if room.get("pods", 0) < 1 or any(amount > room.get(name, 0) for name, amount in wanted):
            return False
        if left or not isinstance(old, Node):
            return True
        before = _allocatable(old)
        names = ("pods", *(name for name, _ in wanted))
        return any(room.get(name, 0) > before.get(name, 0) for name in names)

    def _checks(self, requests: PodRequests) -> Checks:
        amounts = {name: amount for name, amount in requests.filter.items() if amount > 0}
        scalars = sorted(name for name in amounts if is_scalar_resource(name))
        names: list[str] = [name for name in _FIRST if name in amounts]
        names += [name for name in scalars if not self._is_ignored(name)]
        devices = self._devices
        return tuple(
            _Check(name, amounts[name], f"Insufficient {name}", devices and may_be_devices(name))
            for name in names
        )

    def _is_ignored(self, resource: str) -> bool:
        if not is_extended_resource(resource):
            return False
        group = resource.partition("/")[0]
        args = self._args
        return resource in args.ignored_resources or group in args.ignored_resource_groups

    def _terms(self, requests: PodRequests) -> Terms:
        """Return the scored resources; without scalar resources that the pod does not request."""
        return tuple(
            (spec.name, spec.weight, requests.score.get(spec.name, 0))
            for spec in self._strategy_args.resources
            if spec.name in _FIRST
            or (is_scalar_resource(spec.name) and requests.score.get(spec.name, 0) != 0)
        )

    def _scored_columns(self, requests: Part[PodRequests]) -> ScoredColumns | None:
        """Return the columns of the scored resources; None where an amount needs arrays."""
        snapshot = self._snapshot
        terms = memo_of(requests, self._score_key, self._terms)
        if not all(snapshot.exact_float(resource) for resource, _, _ in terms):
            return None
        return tuple(
            (snapshot.allocatable(resource), self._used_column(resource), request, weight)
            for resource, weight, request in terms
        )

    def _use(self, view: NodeView, resource: str, weight: int, request: int) -> ResourceUse:
        used_n = self._used(view, resource)
        devices = self._totals.totals_of(view, resource)
        if devices is not None:
            capacity_n = view.take_rows(self._snapshot.allocatable(resource))
            return use_of_devices(capacity_n, used_n, devices, request=request, weight=weight)
        return resource_use(self._snapshot, view, resource, used_n, request=request, weight=weight)

    def _used(self, view: NodeView, resource: str) -> NDArray[np.int64]:
        return view.take_rows(self._used_column(resource))

    def _used_column(self, resource: str) -> Column:
        known, snapshot = resource in _WITH_DEFAULTS, self._snapshot
        return snapshot.nonzero_requested(resource) if known else snapshot.requested(resource)


class _FailurePatterns:
    """Turns the failed checks of all rows into codes and interned reasons.

    Parameters
    ----------
    reasons
        The table that interns tuples of reasons.
    """

    __slots__ = ("_reasons",)

    def __init__(self, reasons: ReasonTable) -> None:
        self._reasons = reasons

    def filter_answer(
        self,
        failures: Sequence[tuple[str, NDArray[np.bool_]]],
        hopeless_n: NDArray[np.bool_] | None,
    ) -> FilterAnswer:
        """Build the filter result.

        Parameters
        ----------
        failures
            (reason, bool (rows,)) of the checks that failed anywhere, in the order of reasons.
        hopeless_n
            bool, (rows,): rows where a request exceeds the allocatable amount; None for no row.
        """
        failed = failures[0][1]
        for _, more in failures[1:]:
            failed = failed | more
        code = failed.astype(np.uint8) * np.uint8(Code.UNSCHEDULABLE)
        if hopeless_n is not None:
            # UnschedulableAndUnresolvable is the next code after Unschedulable.
            code += hopeless_n
        return FilterAnswer(code, self._reason_ids(failures))

    def _reason_ids(self, failures: Sequence[tuple[str, NDArray[np.bool_]]]) -> NDArray[np.int32]:
        if len(failures) == 1:
            reason, failed = failures[0]
            return failed.astype(np.int32) * np.int32(self._reasons.intern(reason))
        pattern = np.zeros(len(failures[0][1]), np.int64)
        for bit, (_, failed) in enumerate(failures):
            pattern += failed * np.int64(1 << bit)
        found, where = _distinct(pattern, len(failures))
        ids = [
            self._reasons.intern(*(name for bit, (name, _) in enumerate(failures) if p >> bit & 1))
            for p in found
        ]
        return np.array(ids, np.int32)[where]


def _distinct(pattern: NDArray[np.int64], checks: int) -> tuple[list[int], NDArray[np.int64]]:
    """Return the distinct patterns, ascending, and for each row the position of its pattern."""
    if checks > _COUNTED_CHECKS_MAX:
        found, where = np.unique(pattern, return_inverse=True)
        return found.tolist(), where
    seen = np.bincount(pattern, minlength=1 << checks) > 0
    return np.flatnonzero(seen).tolist(), (np.cumsum(seen) - 1)[pattern]


def _strategy(args: ScoringStrategy) -> Strategy:
    if args.type == LEAST_ALLOCATED:
        return least_allocated
    if args.type == MOST_ALLOCATED:
        return most_allocated
    ratio = args.requested_to_capacity_ratio
    assert ratio is not None, "validated: the shape is there"
    return RequestedToCapacityRatio([(point.utilization, point.score) for point in ratio.shape])


# -- hints -----------------------------------------------------------------------------------------


def _requested(pod: Pod) -> Mapping[str, int]:
    """Return the amounts that a pod requests or has allocated, in scheduling units."""
    return RESOURCES.part_of(pod).value.balanced


def _wanted_by(waiting: Pod) -> list[tuple[str, int]]:
    return [
        (name, amount)
        for name, amount in _requested(waiting).items()
        if amount > 0 and is_counted(name)
    ]


def _pod_hint(waiting: Pod, old: object | None, new: object | None) -> bool:
    if new is None:
        assert isinstance(old, Pod)
        return holds_place(old)
    assert isinstance(old, Pod)
    assert isinstance(new, Pod)
    if new.uid == waiting.uid:
        return True
    if not new.spec.node_name:
        return False
    before, after = _requested(old), _requested(new)
    return any(after.get(name, 0) < before.get(name, 0) for name, _ in _wanted_by(waiting))


def _allocatable(node: Node) -> dict[str, int]:
    return {
        name: to_units(name, parse_quantity(quantity))
        for name, quantity in node.status.allocatable.items()
        if is_scheduling_resource(name)
    }


def _device_class_hint(waiting: Pod, old: object | None, new: object | None) -> bool:
    assert isinstance(new, DeviceClass)
    wanted = {name for name, _ in _wanted_by(waiting)}
    explicit = new.spec.extended_resource_name
    if not isinstance(old, DeviceClass):
        return IMPLICIT_CLASS_PREFIX + new.name in wanted or explicit in wanted
    return explicit != old.spec.extended_resource_name and explicit in wanted
