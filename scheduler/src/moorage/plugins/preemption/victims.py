"""Victims on one node.

Part of DefaultPreemption, for nodes with Filters that depend on other nodes or on more than sums.
`sums` does the same for many nodes at once. Other preemption plugins state in `VictimRules` which
pods may be evicted.

Rules mirrored: kubernetes v1.36 ``pkg/scheduler/framework/plugins/defaultpreemption``
``SelectVictimsOnNode`` and ``pkg/scheduler/util`` ``MoreImportantPod``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from moorage.framework.preemption import Candidate
from moorage.framework.status import SUCCESS, Code, Status, error, unresolvable
from moorage.framework.what_if import RowTrial
from moorage.plugins.preemption.budgets import Budgets
from moorage.plugins.preemption.sums import Mask, WithinRules
from moorage.snapshot.importance import NOT_STARTED, RankedPods, start_ns
from moorage.snapshot.pod_groups import GroupKey
from moorage.snapshot.pod_info import PodInfo

NO_VICTIMS: Final = "No preemption victims found for incoming pod"


class Unit(msgspec.Struct, frozen=True):
    """Pods that are evicted together, or not at all.

    Parameters
    ----------
    pods
        One pod, or all staying members of a gang but those that go singly; members on other nodes
        are included.
    gang
        The gang of the pods; None for a pod on its own.
    whole
        Whether the rest of the gang cannot stay either.
    priority
        Its priority where that of the group counts; None for that of its most important pod.
    """

    pods: tuple[PodInfo, ...]
    gang: GroupKey | None = None
    whole: bool = False
    priority: int | None = None


class ColumnRules(Protocol):
    """Rules about victims on many rows at once, which agree with `VictimRules` row by row."""

    def allowed(self, ranked: RankedPods, number_of: Callable[[str], int | None]) -> Mask:
        """Return bool, (rows, ranks): the pods that may be evicted together, `within_bounds` too.

        Parameters
        ----------
        ranked
            The pods of the rows, with namespaces.
        number_of
            The number of a namespace there.
        """
        ...

    def within(self) -> WithinRules:
        """Return the rules that must hold on the rows, as `trial_of` does."""
        ...


class VictimRules(Protocol):
    """Rules that decide which pods may be evicted for one preemptor."""

    def by_priority(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return bool, (rows,): rows where exactly the pods of lower priority may be evicted."""
        ...

    @property
    def in_columns(self) -> ColumnRules | None:
        """The rules for many rows at once; None where they are known pod by pod alone."""
        ...

    def allows(self, pod: PodInfo) -> bool | Status:
        """Whether a pod may be evicted; a status where the rules cannot tell."""
        ...

    def within_bounds(self, units: Sequence[Unit]) -> Sequence[Unit]:
        """Return the units that may be evicted together, of allowed units of one row."""
        ...

    def trial_of(self, trial: RowTrial) -> RowTrial:
        """Return the trial of a row, which passes only where the rules hold, too."""
        ...

    def nobody(self, node_name: str) -> Status:
        """Return the status of a node without evictable pods."""
        ...


