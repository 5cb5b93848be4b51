"""``moorage bench growth``: what grows, and how the sizes are compared."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from moorage.base.clock import SystemClock
from moorage.base.errors import UsageError
from moorage.base.rng import Streams
from moorage.cli.main import main
from moorage.plugins.in_tree import in_tree_registry
from moorage_lab.bench.engine_run import EngineRun
from moorage_lab.bench.growth.axes import AXES
from moorage_lab.bench.growth.report import growths
from moorage_lab.bench.growth.run import Point
from moorage_lab.bench.report import Result
from moorage_lab.bench.workload import (
    ChurnPods,
    CreateNodes,
    CreatePods,
    PlacePods,
    Workload,
    default_node,
    default_pod,
)


def point(axis: str, size: int, pod_us: float, memory_mib: float = 50.0) -> Point:
    return Point(
        axis=axis, size=size, decision_us=1.0, pod_us=pod_us, memory_mib=memory_mib, digest="d"
    )


@pytest.mark.parametrize(
    ("pod_us", "judgement"),
    [
        (10.0, "flat"),
        (15.0, "flat"),
        (16.0, "at most linear"),
        (1000.0, "at most linear"),
        (1001.0, "more than linear"),
    ],
)
def test_an_axis_is_judged_by_its_ends(pod_us: float, judgement: str) -> None:
    (found,) = growths([point("nodes", 1000, 10.0), point("nodes", 100_000, pod_us)])
    assert (found.judgement, found.size_times) == (judgement, 100.0)


def test_each_axis_is_compared_with_itself() -> None:
    found = growths([point("nodes", 1, 1.0), point("bound", 1, 5.0), point("nodes", 2, 3.0)])
    assert [(each.axis, each.times) for each in found] == [("nodes", 3.0), ("bound", 1.0)]
    assert found[0].as_lines()[-1] == (
        "  more than linear: 3.00x the time for 2x the size; 0 bytes for each more"
    )


def test_memory_is_told_for_each_one_more() -> None:
    (found,) = growths([point("bound", 1000, 1.0, 50.0), point("bound", 1_049_576, 1.0, 4050.0)])
    assert found.bytes_each == 4000.0
    (single,) = growths([point("bound", 1000, 1.0)])
    assert single.bytes_each == 0.0


@pytest.mark.parametrize(
    ("axis", "params"),
    [
        ("nodes", {"nodes": 100_000, "initPods": 1000, "measurePods": 2000}),
        ("bound", {"nodes": 10_000, "boundPods": 1_000_000, "measurePods": 2000}),
        ("shapes", {"nodes": 5000, "shapes": 10_000, "measurePods": 20_000}),
        ("waiting", {"nodes": 5000, "waitingPods": 100_000, "measurePods": 2000}),
        (
            "churn",
            {
                "nodes": 5000,
                "churnedPods": 1_000_000,
                "presentPods": 5000,
                "measurePods": 2000,
            },
        ),
        (
            "labels",
            {"nodes": 5000, "labelSets": 10_000, "boundPods": 20_000, "measurePods": 2000},
        ),
    ],
)
def test_the_largest_size_of_an_axis(axis: str, params: dict[str, int]) -> None:
    workload = AXES[axis].workload
    assert workload is not None
    assert workload(AXES[axis].sizes[-1]).params == params


def run(*ops: CreateNodes | CreatePods | PlacePods | ChurnPods) -> Result:
    workload = Workload("test", {}, (CreateNodes(2, default_node), *ops))
    engine = EngineRun(workload, in_tree_registry(), clock=SystemClock(), streams=Streams(1))
    return engine.run()


def bound(index: int) -> dict[str, Any]:
    pod = default_pod("bound")(index)
    pod["spec"]["nodeName"] = "scheduler-perf-0"
    return pod


def large(index: int) -> dict[str, Any]:
    pod = default_pod("waiting")(index)
    pod["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1000"}}
    return pod


def test_pods_that_have_their_node_take_its_room() -> None:
    full = PlacePods(40, bound)  # each pod asks for a fortieth of a node's cpu
    assert run(full, CreatePods(40, default_pod("measured"), measured=True)).scheduled == 40
    with pytest.raises(UsageError, match="does not fit: default/measured-40"):
        run(full, CreatePods(41, default_pod("measured"), measured=True))


def test_of_pods_that_come_and_go_the_oldest_leave() -> None:
    churn = ChurnPods(200, default_pod("churned"), present=30)  # the two nodes have room for 80
    assert run(churn, CreatePods(50, default_pod("measured"), measured=True)).scheduled == 50
    with pytest.raises(UsageError, match="does not fit: default/measured-50"):
        run(churn, CreatePods(51, default_pod("measured"), measured=True))


def test_pods_that_fit_nowhere_wait_and_the_others_are_placed_as_ever() -> None:
    measured = CreatePods(20, default_pod("measured"), measured=True)
    assert run(CreatePods(3, large, waiting=True), measured).digest == run(measured).digest
    with pytest.raises(UsageError, match=r"default/small-0 is to wait, and scheduler-perf-. fits"):
        run(CreatePods(1, default_pod("small"), waiting=True))


def test_the_command_prints_each_size() -> None:
    args = ["bench", "growth", "--axis", "waiting", "--most", "100", "-o", "json"]
    done = CliRunner().invoke(main, args)
    assert done.exit_code == 0, done.output
    (found,) = json.loads(done.stdout)
    assert [each["size"] for each in found["points"]] == [100]
    refused = CliRunner().invoke(main, ["bench", "growth", "--axis", "nodes", "--most", "1"])
    assert refused.exit_code == 2
    assert "leaves no size" in refused.output


def test_a_picture_of_unknown_form_is_refused_before_anything_is_measured(tmp_path: Path) -> None:
    args = ["bench", "growth", "--plot", str(tmp_path / "growth.bmp")]
    done = CliRunner().invoke(main, args)
    assert done.exit_code == 2
    assert "the suffix says the format" in done.output
