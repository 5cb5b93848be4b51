"""All ways out of a pod, the smallest first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final

from moorage.api.pod import Pod
from moorage.explain.answer import WayOut
from moorage.explain.groups import Together
from moorage.explain.patches import patched
from moorage.explain.trying import Trying
from moorage.explain.ways.found import Found
from moorage.explain.ways.holders import users_of_data, users_of_devices
from moorage.explain.ways.leaving import leaving_pods
from moorage.explain.ways.nodes import more_nodes, uncordoned
from moorage.explain.ways.offered import offered
from moorage.explain.ways.parts import relaxations, tolerations
from moorage.explain.ways.priorities import priorities
from moorage.explain.ways.requests import smaller_requests

WAYS_MOST: Final = 5
_KIND_MOST: Final = 2

_KINDS: Final[tuple[Callable[[Trying], Iterator[Found]], ...]] = (
    smaller_requests,
    offered,
    tolerations,
    relaxations,
    uncordoned,
    users_of_data,
    users_of_devices,
    leaving_pods,
    priorities,
    more_nodes,
)


def find_ways(trying: Trying, *, preempts: bool) -> tuple[WayOut, ...]:
    """Return at most five single changes that let the pod fit, at most two of a kind.

    Parameters
    ----------
    trying
        The pod and the cluster.
    preempts
        Whether the pod preempts at its own priority, so that no other priority is sought.
    """
    kinds = [kind for kind in _KINDS if not (preempts and kind is priorities)]
    found = [each for kind in kinds for each in kind(trying)]
    if trying.group is not None:
        found = [each for each in found if _group_fits(trying.group, trying.pod, each)]
    found.sort(key=lambda each: (each.size, -each.way.nodes, each.way.text))
    chosen: list[WayOut] = []
    numbers: Counter[str] = Counter()
    leaving: set[str] = set()  # a pod may be found twice, for itself and for what it has
    for each in found:
        if each.way.delete in leaving:
            continue
        if numbers[each.way.kind] < _KIND_MOST and len(chosen) < WAYS_MOST:
            numbers[each.way.kind] += 1
            chosen.append(each.way)
            leaving |= {each.way.delete} - {""}
    return tuple(chosen)


def _group_fits(group: Together, pod: Pod, found: Found) -> bool:
    """Whether the pod's group is placed too; changes of other objects are not told for groups."""
    patch = found.way.patch
    if not patch or found.way.evicted:
        return False
    return group.fits(changed=patched(pod, patch))
