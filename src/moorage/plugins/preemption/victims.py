"""Who would have to go from one node: the rules, a node at a time.

Part of DefaultPreemption, and how it tries nodes whose Filters look beyond the node or at more
than sums; `sums` does the same for many nodes at once. Plugins with a preemption of
their own say by `VictimRules` who may be evicted.

Rules mirrored: kubernetes v1.36 ``pkg/scheduler/framework/plugins/defaultpreemption``
``SelectVictimsOnNode`` and ``pkg/scheduler/util`` ``MoreImportantPod``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Protocol

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
    """Who may be evicted for one preemptor."""

    def by_priority(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return bool, (rows,): where it is the pods of lower priority and no others."""
        ...

    def dry_run(self, trial: RowTrial, row: int) -> Candidate | Status:
        """Find the pods that would go from one row; a status where it is no candidate."""
        ...

    def nobody(self, node_name: str) -> Status:
        """Return the status of a node on which nobody may be evicted."""
        ...


class LowerPriority:
    """`VictimRules` of kube-scheduler: every pod of lower priority may go.

    Parameters
    ----------
    snapshot, budgets
        The cluster, and the disruption budgets.
    pod
        The preemptor.
    now_ns
        Wall-clock time, nanoseconds.
    """

    def __init__(self, snapshot: Snapshot, budgets: Budgets, pod: PodInfo, now_ns: int) -> None:
        self._snapshot = snapshot
        self._budgets = budgets
        self._pod = pod
        self._now_ns = now_ns

    def by_priority(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Answer everywhere."""
        return np.ones(len(rows), np.bool_)

    def dry_run(self, trial: RowTrial, row: int) -> Candidate | Status:
        """Find the pods that would go from one row."""
        pods = [pod for pod in self._snapshot.pods(row) if pod.priority < self._pod.priority]
        name = self._snapshot.names[row]
        if not pods:
            return self.nobody(name)
        return dry_run(trial, pods, node_name=name, budgets=self._budgets, now_ns=self._now_ns)

    def nobody(self, node_name: str) -> Status:
        """Say so, without names: many nodes share the message."""
        del node_name
        return unresolvable(NO_VICTIMS)


def started_ns(pod: PodInfo, now_ns: int) -> int:
    """Return when a pod was started, nanoseconds; one not started yet counts as started now."""
    start = start_ns(pod)
    return now_ns if start == NOT_STARTED else start


def by_importance(pods: Iterable[PodInfo], now_ns: int) -> list[PodInfo]:
    """Sort most important first: greater priority, then earlier start, then as given.

    Pods not started come the other way round: upstream looks at the clock for each anew, so the
    one that is asked first seems to have started first.
    """
    started = [(pod, start_ns(pod)) for pod in pods]
    ranked = [
        (-pod.priority, now_ns, True, -index)
        if start == NOT_STARTED
        else (-pod.priority, start, False, index)
        for index, (pod, start) in enumerate(started)
    ]
    return [started[index][0] for index in sorted(range(len(started)), key=ranked.__getitem__)]


def dry_run(
    row: RowTrial,
    pods: Sequence[PodInfo],
    *,
    node_name: str,
    budgets: Budgets,
    now_ns: int,
) -> Candidate | Status:
    """Find the pods a preemptor would evict from one node.

    Parameters
    ----------
    row
        The node, to try things out on.
    pods
        Those of its pods that may go, at least one, in the node's order.
    node_name
        Its name.
    budgets
        The disruption budgets.
    now_ns
        Wall-clock time, nanoseconds.

    Returns
    -------
    Candidate or Status
        Why the node is none, where it is none.
    """
    for pod in pods:
        status = row.take_off(pod)
        if not status.ok:
            return status
    status = row.judge()
    if not status.ok:
        return status
    violating, others = budgets.split(by_importance(pods, now_ns))
    victims: list[PodInfo] = []
    for pod in [*violating, *others]:
        status = _reprieved(row, pod)
        if status.rejected:
            victims.append(pod)
        elif not status.ok:
            return status
    if not victims:
        return error(f'expected at least one victim pod on node "{node_name}"')
    protected = {pod.uid for pod in violating}
    violations = sum(pod.uid in protected for pod in victims)
    if violating and others:
        victims = by_importance(victims, now_ns)
    return Candidate(node_name, tuple(victims), violations)


def _reprieved(row: RowTrial, pod: PodInfo) -> Status:
    """Put a pod back if the preemptor still fits beside it; the status says whether it does."""
    status = row.put_on(pod)
    if not status.ok:
        return status if not status.rejected else error(status.message)
    status = row.judge()
    if status.ok:
        return status
    undone = row.take_off(pod)
    return status if undone.ok else undone
