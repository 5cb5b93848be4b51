"""A lost lease is no end of a sandbox: its scheduler stands for election again."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.base.clock import Clock, ManualClock
from moorage.base.errors import LeaseLostError, MoorageError
from moorage.cli.run.scheduler_options import SchedulerOptions, StartListeners
from moorage_sandbox.cli.up import scheduler_process

LOST = "leader election lost: lease kube-system/kube-scheduler is held by nobody"
URL = "https://127.0.0.1:4711"


@pytest.mark.parametrize(
    ("runs", "reports", "ports"),
    [
        pytest.param(
            [("ready", "serving")], ["ready", URL], [(0, True), (4711, False)], id="lost once"
        ),
        pytest.param(
            [("ready", "serving"), ("ready", "serving")],
            ["ready", URL],
            [(0, True), (4711, False), (4711, False)],
            id="lost twice: what has been reported is not reported again",
        ),
        pytest.param(
            [(), ("ready", "serving")],
            ["ready", URL],
            [(0, True), (0, True), (4711, False)],
            id="lost before anything is reported",
        ),
        pytest.param(
            [("ready",), ("ready", "serving")],
            ["ready", URL],
            [(0, True), (0, True), (4711, False)],
            id="lost between the two reports",
        ),
    ],
)
async def test_the_scheduler_of_a_sandbox_begins_anew(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    runs: list[tuple[str, ...]],
    reports: list[str],
    ports: list[tuple[int, bool]],
):
    seen: list[tuple[int, bool]] = []
    left = iter(runs)

    async def schedule(options: SchedulerOptions, clock: Clock, told: StartListeners) -> None:
        seen.append((options.flags["secure-port"], options.free_port))
        reached = next(left, None)
        if reached is None:
            raise MoorageError("the end")
        if "ready" in reached and told.ready is not None:
            told.ready()
        if "serving" in reached and told.serving is not None:
            told.serving(URL)
        raise LeaseLostError(LOST)

    monkeypatch.setattr(scheduler_process, "schedule", schedule)
    heard: list[Any] = []
    told = StartListeners(lambda: heard.append("ready"), heard.append, heard.append)
    options = SchedulerOptions(flags={"secure-port": 0}, free_port=True)
    with pytest.raises(MoorageError, match="the end"):
        await scheduler_process.schedule_in_sandbox(options, ManualClock(), told)
    assert (heard, seen) == (reports, ports)
    line = f"{LOST}; the scheduler stands for election again"
    assert capsys.readouterr().err.count(line) == len(runs)
