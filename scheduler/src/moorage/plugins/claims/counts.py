"""Counters of DynamicResources in the binding task, for metrics.

Rules mirrored: kubernetes v1.36 ``pkg/scheduler/metrics`` (of dynamic resource allocation).
"""

from __future__ import annotations

from collections import Counter, deque
from typing import Final

from moorage.framework.plugin_metrics import Labels, PluginMetrics
from moorage.plugins.claims.attempt import Attempt
from moorage.plugins.claims.conditions import FAILED, TIMED_OUT
from moorage.plugins.claims.pod_claims import ClaimError

# Number of waits kept between two reads of the metrics; a guess.
_WAITS_MOST: Final = 10_000


class ClaimCounts:
    """Counters of one profile.

    Parameters
    ----------
    profile_name
        The profile, a label of two of the metrics.

    Attributes
    ----------
    creates
        Number of created claims for extended resources, by ``success`` or ``failure``.
    allocations
        Number of devices that had to become ready, by profile, driver and result of the wait.
    waits
        Profile, driver, result and duration in seconds for each device of a pod that waited. The
        oldest entries are dropped beyond the limit.
    """

    def __init__(self, profile_name: str) -> None:
        self._profile_name = profile_name
        self.creates: Counter[Labels] = Counter()
        self.allocations: Counter[Labels] = Counter()
        self.waits: deque[tuple[Labels, float]] = deque(maxlen=_WAITS_MOST)

    def metrics(self) -> PluginMetrics:
        """Return the counters by the names of their metrics."""
        return PluginMetrics(
            counters={
                "scheduler_resourceclaim_creates_total": self.creates,
                "scheduler_dra_bindingconditions_allocations_total": self.allocations,
            },
            observations={"scheduler_dra_bindingconditions_wait_duration_seconds": self.waits},
        )

    def waited(self, attempt: Attempt, problem: ClaimError | None, *, seconds: float) -> None:
        """Count the devices that a pod waited for, after they became ready or the wait failed."""
        status = _ending(problem)
        for each in attempt.claims:
            allocation = each.claim.status.allocation
            for result in () if allocation is None else allocation.devices.results:
                labels = (self._profile_name, result.driver, status)
                self.waits.append((labels, seconds))
                self.allocations[labels] += bool(result.binding_conditions)


def _ending(problem: ClaimError | None) -> str:
    if problem is None:
        return "success"
    text = str(problem)
    if text.startswith(TIMED_OUT):
        return "timeout"
    return "failure" if text.startswith(FAILED) else "error"
