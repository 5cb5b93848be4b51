"""NodeUnschedulable: a cordoned node accepts only pods that tolerate the cordon.

Rules mirrored: kubernetes v1.36 ``pkg/scheduler/framework/plugins/nodeunschedulable``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from moorage.api.changes import Action, ClusterEvent, Resource
from moorage.api.node import Node, Taint
from moorage.api.pod import Pod, Toleration
from moorage.api.taints import tolerates
from moorage.framework.capabilities import Capabilities, Reads
from moorage.framework.cycle_state import CycleState
from moorage.framework.handle import Handle
from moorage.framework.points import EventRegistration
from moorage.framework.status import Code, FilterAnswer, answer_where
from moorage.framework.subjects import Subject
from moorage.plugins.answers import memo_of
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.shape import TOLERATIONS
from moorage.snapshot.view import NodeView

REASON: Final = "node(s) were unschedulable"
_TAINT: Final = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


class NodeUnschedulable:
    """Filter plugin; takes no arguments."""

    name = "NodeUnschedulable"
    capabilities = Capabilities(
        filter_reads=Reads.NODE, shape_parts=(TOLERATIONS,), rejects_about=Subject.CORDON
    )

    def __init__(self, args: object, handle: Handle) -> None:
        del args
        self._snapshot = handle.snapshot
        self._reason = handle.reasons.intern(REASON)

    def filter(self, state: CycleState, pod: PodInfo, view: NodeView) -> FilterAnswer | None:
        """Reject cordoned rows unless the pod tolerates the taint for unschedulable nodes."""
        del state
        if memo_of(pod.part(TOLERATIONS), self, _tolerated):
            return None
        cordoned = view.take_rows(self._snapshot.unschedulable).copy()
        return answer_where(cordoned, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, self._reason)

    def events_to_register(self) -> Sequence[EventRegistration]:
        """Register nodes that are or become schedulable, and new tolerations of the pod."""
        node = ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_NODE_TAINT)
        pod = ClusterEvent(Resource.POD, Action.UPDATE_POD_TOLERATION)
        return (
            EventRegistration(node, _node_hint, replicas_agree=True),
            EventRegistration(pod, _toleration_hint, replicas_agree=True),
        )


def _tolerated(tolerations: Iterable[Toleration]) -> bool:
    return any(tolerates(toleration, _TAINT) for toleration in tolerations)


def _node_hint(waiting: Pod, old: object | None, new: object | None) -> bool:
    del waiting
    assert isinstance(new, Node)
    if isinstance(old, Node):
        return old.spec.unschedulable and not new.spec.unschedulable
    return not new.spec.unschedulable


def _toleration_hint(waiting: Pod, old: object | None, new: object | None) -> bool:
    del old
    assert isinstance(new, Pod)
    return new.uid == waiting.uid and _tolerated(new.spec.tolerations)
