"""What the PodGroup's own status says: the condition ``PodGroupScheduled``.

Rules: scheduling spec, gang section A4 number 6, and core api section 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from moorage.api.meta import Condition
from moorage.engine.group_decision import GroupDecision, GroupOutcome

SCHEDULED: Final = "PodGroupScheduled"


def condition_after(
    found: GroupDecision, before: Sequence[Condition], *, generation: int = 0
) -> Condition | None:
    """Return the condition to write after an attempt; None where it stays as it is.

    A group that was scheduled once stays so, whatever becomes of members that come later.

    Parameters
    ----------
    found
        What came of the attempt.
    before
        The conditions the group has.
    generation
        Of the group, for ``observedGeneration``.
    """
    if found.outcome is GroupOutcome.PLACED:
        now = Condition(
            type=SCHEDULED, status="True", reason="Scheduled", observed_generation=generation
        )
    else:
        broken = found.outcome is GroupOutcome.BROKEN
        now = Condition(
            type=SCHEDULED,
            status="False",
            reason="SchedulerError" if broken else "Unschedulable",
            message=found.status.message,
            observed_generation=generation,
        )
    for condition in before:
        if condition.type != SCHEDULED:
            continue
        if condition.status == "True" and now.status == "False":
            return None
        if _same(condition, now):
            return None
    return now


def _same(one: Condition, other: Condition) -> bool:
    return (one.status, one.reason, one.message, one.observed_generation) == (
        other.status,
        other.reason,
        other.message,
        other.observed_generation,
    )
