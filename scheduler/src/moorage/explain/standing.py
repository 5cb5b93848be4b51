"""The place of a pod on its way: finished, bound, being bound, at Permit, or held before the queue.

Everything is read from the beliefs of the scheduler; no attempt is made here.
"""

from __future__ import annotations

from typing import Final

import msgspec

from moorage.api.pod import Pod
from moorage.api.reasons.codes import ReasonCode, code_of_reasons
from moorage.explain.answer import Where
from moorage.explain.groups import pods_lacking
from moorage.framework.runner import run_pre_enqueue
from moorage.framework.status import Status
from moorage.service.core import Core
from moorage.state.lifecycle import PodState

_ENDED: Final = frozenset({"Succeeded", "Failed"})


class Standing(msgspec.Struct, frozen=True):
    """The place of a pod on its way to a node, a sentence about it, and the code of the reason."""

    where: Where
    sentence: str
    reason: str = ""


def standing(core: Core, pod: Pod) -> Standing | None:
    """Return where a pod is; None where that depends on whether a node takes it."""
    spec = pod.spec
    if pod.status.phase in _ENDED:
        place = f" on {spec.node_name}" if spec.node_name else ""
        return Standing(Where.FINISHED, f"has ended{place}: {pod.status.phase}")
    if spec.node_name:
        there = core.snapshot.row_of(spec.node_name) is not None
        missing = "" if there else ", a node that does not exist"
        return Standing(Where.BOUND, f"bound to {spec.node_name}{missing}")
    if pod.metadata.deletion_timestamp:
        return Standing(Where.TERMINATING, "is being deleted, so no node is sought for it")
    profile = core.profiles.get(spec.scheduler_name)
    if profile is None:
        served = ", ".join(sorted(core.profiles))
        text = (
            f"this scheduler does not serve schedulerName {spec.scheduler_name}: it serves "
            f"{served}; whether another scheduler does is not known here"
        )
        return Standing(Where.UNSERVED, text, ReasonCode.UNKNOWN_SCHEDULER)
    under_way = _under_way(core, pod)
    if under_way is not None:
        return under_way
    held = run_pre_enqueue(profile, pod)
    return None if held.ok else _gated_standing(core, pod, held)


def _under_way(core: Core, pod: Pod) -> Standing | None:
    """Return the standing of a pod that has a node which the API does not show yet."""
    state = core.queue.lifecycle.state(pod.uid)
    if state not in {PodState.ASSUMED, PodState.WAITING, PodState.BINDING}:
        return None
    node_name = core.cache.get_pod(pod.uid).spec.node_name
    if state is not PodState.WAITING:
        return Standing(Where.BINDING, f"being bound to {node_name}")
    waiting = core.waiting.find(pod.uid)
    plugins = ", ".join(waiting.pending) if waiting is not None else ""
    by = f" of {plugins}" if plugins else ""
    group = _members(core, pod)
    text = f"waits at Permit{by} with {group}" if group else f"waits at Permit{by}"
    reason = ReasonCode.WAITING_FOR_GROUP if group else ReasonCode.REJECTED_BY_PLUGIN
    return Standing(Where.PERMIT, f"{text}; its node is {node_name}", reason)


def _members(core: Core, pod: Pod) -> str:
    """Return how many members of the pod's group have a place: ``3 of 4 of its group``."""
    groups = core.snapshot.groups
    key = groups.key_of(pod)
    terms = groups.terms_of(pod)
    if key is None or terms is None:
        return ""
    share = terms.share(groups.members(key).placed)
    return f"{share} of its group {key.full_name}{terms.succeeded_note}"


def _gated_standing(core: Core, pod: Pod, status: Status) -> Standing:
    text = f"held before the queue by plugin {status.plugin}: {status.message}"
    groups = core.snapshot.groups
    key, terms = groups.key_of(pod), groups.terms_of(pod)
    if key is not None and terms is not None and groups.members(key).pods_missing(terms):
        text += f" (group {key.full_name} {pods_lacking(terms, groups.members(key).pods.values())})"
    return Standing(Where.GATED, text, code_of_reasons(status.reasons))
