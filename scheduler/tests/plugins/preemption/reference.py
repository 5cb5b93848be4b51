"""Preemption where only cpu, memory and the number of pods count, straight from the spec.

Nothing of the engine is used: a node is its room and a list of pods.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf


@dataclass
class Resident:
    """A pod on a node, or nominated to it."""

    name: str
    priority: int
    cpu: int
    memory: int
    started: int | None
    labels: Mapping[str, str] = field(default_factory=dict)
    leaves: bool = False


@dataclass
class Budget:
    """A budget with one label to select by."""

    label: str
    allowed: int
    disrupted: Sequence[str] = ()


@dataclass
class Room:
    """A node."""

    name: str
    cpu: int
    memory: int
    pods: int
    residents: list[Resident]
    nominated: list[Resident] = field(default_factory=list)


def fits(pod: Resident, node: Room, residents: Sequence[Resident]) -> bool:
    """Twice: beside nominated pods of equal or higher priority, and without them."""
    first = [other for other in node.nominated if other.priority >= pod.priority]
    return _fits(pod, node, [*residents, *first]) and _fits(pod, node, residents)


def _fits(pod: Resident, node: Room, residents: Sequence[Resident]) -> bool:
    cpu = sum(each.cpu for each in residents)
    memory = sum(each.memory for each in residents)
    return (
        len(residents) + 1 <= node.pods
        and (pod.cpu == 0 or cpu + pod.cpu <= node.cpu)
        and (pod.memory == 0 or memory + pod.memory <= node.memory)
    )


def start(pod: Resident, now: int) -> int:
    return now if pod.started is None else pod.started


def by_importance(pods: Sequence[Resident], now: int) -> list[Resident]:
    """Sort by insertion, as Go sorts few: a pod not started starts when it is asked, so the one
    asked first seems to have started before the other."""

    def before(one: Resident, other: Resident) -> bool:
        if one.priority != other.priority:
            return one.priority > other.priority
        if one.started is None:
            return other.started is None or now < other.started
        return one.started <= now if other.started is None else one.started < other.started

    ordered: list[Resident] = []
    for pod in pods:
        at = len(ordered)
        while at and before(pod, ordered[at - 1]):
            at -= 1
        ordered.insert(at, pod)
    return ordered


def victims(
    pod: Resident, node: Room, budgets: Sequence[Budget], now: int
) -> tuple[list[Resident], int] | str:
    """Return the victims, most important first, and how many are protected; or why none."""
    lower = [each for each in node.residents if each.priority < pod.priority]
    if not lower:
        return "No preemption victims found for incoming pod"
    staying = [each for each in node.residents if each.priority >= pod.priority]
    if not fits(pod, node, staying):
        return "does not fit"
    left = [budget.allowed for budget in budgets]
    violating: list[Resident] = []
    others: list[Resident] = []
    ranked = by_importance(lower, now)
    for each in ranked:
        broken = False
        for index, budget in enumerate(budgets):
            if budget.label in each.labels and each.name not in budget.disrupted:
                left[index] -= 1
                broken = broken or left[index] < 0
        (violating if broken and not each.leaves else others).append(each)
    gone: list[Resident] = []
    # Unlike upstream: no pod is evicted in place of a pod that leaves anyway.
    for each in sorted([*violating, *others], key=lambda each: each.leaves):
        if fits(pod, node, [*staying, each]):
            staying.append(each)
        else:
            gone.append(each)
    count = sum(each in violating for each in gone)
    if violating and others:
        return by_importance(gone, now), count
    return [each for each in ranked if each in gone], count


def choose(candidates: Mapping[str, tuple[list[Resident], int]], now: int) -> list[str]:
    """Return the names of the nodes that lose least, sorted.

    Unlike upstream, a pod that leaves anyway costs nothing.
    """

    def cost(name: str) -> tuple[float, ...]:
        gone, count = candidates[name]
        staying = [each for each in gone if not each.leaves]
        if not staying:
            return (count, -inf, 0, 0, len(gone), -now)
        total = sum(each.priority + 2**31 for each in staying)
        top = staying[0].priority
        earliest = min(start(each, now) for each in staying if each.priority == top)
        return (count, top, total, len(staying), len(gone), -earliest)

    least = min(map(cost, candidates))
    return sorted(name for name in candidates if cost(name) == least)


def take(
    ties: Sequence[str], candidates: Mapping[str, tuple[list[Resident], int]], now: int
) -> str:
    """Return the first by name; the last where nobody who counts has started.

    Asked in this order, each later one seems to have started later.
    """
    gone = [each for each in candidates[ties[0]][0] if not each.leaves]
    if not gone:
        return ties[-1]
    started = [each.started for each in gone if each.priority == gone[0].priority]
    early = any(each is not None and each <= now for each in started)
    return ties[-1] if None in started and not early else ties[0]


def search(
    found: Sequence[tuple[str, tuple[list[Resident], int] | str]], wanted: int
) -> dict[str, tuple[list[Resident], int]]:
    """Return the candidates among nodes tried in this order, as far as they are tried."""
    clean: dict[str, tuple[list[Resident], int]] = {}
    broken: dict[str, tuple[list[Resident], int]] = {}
    for name, outcome in found:
        if not isinstance(outcome, str):
            into = broken if outcome[1] else clean
            if len(into) < wanted:
                into[name] = outcome
        if clean and len(clean) + len(broken) >= wanted:
            break
    return {**clean, **broken}
