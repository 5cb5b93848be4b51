"""A plugin that asks far away, and hears an answer that is old when it comes.

A pod with the label ``delayed-step`` may go to a node that has the same label. The plugin finds out
after the node was chosen, and lets the pod wait meanwhile. What happens in this time, the label of
the node included, must not be lost for the pod. And the room that a pod held in vain goes to
others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from moorage.api.changes import Action, ClusterEvent, Resource
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.base import aio
from moorage.framework.cycle_state import CycleState
from moorage.framework.group import CARRIED_OUT, GROUP_PHASE
from moorage.framework.handle import Handle
from moorage.framework.points import EventRegistration
from moorage.framework.status import SUCCESS, Code, Status, error, unresolvable, unschedulable
from moorage.plugins.pod_hints import own_update_hint
from moorage.snapshot.pod_info import PodInfo

LABEL = "delayed-step"
BREAKS = "delayed-step-breaks"
"""Label of a pod whose first delayed step ends by an error."""

AWAITS_CALL, CALLS = "delayed-step-awaits-call", "delayed-step-calls"
"""Labels: pods with the first go once a pod with the same value of the second is placed.

They also go once a node has the second label.
"""

SECONDS = 2.0
"""Time for which the answer is under way, seconds."""

SLOW = "delayed-step-slow"
"""Label of a pod whose refusal takes minutes."""

SLOW_SECONDS = 300.0
"""Time for which such a refusal is under way, seconds."""

REFUSED = "delayed-step-refused"
"""Label of a pod of a group for which nothing can be reserved, though it could on trial."""

CALLS_LATE = "delayed-step-calls-late"
"""Label of a pod that calls others some time after its binding began."""

GATED = "delayed-step-gated"
"""Label of a pod that is not tried at all while the plugin is there."""


class DelayedStep:
    """PreEnqueue, Reserve, Permit and PreBind plugin."""

    name = "DelayedStep"

    def __init__(self, args: object, handle: Handle) -> None:
        del args
        self._snapshot = handle.snapshot
        self._effects = handle.effects
        self._awaiting_call: dict[str, dict[str, Pod]] = {}
        # The pods that wait to be called, by the value of their label and by uid.
        self._refused_later: dict[str, Pod] = {}
        # The pods whose refusal is under way or has come, by uid.
        self._failed_once: dict[str, None] = {}
        # The uids of the pods whose delayed step failed once.

    def pre_enqueue(self, pod: Pod) -> Status:
        """Keep pods with the label `GATED` out."""
        return unresolvable("held back") if GATED in pod.metadata.labels else SUCCESS

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Refuse pods with the label `REFUSED`, except on trial."""
        del node_name
        refused = REFUSED in pod.pod.metadata.labels and state.find(GROUP_PHASE) == CARRIED_OUT
        return unschedulable("nothing to reserve") if refused else SUCCESS

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        """Do nothing."""

    def permit(self, state: CycleState, pod: PodInfo, node_name: str) -> tuple[Status, float]:
        """Let the pod go where the node has its label, or where it tolerates that it has not.

        Else hold it until the refusal comes.
        """
        del state
        call = pod.pod.metadata.labels.get(AWAITS_CALL)
        if call is not None and not self._has_caller(call):
            self._awaiting_call.setdefault(call, {})[pod.uid] = pod.pod
            return unschedulable("nobody has called"), 0.0
        if any(each.key == LABEL for each in pod.pod.spec.tolerations):
            return SUCCESS, 0.0
        label = pod.pod.metadata.labels.get(LABEL)
        row = self._snapshot.row_of(node_name)
        if label is None or row is None or _label(self._snapshot.node(row)) == label:
            return SUCCESS, 0.0
        self._refused_later[pod.uid] = pod.pod
        seconds = SLOW_SECONDS if SLOW in pod.pod.metadata.labels else SECONDS
        return Status(Code.WAIT, ("the delayed step takes its time",)), seconds

    async def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Call the pods that wait for this one; break once for a pod with the label `BREAKS`."""
        del state, node_name
        calls = pod.pod.metadata.labels.get(CALLS)
        if calls is not None:
            self._activate_waiting(calls)
        late = pod.pod.metadata.labels.get(CALLS_LATE)
        if late is not None:
            asyncio.get_running_loop().call_later(SECONDS, self._activate_waiting, late)
        if BREAKS not in pod.pod.metadata.labels or pod.uid in self._failed_once:
            return SUCCESS
        self._failed_once[pod.uid] = None
        await aio.sleep(SECONDS)
        return error("the delayed step failed")

    def _activate_waiting(self, name: str) -> None:
        self._effects.activate(self._awaiting_call.pop(name, {}).values())

    def _has_caller(self, name: str) -> bool:
        rows = range(self._snapshot.num_nodes)
        pods = (each.pod for row in rows for each in self._snapshot.pods(row))
        if any(_calling(self._snapshot.node(row)) == name for row in rows):
            return True
        return any(
            name in (pod.metadata.labels.get(CALLS), pod.metadata.labels.get(CALLS_LATE))
            for pod in pods
        )

    def events_to_register(self) -> Sequence[EventRegistration]:
        """Register new labels of nodes, of which the pod's own helps, and its new tolerations.

        A label of a node is told to the pods that were sent, and to those that are called by it.
        """
        labels = ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL)
        own = ClusterEvent(Resource.POD, Action.UPDATE_POD_TOLERATION)
        return (
            EventRegistration(labels, _helps, self._delayed_pods),
            EventRegistration(labels, _calls, self._pods_called_by),
            EventRegistration(own, own_update_hint),
        )

    def _delayed_pods(self, old: object | None, new: object | None) -> Sequence[Pod]:
        """Return the pods that a label of a node may help, whatever label they have by now."""
        del old, new
        return tuple(self._refused_later.values())

    def _pods_called_by(self, old: object | None, new: object | None) -> Sequence[Pod]:
        """Return the pods that a node calls."""
        del old
        name = _calling(new) if isinstance(new, Node) else None
        return () if name is None else tuple(self._awaiting_call.get(name, {}).values())


def _label(node: Node) -> str | None:
    return node.metadata.labels.get(LABEL)


def _calling(node: Node) -> str | None:
    return node.metadata.labels.get(CALLS)


def _helps(waiting: Pod, old: object | None, new: object | None) -> bool:
    del old
    label = waiting.metadata.labels.get(LABEL)
    return label is not None and isinstance(new, Node) and _label(new) == label


def _calls(waiting: Pod, old: object | None, new: object | None) -> bool:
    del old
    call = waiting.metadata.labels.get(AWAITS_CALL)
    return call is not None and isinstance(new, Node) and _calling(new) == call
