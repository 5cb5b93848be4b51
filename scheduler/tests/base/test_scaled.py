"""Time that runs faster: clocks of processes agree, waiting is shorter, network limits are not."""

from __future__ import annotations

import asyncio

import pytest

from moorage.base.aio import ScaledLoop, real_seconds, sleep
from moorage.base.clock import NS_PER_SECOND, ScaledClock

START_NS = 1_767_225_600 * NS_PER_SECOND


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the machine's time, nanoseconds after the start, to be changed by the test."""
    elapsed = [0]
    monkeypatch.setattr("time.time_ns", lambda: START_NS + elapsed[0])
    monkeypatch.setattr("time.monotonic_ns", lambda: elapsed[0])
    return elapsed


def test_a_scaled_clock_shows_the_machines_time_at_its_start_and_runs_ahead_of_it(machine):
    clock = ScaledClock(60, START_NS)
    assert (clock.now_ns(), clock.monotonic_ns()) == (START_NS, 0)
    machine[0] = 2 * NS_PER_SECOND
    later = ScaledClock(60, START_NS)
    for each in (clock, later):
        assert each.now_ns() - START_NS == 120 * NS_PER_SECOND
        assert each.monotonic_ns() == 120 * NS_PER_SECOND


def test_a_clock_that_was_ahead_before_goes_on_from_there(machine):
    clock = ScaledClock(2, START_NS, 100)
    machine[0] = 10
    assert (clock.now_ns() - START_NS, clock.monotonic_ns()) == (120, 20)
    assert ScaledClock(1, START_NS, 100).now_ns() - START_NS == 110


def test_a_day_of_waiting_passes_in_a_loop_that_is_fast_enough():
    async def main() -> float:
        loop = asyncio.get_running_loop()
        begin = loop.time()
        await sleep(86_400)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(86_400):
                await asyncio.Event().wait()
        return loop.time() - begin

    with asyncio.Runner(loop_factory=lambda: ScaledLoop(10_000_000)) as runner:
        assert runner.run(main()) >= 2 * 86_400


@pytest.mark.parametrize("speed", [1, 60])
def test_real_limits_are_longer_in_a_faster_loop(speed):
    async def main() -> float:
        return real_seconds(30)

    with asyncio.Runner(loop_factory=lambda: ScaledLoop(speed)) as runner:
        assert runner.run(main()) == 30 * speed


async def test_real_limits_are_what_they_are_in_any_other_loop():
    assert real_seconds(30) == 30
