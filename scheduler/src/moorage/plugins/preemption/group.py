"""Preemption for a pod group: the search for victims, in units, over the whole cluster.

Part of DefaultPreemption, used where the gate WorkloadAwarePreemption is on. A unit is a pod, or
all pods of a group that is disrupted only as a whole. The pods of a unit are evicted together.

Rules mirrored: kubernetes v1.36 ``pkg/scheduler/framework/preemption/podgrouppreemption.go``, and
v1.37 the same with ``manager.go`` and ``util.go``; scheduling spec, preemption section 8.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

import msgspec

from moorage.api.policy import PodDisruptionBudget
from moorage.framework.group import GroupWhatIf
from moorage.framework.status import SUCCESS, Status, unresolvable, unschedulable
from moorage.plugins.preemption.budgets import Budgets
from moorage.plugins.preemption.victims import Unit, started_ns
from moorage.snapshot.listers import Lister
from moorage.snapshot.pod_groups import GroupKey, PodGroups
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot

NO_VICTIMS: Final = "No preemption victims found for incoming preemptor"


class UnitRules(msgspec.Struct, frozen=True):
    """How pods on nodes form units, and which unit is more important, in one version.

    Parameters
    ----------
    groups
        The groups of the pods.
    of_1_37
        Whether the rules are those of 1.37. There the priority of a group counts for members that
        are evicted one by one, too, and the earliest start of all pods of a unit counts.
    """

    groups: PodGroups
    of_1_37: bool

    def units_of(self, pods: Iterable[PodInfo]) -> list[Unit]:
        """Return pods as units with priorities; a unit stands where its first pod stands."""
        units: list[Unit] = []
        whole: dict[GroupKey, list[PodInfo]] = {}
        places: dict[GroupKey, int] = {}
        for pod in pods:
            key = self.groups.key_of(pod.pod)
            terms = None if key is None else self.groups.source.terms_of(key)
            if key is not None and terms is not None and terms.evicted_whole:
                if key not in whole:
                    whole[key], places[key] = [], len(units)
                    units.append(Unit((), key, whole=True, priority=terms.priority))
                whole[key].append(pod)
            else:
                units.append(Unit((pod,), key, priority=self.priority_of(pod)))
        for key, at in places.items():
            units[at] = msgspec.structs.replace(units[at], pods=tuple(whole[key]))
        return units

    def priority_of(self, pod: PodInfo) -> int:
        """Return the priority of a pod as a victim."""
        key = self.groups.key_of(pod.pod) if self.of_1_37 else None
        terms = None if key is None or key.source else self.groups.source.terms_of(key)
        return pod.priority if terms is None else terms.priority

    def ranked(self, units: Sequence[Unit], now_ns: int) -> list[Unit]:
        """Sort units with priorities, the most important first; equal units keep their order.

        The start of a unit of 1.36 is the start of its first pod: upstream ignores the other pods.
        """

        def key(unit: Unit) -> tuple[int, bool, int, int, str]:
            starts = [started_ns(pod, now_ns) for pod in unit.pods]
            start = min(starts) if self.of_1_37 else starts[0]
            name = unit.pods[0].uid if self.of_1_37 and start != now_ns else ""
            grouped = unit.gang is not None
            return (-(unit.priority or 0), not grouped, -len(unit.pods) * grouped, start, name)

        return sorted(units, key=key)


class UnitBudgets(Budgets):
    """Disruption budgets that are used up by units instead of by pods."""

    def __init__(self, lister: Lister[PodDisruptionBudget], *, of_1_37: bool = False) -> None:
        super().__init__(lister, of_1_37=of_1_37)
        self._up_to_first = True

    def split_units(self, units: Sequence[Unit]) -> tuple[list[Unit], list[Unit]]:
        """Split units into budget violations and others; both lists keep the given order.

        In 1.36 a unit uses up no more budget after its first violation.
        """
        counts = self.violations_of(units)
        violating = [unit for unit, count in zip(units, counts, strict=True) if count]
        others = [unit for unit, count in zip(units, counts, strict=True) if not count]
        return violating, others

    def violations_of(self, units: Sequence[Unit]) -> list[int]:
        """Return how many pods of each unit break a budget."""
        spent: dict[int, int] = {}
        counts = []
        for unit in units:
            count = 0
            for pod in unit.pods:
                count += self._breaks(pod, spent)
                if count and not self.of_1_37:
                    break
            counts.append(count)
        return counts


class GroupVictims(msgspec.Struct, frozen=True):
    """The victims of a group.

    Parameters
    ----------
    pods
        The pods to evict, most important first.
    violations
        How many of them a PodDisruptionBudget protects.
    groups
        How many groups are evicted as a whole.
    """

    pods: tuple[PodInfo, ...] = ()
    violations: int = 0
    groups: int = 0


_NO_VICTIMS: Final = GroupVictims()


def find_victims(
    snapshot: Snapshot,
    budgets: UnitBudgets,
    what_if: GroupWhatIf,
    *,
    priority: int,
    now_ns: int,
    leaves: Callable[[PodInfo], bool],
) -> tuple[GroupVictims, Status]:
    """Return the victims of a group, or why eviction cannot help.

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
    rules = UnitRules(snapshot.groups, budgets.of_1_37)
    pods = (pod for row in snapshot.search_order().tolist() for pod in snapshot.pods(row))
    lower = [unit for unit in rules.units_of(pods) if (unit.priority or 0) < priority]
    if not lower:
        status = unschedulable(NO_VICTIMS) if rules.of_1_37 else unresolvable(NO_VICTIMS)
        return _NO_VICTIMS, status
    lower = rules.ranked(lower, now_ns)
    status = what_if.without({pod.uid for unit in lower for pod in unit.pods})
    if not status.ok:
        return _NO_VICTIMS, status
    counts = budgets.violations_of(lower)
    protected = {id(unit): count for unit, count in zip(lower, counts, strict=True) if count}
    # No pod is evicted in place of one that leaves anyway, so those may stay last.
    order = sorted(lower, key=lambda unit: (all(map(leaves, unit.pods)), id(unit) not in protected))
    kept = {id(unit) for unit in order if what_if.put_back(unit.pods)}
    chosen = [unit for unit in lower if id(unit) not in kept]
    victims = GroupVictims(
        pods=tuple(pod for unit in chosen for pod in unit.pods),
        violations=sum(protected.get(id(unit), 0) for unit in chosen),
        groups=sum(unit.whole for unit in chosen),
    )
    return victims, SUCCESS
