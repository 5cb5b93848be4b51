"""Turns for others while a pod group is decided about: nothing is taken in, nobody waits long."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

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


def always() -> bool:
    return True


def never() -> bool:
    return False


@pytest.mark.parametrize(
    ("arrivals", "milliseconds", "turns"),
    [
        pytest.param(always, (), 0, id="no step"),
        pytest.param(always, (1,) * 4, 0, id="steps of less than 5 ms altogether"),
        pytest.param(always, (3,) * 14, 7, id="a turn every 5 ms"),
        pytest.param(always, (700, 700), 2, id="a turn after each step that takes longer"),
        pytest.param(never, (3,) * 6, 0, id="no arrivals: steps of less than 20 ms altogether"),
        pytest.param(never, (3,) * 14, 2, id="no arrivals: a turn every 20 ms"),
    ],
)
async def test_others_have_a_turn_every_5_ms_where_something_arrives_for_them(
    arrivals: Callable[[], bool], milliseconds: tuple[int, ...], turns: int
):
    clock, hold = ManualClock(), Hold()
    taken, held = 0, set[bool]()

    async def other() -> None:
        nonlocal taken
        while True:
            await aio.sleep(0)
            taken += 1
            held.add(hold.is_closed)

    decided = Turns(clock.monotonic_ns, hold, arrivals)
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
    """Members on trial, as far as turns know them: they take a while to leave their nodes."""

    def __init__(self, clock: ManualClock, *, milliseconds: int = 0) -> None:
        self.told: list[str] = []
        self._clock = clock
        self._ns = milliseconds * 1_000_000

    def suspend(self) -> None:
        self.told.append("suspend")
        self._clock.advance_ns(self._ns)

    def resume(self) -> None:
        self.told.append("resume")
        self._clock.advance_ns(self._ns)


async def test_members_on_trial_are_off_their_nodes_during_a_turn_of_others():
    clock, hold = ManualClock(), Hold()
    trial = Trial(clock, milliseconds=1)

    def on_trial() -> Steps:
        for each in (3, 3, 4, 4, 1):
            clock.advance_ns(each * 1_000_000)
            trial.told.append("step")
            yield trial
        return DECISION

    decided, parts = Turns(clock.monotonic_ns, hold, always), on_trial()
    assert decided.begun(parts) is None
    assert trial.told == ["step", "step", "suspend"]
    assert await decided.rest(parts) is DECISION
    assert trial.told[3:] == ["resume", "step", "step", "suspend", "resume", "step"]
    # The second turn takes 8 ms: four times what it cost to take the members off and on again.


async def test_members_on_trial_stay_on_their_nodes_while_nothing_arrives():
    clock = ManualClock()
    trial = Trial(clock, milliseconds=1)

    def on_trial() -> Steps:
        for _ in range(6):
            clock.advance_ns(100_000_000)
            yield trial
        return DECISION

    decided, parts = Turns(clock.monotonic_ns, Hold(), never), on_trial()
    assert decided.begun(parts) is None
    assert trial.told == ["suspend"]  # after 500 ms, as timers may wait
    assert await decided.rest(parts) is DECISION
    assert trial.told == ["suspend", "resume"]


async def test_steps_that_are_cancelled_are_closed():
    closed, clock = [], ManualClock()
    trial = Trial(clock)

    def endless() -> Steps:
        try:
            while True:
                clock.advance_ns(700_000_000)
                yield trial
        finally:
            closed.append(True)

    decided, parts = Turns(clock.monotonic_ns, Hold(), always), endless()
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
        await Turns(ManualClock().monotonic_ns, hold, always).rest(broken())
    assert not hold.is_closed


def test_a_decision_without_a_hold_is_made_at_once():
    clock = ManualClock()
    assert Turns(clock.monotonic_ns, None, always).begun(steps(clock, 700, 700)) is DECISION
