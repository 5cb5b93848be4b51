"""NodeName: a pod that names a node fits only that node.

Rules mirrored: kubernetes v1.36 ``pkg/scheduler/framework/plugins/nodename``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from moorage.api.changes import Action, ClusterEvent, Resource
from moorage.framework.capabilities import Capabilities, Reads
from moorage.framework.cycle_state import CycleState
from moorage.framework.handle import Handle
from moorage.framework.points import EventRegistration
from moorage.framework.status import Code, FilterAnswer, answer_where
from moorage.framework.subjects import Subject
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.shape import NODE_NAME
from moorage.snapshot.view import NodeView

REASON: Final = "node(s) didn't match the requested node name"


class NodeName:
    """Filter plugin; takes no arguments."""

    name = "NodeName"
    capabilities = Capabilities(
        filter_reads=Reads.NODE, shape_parts=(NODE_NAME,), rejects_about=Subject.NODE_NAME
    )

    def __init__(self, args: object, handle: Handle) -> None:
        del args
        self._snapshot = handle.snapshot
        self._reason = handle.reasons.intern(REASON)

    def filter(self, state: CycleState, pod: PodInfo, view: NodeView) -> FilterAnswer | None:
        """Pass every row when the pod names no node, else only the row of that name."""
        del state
        wanted = pod.part(NODE_NAME).value
        if not wanted:
            return None
        row = self._snapshot.row_of(wanted)
        failed = np.ones(len(view), np.bool_)
        if row is not None:
            failed = view.row_numbers() != row
        return answer_where(failed, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, self._reason)

    def events_to_register(self) -> Sequence[EventRegistration]:
        """Register new nodes: only a new node can have the wanted name."""
        return (EventRegistration(ClusterEvent(Resource.NODE, Action.ADD)),)
