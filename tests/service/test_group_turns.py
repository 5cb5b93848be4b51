"""Turns for others while a pod group is decided about: nothing is taken in, nobody waits long."""

from __future__ import annotations

import pytest

from moorage.base import aio
from moorage.base.aio import Hold
from moorage.base.clock import ManualClock
from moorage.engine.groups.cycle import Steps
from moorage.engine.groups.decision import GroupDecision, GroupOutcome
from moorage.framework.status import SUCCESS
from moorage.service.group_turns import Turns

DECISION = GroupDecision(GroupOutcome.PLACED, SUCCESS)


def steps(clock: ManualClock, *milliseconds: int) -> Steps:
    """Return steps that take so long each."""
    for each in milliseconds:
        clock.advance_ns(each * 1_000_000)
        yield
    return DECISION


@pytest.mark.parametrize(
    ("milliseconds", "turns"),
    [
        pytest.param((), 0, id="no step"),
        pytest.param((3,) * 6, 0, id="steps of less than 20 ms altogether"),
        pytest.param((3,) * 14, 2, id="a turn every 20 ms"),
        pytest.param((700, 700), 2, id="a turn after each step that takes longer"),
    ],
)
async def test_others_have_a_turn_every_20_ms(milliseconds: tuple[int, ...], turns: int):
    clock, hold = ManualClock(), Hold()
    taken, held = 0, set[bool]()

    async def other() -> None:
        nonlocal taken
        while True:
            await aio.sleep(0)
            taken += 1
            held.add(hold.held)

    decided = Turns(clock.monotonic_ns, hold)
    parts = steps(clock, *milliseconds)
    found = decided.begun(parts)
    assert (found is None) == (turns > 0)
    if found is None:
        tasks = aio.TaskOwner()
        tasks.spawn(other(), name="other")
        found = await decided.rest(parts)
        await tasks.cancel_all()
        assert held == {True}
    assert found is DECISION
    assert taken == max(turns - 1, 0)  # the first of its turns is what starts the other task
    assert not hold.held


async def test_a_step_that_breaks_ends_the_hold():
    def broken() -> Steps:
        yield
        raise RuntimeError("no more")

    hold = Hold()
    with pytest.raises(RuntimeError, match="no more"):
        await Turns(ManualClock().monotonic_ns, hold).rest(broken())
    assert not hold.held


def test_a_decision_without_a_hold_is_made_at_once():
    clock = ManualClock()
    assert Turns(clock.monotonic_ns, None).begun(steps(clock, 700, 700)) is DECISION
