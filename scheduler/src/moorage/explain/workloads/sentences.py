"""The sentence about a workload: how many of its pods are ready, and what keeps the rest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from moorage.explain.workloads.answer import LACKING, PodCount, Stage

_AT_PERMIT: Final = "waits at Permit "
_BEFORE_QUEUE: Final = "held before the queue "


def object_sentence(
    counts: Sequence[PodCount], *, ready: int, wanted: int | None, pods: int
) -> str:
    """Return how many pods of an object are ready, and the cause that keeps most of the rest.

    Parameters
    ----------
    counts
        The pods by stage and cause, the cause that matters first.
    ready, wanted, pods
        How many pods are ready, wanted (None where nobody says), and exist.
    """
    total = pods if wanted is None else wanted
    lacking = [each for each in counts if each.stage in LACKING]
    if not lacking:
        if not total and not pods:
            return "has no pods" if wanted is None else "wants no pods"
        if ready >= total:
            return "its only pod is ready" if total == 1 else f"all {total} pods are ready"
        return f"{ready} of {total} pods are ready"
    first, others = lacking[0], sum(each.pods for each in lacking[1:])
    text = f"{ready} of {total} pods are ready; {count_text(first)}"
    if not others:
        return text
    causes = "another cause" if len(lacking) == 2 else f"{len(lacking) - 1} other causes"
    return f"{text}; {others} more {'waits' if others == 1 else 'wait'} for {causes}"


def count_text(count: PodCount) -> str:
    """Return a number of pods, their stage and their cause in words."""
    number, one = count.pods, count.pods == 1
    are, cause = ("is" if one else "are"), count.cause
    match count.stage:
        case Stage.NOT_CREATED:
            return f"{number} {are} not created: {cause}"
        case Stage.GATED:
            return f"{number} {are} held before the queue {cause.removeprefix(_BEFORE_QUEUE)}"
        case Stage.PENDING:
            return f"{number} {are} pending: {'it' if one else 'each'} {cause}"
        case Stage.PERMIT:
            wait = "waits" if one else "wait"
            return f"{number} {wait} at Permit {cause.removeprefix(_AT_PERMIT)}"
        case Stage.BINDING:
            return f"{number} {are} being bound"
        case _:
            return f"{number} {are} bound and not ready: {cause}"
