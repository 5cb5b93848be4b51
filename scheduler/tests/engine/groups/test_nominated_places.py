"""Groups wait for nominated pods with their nominations, but not for ever."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from moorage.base.clock import ManualClock
from moorage.engine.decision import CLEAR_NOMINATION, Decision, Outcome
from moorage.engine.groups.decision import GroupDecision, GroupOutcome, Member
from moorage.engine.groups.nominated_places import with_nominations
from moorage.framework.cycle_state import CycleState
from moorage.framework.diagnosis import Diagnosis
from moorage.framework.status import unschedulable
from moorage.snapshot.pod_groups import GroupMembers
from moorage.snapshot.pod_info import PodInfo, info_of
from scheduler.tests.state.build import pod

SPREAD = "PodTopologySpread"


def member(name: str, *pending: str, node_name: str = "") -> tuple[PodInfo, Member]:
    """Return a pod and the outcome for it; the plugins named say that it comes too soon."""
    info = info_of(pod(name))
    diagnosis = Diagnosis(num_nodes=1, pending_plugins=frozenset(pending))
    decision = Decision(
        outcome=Outcome.BIND if node_name else Outcome.REJECT,
        pod=info,
        state=CycleState(),
        status=unschedulable(),
        node_name=node_name,
        diagnosis=None if node_name else diagnosis,
    )
    return info, Member(decision, node_name)


@pytest.mark.parametrize(
    ("others", "seconds", "waits"),
    [
        pytest.param([SPREAD], 29, True, id="all members without a place come too soon"),
        pytest.param([SPREAD], 31, False, id="for too long"),
        pytest.param([], 29, False, id="a member has no place anyway"),
    ],
)
def test_nominations_stand_while_members_come_too_soon(
    others: list[str], seconds: float, waits: bool
) -> None:
    clock, members = ManualClock(), GroupMembers()
    handle = SimpleNamespace(clock=clock)
    profile: Any = SimpleNamespace(count_nominated=frozenset({SPREAD}), handle=handle)
    tries = [member("a", node_name="n1"), member("b", SPREAD), member("c", *others)]
    decision = GroupDecision(
        GroupOutcome.REJECTED, unschedulable("x"), tuple(each for _, each in tries)
    )
    with_nominations(decision, members, profile)
    clock.advance(seconds)
    result = with_nominations(decision, members, profile)
    nominations = {each.nomination for each in result.outcomes([info for info, _ in tries])}
    assert nominations == ({None} if waits else {CLEAR_NOMINATION})
