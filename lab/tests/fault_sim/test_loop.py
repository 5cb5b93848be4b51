"""The loop of a simulation: what stopping and killing a process does to its tasks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from moorage.base import aio
from moorage.base.clock import NS_PER_SECOND, ManualClock
from moorage_lab.fault_sim.loop import Process, SkewedClock, run_simulated


def play(scenario: Callable[[Process, list[str]], Coroutine[Any, Any, None]]) -> list[str]:
    """Return what a process noted, and the test about it."""
    noted: list[str] = []
    run_simulated(scenario(Process("p"), noted), ManualClock())
    return noted


async def ticks(noted: list[str]) -> None:
    try:
        for number in range(4):
            noted.append(f"tick {number}")
            await aio.sleep(1)
    finally:
        noted.append("ends")


def start(process: Process, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    return process.run(asyncio.get_running_loop().create_task, work)


def test_a_stopped_process_goes_on_where_it_was() -> None:
    async def scenario(process: Process, noted: list[str]) -> None:
        task = start(process, ticks(noted))
        await aio.sleep(1.5)
        process.stop()
        await aio.sleep(60)
        noted.append("a minute later")
        process.go_on()
        await task

    assert play(scenario) == ["tick 0", "tick 1", "a minute later", "tick 2", "tick 3", "ends"]


def test_nothing_of_a_killed_process_runs_again() -> None:
    async def scenario(process: Process, noted: list[str]) -> None:
        task = start(process, ticks(noted))
        await aio.sleep(1.5)
        process.kill()
        task.cancel()
        await aio.sleep(60)
        noted.append("looked")
        process.revive()
        await asyncio.wait([task])

    assert play(scenario) == ["tick 0", "tick 1", "looked", "ends"]


def test_a_timer_that_is_cancelled_while_it_is_held_does_not_run() -> None:
    async def scenario(process: Process, noted: list[str]) -> None:
        loop = asyncio.get_running_loop()
        timer = process.run(loop.call_later, 1.0, noted.append, "late")
        process.stop()
        await aio.sleep(5)
        timer.cancel()
        process.go_on()
        await aio.sleep(5)

    assert play(scenario) == []


@pytest.mark.parametrize(
    ("set_at", "seconds", "due"),
    [
        (0.0, 1.0, 1.0),  # it comes due before the process falls asleep
        (0.0, 15.0, 75.0),  # while it sleeps
        (0.0, 65.0, 125.0),  # after that
        (80.0, 5.0, 85.0),  # set when the process is awake again
    ],
)
def test_a_timer_stands_still_while_its_process_is_asleep(
    set_at: float, seconds: float, due: float
) -> None:
    async def scenario(process: Process, noted: list[str]) -> None:
        loop = asyncio.get_running_loop()
        loop.call_later(10.0, lambda: process.stop(asleep=True))
        loop.call_later(70.0, process.go_on)
        await aio.sleep(set_at)
        process.run(loop.call_later, seconds, lambda: noted.append(f"{loop.time():.1f}"))
        await aio.sleep(200.0)

    assert play(scenario) == [f"{due:.1f}"]


@pytest.mark.parametrize("cancelled_at", [15.0, 75.0])
def test_a_timer_that_stood_still_can_be_cancelled(cancelled_at: float) -> None:
    async def scenario(process: Process, noted: list[str]) -> None:
        loop = asyncio.get_running_loop()
        timer = process.run(loop.call_later, 30.0, noted.append, "late")
        loop.call_later(10.0, lambda: process.stop(asleep=True))
        loop.call_later(70.0, process.go_on)
        await aio.sleep(cancelled_at)
        timer.cancel()
        await aio.sleep(200.0)

    assert play(scenario) == []


def test_the_monotonic_clock_of_a_process_asleep_stands_still() -> None:
    base = ManualClock()
    clock = SkewedClock(base)
    base.advance(5.0)
    wall_ns = clock.now_ns()
    assert clock.sleep()
    base.advance(60.0)
    asleep_ns = clock.monotonic_ns()
    clock.wake()
    base.advance(2.0)
    assert (asleep_ns, clock.monotonic_ns()) == (5 * NS_PER_SECOND, 7 * NS_PER_SECOND)
    assert clock.now_ns() - wall_ns == 62 * NS_PER_SECOND


@pytest.mark.parametrize(("seconds", "between", "both"), [(-2.0, 29.0, False), (-2.0, 31.0, True)])
def test_one_of_both_clocks_tells_how_long_a_process_slept(
    seconds: float, between: float, both: bool
) -> None:
    base = ManualClock()
    one, other = SkewedClock(base), SkewedClock(base)
    assert one.jump(seconds)
    assert other.sleep()
    assert not other.jump(seconds)
    other.wake()
    base.advance(between)
    assert (one.sleep(), other.jump(seconds)) == (both, both)


def test_other_processes_run_while_one_is_stopped() -> None:
    async def scenario(process: Process, noted: list[str]) -> None:
        process.stop()
        start(process, ticks(noted))
        await start(Process("other"), ticks(noted))
        process.go_on()
        process.kill()
        process.revive()

    assert play(scenario)[:5] == ["tick 0", "tick 1", "tick 2", "tick 3", "ends"]


def test_the_wall_clock_of_a_process_jumps_and_its_monotonic_clock_does_not() -> None:
    base = ManualClock()
    clock = SkewedClock(base)
    clock.jump(30)
    assert clock.now_ns() - base.now_ns() == 30_000_000_000
    assert clock.monotonic_ns() == base.monotonic_ns()


def test_a_process_is_killed_between_two_steps_of_one_moment() -> None:
    async def steps(noted: list[str]) -> None:
        for number in range(4):
            noted.append(f"step {number}")
            await aio.sleep(0)

    async def scenario(process: Process, noted: list[str]) -> None:
        task = start(process, steps(noted))
        process.after_steps(2, process.kill)
        await aio.sleep(1)
        noted.append(f"{process.steps} steps")
        process.revive()
        await task

    assert play(scenario) == ["step 0", "step 1", "2 steps", "step 2", "step 3"]


def test_what_is_due_after_steps_belongs_to_no_process() -> None:
    async def scenario(process: Process, noted: list[str]) -> None:
        loop = asyncio.get_running_loop()

        def stop() -> None:
            process.stop()
            loop.call_later(10, process.go_on)

        task = start(process, ticks(noted))
        process.after_steps(3, stop)
        await aio.sleep(5)
        noted.append("stopped")
        await task

    assert play(scenario) == ["tick 0", "tick 1", "stopped", "tick 2", "tick 3", "ends"]


def test_a_process_does_not_stop_any_more_when_what_is_due_is_forgotten() -> None:
    async def scenario(process: Process, noted: list[str]) -> None:
        process.after_steps(2, process.kill)
        process.forget_due()
        await start(process, ticks(noted))

    assert play(scenario)[-1] == "ends"


def test_nothing_is_due_in_a_process_that_is_revived() -> None:
    async def scenario(process: Process, noted: list[str]) -> None:
        task = start(process, ticks(noted))
        process.after_steps(3, lambda: noted.append("due"))
        process.kill()
        process.revive()
        await task

    assert "due" not in play(scenario)