class LowerPriority:
    """`VictimRules` of kube-scheduler: every pod of lower priority may be evicted.

    Parameters
    ----------
    pod
        The preemptor.
    """

    def __init__(self, pod: PodInfo) -> None:
        self._priority = pod.priority

    @property
    def in_columns(self) -> None:
        """None: rows where the priority decides need no rules."""

    def by_priority(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return True for every row."""
        return np.ones(len(rows), np.bool_)

    def allows(self, pod: PodInfo) -> bool | Status:
        """Whether a pod has a lower priority."""
        return pod.priority < self._priority

    def within_bounds(self, units: Sequence[Unit]) -> Sequence[Unit]:
        """Return all units."""
        return units

    def trial_of(self, trial: RowTrial) -> RowTrial:
        """Return the trial itself."""
        return trial

    def nobody(self, node_name: str) -> Status:
        """Return a status without names, so that many nodes share the message."""
        del node_name
        return unresolvable(NO_VICTIMS)


def started_ns(pod: PodInfo, now_ns: int) -> int:
    """Return the start of a pod, nanoseconds; `now_ns` when the pod has not started."""
    start = start_ns(pod)
    return now_ns if start == NOT_STARTED else start


def by_importance(pods: Iterable[PodInfo], now_ns: int) -> list[PodInfo]:
    """Sort the most important pod first: greater priority, then earlier start, then given order.

    Pods that have not started are in reverse order. Upstream reads the clock for each pod, so the
    pod compared first seems to have the earliest start.
    """
    started = [(pod, start_ns(pod)) for pod in pods]
    ranked = [
        (-pod.priority, now_ns, True, -index)
        if start == NOT_STARTED
        else (-pod.priority, start, False, index)
        for index, (pod, start) in enumerate(started)
    ]
    return [started[index][0] for index in sorted(range(len(started)), key=ranked.__getitem__)]


class NotedTrial:
    """`RowTrial` that notes whether only nominated pods were missing at any time.

    Parameters
    ----------
    trial
        The trial.

    Attributes
    ----------
    awaited_by
        The plugin that said that the row takes the pod once nominated pods are placed; "" if none.
    """

    __slots__ = ("_trial", "awaited_by")

    def __init__(self, trial: RowTrial) -> None:
        self._trial = trial
        self.awaited_by = ""

    def take_off(self, other: PodInfo) -> Status:
        """Take a pod off its row."""
        return self._trial.take_off(other)

    def put_on(self, other: PodInfo) -> Status:
        """Put a pod back that was taken off."""
        return self._trial.put_on(other)

    def judge(self) -> Status:
        """Run every Filter on the row as it is now."""
        status = self._trial.judge()
        if status.code is Code.PENDING:
            self.awaited_by = status.plugin
        return status


class PutBackOrder(msgspec.Struct, frozen=True):
    """The order in which units are put back on a node.

    Parameters
    ----------
    ranked
        The units, most important first.
    units
        The same units: first those whose eviction violates a budget, last those that leave anyway.
        Upstream looks at budgets only, and evicts pods that stay in place of pods that leave.
    protected
        Uids of the pods whose eviction violates a budget, without those that leave anyway.
    """

    ranked: Sequence[Unit]
    units: Sequence[Unit]
    protected: frozenset[str]

    @property
    def pods(self) -> list[PodInfo]:
        """The pods of all units, most important unit first."""
        return [pod for unit in self.ranked for pod in unit.pods]


def put_back_order(
    ranked: Sequence[Unit],
    budgets: Budgets,
    *,
    leaves: Callable[[PodInfo], bool],
) -> PutBackOrder:
    """Return the order in which units of a node, the most important first, are put back."""
    violating, _ = budgets.split([pod for unit in ranked for pod in unit.pods])
    protected = frozenset(pod.uid for pod in violating if not leaves(pod))
    order = sorted(
        ranked,
        key=lambda unit: (
            all(map(leaves, unit.pods)),
            not any(pod.uid in protected for pod in unit.pods),
        ),
    )
    return PutBackOrder(ranked, order, protected)


def ranked_units(units: Sequence[Unit], now_ns: int) -> list[Unit]:
    """Sort the most important unit first.

    A unit has the priority of its most important pod. Among equal priorities a gang comes before
    pods on their own, and a larger gang before a smaller one, so that fewer pods go.
    """
    pods = by_importance([pod for unit in units for pod in unit.pods], now_ns)
    ranks = {pod.uid: rank for rank, pod in enumerate(pods)}

    def key(unit: Unit) -> tuple[int, bool, int, int]:
        first = min(unit.pods, key=lambda pod: ranks[pod.uid])
        size = len(unit.pods) if unit.whole else 0
        return -first.priority, not unit.whole, -size, ranks[first.uid]

    return sorted(units, key=key)


def dry_run(
    row: RowTrial, units: Sequence[Unit], order: PutBackOrder, *, node_name: str, now_ns: int
) -> Candidate | Status:
    """Find the pods a preemptor would evict from one node, and the rest of their gangs.

    Parameters
    ----------
    row
        The trial of the node.
    units
        Units of the node that may be evicted, at least one, in the node's order.
    order
        The order in which they are put back.
    node_name
        Name of the node.
    now_ns
        Wall-clock time, nanoseconds.

    Returns
    -------
    Candidate or Status
        The candidate, or the status of a node that is no candidate.
    """
    status = _without(row, [pod for unit in units for pod in unit.pods])
    if status.ok:
        status = row.judge()
    if not status.ok:
        return status
    evicted: list[Unit] = []
    gangs: set[GroupKey | None] = set()
    for unit in order.units:
        if unit.gang is None or unit.gang not in gangs:
            status = _reprieved(row, unit)
            if status.ok:
                continue
            if not status.rejected:
                return status
        evicted.append(unit)
        if unit.whole:
            gangs.add(unit.gang)
    if not evicted:
        return error(f'expected at least one victim pod on node "{node_name}"')
    return _candidate(evicted, order, node_name=node_name, now_ns=now_ns)


def _candidate(
    evicted: Sequence[Unit], order: PutBackOrder, *, node_name: str, now_ns: int
) -> Candidate:
    victims = [pod for unit in evicted for pod in unit.pods]
    violations = sum(pod.uid in order.protected for pod in victims)
    ranked = order.pods
    if 0 < len(order.protected) < len(ranked) or any(unit.whole for unit in evicted):
        victims = by_importance(victims, now_ns)
    else:
        uids = {pod.uid for pod in victims}
        victims = [pod for pod in ranked if pod.uid in uids]
    return Candidate(node_name, tuple(victims), violations)


def _without(row: RowTrial, pods: Iterable[PodInfo]) -> Status:
    """Take pods off, up to the first that cannot be; return the last status."""
    status = SUCCESS
    for pod in pods:
        status = row.take_off(pod)
        if not status.ok:
            break
    return status


def _reprieved(row: RowTrial, unit: Unit) -> Status:
    """Put a unit back if the preemptor still fits; return the status of the Filters."""
    for pod in unit.pods:
        status = row.put_on(pod)
        if not status.ok:
            return status if not status.rejected else error(status.message)
    status = row.judge()
    if status.ok:
        return status
    undone = _without(row, unit.pods)
    return status if undone.ok else undone
