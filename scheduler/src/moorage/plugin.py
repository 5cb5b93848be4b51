"""The names that the author of a plugin imports: ``from moorage import plugin``.

A plugin is one decorated function::

    @plugin.score
    def prefer_green(pod, node):
        return 100 if node.labels.get("power") == "green" else 0

or a class with the methods of the extension points it extends
(``docs/reference/plugin-points.md``). All names are defined in other modules; only the names in
this module are stable.
"""

from __future__ import annotations

from moorage.api.changes import Action, ClusterEvent, Resource
from moorage.api.pod import Pod
from moorage.api.requests import qos_class
from moorage.framework.capabilities import Capabilities, Reads
from moorage.framework.cycle_state import CycleState, StateKey
from moorage.framework.declaring import (
    filter,  # noqa: A004 - the point's own name
    permit,
    post_bind,
    pre_bind,
    pre_enqueue,
    score,
)
from moorage.framework.handle import Handle
from moorage.framework.points import (
    EventRegistration,
    PostFilterResult,
    PreFilterResult,
    QueuedPodInfo,
    ScoreArray,
)
from moorage.framework.roles import Role
from moorage.framework.status import (
    SKIP,
    SUCCESS,
    Code,
    FilterAnswer,
    Status,
    answer_where,
    error,
    unresolvable,
    unschedulable,
)
from moorage.framework.subjects import Subject
from moorage.snapshot.node_info import NodeInfo
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot
from moorage.snapshot.view import NodeView

__all__ = [
    "SKIP",
    "SUCCESS",
    "Action",
    "Capabilities",
    "ClusterEvent",
    "Code",
    "CycleState",
    "EventRegistration",
    "FilterAnswer",
    "Handle",
    "NodeInfo",
    "NodeView",
    "Pod",
    "PodInfo",
    "PostFilterResult",
    "PreFilterResult",
    "QueuedPodInfo",
    "Reads",
    "Resource",
    "Role",
    "ScoreArray",
    "Snapshot",
    "StateKey",
    "Status",
    "Subject",
    "answer_where",
    "error",
    "filter",
    "permit",
    "post_bind",
    "pre_bind",
    "pre_enqueue",
    "qos_class",
    "score",
    "unresolvable",
    "unschedulable",
]
