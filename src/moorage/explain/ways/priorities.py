"""Ways out by preemption: the priority with which the profile's preemption finds victims.

The profile's PostFilter plugins choose the victims, over the nodes that lack least. In the cluster
they see every node, so they may choose another one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec
import numpy as np

from moorage.api.patch_operations import put
from moorage.api.pod import Pod
from moorage.engine.cycle import Cycle
from moorage.engine.search import Search
from moorage.engine.select_node import smallest_name
from moorage.explain.answer import WayOut
from moorage.explain.patches import patched
from moorage.explain.trying import Trying
from moorage.explain.ways.found import PRIORITY, Found
from moorage.explain.ways.leaving import lacking_least

HIGHEST: Final = 1_000_000_000
"""The highest priority of a PriorityClass that users may make."""
_NODES_MOST: Final = 16
_VICTIMS_NAMED: Final = 5
_PER_VICTIM: Final = 0.1


class Preempted(msgspec.Struct, frozen=True):
    """The choice of preemption for a pod: a node, and the pods to evict."""

    node: str
    victims: tuple[Pod, ...]


def preempt(trying: Trying, pod: Pod) -> Preempted | None:
    """Run the profile's PostFilter for a pod that fits nowhere; None where it finds no victims."""
    profile, snapshot = trying.asked.attempt.profile, trying.asked.snapshot
    if not profile.post_filters or trying.asked.pre_filter.status.rejected:
        return None
    rows = lacking_least(trying)[:_NODES_MOST]
    if not any(other.priority < pod.priority for row in rows for other in snapshot.pods(int(row))):
        return None
    found = trying.search(pod)
    if found is None or found.filtered.passed.any():
        return None
    result = Cycle(profile, snapshot, smallest_name, reuse=False).post_filter(_within(found, rows))
    chosen = result.result
    if chosen is None or not chosen.nominated_node or not chosen.victims:
        return None
    return Preempted(chosen.nominated_node, chosen.victims)


def _within(search: Search, rows: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Search:
    """Return a search in which the other rows were not looked at."""
    there = np.isin(search.view.row_numbers(), rows)
    view = search.answers.attempt.snapshot.rows(search.view.row_numbers()[there])
    return msgspec.structs.replace(
        search, view=view, filtered=search.filtered.at(np.flatnonzero(there))
    )


def priorities(trying: Trying) -> Iterator[Found]:
    """Yield the lowest priority found with which the pod would preempt, and its victims."""
    pod = trying.pod
    if pod.spec.preemption_policy == "Never":
        return
    highest = preempt(trying, _with(pod, HIGHEST))
    if highest is None:
        return
    needed = max(victim.priority for victim in highest.victims) + 1
    if not pod.priority < needed < HIGHEST:
        return
    found = preempt(trying, _with(pod, needed))
    if found is not None:
        yield _told(trying, needed, found)


def _with(pod: Pod, priority: int) -> Pod:
    return patched(pod, [put("/spec/priority", priority)])


def _told(trying: Trying, needed: int, found: Preempted) -> Found:
    victims = [victim.full_name for victim in found.victims]
    named = ", ".join(victims[:_VICTIMS_NAMED])
    more = f" and {len(victims) - _VICTIMS_NAMED} more" if len(victims) > _VICTIMS_NAMED else ""
    classes = sorted(
        (each.value, each.name)
        for each in trying.asked.snapshot.listers.priority_classes.all()
        if needed <= each.value <= HIGHEST  # above are those of the system
    )
    has = ", which no PriorityClass has"
    if classes:
        has = f", as PriorityClass {classes[0][1]} has ({classes[0][0]})"
    text = f"a priority of {needed} or more{has}: it would evict {named}{more} from {found.node}"
    way = WayOut(
        kind="priority",
        text=text,
        nodes=1,
        node=found.node,
        patch=(put("/spec/priority", needed),),
        evicted=tuple(victims),
    )
    return Found(PRIORITY + min(1.0, _PER_VICTIM * len(victims)), way)
