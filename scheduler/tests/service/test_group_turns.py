"""Turns for others while a pod group is decided about: nothing is taken in, nobody waits long."""

from __future__ import annotations

import asyncio

import pytest

from moorage.base import aio
from moorage.base.aio import Hold
from moorage.base.clock import ManualClock
from moorage.engine.groups.decision import GroupDecision, GroupOutcome
from moorage.engine.groups.trying import Steps
from moorage.framework.status import SUCCESS
from moorage.service.groups.group_turns import Turns

DECISION = GroupDecision(GroupOutcome.PLACED, SUCCESS)


def steps(clock: ManualClock, *milliseconds: int) -> Steps:
    """Return steps that take so long each."""
    for each in milliseconds:
        clock.advance_ns(each * 1_000_000)
        yield None
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
            held.add(hold.is_closed)

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
    assert not hold.is_closed


class Trial:
    """Members on trial, as far as turns know them."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def suspend(self) -> None:
        self.told.append("suspend")

    def resume(self) -> None:
        self.told.append("resume")


async def test_members_on_trial_are_off_their_nodes_during_a_turn_of_others():
    clock, hold, trial = ManualClock(), Hold(), Trial()

    def on_trial() -> Steps:
        for each in (300, 300, 300, 300, 100):
            clock.advance_ns(each * 1_000_000)
            trial.told.append("step")
            yield trial
        return DECISION

    decided, parts = Turns(clock.monotonic_ns, hold), on_trial()
    assert decided.begun(parts) is None
    assert trial.told == ["step", "step", "suspend"]  # a turn after 500 ms: resuming costs
    assert await decided.rest(parts) is DECISION
    assert trial.told[3:] == ["resume", "step", "step", "suspend", "resume", "step"]


async def test_steps_that_are_cancelled_are_closed():
    closed, trial, clock = [], Trial(), ManualClock()

    def endless() -> Steps:
        try:
            while True:
                clock.advance_ns(700_000_000)
                yield trial
        finally:
            closed.append(True)

    decided, parts = Turns(clock.monotonic_ns, Hold()), endless()
    assert decided.begun(parts) is None
    rest = asyncio.get_running_loop().create_task(decided.rest(parts))
    await aio.sleep(0)
    rest.cancel()
    with pytest.raises(asyncio.CancelledError):
        await rest
    assert closed == [True]


async def test_a_step_that_breaks_ends_the_hold():
    def broken() -> Steps:
        yield None
        raise RuntimeError("no more")

    hold = Hold()
    with pytest.raises(RuntimeError, match="no more"):
        await Turns(ManualClock().monotonic_ns, hold).rest(broken())
    assert not hold.is_closed


def test_a_decision_without_a_hold_is_made_at_once():
    clock = ManualClock()
    assert Turns(clock.monotonic_ns, None).begun(steps(clock, 700, 700)) is DECISION
