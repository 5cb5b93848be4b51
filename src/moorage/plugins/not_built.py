"""Guards: plugins that hold the configured name of one not built, and hold the pods that need it.

Each implements the extension points of the plugin it stands for, so that profiles come out as
they will. A pod that does not need the plugin is skipped; one that does is rejected for good,
with the field that needs it. They are replaced one by one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from moorage.api.changes import Action, ClusterEvent, Resource
from moorage.api.pod import Pod
from moorage.base.errors import NotBuiltError
from moorage.config.plugin_args import (
    VolumeBindingArgs,
)
from moorage.framework.cycle_state import CycleState
from moorage.framework.handle import Handle
from moorage.framework.points import (
    EventRegistration,
    PreFilterResult,
    Reads,
    ScoreArray,
)
from moorage.framework.status import (
    SKIP,
    SUCCESS,
    Code,
    FilterAnswer,
    ReasonTable,
    Status,
    answer_where,
    error,
    unresolvable,
)
from moorage.plugins.unbuilt import NEEDS, unbuilt_need
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot
from moorage.snapshot.view import NodeView


class FilterGuard:
    """PreFilter and Filter of a plugin not built; base of every guard that filters.

    Parameters
    ----------
    reasons
        Where the text of a rejection by Filter alone is interned.
    """

    name = ""
    not_built = True
    filter_reads = Reads.NODE
    shape_parts = (NEEDS,)

    def __init__(self, reasons: ReasonTable) -> None:
        self._reasons = reasons

    def pre_filter(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot
    ) -> tuple[PreFilterResult | None, Status]:
        """Skip a pod that does not need the plugin, hold one that does."""
        del state, snapshot
        need = unbuilt_need(self.name, pod)
        return None, SKIP if need is None else unresolvable(need)

    def filter(self, state: CycleState, pod: PodInfo, view: NodeView) -> FilterAnswer | None:
        """Hold the pod on every row, for profiles that enable Filter without PreFilter."""
        del state
        need = unbuilt_need(self.name, pod)
        if need is None:
            return None
        everywhere = np.ones(len(view), np.bool_)
        code = Code.UNSCHEDULABLE_AND_UNRESOLVABLE
        return answer_where(everywhere, code, self._reasons.intern(need))

    def events_to_register(self) -> Sequence[EventRegistration]:
        """Name what helps: nothing but a change of the pod itself."""
        event = ClusterEvent(Resource.POD, Action.UPDATE)
        return (EventRegistration(event, _own_update_hint),)


class ScoreGuard(FilterGuard):
    """The same with PreScore and Score."""

    score_reads = Reads.NODE

    def pre_score(self, state: CycleState, pod: PodInfo, feasible: NodeView) -> Status:
        """Skip a pod that does not need the plugin; fail on one that does."""
        del state, feasible
        need = unbuilt_need(self.name, pod)
        return SKIP if need is None else error(need)

    def score(self, state: CycleState, pod: PodInfo, view: NodeView) -> ScoreArray:
        """Score every row 0.

        Raises
        ------
        NotBuiltError
            The pod needs the plugin, and nothing before Score was enabled to say so.
        """
        del state
        need = unbuilt_need(self.name, pod)
        if need is not None:
            raise NotBuiltError(need)
        return np.zeros(len(view), np.int64)


class NormalizingGuard(ScoreGuard):
    """The same with NormalizeScore."""

    def normalize(self, state: CycleState, pod: PodInfo, raw_n: ScoreArray) -> ScoreArray:
        """Leave the zeros as they are."""
        del state, pod
        return raw_n.copy()


class VolumeRestrictions(FilterGuard):
    """Guard for pods with volumes that only one pod, or one node, may use."""

    name = "VolumeRestrictions"

    def __init__(self, args: object, handle: Handle) -> None:
        del args
        super().__init__(handle.reasons)


class NodeVolumeLimits(FilterGuard):
    """Guard for pods with volumes that nodes can attach a limited number of."""

    name = "NodeVolumeLimits"

    def __init__(self, args: object, handle: Handle) -> None:
        del args
        super().__init__(handle.reasons)


class VolumeZone(FilterGuard):
    """Guard for pods with claims, whose volumes may be bound to a zone."""

    name = "VolumeZone"

    def __init__(self, args: object, handle: Handle) -> None:
        del args
        super().__init__(handle.reasons)


class VolumeBinding(ScoreGuard):
    """Guard for pods with claims: nothing is bound or provisioned yet."""

    name = "VolumeBinding"

    def __init__(self, args: VolumeBindingArgs, handle: Handle) -> None:
        del args
        super().__init__(handle.reasons)

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Nothing to book for a pod without claims; fail on one with."""
        del state, node_name
        need = unbuilt_need(self.name, pod)
        return SUCCESS if need is None else error(need)

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        """Nothing was booked."""

    def pre_bind_pre_flight(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Nothing to do before binding a pod without claims; fail on one with."""
        del state, node_name
        need = unbuilt_need(self.name, pod)
        return SKIP if need is None else error(need)

    def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Nothing to do for a pod without claims; fail on one with."""
        return self.reserve(state, pod, node_name)


def _own_update_hint(waiting: Pod, old: object | None, new: object | None) -> bool:
    del old
    return isinstance(new, Pod) and new.uid == waiting.uid
