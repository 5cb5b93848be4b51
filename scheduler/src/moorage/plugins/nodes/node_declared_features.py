"""NodeDeclaredFeatures: a pod needs nodes that declare the kubelet features it uses.

Rules mirrored: kubernetes v1.36 ``pkg/scheduler/framework/plugins/nodedeclaredfeatures`` and
``component-helpers/nodedeclaredfeatures``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from moorage.api.changes import Action, ClusterEvent, Resource
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.config.gate_table import NODE_DECLARED_FEATURES
from moorage.framework.capabilities import Capabilities, Reads
from moorage.framework.cycle_state import CycleState, StateKey
from moorage.framework.handle import Handle
from moorage.framework.points import EventRegistration, PreFilterResult
from moorage.framework.status import SKIP, SUCCESS, Code, FilterAnswer, Status, answer_where
from moorage.framework.subjects import Subject
from moorage.plugins.answers import SetAnswers, memo_of
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.shape import FEATURES
from moorage.snapshot.snapshot import Snapshot
from moorage.snapshot.view import NodeView

REASON: Final = "node(s) didn't match Pod's required features"

_PRE_FILTER: StateKey[SetAnswers] = StateKey("PreFilterNodeDeclaredFeatures")


class NodeDeclaredFeatures:
    """PreFilter and Filter plugin; takes no arguments, and asks nothing without its gate."""

    name = "NodeDeclaredFeatures"
    capabilities = Capabilities(
        filter_reads=Reads.NODE, shape_parts=(FEATURES,), rejects_about=Subject.FEATURES
    )

    def __init__(self, args: object, handle: Handle) -> None:
        del args
        self._gate = handle.gates(NODE_DECLARED_FEATURES)
        self._snapshot = handle.snapshot
        self._reason = handle.reasons.intern(REASON)

    def pre_filter(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot
    ) -> tuple[PreFilterResult | None, Status]:
        """Skip a pod that needs no feature."""
        del snapshot
        part = pod.part(FEATURES)
        if not self._gate or not part.value:
            return None, SKIP
        state.write(_PRE_FILTER, memo_of(part, self, _question))
        return None, SUCCESS

    def filter(self, state: CycleState, pod: PodInfo, view: NodeView) -> FilterAnswer | None:
        """Reject rows that do not declare every needed feature.

        Raises
        ------
        StateMissingError
            PreFilter of this plugin is not enabled.
        """
        del pod
        lacking = state.read(_PRE_FILTER).gather(self._snapshot.feature_sets, view) != 0
        return answer_where(lacking, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, self._reason)

    def events_to_register(self) -> Sequence[EventRegistration]:
        """Register nodes that declare new features, and changes of the pod's needs."""
        node = ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_NODE_DECLARED_FEATURE)
        pod = ClusterEvent(Resource.POD, Action.UPDATE)
        return (
            EventRegistration(node, _node_hint, replicas_agree=True),
            EventRegistration(pod, _own_update_hint, replicas_agree=True),
        )


def _question(needed: frozenset[str]) -> SetAnswers:
    return SetAnswers(lambda declared: int(not needed <= declared))


def _node_hint(waiting: Pod, old: object | None, new: object | None) -> bool:
    del waiting
    assert isinstance(new, Node)
    if not isinstance(old, Node):
        return True
    return old.status.declared_features != new.status.declared_features


def _own_update_hint(waiting: Pod, old: object | None, new: object | None) -> bool:
    assert isinstance(new, Pod)
    if new.uid != waiting.uid:
        return False
    before = old if isinstance(old, Pod) else waiting
    return FEATURES.part_of(before).value != FEATURES.part_of(new).value
