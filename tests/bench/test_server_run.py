"""A tiny benchmark through an API server, in three processes over HTTPS."""

from __future__ import annotations

import pytest

from moorage.base.clock import SystemClock
from moorage.base.rng import Streams
from moorage.bench.server_run import ServerRun
from moorage.bench.workload import basic


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
    assert set(result.seconds_by_part) == {"server cpu", "scheduler cpu"}
    assert [line for line in told if line.startswith("Create")] == [
        "CreateNodes 5",
        "CreatePods 5",
        "CreatePods 20",
    ]
    assert result.pods_per_second > 0
    assert result.decision is None
