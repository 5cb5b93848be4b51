"""DynamicResources, as far as a pod without claims meets it; pods with claims are held.

Without claims the plugin has nothing to decide, but it is asked, its answers show in scores and
messages, and its state is missing where an earlier plugin ended PreFilter.

Rules mirrored: kubernetes v1.36 ``pkg/scheduler/framework/plugins/dynamicresources``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from moorage.api.changes import Action, ClusterEvent, Resource
from moorage.api.pod import Pod
from moorage.base.errors import ConfigError
from moorage.config.plugin_args import DynamicResourcesArgs, validate_dynamic_resources_args
from moorage.framework.cycle_state import CycleState, StateKey, StateMissingError
from moorage.framework.handle import Handle
from moorage.framework.points import (
    EventRegistration,
    PostFilterResult,
    PreFilterResult,
    Reads,
    ScoreArray,
)
from moorage.framework.status import (
    SKIP,
    SUCCESS,
    FilterAnswer,
    Status,
    error,
    unresolvable,
    unschedulable,
)
from moorage.plugins.answers import normalize_to_max
from moorage.plugins.pod_hints import own_update_hint
from moorage.plugins.unbuilt import NEEDS, unbuilt_need
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot
from moorage.snapshot.view import NodeView

NOTHING_TO_DEALLOCATE: Final = "no new claims to deallocate"

_CLAIMS: StateKey[int] = StateKey("DynamicResources")
"""Number of claims of the pod; in this slice always 0."""


class DynamicResources:
    """PreEnqueue, PreFilter, Filter, PostFilter, Score, Reserve and PreBind plugin.

    Raises
    ------
    ConfigError
        A timeout is no duration or out of bounds.
    """

    name = "DynamicResources"
    pre_bind_parallel = True
    refuses_by_shape = True  # pods without claims; for others no answer is reused
    not_built = True  # for pods with claims
    filter_reads = Reads.NODE
    score_reads = Reads.NODE
    shape_parts = (NEEDS,)

    def __init__(self, args: DynamicResourcesArgs, handle: Handle) -> None:
        del handle
        faults = validate_dynamic_resources_args(args, "")
        if faults:
            raise ConfigError(faults, source=self.name)

    def pre_enqueue(self, pod: Pod) -> Status:
        """Let the pod in; one with claims is held by PreFilter, where people see why."""
        del pod
        return SUCCESS

    def pre_filter(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot
    ) -> tuple[PreFilterResult | None, Status]:
        """Skip a pod without claims, hold one with claims; later points need to know."""
        del snapshot
        state.write(_CLAIMS, 0)
        need = unbuilt_need(self.name, pod)
        return None, SKIP if need is None else unresolvable(need)

    def filter(self, state: CycleState, pod: PodInfo, view: NodeView) -> FilterAnswer | None:
        """Pass every row.

        Raises
        ------
        StateMissingError
            PreFilter of this plugin is not enabled.
        """
        del pod, view
        state.read(_CLAIMS)
        return None

    def post_filter(
        self, state: CycleState, pod: PodInfo, node_to_status: Mapping[str, Status]
    ) -> tuple[PostFilterResult | None, Status]:
        """Say that no claim can be given back; fail where PreFilter did not get this far."""
        del pod, node_to_status
        missing = _missing_state(state)
        return None, unschedulable(NOTHING_TO_DEALLOCATE) if missing is None else missing

    def score(self, state: CycleState, pod: PodInfo, view: NodeView) -> ScoreArray:
        """Score every row 0: without claims no node has better devices.

        Raises
        ------
        StateMissingError
            PreFilter of this plugin is not enabled.
        """
        del pod
        state.read(_CLAIMS)
        return np.zeros(len(view), np.int64)

    def normalize(self, state: CycleState, pod: PodInfo, raw_n: ScoreArray) -> ScoreArray:
        """Scale so that the best row has 100."""
        del state, pod
        return normalize_to_max(raw_n)

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Nothing to book."""
        del pod, node_name
        return _missing_state(state) or SUCCESS

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        """Nothing was booked."""

    def pre_bind_pre_flight(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Nothing to do before binding."""
        del pod, node_name
        return _missing_state(state) or SKIP

    def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Nothing to do."""
        return self.reserve(state, pod, node_name)

    def events_to_register(self) -> Sequence[EventRegistration]:
        """Held pods have to change themselves: nothing else helps until claims are built."""
        event = ClusterEvent(Resource.POD, Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM)
        return (EventRegistration(event, own_update_hint),)


def _missing_state(state: CycleState) -> Status | None:
    try:
        state.read(_CLAIMS)
    except StateMissingError as missing:
        return error(str(missing))
    return None
