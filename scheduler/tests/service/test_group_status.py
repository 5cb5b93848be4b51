"""The condition of a pod group: written when it changes, and never taken back."""

from __future__ import annotations

import pytest

from moorage.api.meta import Condition
from moorage.engine.groups.decision import GroupDecision, GroupOutcome
from moorage.framework.status import SUCCESS, error, unschedulable
from moorage.service.groups.group_status import condition_after

PLACED = GroupDecision(GroupOutcome.PLACED, SUCCESS)
REJECTED = GroupDecision(GroupOutcome.REJECTED, unschedulable("no room"))
PREEMPTING = GroupDecision(GroupOutcome.PREEMPTING, unschedulable("waits"))
BROKEN = GroupDecision(GroupOutcome.BROKEN, error("broken"))


def shown(status: str, reason: str, message: str = "") -> Condition:
    return Condition(type="PodGroupScheduled", status=status, reason=reason, message=message)


TRUE, FALSE = shown("True", "Scheduled"), shown("False", "Unschedulable", "no room")


@pytest.mark.parametrize(
    ("found", "before", "after"),
    [
        pytest.param(PLACED, [], TRUE, id="placed"),
        pytest.param(REJECTED, [], FALSE, id="rejected"),
        pytest.param(PREEMPTING, [], shown("False", "Unschedulable", "waits"), id="preempting"),
        pytest.param(BROKEN, [], shown("False", "SchedulerError", "broken"), id="broken"),
        pytest.param(PLACED, [FALSE], TRUE, id="placed at last"),
        pytest.param(REJECTED, [FALSE], None, id="nothing new is not written again"),
        pytest.param(PLACED, [TRUE], None, id="more members of a group that runs"),
        pytest.param(REJECTED, [TRUE], None, id="a group that was scheduled stays so"),
        pytest.param(BROKEN, [TRUE], None, id="also when something breaks"),
        pytest.param(
            REJECTED,
            [Condition(type="Other", status="True"), shown("False", "Unschedulable", "before")],
            FALSE,
            id="another reason than before",
        ),
    ],
)
def test_the_condition_written_after_a_groups_attempt(found, before, after):
    assert condition_after(found, before) == after
