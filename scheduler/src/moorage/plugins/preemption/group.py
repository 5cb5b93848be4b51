"""Preemption for a pod group: the search for victims, in units, over the whole cluster.

Part of DefaultPreemption, used where the gate WorkloadAwarePreemption is on. A unit is a pod, or
all pods of a group that is disrupted only as a whole. The pods of a unit are evicted together.

Rules mirrored: kubernetes v1.36 ``pkg/scheduler/framework/preemption/podgrouppreemption.go``;
scheduling spec, preemption section 8.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Final

import msgspec

from moorage.framework.group import GroupWhatIf
from moorage.framework.status import SUCCESS, Status, unresolvable
from moorage.plugins.preemption.budgets import Budgets
from moorage.plugins.preemption.victims import started_ns
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot

NO_VICTIMS: Final = "No preemption victims found for incoming preemptor"


class Unit(msgspec.Struct, frozen=True):
    """Pods that are evicted together.

    Parameters
    ----------
    pods
        The pods, in the order in which they were found.
    priority
        Priority of the group, or of the single pod.
    grouped
        Whether the pods belong to a group, even if the unit is a single pod.
    """

    pods: tuple[PodInfo, ...]
    priority: int
    grouped: bool


class UnitBudgets(Budgets):
    """Disruption budgets that are used up by units instead of by pods."""

    def split_units(self, units: Sequence[Unit]) -> tuple[list[Unit], list[Unit]]:
        """Split units into budget violations and others; both lists keep the given order.

        A unit uses up no more budget after its first violation.
        """
        spent: dict[int, int] = {}
        violating: list[Unit] = []
        others: list[Unit] = []
        for unit in units:
            broken = any(self._breaks(pod, spent) for pod in unit.pods)
            (violating if broken else others).append(unit)
        return violating, others

    def _breaks(self, pod: PodInfo, spent: dict[int, int]) -> bool:
        for budget in self._matching(pod):
            spent[budget.index] = spent.get(budget.index, 0) + 1
            if spent[budget.index] > budget.allowed:
                return True
        return False


def find_victims(
    snapshot: Snapshot,
    budgets: UnitBudgets,
    what_if: GroupWhatIf,
    *,
    priority: int,
    now_ns: int,
    leaves: Callable[[PodInfo], bool],
) -> tuple[list[PodInfo], Status]:
    """Return the pods to evict for a group, most important first; or why eviction cannot help.

    Parameters
    ----------
    snapshot, budgets
        The cluster.
    what_if
        The failed attempt of the group, to be repeated in trials.
    priority
        Priority of the group.
    now_ns
        Wall-clock time, nanoseconds.
    leaves
        Whether a pod is about to leave its node anyway.
    """
    lower = [unit for unit in units_of(snapshot) if unit.priority < priority]
    if not lower:
        return [], unresolvable(NO_VICTIMS)
    lower.sort(key=lambda unit: _importance(unit, now_ns))
    gone = {pod.uid for unit in lower for pod in unit.pods}
    status = what_if.without(gone)
    if not status.ok:
        return [], status
    violating, others = budgets.split_units(lower)
    # No pod is evicted in place of one that leaves anyway, so those may stay last.
    order = sorted([*violating, *others], key=lambda unit: all(map(leaves, unit.pods)))
    kept = _reprieved(order, gone, what_if)
    victims = [unit for unit in lower if id(unit) not in kept]
    return [pod for unit in victims for pod in unit.pods], SUCCESS


def _reprieved(units: Sequence[Unit], gone: set[str], what_if: GroupWhatIf) -> Collection[int]:
    """Return ids of the units that can stay, tried in this order; remove them from `gone`."""
    reprieved: set[int] = set()
    for unit in units:
        back = {pod.uid for pod in unit.pods}
        if what_if.without(gone - back).ok:
            gone -= back
            reprieved.add(id(unit))
    return reprieved


def units_of(snapshot: Snapshot) -> list[Unit]:
    """Return all pods on nodes as units, in the order of the nodes."""
    groups = snapshot.groups
    units: list[Unit | tuple[str, str, str]] = []
    whole: dict[tuple[str, str, str], list[PodInfo]] = {}
    priorities: dict[tuple[str, str, str], int] = {}
    for row in snapshot.search_order().tolist():
        for pod in snapshot.pods(row):
            key = groups.key_of(pod.pod)
            terms = None if key is None else groups.source.terms_of(key)
            if key is None or terms is None or not terms.evicted_whole:
                units.append(Unit((pod,), pod.priority, key is not None))
            elif key in whole:
                whole[key].append(pod)
            else:
                whole[key], priorities[key] = [pod], terms.priority
                units.append(key)
    return [
        each if isinstance(each, Unit) else Unit(tuple(whole[each]), priorities[each], True)
        for each in units
    ]


def _importance(unit: Unit, now_ns: int) -> tuple[int, int, int, int]:
    """Return a sort key: the most important unit sorts first, equal units keep their order.

    The start of a unit is the start of its first pod: upstream ignores the other pods.
    """
    size = len(unit.pods) if unit.grouped else 0
    return (-unit.priority, not unit.grouped, -size, started_ns(unit.pods[0], now_ns))
