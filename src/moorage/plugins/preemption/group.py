"""Who would have to go from the whole cluster for a pod group to fit: the search by units.

Part of DefaultPreemption, used where the gate WorkloadAwarePreemption is on. A unit is what is
evicted together: a pod, or all pods of a group that wants to be disrupted as a whole.

Rules mirrored: kubernetes v1.36 ``pkg/scheduler/framework/preemption/podgrouppreemption.go``;
scheduling spec, preemption section 8.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
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
        In the order in which they were seen.
    priority
        Of the group, or of the one pod.
    grouped
        Whether it belongs to a group at all, alone or not.
    """

    pods: tuple[PodInfo, ...]
    priority: int
    grouped: bool


class UnitBudgets(Budgets):
    """Disruption budgets spent by unit rather than by pod."""

    def split_units(self, units: Sequence[Unit]) -> tuple[list[Unit], list[Unit]]:
        """Tell units that break a budget from the others, each in the given order.

        A unit stops spending at its first pod, and that at its first budget, that is broken.
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
    snapshot: Snapshot, budgets: UnitBudgets, what_if: GroupWhatIf, *, priority: int, now_ns: int
) -> tuple[list[PodInfo], Status]:
    """Return the pods to evict for a group, most important first; or why evicting is no help.

    Parameters
    ----------
    snapshot, budgets
        The cluster.
    what_if
        The group's attempt, to be tried again.
    priority
        Of the group.
    now_ns
        Wall-clock time, nanoseconds.
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
    kept = _reprieved([*violating, *others], gone, what_if)
    victims = [unit for unit in lower if id(unit) not in kept]
    return [pod for unit in victims for pod in unit.pods], SUCCESS


def _reprieved(units: Sequence[Unit], gone: set[str], what_if: GroupWhatIf) -> Collection[int]:
    """Return ids of the units that may stay, tried in this order; `gone` shrinks by them."""
    kept: set[int] = set()
    for unit in units:
        back = {pod.uid for pod in unit.pods}
        if what_if.without(gone - back).ok:
            gone -= back
            kept.add(id(unit))
    return kept


def units_of(snapshot: Snapshot) -> list[Unit]:
    """Return every pod on a node, in units, in the order in which nodes are looked at."""
    groups = snapshot.groups
    found: list[Unit | tuple[str, str, str]] = []
    whole: dict[tuple[str, str, str], list[PodInfo]] = {}
    priorities: dict[tuple[str, str, str], int] = {}
    for row in snapshot.search_order().tolist():
        for pod in snapshot.pods(row):
            key = groups.key_of(pod.pod)
            terms = None if key is None else groups.source.terms_of(key)
            if key is None or terms is None or not terms.evicted_whole:
                found.append(Unit((pod,), pod.priority, key is not None))
            elif key in whole:
                whole[key].append(pod)
            else:
                whole[key], priorities[key] = [pod], terms.priority
                found.append(key)
    return [
        each if isinstance(each, Unit) else Unit(tuple(whole[each]), priorities[each], True)
        for each in found
    ]


def _importance(unit: Unit, now_ns: int) -> tuple[int, int, int, int]:
    """Return a key that sorts the most important unit first; equals stay as they were seen.

    The start of a unit is that of the pod seen first: upstream does not look at the others.
    """
    size = len(unit.pods) if unit.grouped else 0
    return (-unit.priority, not unit.grouped, -size, started_ns(unit.pods[0], now_ns))
