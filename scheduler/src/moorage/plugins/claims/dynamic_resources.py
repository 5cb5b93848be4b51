"""DynamicResources: a pod's claimed devices must be reachable, or allocatable, on its node.

The plugin joins the modules of its folder: they read a pod's claims, and `devices` finds devices
for the claims. A pod without claims skips both.

Rules mirrored: kubernetes v1.36 ``pkg/scheduler/framework/plugins/dynamicresources``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from moorage.api.changes import RESERVATION_DELETE, Action, ClusterEvent, Resource
from moorage.api.devices import AllocationResult, ResourceClaim
from moorage.api.pod import Pod
from moorage.api.schedules.durations import parse_duration
from moorage.base.clock import NS_PER_SECOND
from moorage.base.errors import ConfigError
from moorage.config.feature_gates import FeatureGates
from moorage.config.plugin_args import DynamicResourcesArgs, validate_dynamic_resources_args
from moorage.framework.capabilities import Capabilities, Reads, sees_no_pod
from moorage.framework.cycle_state import CycleState, StateKey, StateMissingError
from moorage.framework.group import GROUP_PHASE, ON_TRIAL
from moorage.framework.handle import Handle
from moorage.framework.points import (
    EventRegistration,
    PostFilterResult,
    PreFilterResult,
    ScoreArray,
)
from moorage.framework.preemption import EXPLAIN
from moorage.framework.roles import Role
from moorage.framework.status import (
    SKIP,
    SUCCESS,
    FilterAnswer,
    Status,
    error,
    unresolvable,
    unschedulable,
)
from moorage.framework.subjects import Subject
from moorage.framework.what_if import GIVEN_BACK
from moorage.plugins.answers import normalize_to_max
from moorage.plugins.claims.attempt import Attempt, Search, with_allocation
from moorage.plugins.claims.counts import ClaimCounts
from moorage.plugins.claims.extended import is_in_memory
from moorage.plugins.claims.pod_claims import (
    ClaimDevices,
    ClaimError,
    ClaimHints,
    claim_fault,
    devices_given_back,
    is_reserved_for,
)
from moorage.plugins.claims.preparing import Preparation, share_allocations
from moorage.plugins.resources.device_classes import DeviceClassNames
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot
from moorage.snapshot.view import NodeView

if TYPE_CHECKING:
    from moorage.plugins.claims.binding import ClaimBinder
    from moorage.plugins.claims.books import Books
    from moorage.plugins.claims.devices.allocated import AllocatedState
    from moorage.plugins.claims.releasing import Releases

NOTHING_TO_DEALLOCATE: Final = "no new claims to deallocate"
STILL_NOT: Final = "still not schedulable"
DEALLOCATED: Final = "deallocation of ResourceClaim completed"
DELETED: Final = "deletion of ResourceClaim completed"

CLAIMS: StateKey[Attempt] = StateKey("DynamicResources")
"""The claims of an attempt; present after PreFilter."""


class DynamicResources:
    """PreEnqueue, PreFilter, Filter, PostFilter, Score, Reserve and PreBind plugin.

    Raises
    ------
    ConfigError
        A timeout is an invalid duration, out of bounds, or set while its feature gate is off.
    """

    name = "DynamicResources"
    # PostFilter deallocates claims that a judged node cannot reach. A node that another plugin
    # rejects must not count among them.
    roles = Role.FILTERS_CANDIDATES

    def __init__(self, args: DynamicResourcesArgs, handle: Handle) -> None:
        faults = [*validate_dynamic_resources_args(args, ""), *_useless(args, handle.gates)]
        if faults:
            raise ConfigError(faults, source=self.name)
        snapshot, gates = handle.snapshot, handle.gates
        self._handle = handle
        self._filter_timeout_seconds = 0.0
        self._binding_timeout_ns: int | None = None
        if gates("DRASchedulerFilterTimeout"):
            self._filter_timeout_seconds = parse_duration(args.filter_timeout) / NS_PER_SECOND
        if gates("DRADeviceBindingConditions"):
            self._binding_timeout_ns = parse_duration(args.binding_timeout)
        self._table = snapshot.claims
        self._hints = ClaimHints(self._table)
        self._classes = DeviceClassNames(snapshot.listers.device_classes)
        self._extended = gates("DRAExtendedResource")
        self._preparation = Preparation(self._table, self._classes, gates)
        self.counts = ClaimCounts(handle.profile_name)
        """Counters of the binding task."""
        self._books: Books | None = None
        self._writes: tuple[ClaimBinder, Releases] | None = None

    def capabilities(self) -> Capabilities:
        """Declare that only answers about pods without claims are reused, and three metrics."""
        return Capabilities(
            # Answers about pods with claims are never reused, so this is about other pods.
            filter_reads=Reads.NODE,
            score_reads=Reads.NODE,
            shape_parts=(),
            never_reused=self.never_reused,
            filter_sees_pod=sees_no_pod,
            counts_nominated=True,
            rejects_by_shape=True,
            pre_bind_parallel=True,
            rejects_about=Subject.DEVICES,
            held_devices=ClaimDevices(self._handle.snapshot).held_devices,
            own_metrics=self.counts.metrics(),
        )

    def never_reused(self, pod: PodInfo) -> bool:
        """Whether answers hold for this pod only: the pod has claims or gets a special claim."""
        return bool(pod.pod.spec.resource_claims) or (self._extended and self._classes.backs(pod))

    def pre_enqueue(self, pod: Pod) -> Status:
        """Keep a pod out of the queue until all its claims exist."""
        if not pod.spec.resource_claims:
            return SUCCESS
        fault = claim_fault(pod, self._table)
        return SUCCESS if fault is None else unresolvable(fault)

    def pre_filter(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot
    ) -> tuple[PreFilterResult | None, Status]:
        """Read the pod's claims; skip a pod without claims, but keep its state for later points."""
        if not self.never_reused(pod):
            state.write(CLAIMS, Attempt(snapshot))
            return None, SKIP
        attempt = self._preparation.attempt(pod, snapshot)
        if isinstance(attempt, Status):
            state.write(CLAIMS, Attempt(snapshot))
            return None, attempt
        state.write(CLAIMS, attempt)
        if not attempt.claims:
            return None, SKIP
        attempt.search = self._search(attempt, pod, state.find(GIVEN_BACK))
        return None, SUCCESS

    def filter(self, state: CycleState, pod: PodInfo, view: NodeView) -> FilterAnswer | None:
        """Reject rows that cannot reach the pod's devices, or have too few free devices.

        Raises
        ------
        StateMissingError
            PreFilter of this plugin is not enabled.
        """
        del pod
        attempt = state.read(CLAIMS)
        if attempt.search is None:
            return None
        return attempt.search.judge(view)

    def post_filter(
        self, state: CycleState, pod: PodInfo, node_to_status: Mapping[str, Status]
    ) -> tuple[PostFilterResult | None, Status]:
        """Deallocate a claim that no other pod uses and that some node could not reach."""
        del node_to_status
        attempt = state.find(CLAIMS)
        if attempt is None:
            return None, _missing_state()
        if not attempt.claims:
            return None, unschedulable(NOTHING_TO_DEALLOCATE)
        writes = None if state.find(EXPLAIN) else self._written_by()
        for index in sorted(attempt.unavailable):
            claim = attempt.claims[index].claim
            if claim.status.allocation is None:
                continue  # shared with a pod that is nominated, or on trial
            if [each.uid for each in claim.status.reserved_for] in ([], [pod.uid]):
                if writes is not None:
                    writes[1].deallocate(claim, pod)
                return None, unschedulable(DEALLOCATED)
        left_over = attempt.left_over
        if left_over is not None:
            if writes is not None:
                writes[1].delete_claim(left_over, pod)
            return None, unschedulable(DELETED)
        return None, unschedulable(STILL_NOT)

    def score(self, state: CycleState, pod: PodInfo, view: NodeView) -> ScoreArray:
        """Score rows by the alternatives of requests that they serve; 0 without alternatives.

        Raises
        ------
        StateMissingError
            PreFilter of this plugin is not enabled.
        """
        del pod
        attempt = state.read(CLAIMS)
        if not attempt.claims or not self._handle.gates("DRAPrioritizedList"):
            return np.zeros(len(view), np.int64)
        return attempt.scores(view.row_numbers())

    def normalize(self, state: CycleState, pod: PodInfo, raw_n: ScoreArray) -> ScoreArray:
        """Scale so that the best row has 100."""
        del state, pod
        return normalize_to_max(raw_n)

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Allocate the devices of the chosen node, so that no other pod gets them."""
        attempt = state.find(CLAIMS)
        if attempt is None:
            return _missing_state()
        unallocated, results = attempt.unallocated, attempt.reserve(node_name)
        if not results and all(each.special for each in unallocated):
            return SUCCESS  # nothing to allocate, or device plugins provide everything
        if len(results) != len(unallocated):
            return error("claim allocation not found for node")
        on_trial = state.find(GROUP_PHASE) == ON_TRIAL
        group = attempt.snapshot.groups.key_of(pod.pod)
        for each, allocation in zip(unallocated, results, strict=True):
            each.allocation = allocation
            claim = with_allocation(attempt.on_node(each, node_name), allocation)
            self._table.begin_allocation(each.uid, claim, on_trial=on_trial, group=group)
        return SUCCESS

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        """Drop the pending allocations; undo writes to the API in the background."""
        del node_name
        attempt = state.find(CLAIMS)
        if attempt is None:
            return
        for each in attempt.claims:
            if each.allocation is not None:
                self._table.give_up(each.uid)
                each.allocation = None
        writes = self._written_by()
        if writes is None or state.find(GROUP_PHASE) == ON_TRIAL:
            return
        for each in attempt.claims:
            if each.special:
                if not is_in_memory(each.claim):
                    writes[1].delete_claim(each.claim, pod)
            elif is_reserved_for(pod.pod, each.claim):
                writes[1].unreserve(each.claim, pod)

    def pre_bind_pre_flight(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Skip for a pod without claims."""
        del pod, node_name
        attempt = state.find(CLAIMS)
        if attempt is None:
            return _missing_state()
        return SUCCESS if attempt.claims else SKIP

    async def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Write allocations and reservations, and wait until the devices are ready."""
        attempt = state.find(CLAIMS)
        if attempt is None:
            return _missing_state()
        if not attempt.claims:
            return SUCCESS
        writes = self._written_by()
        if writes is None:
            return error(f"pod {pod.key}: no claim can be written here, there is no API client")
        binder, releases = writes
        await releases.unreserved(attempt, pod)
        try:
            await binder.bind(attempt, pod, node_name)
        except ClaimError as problem:
            return error(str(problem))
        return SUCCESS

    def events_to_register(self) -> Sequence[EventRegistration]:
        """Register nodes, the pod's claims, free devices, classes, slices, and failed bindings."""
        changed = Action.ADD | Action.UPDATE
        node = Action.ADD | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_ALLOCATABLE
        generated = ClusterEvent(Resource.POD, Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM)
        claim = ClusterEvent(Resource.RESOURCE_CLAIM, changed)
        gone = ClusterEvent(Resource.RESOURCE_CLAIM, Action.DELETE)
        # A claim for all devices fits without one that is tainted or in use.
        slices = ClusterEvent(Resource.RESOURCE_SLICE, changed | Action.DELETE)
        return (
            EventRegistration(ClusterEvent(Resource.NODE, node)),
            EventRegistration(claim, self._hints.claim_changed, self._hints.claim_concerns),
            EventRegistration(generated, self._hints.pod_changed, replicas_agree=True),
            EventRegistration(ClusterEvent(Resource.DEVICE_CLASS, changed)),
            EventRegistration(slices),
            EventRegistration(gone, self._hints.claim_gone, self._hints.gone_claim_concerns),
            EventRegistration(RESERVATION_DELETE, devices_given_back, replicas_agree=True),
        )

    # The modules below are imported for the first pod with claims: most clusters have none.

    def _search(
        self, attempt: Attempt, pod: PodInfo, given_back: Callable[[ResourceClaim], bool] | None
    ) -> Search:
        """Return the search that judges nodes for an attempt."""
        from moorage.plugins.claims.books import Books

        if self._books is None:
            timeout = self._filter_timeout_seconds
            self._books = Books(self._handle, filter_timeout_seconds=timeout)
        held = None if given_back is None else self._books.state_without(given_back)
        return self._search_beside(attempt, self._promised(attempt, pod, self._books, held))

    def _promised(
        self, attempt: Attempt, pod: PodInfo, books: Books, state: AllocatedState | None
    ) -> AllocatedState | None:
        """Add the devices that pods nominated first would get on their nodes.

        Upstream takes no device for nominated pods. Another pod could so get the device that a pod
        needs once its victims are gone. A claim that the pod shares with a nominated pod counts as
        allocated on the node of that pod: evictions on other nodes would be in vain.
        """
        allocations: dict[str, AllocationResult] = {}
        snapshot = attempt.snapshot
        for row, other in snapshot.nominated_before(pod):
            outcome = None
            if self.never_reused(other):
                outcome = self._preparation.attempt(other, snapshot)
            if outcome is None or isinstance(outcome, Status):
                continue
            share_allocations(outcome, allocations)
            wanted = [each for each in outcome.unallocated if each.shared is None]
            if not wanted:
                continue
            state = books.state_without(None) if state is None else state
            search = outcome.search = self._search_beside(outcome, state)
            search.judge(snapshot.rows([row]))
            results = outcome.results_on(snapshot.names[row])
            for each, allocation in zip(outcome.unallocated, results, strict=False):
                if each.shared is None:
                    state.add(allocation)
                    allocations[each.uid] = allocation
        share_allocations(attempt, allocations)
        return state

    def _search_beside(self, attempt: Attempt, state: AllocatedState | None) -> Search:
        from moorage.plugins.claims.searching import DeviceSearch

        assert self._books is not None, "the books are made for the first pod with claims"
        return DeviceSearch(
            attempt, self._books, self._handle, state=state, timeout_ns=self._binding_timeout_ns
        )

    def _written_by(self) -> tuple[ClaimBinder, Releases] | None:
        """Return the writers of claims; None without an API client."""
        from moorage.plugins.claims.binding import ClaimBinder
        from moorage.plugins.claims.releasing import Releases
        from moorage.plugins.claims.writing import ClaimWriter

        handle = self._handle
        if self._writes is None and handle.client is not None:
            writer = ClaimWriter(handle.client, handle.clock)
            binder = ClaimBinder(
                self._table,
                writer,
                handle.client,
                effects=handle.effects,
                counts=self.counts,
                clock=handle.clock,
                timeout_ns=self._binding_timeout_ns,
            )
            self._writes = binder, Releases(writer, handle.client, self._table, handle.effects)
        return self._writes


def _useless(args: DynamicResourcesArgs, gates: FeatureGates) -> list[str]:
    """Return the faults of timeouts whose feature gate is off."""
    default = DynamicResourcesArgs()
    return [
        f'{field}: Invalid value: "{value}": needs {gate}=true'
        for field, value, unset, gate in (
            (
                "filterTimeout",
                args.filter_timeout,
                default.filter_timeout,
                "DRASchedulerFilterTimeout",
            ),
            (
                "bindingTimeout",
                args.binding_timeout,
                default.binding_timeout,
                "DRADeviceBindingConditions",
            ),
        )
        if value != unset and not gates(gate)
    ]


def _missing_state() -> Status:
    return error(str(StateMissingError(CLAIMS.name)))
