"""Finds the pods that may be evicted so that a namespace gets the share of its elastic quota.

Part of CapacityScheduling: the `VictimRules` of its preemption.

Rules mirrored: scheduler-plugins ``pkg/capacityscheduling``, ``SelectVictimsOnNode``, of 2026-08.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from moorage.framework.preemption import EvictionsUnderWay
from moorage.framework.status import Status, unresolvable, unschedulable
from moorage.framework.what_if import RowTrial
from moorage.plugins.preemption.victims import Unit, ranked_units
from moorage.plugins.quotas.elastic_quotas import Claim, Usage, request_of
from moorage.plugins.quotas.victim_columns import QuotaColumns
from moorage.snapshot.pod_info import PodInfo

_PLUGIN: Final = "CapacityScheduling"
QUOTA_STILL_EXCEEDED: Final = "global quota max exceeded"


class CapacityVictims:
    """`VictimRules` of one preemptor.

    Parameters
    ----------
    pod, claim
        The preemptor; `claim` is None where its namespace has no quota.
    usage
        The quotas and their use; not changed.
    now_ns
        Wall-clock time, nanoseconds.
    """

    def __init__(self, pod: PodInfo, claim: Claim | None, *, usage: Usage, now_ns: int) -> None:
        self._pod = pod
        self._claim = claim
        self._usage = usage
        self._now_ns = now_ns
        self._reclaims = claim is not None and not usage.quotas[pod.namespace].above_min_with(
            claim.in_quota, usage.used(pod.namespace)
        )
        """Whether the preemptor stays within its minimum, so that borrowers must give back."""

    def by_priority(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return False for every row, because the rules depend on namespaces."""
        return np.zeros(len(rows), np.bool_)

    @cached_property
    def in_columns(self) -> QuotaColumns:
        """The same rules for many rows at once."""
        refused = unschedulable(QUOTA_STILL_EXCEEDED).by(_PLUGIN)
        return QuotaColumns(
            self._pod, self._claim, self._usage, reclaims=self._reclaims, refused=refused
        )

    def allows(self, pod: PodInfo) -> bool:
        """Whether a pod counts as a victim by its namespace and priority."""
        usage = self._usage
        has_quota = pod.namespace in usage.quotas
        if self._claim is None:
            return not has_quota and pod.priority < self._pod.priority
        if self._reclaims:
            others = has_quota and pod.namespace != self._pod.namespace
            return others and usage.borrows(pod.namespace)
        return self._is_less(pod)

    def within_bounds(self, units: Sequence[Unit]) -> Sequence[Unit]:
        """Return the units that give back no more than is borrowed, in the given order.

        The least important units are evicted first, until the namespace is within its minimum. A
        gang whose last pods would be evicted out of the minimum is not evicted.
        """
        if not self._reclaims or not units:
            return units
        left = self._usage.copy()
        going: set[int] = set()
        for unit in reversed(ranked_units(units, self._now_ns)):
            after = left.copy()
            if _give_back(after, unit.pods):
                left = after
                going.add(id(unit))
        return [unit for unit in units if id(unit) in going]

    def trial_of(self, trial: RowTrial) -> RowTrial:
        """Return the trial, within the quotas where the preemptor's namespace has one."""
        if self._claim is None:
            return trial
        return _WithinQuotas(trial, self._pod, self._claim, self._usage.copy())

    def nobody(self, node_name: str) -> Status:
        """Return the status of a node without evictable pods."""
        return unresolvable(
            f"No victims found on node {node_name} for preemptor pod {self._pod.name}"
        ).by(_PLUGIN)

    def leaving(self, pods: Iterable[PodInfo], evictions: EvictionsUnderWay) -> bool:
        """Whether a pod that counts as a victim is already terminating, or is to be evicted."""
        return any(
            (bool(pod.pod.metadata.deletion_timestamp) or evictions.is_leaving(pod.pod))
            and (self._is_less(pod) or self.allows(pod))
            for pod in pods
        )

    def within_quotas(self) -> bool:
        """Whether the preemptor exceeds no quota, and needs room on a node only."""
        if self._claim is None:
            return True
        return _exceeded(self._usage, self._pod.namespace, self._claim) is None

    def _is_less(self, pod: PodInfo) -> bool:
        """Whether a pod of the preemptor's own namespace has a lower priority."""
        return pod.namespace == self._pod.namespace and pod.priority < self._pod.priority


class _WithinQuotas:
    """`RowTrial` that passes only if the quotas hold, too.

    Without all evictable pods, the preemptor alone must fit its quota. A pod is put back only if
    the nominated pods that count before the preemptor fit as well.
    """

    def __init__(self, row: RowTrial, pod: PodInfo, claim: Claim, usage: Usage) -> None:
        self._row = row
        self._namespace = pod.namespace
        self._own = Claim(request_of(pod), request_of(pod))
        self._claim = claim
        self._usage = usage
        self._putting_back = False

    def take_off(self, other: PodInfo) -> Status:
        """Remove a pod from the row and from its quota's use."""
        self._usage.add(other, times=-1)
        return self._row.take_off(other)

    def put_on(self, other: PodInfo) -> Status:
        """Put a pod on the row and add it to its quota's use."""
        self._putting_back = True
        self._usage.add(other)
        return self._row.put_on(other)

    def judge(self) -> Status:
        """Run all Filters and check the quotas; the cheaper quotas first if no text matters."""
        if self._putting_back:
            return self._exceeded(self._claim) or self._row.judge()
        status = self._row.judge()
        return (self._exceeded(self._own) or status) if status.ok else status

    def _exceeded(self, claim: Claim) -> Status | None:
        return _exceeded(self._usage, self._namespace, claim)


def _exceeded(usage: Usage, namespace: str, claim: Claim) -> Status | None:
    quota, used = usage.quotas[namespace], usage.used(namespace)
    if quota.above_max(claim.in_quota, used) or usage.above_total(claim.in_all):
        return unschedulable(QUOTA_STILL_EXCEEDED).by(_PLUGIN)
    return None


def _give_back(usage: Usage, pods: Iterable[PodInfo]) -> bool:
    """Take pods out of the use, one by one; return whether each of them was borrowing."""
    for pod in pods:
        if not usage.borrows(pod.namespace):
            return False
        usage.add(pod, times=-1)
    return True
