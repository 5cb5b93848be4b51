"""VolumeBinding: a pod's volumes must be reachable, bindable or provisionable on its node.

Rules mirrored: kubernetes v1.36 ``pkg/scheduler/framework/plugins/volumebinding``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import msgspec
import numpy as np

from moorage.api.changes import RESERVATION_DELETE, Action, ClusterEvent, Resource
from moorage.api.volume import PersistentVolume, PersistentVolumeClaim
from moorage.base.errors import ApiError, ConfigError, TransportError
from moorage.config.gate_table import STORAGE_CAPACITY_SCORING
from moorage.config.plugin_args import (
    DEFAULT_STORAGE_SHAPE,
    VolumeBindingArgs,
    unexpected_shape,
)
from moorage.framework.capabilities import Capabilities, sees_no_pod
from moorage.framework.cycle_state import CycleState, StateKey
from moorage.framework.handle import Handle
from moorage.framework.plugin_metrics import Labels, PluginMetrics
from moorage.framework.points import EventRegistration, PreFilterResult, ScoreArray
from moorage.framework.status import (
    SKIP,
    SUCCESS,
    Code,
    FilterAnswer,
    Status,
    answer_where,
    error,
    unresolvable,
)
from moorage.framework.subjects import Subject
from moorage.plugins.volumes.assumed import Assumed
from moorage.plugins.volumes.capacity_scores import CapacityScorer
from moorage.plugins.volumes.claims import (
    VolumeError,
    claim_not_found,
    claims_of,
    delays_binding,
    is_fully_bound,
    ownership_fault,
    used_claim_hint,
)
from moorage.plugins.volumes.finder import (
    AFFINITY,
    NO_STORAGE,
    NOT_EXISTING,
    NOT_FOUND,
    VolumeFinder,
    VolumesByRow,
)
from moorage.plugins.volumes.hints import (
    capacity_hint,
    class_hint,
    csi_driver_hint,
    csi_node_hint,
    given_back_hint,
)
from moorage.plugins.volumes.writes import Plan, VolumeWriter, with_claim, with_node
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot
from moorage.snapshot.view import NodeView
from moorage.snapshot.volume_pods import ClaimVolume

REASON_IMMEDIATE: Final = "pod has unbound immediate PersistentVolumeClaims"
REASONS: Final = (
    (AFFINITY, "node(s) didn't match PersistentVolume's node affinity"),
    (NOT_FOUND, "node(s) didn't find available persistent volumes to bind"),
    (NO_STORAGE, "node(s) did not have enough free storage"),
    (NOT_EXISTING, "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"),
)
_STAGE_ERRORS: Final = "scheduler_volume_scheduling_stage_error_total"
_COMBINATIONS: Final = 16


class PodVolumes(msgspec.Struct):
    """A pod's claims, the volumes found and the volumes assumed, in one attempt.

    Parameters
    ----------
    bound, delayed
        Claims that have a volume, and claims that wait for a pod; in volume order.
    promised
        Claims that wait for pods nominated first, each with the row of its pod.
    shared
        Claims of `delayed` that a pod nominated first has as well, each with the row of that pod.
    volumes
        The volumes found on every row; None until Filter runs.
    structure
        Structure number of the columns for `volumes`: after a change, rows mean other nodes.
    plan
        The writes that Reserve assumed; None when there is nothing to write.
    """

    bound: tuple[PersistentVolumeClaim, ...]
    delayed: tuple[PersistentVolumeClaim, ...]
    promised: tuple[tuple[int, PersistentVolumeClaim], ...] = ()
    shared: tuple[tuple[int, PersistentVolumeClaim], ...] = ()
    volumes: VolumesByRow | None = None
    structure: int = -1
    plan: Plan | None = None


VOLUMES: StateKey[PodVolumes] = StateKey("PreFilterVolumeBinding")
"""The claims of an attempt and their volumes; present after PreFilter."""


class VolumeBinding:
    """PreFilter, Filter, PreScore, Score, Reserve and PreBind plugin.

    Raises
    ------
    ConfigError
        The arguments ask for a feature that is not supported.
    """

    name = "VolumeBinding"

    def __init__(self, args: VolumeBindingArgs, handle: Handle) -> None:
        if args.bind_timeout_seconds < 0:
            raise ConfigError(["bindTimeoutSeconds: must not be negative"], source=self.name)
        if args.shape is not None and not handle.gates(STORAGE_CAPACITY_SCORING):
            raise ConfigError(unexpected_shape(args.shape, "shape"), source=self.name)
        self._scorer: CapacityScorer | None = None
        if handle.gates(STORAGE_CAPACITY_SCORING):
            shape = args.shape or DEFAULT_STORAGE_SHAPE
            points = [(point.utilization, point.score) for point in shape]
            self._scorer = CapacityScorer(points)
        self._timeout_seconds = args.bind_timeout_seconds
        self._snapshot = snapshot = handle.snapshot
        self._volumes = Assumed(snapshot.listers.persistent_volumes)
        self._claims = Assumed(snapshot.listers.persistent_volume_claims)
        self._finder = VolumeFinder(snapshot, self._volumes)
        self.stage_errors: Counter[Labels] = Counter()
        """For metrics: the number of failures to find (predicate), assume and bind volumes."""
        self._writer: VolumeWriter | None = None
        if handle.client is not None:
            self._writer = VolumeWriter(
                snapshot,
                self._volumes,
                self._claims,
                client=handle.client,
                clock=handle.clock,
            )
        self._reason_of = np.array(
            [
                handle.reasons.intern(*(text for bit, text in REASONS if bits & bit))
                for bits in range(_COMBINATIONS)
            ],
            np.int32,
        )

    def capabilities(self) -> Capabilities:
        """Declare which pods PreFilter skips, that PreBind may run in parallel, and a counter."""
        return Capabilities(
            skips_spec=self.skips_spec,
            filter_sees_pod=sees_no_pod,
            counts_nominated=True,
            pre_bind_parallel=True,
            rejects_about=Subject.VOLUMES,
            own_metrics=PluginMetrics(counters={_STAGE_ERRORS: self.stage_errors}),
        )

    def pre_filter(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot
    ) -> tuple[PreFilterResult | None, Status]:
        """Split the pod's claims into bound and delayed; reject a pod that fits no node.

        Notes
        -----
        Upstream takes no volume for nominated pods. Another pod could so bind the volume that a pod
        needs once its victims are gone.
        """
        volumes = claims_of(pod)
        if not volumes:
            return None, SKIP
        fault = self._claim_fault(pod, volumes)
        if fault is not None:
            return None, unresolvable(fault)
        bound: list[PersistentVolumeClaim] = []
        delayed: list[PersistentVolumeClaim] = []
        immediate = False
        for volume in volumes:
            name = volume.name_for(pod.name)
            claim = self._claims.get(name, pod.namespace)
            assert claim is not None, f"claim {pod.namespace}/{name} was there a moment ago"
            if is_fully_bound(claim):
                bound.append(claim)
                continue
            try:
                delays = delays_binding(claim, self._snapshot.listers)
            except VolumeError as problem:
                return None, error(str(problem))
            if delays and not claim.spec.volume_name:
                delayed.append(claim)
            else:
                immediate = True
        if immediate:
            return None, unresolvable(REASON_IMMEDIATE)
        promised = tuple(self._promised(pod, delayed, snapshot)) if delayed else ()
        shared = tuple(self._shared(pod, delayed, snapshot)) if delayed else ()
        state.write(VOLUMES, PodVolumes(tuple(bound), tuple(delayed), promised, shared))
        return None, SUCCESS

    def skips_spec(self, pod: PodInfo) -> bool:
        """Whether the pod has no claims."""
        return not claims_of(pod)

    def filter(self, state: CycleState, pod: PodInfo, view: NodeView) -> FilterAnswer | None:
        """Reject rows that cannot reach, bind or provision the pod's volumes.

        Raises
        ------
        StateMissingError
            PreFilter of this plugin is not enabled.
        VolumeError
            A claim, class or volume is invalid.
        """
        del pod
        try:
            failed_n = self._volumes_for(state.read(VOLUMES)).failed_n
        except VolumeError:
            self.stage_errors["predicate",] += 1
            raise
        if failed_n is None:
            return None
        failed_n = view.take_rows(failed_n)
        code = Code.UNSCHEDULABLE_AND_UNRESOLVABLE
        if int(failed_n.max(initial=0)) == AFFINITY:  # only the lowest bit is set: 0 or 1
            return answer_where(failed_n.view(np.bool_), code, int(self._reason_of[AFFINITY]))
        code_n = (failed_n != 0).astype(np.uint8) * np.uint8(code)
        return FilterAnswer(code_n, self._reason_of.take(failed_n))

    def pre_score(self, state: CycleState, pod: PodInfo, feasible: NodeView) -> Status:
        """Skip a pod without claims, and every pod without the gate StorageCapacityScoring."""
        del state, feasible
        return SKIP if self._scorer is None or not claims_of(pod) else SUCCESS

    def score(self, state: CycleState, pod: PodInfo, view: NodeView) -> ScoreArray:
        """Score rows by the share of their storage that the pod's claims would use."""
        if self._scorer is None or not claims_of(pod):
            return np.zeros(len(view), np.int64)
        found, n = self._volumes_for(state.read(VOLUMES)), self._snapshot.num_nodes
        return view.take_rows(self._scorer.scores(found, n, self._finder.node_capacity))

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Assume the volumes to bind and to provision on the chosen node.

        Raises
        ------
        StateMissingError
            PreFilter of this plugin is not enabled.
        """
        if not claims_of(pod):
            return SUCCESS
        claims = state.read(VOLUMES)
        row = self._snapshot.row_of(node_name)
        if row is None or not claims.delayed:
            return SUCCESS
        plan = claims.plan = Plan([], [])
        try:
            bindings, provisions = self._volumes_for(claims).on_row(row)
            for claim, volume in bindings:
                changed = with_claim(volume, claim)
                if changed != volume:  # else another pod assumed this claim
                    self._volumes.assume(changed)
                plan.volumes.append((changed, claim))
            for claim in provisions:
                wanted = with_node(claim, node_name)
                if wanted != claim:
                    self._claims.assume(wanted)
                plan.claims.append(wanted)
        except VolumeError as problem:
            self.stage_errors["assume",] += 1
            self.unreserve(state, pod, node_name)
            return error(str(problem))
        return SUCCESS

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        """Take the assumptions back; writes to the API remain."""
        del pod, node_name
        claims = state.find(VOLUMES)
        if claims is None or claims.plan is None:
            return
        for volume, _ in claims.plan.volumes:
            self._volumes.restore(volume)
        for claim in claims.plan.claims:
            self._claims.restore(claim)
        claims.plan = None

    def pre_bind_pre_flight(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Skip when every claim was bound already.

        Raises
        ------
        StateMissingError
            PreFilter of this plugin is not enabled.
        """
        del node_name
        if not claims_of(pod):
            return SKIP
        return SKIP if state.read(VOLUMES).plan is None else SUCCESS

    async def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Write the changes that Reserve assumed and wait until every claim is bound."""
        claims = state.find(VOLUMES)
        if claims is None or claims.plan is None:
            return SUCCESS
        if self._writer is None:
            return error(f"pod {pod.key}: no volume can be bound here, there is no API client")
        try:
            written = await self._writer.write_plan(claims.plan)
        except (ApiError, TransportError) as refusal:
            self.stage_errors["bind",] += 1
            return error(str(refusal))
        try:
            await self._writer.wait_bound(
                written, pod, node_name, timeout_seconds=self._timeout_seconds
            )
        except VolumeError as problem:
            self.stage_errors["bind",] += 1
            return error(f"binding volumes: {problem}")
        return SUCCESS

    def events_to_register(self) -> Sequence[EventRegistration]:
        """Register classes, claims, volumes, nodes, drivers, more capacity, and failed bindings."""
        changed = Action.ADD | Action.UPDATE
        return (
            EventRegistration(
                ClusterEvent(Resource.STORAGE_CLASS, changed), class_hint, replicas_agree=True
            ),
            EventRegistration(
                ClusterEvent(Resource.PERSISTENT_VOLUME_CLAIM, changed), used_claim_hint
            ),
            EventRegistration(ClusterEvent(Resource.PERSISTENT_VOLUME, changed)),
            EventRegistration(ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL)),
            EventRegistration(
                ClusterEvent(Resource.CSI_NODE, changed), csi_node_hint, replicas_agree=True
            ),
            EventRegistration(
                ClusterEvent(Resource.CSI_DRIVER, Action.UPDATE | Action.DELETE),
                csi_driver_hint,
                replicas_agree=True,
            ),
            EventRegistration(
                ClusterEvent(Resource.CSI_STORAGE_CAPACITY, changed),
                capacity_hint,
                replicas_agree=True,
            ),
            EventRegistration(RESERVATION_DELETE, given_back_hint, replicas_agree=True),
        )

    def _volumes_for(self, claims: PodVolumes) -> VolumesByRow:
        """Return the volumes found for the claims; search only when the rows have changed."""
        structure = self._snapshot.table.columns.structure
        if claims.volumes is None or claims.structure != structure:
            with self._without_promised(claims.promised):
                claims.volumes = self._finder.find(claims.bound, claims.delayed)
            for row, claim in claims.shared:
                claims.volumes = self._finder.within_reach(claims.volumes, claim, row)
            claims.structure = structure
        return claims.volumes

    def _promised(
        self, pod: PodInfo, own: Sequence[PersistentVolumeClaim], snapshot: Snapshot
    ) -> Iterator[tuple[int, PersistentVolumeClaim]]:
        """Yield the claims that wait for pods nominated first, each with the row of its pod."""
        known = {(claim.metadata.namespace, claim.metadata.name) for claim in own}
        for row, other in snapshot.nominated_before(pod):
            for volume in claims_of(other):
                key = other.namespace, volume.name_for(other.name)
                claim = None if key in known else self._claims.get(key[1], key[0])
                if claim is None or is_fully_bound(claim) or claim.spec.volume_name:
                    continue
                known.add(key)
                yield row, claim

    def _shared(
        self, pod: PodInfo, own: Sequence[PersistentVolumeClaim], snapshot: Snapshot
    ) -> Iterator[tuple[int, PersistentVolumeClaim]]:
        """Yield the pod's claims that a pod nominated first has as well, each with its row.

        The claim goes to the node of that pod: evictions on other nodes would be in vain.
        """
        claims = {(claim.metadata.namespace, claim.metadata.name): claim for claim in own}
        for row, other in snapshot.nominated_before(pod):
            for volume in claims_of(other):
                claim = claims.pop((other.namespace, volume.name_for(other.name)), None)
                if claim is not None:
                    yield row, claim

    @contextmanager
    def _without_promised(
        self, promised: Sequence[tuple[int, PersistentVolumeClaim]]
    ) -> Iterator[None]:
        """Assume the volumes that nominated pods would bind, for as long as the context lasts."""
        assumed: list[PersistentVolume] = []
        try:
            for row, claim in promised:
                try:
                    bindings, _ = self._finder.find((), (claim,)).on_row(row)
                    for _, volume in bindings:
                        changed = with_claim(volume, claim)
                        if changed != volume:
                            self._volumes.assume(changed)
                            assumed.append(changed)
                except VolumeError:  # the fault of the nominated pod alone
                    continue
            yield
        finally:
            for volume in reversed(assumed):
                self._volumes.restore(volume)

    def _claim_fault(self, pod: PodInfo, volumes: Sequence[ClaimVolume]) -> str | None:
        """Return the first fault of the pod's claims as the API shows them; None for no fault."""
        for volume in volumes:
            name = volume.name_for(pod.name)
            claim = self._claims.shown(name, pod.namespace)
            if claim is None:
                if not volume.ephemeral:
                    return claim_not_found(name)
                return (
                    "waiting for ephemeral volume controller to create the "
                    f'persistentvolumeclaim "{name}"'
                )
            if claim.status.phase == "Lost":
                return (
                    f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume '
                    f'"{claim.spec.volume_name}"'
                )
            if claim.metadata.deletion_timestamp is not None:
                return f'persistentvolumeclaim "{name}" is being deleted'
            fault = ownership_fault(pod.pod, claim) if volume.ephemeral else None
            if fault is not None:
                return fault
        return None
