"""Who would have to go from one node, and which node loses least: the rules, a node at a time.

Part of DefaultPreemption: `dry_run` tries a node out, `best` chooses among candidates.

Rules mirrored: kubernetes v1.36 ``pkg/scheduler/framework/plugins/defaultpreemption``
``SelectVictimsOnNode``, ``pkg/scheduler/framework/preemption`` ``pickOneNodeForPreemption``, and
``pkg/scheduler/util`` ``MoreImportantPod``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Final

from moorage.base.clock import parse_rfc3339
from moorage.framework.preemption import Candidate
from moorage.framework.status import Status, error, unresolvable
from moorage.framework.what_if import RowTrial
from moorage.plugins.preemption_budgets import Budgets
from moorage.snapshot.pod_info import PodInfo

NO_VICTIMS: Final = "No preemption victims found for incoming pod"

# Makes every priority positive, so that more victims never cost less.
_PRIORITY_SHIFT: Final = 2**31


@lru_cache(maxsize=65536)
def _parsed(text: str) -> int:
    return parse_rfc3339(text)


def start_ns(pod: PodInfo, now_ns: int) -> int:
    """Return when a pod was started, nanoseconds; one not started yet counts as started now."""
    text = pod.pod.status.start_time
    return now_ns if text is None else _parsed(text)


def by_importance(pods: Iterable[PodInfo], now_ns: int) -> list[PodInfo]:
    """Sort most important first: greater priority, then earlier start, then as given."""
    return sorted(pods, key=lambda pod: (-pod.priority, start_ns(pod, now_ns)))


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


def best(candidates: Sequence[Candidate], now_ns: int) -> list[Candidate]:
    """Return the candidates that cost least, equal under every criterion, by node name."""
    left = list(candidates)
    for cost in _costs(now_ns):
        if len(left) == 1:
            break
        costs = [cost(candidate) for candidate in left]
        least = min(costs)
        left = [each for each, price in zip(left, costs, strict=True) if price == least]
    return sorted(left, key=lambda candidate: candidate.node_name.encode())


def _costs(now_ns: int) -> tuple[Callable[[Candidate], int], ...]:
    return (
        lambda candidate: candidate.violations,
        lambda candidate: candidate.victims[0].priority,
        lambda candidate: sum(pod.priority + _PRIORITY_SHIFT for pod in candidate.victims),
        lambda candidate: len(candidate.victims),
        lambda candidate: -_earliest_start_ns(candidate, now_ns),
    )


def _earliest_start_ns(candidate: Candidate, now_ns: int) -> int:
    """Return the earliest start among the victims of the highest priority."""
    top = max(pod.priority for pod in candidate.victims)
    return min(start_ns(pod, now_ns) for pod in candidate.victims if pod.priority == top)
