"""SchedulingGates: a pod with gates does not enter the queue.

Rules mirrored: kubernetes v1.36 ``pkg/scheduler/framework/plugins/schedulinggates``.
"""

from __future__ import annotations

from collections.abc import Sequence

from moorage.api.changes import Action, ClusterEvent, Resource
from moorage.api.pod import Pod
from moorage.framework.handle import Handle
from moorage.framework.points import EventRegistration
from moorage.framework.status import SUCCESS, Status, unresolvable
from moorage.plugins.pod_hints import own_update_hint


class SchedulingGates:
    """PreEnqueue plugin; takes no arguments."""

    name = "SchedulingGates"

    def __init__(self, args: object, handle: Handle) -> None:
        del args, handle

    def pre_enqueue(self, pod: Pod) -> Status:
        """Accept the pod when no gate is left, else name the gates."""
        gates = pod.spec.scheduling_gates
        if not gates:
            return SUCCESS
        names = " ".join(gate.name for gate in gates)
        return unresolvable(f"waiting for scheduling gates: [{names}]")

    def events_to_register(self) -> Sequence[EventRegistration]:
        """Register the removal of the pod's last gate: nothing else helps."""
        event = ClusterEvent(Resource.POD, Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)
        return (EventRegistration(event, own_update_hint, replicas_agree=True),)
