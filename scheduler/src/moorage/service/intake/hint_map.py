"""A profile's requeue hints, as the queue asks them.

Source: kubernetes v1.36 ``pkg/scheduler/scheduler.go`` buildQueueingHintMap (scheduling spec, queue
sections 9 and 10).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from moorage.api.changes import Action, ClusterEvent, Resource
from moorage.api.pod import Pod
from moorage.framework.points import EventRegistration, HintFunction
from moorage.framework.profile import Profile
from moorage.state.contracts import Hint, HintFn, RegisteredHint

# Under names of their own: finding a member in its class takes ten times as long.
_QUEUE, _SKIP = Hint.QUEUE, Hint.SKIP

NODE_TAINT = ClusterEvent(Resource.NODE, Action.UPDATE_NODE_TAINT)


def build_hints(profile: Profile) -> list[RegisteredHint]:
    """Return the hints of every plugin that may reject a pod, in the order they are asked."""
    return [
        hint
        for name, registrations in profile.registrations().items()
        for hint in _of_plugin(name, registrations)
    ]


def _of_plugin(name: str, registrations: Sequence[EventRegistration]) -> Iterator[RegisteredHint]:
    for registration in registrations:
        yield RegisteredHint(
            name,
            registration.event,
            _hint(registration.hint),
            registration.concerns,
            replicas_agree=registration.replicas_agree,
        )
    of_nodes = [each.event.action for each in registrations if each.event.resource == Resource.NODE]
    added = any(action & Action.ADD for action in of_nodes)
    if added and not any(action & Action.UPDATE_NODE_TAINT for action in of_nodes):
        # A node is often added with a taint that is removed later. So a hint for added nodes counts
        # for changed taints, too. kube-scheduler calls this a temporary fix, and still has it in
        # v1.36.
        yield RegisteredHint(name, NODE_TAINT)


def _hint(function: HintFunction | None) -> HintFn | None:
    if function is None:
        return None

    def hint(pod: Pod, old: object | None, new: object | None) -> Hint:
        return _QUEUE if function(pod, old, new) else _SKIP

    return hint
