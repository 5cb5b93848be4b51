"""A tiny benchmark through an API server, in three processes over HTTPS."""

from __future__ import annotations

from pathlib import Path

import pytest

from moorage.base.clock import SystemClock
from moorage.base.errors import MoorageError
from moorage.base.rng import Streams
from moorage_lab.bench import processes, server_run
from moorage_lab.bench.processes import Child
from moorage_lab.bench.server_run import ServerRun
from moorage_lab.bench.workload import basic


@pytest.mark.slow
async def test_pods_go_through_server_and_scheduler() -> None:
    told: list[str] = []
    run = ServerRun(
        basic(nodes=5, init_pods=5, pods=20),
        clock=SystemClock(),
        streams=Streams(1),
        progress=told.append,
    )
    result = await run.run()
    assert (result.scheduled, result.mode) == (20, "server")
    assert set(result.memory_peak_mib) == {"server", "scheduler", "client"}
    assert set(result.seconds_by_part) == {"server cpu", "scheduler cpu", "scheduler's own cpu"}
    assert [line for line in told if line.startswith("Create")] == [
        "CreateNodes 5",
        "CreatePods 5",
        "CreatePods 20",
    ]
    assert result.pods_per_second > 0
    assert result.decision is None


async def test_a_scheduler_that_ends_is_noticed_at_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(processes, "COMMAND", "raise SystemExit('no such flag')")
    child = Child("scheduler", [], log=tmp_path / "log")
    await child.start()
    with pytest.raises(MoorageError, match="scheduler ended with 1:\nno such flag"):
        await server_run._all_bound(server_run.BoundPods(), 1, (child,))


async def test_a_scheduler_that_places_nothing_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_run, "_CHECK_SECONDS", 0.01)
    monkeypatch.setattr(server_run, "_STALL_SECONDS", 0.03)
    with pytest.raises(MoorageError, match="no pod got a node for 0 s; 7 still wait"):
        await server_run._all_bound(server_run.BoundPods(), 7, ())
