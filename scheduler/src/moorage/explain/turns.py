"""The wait of a pod that the plugins let on a node: its turn, its last attempt, extenders.

Everything is read from the beliefs of the scheduler; no attempt is made, and no extender is called.
"""

from __future__ import annotations

from typing import Final

from moorage.api.pod import Pod
from moorage.api.reasons.codes import ReasonCode
from moorage.base.clock import NS_PER_SECOND, rfc3339
from moorage.explain.answer import Where
from moorage.explain.standing import Standing
from moorage.framework.extender import take_part
from moorage.service.core import Core
from moorage.state.lifecycle import PodState
from moorage.state.pending import PendingPod, PendingSummary

_NAMED_MOST: Final = 3
NOT_COUNTED: Final = "Extenders score nodes too; their scores are not in this answer."


def fitting(core: Core, pod: Pod, feasible: int) -> tuple[Standing, tuple[str, ...]]:
    """Return where a pod is for which some nodes pass every Filter, and notes about it."""
    pending = core.queue.pending()
    own = _own(pod, pending)
    failed, when = own.message if own is not None else "", turn(core, pod, pending)
    nodes = "1 node" if feasible == 1 else f"{feasible} nodes"
    if not take_part(core.profiles[pod.spec.scheduler_name].extenders, pod):
        notes = (f"Its last attempt failed: {failed}",) if failed else ()
        return Standing(Where.FITS, f"fits now on {nodes}; it {when}", ReasonCode.NOT_TRIED), notes
    if not failed:
        text = f"every plugin lets it on {nodes}, and extenders are asked in its attempt; it {when}"
        return Standing(Where.EXTENDERS, text, ReasonCode.NOT_TRIED), ()
    text = (
        f"every plugin lets it on {nodes}, but its last attempt, in which extenders are asked, "
        f"failed: {failed.rstrip('.')}; it {when}"
    )
    note = "With --attempt -1 the record of that attempt shows the nodes that extenders rejected."
    return Standing(Where.EXTENDERS, text, ReasonCode.EXTENDER), (note,)


def _own(pod: Pod, pending: PendingSummary) -> PendingPod | None:
    queued = (*pending.active, *pending.backoff, *pending.unschedulable)
    return next((each for each in queued if each.pod.uid == pod.uid), None)


def turn(core: Core, pod: Pod, pending: PendingSummary) -> str:
    """Return when a pod is tried next: the pods before it, the end of its backoff, an event."""
    state = core.queue.lifecycle.state(pod.uid)
    if state is PodState.IN_FLIGHT:
        return "is being tried now"
    if state is PodState.ACTIVE:
        before = _before(core, pod, pending.active)
        if not before:
            return "is the next in the queue"
        named = ", ".join(before[:_NAMED_MOST])
        more = f" and {len(before) - _NAMED_MOST} more" if len(before) > _NAMED_MOST else ""
        return f"is queued behind {named}{more}"
    if state is PodState.BACKOFF:
        until = next(each for each in pending.backoff if each.pod.uid == pod.uid)
        return f"is in backoff until {_time(until.backoff_expiration_ns)}"
    waiting = next((each for each in pending.unschedulable if each.pod.uid == pod.uid), None)
    if waiting is None:
        return "is not in the queue"
    latest_ns = waiting.since_ns + core.queue.settings.unschedulable_max_ns
    return f"is tried again after an event that helps, at the latest {_time(latest_ns)}"


def _before(core: Core, pod: Pod, active: tuple[PendingPod, ...]) -> list[str]:
    """Return the names of the active pods that are popped before this one, the first first."""
    sort_key = core.profiles[pod.spec.scheduler_name].queue_sort.sort_key
    keyed = [(sort_key(each.pod.priority, each.since_ns, each.pod), each.pod) for each in active]
    own = [key for key, each in keyed if each.uid == pod.uid]
    before = [(key, each.full_name) for key, each in keyed if own and key < own[0]]
    return [name for _, name in sorted(before)]


def _time(at_ns: int) -> str:
    return rfc3339(at_ns // NS_PER_SECOND * NS_PER_SECOND)
