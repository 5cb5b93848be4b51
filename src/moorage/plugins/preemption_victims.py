"""Who would have to go from one node: the rules, a node at a time.

Part of DefaultPreemption, and how it tries nodes whose Filters look beyond the node or at more
than sums; `preemption_sums` does the same for many nodes at once.

Rules mirrored: kubernetes v1.36 ``pkg/scheduler/framework/plugins/defaultpreemption``
``SelectVictimsOnNode`` and ``pkg/scheduler/util`` ``MoreImportantPod``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from moorage.framework.preemption import Candidate
from moorage.framework.status import Status, error, unresolvable
from moorage.framework.what_if import RowTrial
from moorage.plugins.preemption_budgets import Budgets
from moorage.snapshot.importance import NOT_STARTED, start_ns
from moorage.snapshot.pod_info import PodInfo

NO_VICTIMS: Final = "No preemption victims found for incoming pod"


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
        Its pods of lower priority than the preemptor, in the node's order.
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
    if not pods:
        return unresolvable(NO_VICTIMS)
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
