"""A time that is stopped, stepped and let go, the same for all that share it."""

from __future__ import annotations

import asyncio
import math
from pathlib import Path

import pytest

from moorage.base.aio import PacedLoop, sleep
from moorage.base.clock import NS_PER_SECOND
from moorage.base.timeline import Timeline, TimeState

START_NS = 1_767_225_600 * NS_PER_SECOND


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the machine's time, nanoseconds, to be changed by the test."""
    elapsed = [5 * NS_PER_SECOND]
    machine_time = "moorage.base.clock.SystemClock.monotonic_ns"
    monkeypatch.setattr(machine_time, staticmethod(lambda: elapsed[0]))
    return elapsed


def seconds(timeline: Timeline) -> float:
    """Seconds of the cluster since the beginning."""
    return (timeline.now_ns() - START_NS) / NS_PER_SECOND


def test_time_runs_stops_and_goes_on_for_everybody_who_shares_it(machine, tmp_path):
    first = Timeline.create_file(tmp_path / "time", START_NS)
    second = Timeline(tmp_path / "time")
    seen = []

    def look() -> None:
        assert first.now_ns() == second.now_ns() == first.monotonic_ns()
        seen.append(seconds(first))

    def let_pass(real: float) -> None:
        machine[0] += round(real * NS_PER_SECOND)
        look()

    look()
    let_pass(2)  # as the machine's
    first.run(0)
    let_pass(100)  # stopped
    second.advance_for(60, 20)
    let_pass(1)  # twenty seconds of the step
    let_pass(2)  # the rest of it
    let_pass(100)  # stopped again
    first.run(10)
    let_pass(1)
    assert seen == [0, 2, 2, 22, 62, 62, 72]


@pytest.mark.parametrize(
    ("change", "real", "state"),
    [
        pytest.param(None, 1, (1, 1.0, None), id="from the beginning"),
        pytest.param(("run", 0), 1, (0, 0.0, None), id="stopped"),
        pytest.param(("run", 60), 1, (60, 60.0, None), id="running"),
        pytest.param(("advance_for", 60, 20), 1, (20, 20.0, 60), id="on its way"),
        pytest.param(("advance_for", 60, 20), 3, (60, 0.0, None), id="arrived"),
    ],
)
def test_the_state_says_how_time_runs(machine, tmp_path, change, real, state):
    timeline = Timeline.create_file(tmp_path / "time", START_NS)
    if change is not None:
        getattr(timeline, change[0])(*change[1:])
    machine[0] += real * NS_PER_SECOND
    now, speed, end = state
    end_ns = None if end is None else START_NS + end * NS_PER_SECOND
    assert timeline.state() == TimeState(START_NS + now * NS_PER_SECOND, speed, end_ns)


def test_a_process_that_ends_goes_on_alone(machine, tmp_path):
    staying, ending = Timeline.create_file(tmp_path / "time", START_NS), Timeline(tmp_path / "time")
    staying.run(0)
    assert ending.real_seconds(1) == math.inf
    ending.let_go()
    machine[0] += 3 * NS_PER_SECOND
    assert (seconds(staying), seconds(ending), ending.real_seconds(1)) == (0, 3, 1)


def test_a_loop_waits_in_the_time_it_is_given(tmp_path: Path):
    timeline = Timeline.create_file(tmp_path / "time", START_NS)
    timeline.run(0)
    rung: list[int] = []

    async def turns() -> None:
        """Let the loop look at its timers again and again."""
        for _ in range(20):
            await sleep(0)

    async def main() -> None:
        loop = asyncio.get_running_loop()
        for moment in (10, 20, 30, 40):
            loop.call_at(moment, rung.append, moment)
        await turns()
        assert rung == []
        timeline.advance_for(35, 1000)
        while timeline.state().speed:
            await sleep(0)
        await turns()

    with asyncio.Runner(loop_factory=lambda: PacedLoop(timeline)) as runner:
        runner.run(main())
    # What is due within the step is done, and no more.
    assert rung == [10, 20, 30]
