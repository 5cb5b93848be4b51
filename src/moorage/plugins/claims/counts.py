"""What DynamicResources did in the binding task, as numbers for whoever shows metrics.

Rules mirrored: kubernetes v1.36 ``pkg/scheduler/metrics`` (of dynamic resource allocation).
"""

from __future__ import annotations

from collections import Counter, deque
from typing import Final

from moorage.plugins.claims.attempt import Attempt
from moorage.plugins.claims.conditions import FAILED, TIMED_OUT
from moorage.plugins.claims.pod_claims import ClaimError

# As many as can be waited for between two looks at the metrics; a guess.
_WAITS_MOST: Final = 10_000


class ClaimCounts:
    """Numbers of one profile.

    Attributes
    ----------
    creates
        Claims made for extended resources, by ``success`` or ``failure``.
    allocations
        Devices that had to become ready, by driver and what became of the wait.
    waits
        Driver, what became of it, and seconds, of each device of a pod that waited; whoever shows
        them takes them out, and the oldest go when there are too many.
    """

    def __init__(self) -> None:
        self.creates: Counter[str] = Counter()
        self.allocations: Counter[tuple[str, str]] = Counter()
        self.waits: deque[tuple[str, str, float]] = deque(maxlen=_WAITS_MOST)

    def waited(self, attempt: Attempt, problem: ClaimError | None, *, seconds: float) -> None:
        """Count the devices of a pod that was held until they were ready, or was not bound."""
        status = _ending(problem)
        for each in attempt.claims:
            allocation = each.claim.status.allocation
            for result in () if allocation is None else allocation.devices.results:
                self.waits.append((result.driver, status, seconds))
                self.allocations[result.driver, status] += bool(result.binding_conditions)


def _ending(problem: ClaimError | None) -> str:
    if problem is None:
        return "success"
    text = str(problem)
    if text.startswith(TIMED_OUT):
        return "timeout"
    return "failure" if text.startswith(FAILED) else "error"
