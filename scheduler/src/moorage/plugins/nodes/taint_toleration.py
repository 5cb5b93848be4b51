"""TaintToleration: rejects nodes with untolerated taints, and scores PreferNoSchedule taints.

Rules mirrored: kubernetes v1.36 ``pkg/scheduler/framework/plugins/tainttoleration``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from moorage.api.changes import Action, ClusterEvent, Resource
from moorage.api.node import Node, Taint
from moorage.api.pod import Pod, Toleration
from moorage.api.taints import tolerates
from moorage.framework.capabilities import Capabilities, Reads
from moorage.framework.cycle_state import CycleState, StateKey
from moorage.framework.handle import Handle
from moorage.framework.points import EventRegistration, ScoreArray
from moorage.framework.status import SUCCESS, Code, FilterAnswer, Status, answer_where
from moorage.framework.subjects import Subject
from moorage.plugins.answers import SetAnswers, memo_of, normalize_to_max
from moorage.plugins.pod_hints import own_update_hint
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.shape import TOLERATIONS
from moorage.snapshot.view import NodeView

REASON: Final = "node(s) had untolerated taint(s)"
_HARD: Final = frozenset({"NoSchedule", "NoExecute"})
_SOFT: Final = "PreferNoSchedule"


class _Questions:
    """The checks of a set of tolerations against sets of taints."""

    __slots__ = ("blocks", "soft")

    def __init__(self, tolerations: tuple[Toleration, ...]) -> None:
        soft = [item for item in tolerations if item.effect in {"", _SOFT}]
        self.blocks = SetAnswers(lambda taints: int(_untolerated(taints, tolerations)))
        self.soft = SetAnswers(lambda taints: _count_unwelcome(taints, soft))


_PRE_SCORE: StateKey[_Questions] = StateKey("PreScoreTaintToleration")


class TaintToleration:
    """Filter, PreScore and Score plugin; takes no arguments."""

    name = "TaintToleration"
    capabilities = Capabilities(
        filter_reads=Reads.NODE,
        score_reads=Reads.NODE,
        shape_parts=(TOLERATIONS,),
        rejects_about=Subject.TAINTS,
    )

    def __init__(self, args: object, handle: Handle) -> None:
        del args
        self._snapshot = handle.snapshot
        self._reason = handle.reasons.intern(REASON)

    def filter(self, state: CycleState, pod: PodInfo, view: NodeView) -> FilterAnswer | None:
        """Reject rows with a NoSchedule or NoExecute taint the pod does not tolerate."""
        del state
        questions = memo_of(pod.part(TOLERATIONS), self, _Questions)
        untolerated = questions.blocks.gather(self._snapshot.taint_sets, view) != 0
        return answer_where(untolerated, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, self._reason)

    def pre_score(self, state: CycleState, pod: PodInfo, feasible: NodeView) -> Status:
        """Keep the tolerations of PreferNoSchedule; never skip."""
        del feasible
        state.write(_PRE_SCORE, memo_of(pod.part(TOLERATIONS), self, _Questions))
        return SUCCESS

    def score(self, state: CycleState, pod: PodInfo, view: NodeView) -> ScoreArray:
        """Count the PreferNoSchedule taints of each row that the pod does not tolerate.

        Raises
        ------
        StateMissingError
            PreScore of this plugin is not enabled.
        """
        del pod
        counts = state.read(_PRE_SCORE).soft.gather(self._snapshot.taint_sets, view)
        return counts.astype(np.int64)

    def normalize(self, state: CycleState, pod: PodInfo, raw_n: ScoreArray) -> ScoreArray:
        """Reverse the scores: fewer untolerated taints score higher."""
        del state, pod
        return normalize_to_max(raw_n, reverse=True)

    def events_to_register(self) -> Sequence[EventRegistration]:
        """Register nodes without untolerated taints, and changes of the pod's tolerations."""
        node = ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_NODE_TAINT)
        pod = ClusterEvent(Resource.POD, Action.UPDATE_POD_TOLERATION)
        return (
            EventRegistration(node, _node_hint, replicas_agree=True),
            EventRegistration(pod, own_update_hint, replicas_agree=True),
        )


def _tolerated(taint: Taint, tolerations: Sequence[Toleration]) -> bool:
    return any(tolerates(toleration, taint) for toleration in tolerations)


def _untolerated(taints: Sequence[Taint], tolerations: Sequence[Toleration]) -> bool:
    return any(taint.effect in _HARD and not _tolerated(taint, tolerations) for taint in taints)


def _count_unwelcome(taints: Sequence[Taint], tolerations: Sequence[Toleration]) -> int:
    return sum(taint.effect == _SOFT and not _tolerated(taint, tolerations) for taint in taints)


def _node_hint(waiting: Pod, old: object | None, new: object | None) -> bool:
    assert isinstance(new, Node)
    tolerations = waiting.spec.tolerations
    was_open = isinstance(old, Node) and not _untolerated(old.spec.taints, tolerations)
    return not was_open and not _untolerated(new.spec.taints, tolerations)
