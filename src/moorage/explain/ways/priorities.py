"""Ways out by preemption: the priority with which the profile's preemption finds victims."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from moorage.api.pod import Pod
from moorage.engine.cycle import Cycle
from moorage.engine.search import Search
from moorage.engine.select_node import smallest_name
from moorage.explain.answer import WayOut
from moorage.explain.patches import patched, put
from moorage.explain.trying import Trying
from moorage.explain.ways.found import PRIORITY, Found
from moorage.framework.preemption import EXPLAIN, PREEMPTION, PreemptionReport

HIGHEST: Final = 1_000_000_000
"""The highest priority of a PriorityClass that users may make."""
_VICTIMS_NAMED: Final = 5
_PER_VICTIM: Final = 0.1


class Preempted(msgspec.Struct, frozen=True):
    """What preemption chose for a pod: a node, the pods it evicts, and its report."""

    node: str
    victims: tuple[Pod, ...]
    report: PreemptionReport | None


def preempt(trying: Trying, pod: Pod, search: Search | None = None) -> Preempted | None:
    """Run the profile's PostFilter for a pod that fits nowhere; None where it finds no victims.

    Parameters
    ----------
    trying
        The cluster.
    pod
        The pod.
    search
        The failed search; made when not given.
    """
    profile, snapshot = trying.asked.attempt.profile, trying.asked.snapshot
    if not profile.post_filters:
        return None
    found = trying.search(pod) if search is None else search
    if found is None or found.filtered.passed.any():
        return None
    cycle = Cycle(profile, snapshot, smallest_name, reuse=False)
    attempt = found.answers.attempt
    attempt.state.write(EXPLAIN, True)
    result = cycle.post_filter(found).result
    if result is None or not result.nominated_node or not result.victims:
        return None
    return Preempted(result.nominated_node, result.victims, attempt.state.find(PREEMPTION))


def priorities(trying: Trying) -> Iterator[Found]:
    """Yield the lowest priority found with which the pod would preempt, and its victims."""
    pod = trying.pod
    if pod.spec.preemption_policy == "Never" or preempt(trying, pod) is not None:
        return
    highest = preempt(trying, _with(pod, HIGHEST))
    if highest is None or highest.report is None:
        return
    needed = min(
        max(victim.priority for victim in each.victims) + 1 for each in highest.report.candidates
    )
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
        if each.value >= needed
    )
    has = f", as PriorityClass {classes[0][1]} has ({classes[0][0]})" if classes else ""
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
