"""The loop of a simulation: what stopping and killing a process does to its tasks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from moorage.base import aio
from moorage.base.clock import ManualClock
from moorage.sim.loop import Process, SkewedClock, run_simulated


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
