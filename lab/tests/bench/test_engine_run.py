"""A tiny benchmark of decisions: it must run, and place pods the same way whatever its speed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from moorage.base.clock import ManualClock, SystemClock
from moorage.base.errors import UsageError
from moorage.base.rng import Streams
from moorage.plugins.in_tree import in_tree_registry
from moorage.service.core import build_core
from moorage_lab.bench import engine_run
from moorage_lab.bench.engine_run import EngineRun
from moorage_lab.bench.report import Result
from moorage_lab.bench.workload import (
    CreateNodes,
    CreatePods,
    Workload,
    basic,
    default_node,
    default_pod,
)

TINY = basic(nodes=20, init_pods=10, pods=50)


def run(seed: int = 1, workload: Workload = TINY) -> Result:
    engine = EngineRun(workload, in_tree_registry(), clock=SystemClock(), streams=Streams(seed))
    return engine.run()


def test_the_digest_depends_on_the_seed_alone() -> None:
    assert run(1).digest == run(1).digest != run(2).digest


def test_the_digest_is_the_same_without_reuse(monkeypatch: pytest.MonkeyPatch) -> None:
    reused: list[bool] = []

    def without_reuse(*args: Any, **kwargs: Any) -> Any:
        core = build_core(*args, reuse=False, **kwargs)
        reused.append(any(cycle.reuse is not None for cycle in core.cycles.values()))
        return core

    expected = run().digest
    monkeypatch.setattr(engine_run, "build_core", without_reuse)
    assert run().digest == expected
    assert reused == [False]


def test_the_report_has_the_shape_of_scheduler_perf() -> None:
    result = run()
    assert (result.scheduled, result.mode, result.workload) == (50, "engine", "SchedulingBasic")
    assert set(result.seconds_by_part) == {"queue", "decide", "assume", "confirm"}
    report = result.as_json()
    name = "SchedulingBasic/20/10/50/engine"
    throughput, latency = report["dataItems"]
    assert throughput == {
        "data": {"Average": result.pods_per_second},
        "unit": "pods/s",
        "labels": {"Name": name, "Metric": "SchedulingThroughput"},
    }
    assert latency["unit"] == "ms"
    assert latency["labels"] == {
        "Name": name,
        "Metric": "scheduler_scheduling_algorithm_duration_seconds",
    }
    assert list(latency["data"]) == ["Perc50", "Perc90", "Perc95", "Perc99"]
    assert report["version"] == "v1"
    assert json.loads(json.dumps(report)) == report


def test_each_step_is_announced() -> None:
    told: list[str] = []
    engine = EngineRun(TINY, in_tree_registry(), clock=ManualClock(), streams=Streams(1))
    engine.run(told.append)
    assert told == ["CreateNodes 20", "CreatePods 10", "CreatePods 50"]


def test_a_workload_that_does_not_fit_is_refused() -> None:
    crowded = Workload(
        "Crowded",
        {},
        (CreateNodes(1, default_node), CreatePods(41, default_pod("p"), measured=True)),
    )
    with pytest.raises(UsageError, match="does not fit: default/p-40: 0/1 nodes are available"):
        run(workload=crowded)
