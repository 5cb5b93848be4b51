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
from moorage.framework.status import Status, error, unresolvable
from moorage.framework.what_if import RowTrial
from moorage.plugins.preemption.budgets import Budgets
from moorage.snapshot.importance import NOT_STARTED, start_ns
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot

NO_VICTIMS: Final = "No preemption victims found for incoming pod"


class VictimRules(Protocol):
    """Rules that decide which pods may be evicted for one preemptor."""

    def by_priority(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return bool, (rows,): rows where exactly the pods of lower priority may be evicted."""
        ...

    def dry_run(self, trial: RowTrial, row: int) -> Candidate | Status:
        """Find the victims on one row; return a status where the row is no candidate."""
        ...

    def nobody(self, node_name: str) -> Status:
        """Return the status of a node without evictable pods."""
        ...


class LowerPriority:
    """`VictimRules` of kube-scheduler: every pod of lower priority may be evicted.

    Parameters
    ----------
    snapshot, budgets
        The cluster, and the disruption budgets.
    pod
        The preemptor.
    now_ns
        Wall-clock time, nanoseconds.
    leaves
        Whether a pod is about to leave its node anyway.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        budgets: Budgets,
        pod: PodInfo,
        *,
        now_ns: int,
        leaves: Callable[[PodInfo], bool],
    ) -> None:
        self._snapshot = snapshot
        self._budgets = budgets
        self._pod = pod
        self._now_ns = now_ns
        self._leaves = leaves

    def by_priority(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return True for every row."""
        return np.ones(len(rows), np.bool_)

    def dry_run(self, trial: RowTrial, row: int) -> Candidate | Status:
        """Find the victims on one row."""
        pods = [pod for pod in self._snapshot.pods(row) if pod.priority < self._pod.priority]
        name = self._snapshot.names[row]
        if not pods:
            return self.nobody(name)
        order = put_back_order(pods, self._budgets, now_ns=self._now_ns, leaves=self._leaves)
        return dry_run(trial, pods, order, node_name=name, now_ns=self._now_ns)

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


class PutBackOrder(msgspec.Struct, frozen=True):
    """The order in which pods are put back on a node.

    Parameters
    ----------
    ranked
        The pods, most important first.
    pods
        The same pods: first those whose eviction violates a budget, last those that leave anyway.
        Upstream looks at budgets only, and evicts pods that stay in place of pods that leave.
    protected
        Uids of the pods whose eviction violates a budget.
    """

    ranked: Sequence[PodInfo]
    pods: Sequence[PodInfo]
    protected: frozenset[str]


def put_back_order(
    pods: Iterable[PodInfo],
    budgets: Budgets,
    *,
    now_ns: int,
    leaves: Callable[[PodInfo], bool],
) -> PutBackOrder:
    """Return the order in which the pods of a node, in the node's order, are put back."""
    ranked = by_importance(pods, now_ns)
    violating, others = budgets.split(ranked)
    order = sorted([*violating, *others], key=leaves)
    return PutBackOrder(ranked, order, frozenset(pod.uid for pod in violating))


def dry_run(
    row: RowTrial,
    pods: Sequence[PodInfo],
    order: PutBackOrder,
    *,
    node_name: str,
    now_ns: int,
) -> Candidate | Status:
    """Find the pods a preemptor would evict from one node.

    Parameters
    ----------
    row
        The trial of the node.
    pods
        Pods of the node that may be evicted, at least one, in the node's order.
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
    for pod in pods:
        status = row.take_off(pod)
        if not status.ok:
            return status
    status = row.judge()
    if not status.ok:
        return status
    victims: list[PodInfo] = []
    for pod in order.pods:
        status = _reprieved(row, pod)
        if status.rejected:
            victims.append(pod)
        elif not status.ok:
            return status
    if not victims:
        return error(f'expected at least one victim pod on node "{node_name}"')
    violations = sum(pod.uid in order.protected for pod in victims)
    if 0 < len(order.protected) < len(order.ranked):
        victims = by_importance(victims, now_ns)
    else:
        evicted = {pod.uid for pod in victims}
        victims = [pod for pod in order.ranked if pod.uid in evicted]
    return Candidate(node_name, tuple(victims), violations)


def _reprieved(row: RowTrial, pod: PodInfo) -> Status:
    """Put a pod back if the preemptor still fits; return the status of the Filters."""
    status = row.put_on(pod)
    if not status.ok:
        return status if not status.rejected else error(status.message)
    status = row.judge()
    if status.ok:
        return status
    undone = row.take_off(pod)
    return status if undone.ok else undone
