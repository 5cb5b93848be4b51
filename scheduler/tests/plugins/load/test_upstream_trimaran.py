"""TargetLoadPacking and LoadVariationRiskBalancing: the cases of upstream's own table tests.

The tables are those of scheduler-plugins ``pkg/trimaran`` (v0.35: targetloadpacking_test.go,
loadvariationriskbalancing_test.go, analysis_test.go), case by case and under their names: inputs
and results, from upstream's tests and not from a run.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from moorage.api.pod import Pod
from moorage.config.args import default_args
from moorage.framework.cycle_state import CycleState
from moorage.framework.loads.node_loads import AVERAGE, LATEST, STANDARD_DEVIATION, Load, NodeLoads
from moorage.plugins.in_tree import in_tree_registry
from moorage.plugins.load.load_variation_risk_balancing import safety
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot
from scheduler.tests.plugins.builders import cluster, handle, node
from scheduler.tests.plugins.builders import pod as one_container

ROOM = {"cpu": "1000m", "memory": "1Gi", "pods": "110"}


class World:
    """One node of upstream's size, and a plugin with loads of it."""

    def __init__(self, name: str, loads: NodeLoads | None) -> None:
        self.snapshot: Snapshot = cluster(node("node-1", allocatable=ROOM, capacity=ROOM))
        given = handle(self.snapshot)
        args: Any = default_args(name)
        entry = in_tree_registry().find(name)
        assert entry is not None
        self.plugin: Any = entry.make(args, given)
        self.report = given.loads.report_of(args.source)
        self.report.latest = loads
        self.clock: Any = given.clock

    def score(self, pod: Pod) -> int:
        return int(self.plugin.score(CycleState(), PodInfo(pod), self.snapshot.all())[0])


def loads(*metrics: tuple[str, str, float], end: int = 0) -> NodeLoads:
    return NodeLoads(end, {"node-1": tuple(Load(*each) for each in metrics)})


def no_containers() -> Pod:
    return one_container(containers=[])


def limited(cpu: str, memory: str = "") -> Pod:
    amounts = {"cpu": cpu, **({"memory": memory} if memory else {})}
    return one_container(container={"resources": {"requests": amounts, "limits": amounts}})


CPU, MEMORY = "CPU", "Memory"


@pytest.mark.parametrize(
    ("pod", "latest", "expected"),
    [
        pytest.param(no_containers(), loads((CPU, LATEST, 0)), 40, id="new node"),
        pytest.param(no_containers(), loads((CPU, LATEST, 50)), 33, id="hot node"),
        pytest.param(
            limited("1000m"), loads((CPU, LATEST, 30)), 0, id="excess utilization returns min score"
        ),
        pytest.param(no_containers(), None, 0, id="404 resp from watcher"),
    ],
)
def test_target_load_packing_scoring(pod: Pod, latest: NodeLoads | None, expected: int):
    assert World("TargetLoadPacking", latest).score(pod) == expected


@pytest.mark.parametrize(
    ("pod", "latest", "expected"),
    [
        pytest.param(no_containers(), loads((CPU, AVERAGE, 50)), 75, id="new node"),
        pytest.param(no_containers(), loads((CPU, AVERAGE, 100)), 50, id="hot node"),
        pytest.param(
            limited("200m", "256Mi"),
            loads((CPU, AVERAGE, 30), (CPU, STANDARD_DEVIATION, 16)),
            67,
            id="average and stDev metrics",
        ),
        pytest.param(
            limited("100m", "512Mi"),
            loads(
                (CPU, AVERAGE, 40),
                (CPU, STANDARD_DEVIATION, 16),
                (MEMORY, AVERAGE, 50),
                (MEMORY, STANDARD_DEVIATION, 10),
            ),
            45,
            id="CPU and Memory metrics",
        ),
        pytest.param(
            limited("100m", "512Mi"),
            loads(
                (CPU, AVERAGE, 80),
                (CPU, STANDARD_DEVIATION, 20),
                (MEMORY, AVERAGE, 25),
                (MEMORY, STANDARD_DEVIATION, 15),
            ),
            45,
            id="pick worst case: CPU or Memory",
        ),
        pytest.param(no_containers(), None, 0, id="404 resp from watcher"),
    ],
)
def test_load_variation_risk_balancing_score(pod: Pod, latest: NodeLoads | None, expected: int):
    assert World("LoadVariationRiskBalancing", latest).score(pod) == expected


@pytest.mark.parametrize(
    ("margin", "root", "capacity", "mean", "deviation", "expected"),
    [
        pytest.param(1, 1, 100, 40, 36, 57, id="valid data"),
        pytest.param(1, 2, 0, 40, 36, 0, id="zero capacity"),
        pytest.param(1, 2, 100, -40, 36, 65, id="negative usedAvg"),
        pytest.param(1, 2, 100, 200, 36, 20, id="large usedAvg"),
        pytest.param(1, 2, 100, 40, -36, 75, id="negative usedStdev"),
        pytest.param(1, 2, 100, 40, 120, 25, id="large usedStdev"),
        pytest.param(-1, 1, 100, 40, 36, 75, id="negative margin"),
        pytest.param(1, -1, 100, 40, 36, 57, id="negative sensitivity"),
        pytest.param(1, 0, 100, 40, 36, 75, id="zero sensitivity"),
    ],
)
def test_compute_score(
    margin: float, root: float, capacity: float, mean: float, deviation: float, expected: int
):
    columns = (np.array([each], np.float64) for each in (mean, deviation, capacity))
    found = safety(*columns, request=10, margin=margin, root=root)
    assert int(np.floor(found[0] + 0.5)) == expected


def test_a_pod_that_came_after_the_metrics_is_added_to_them():
    world = World("TargetLoadPacking", None)
    start = world.clock.now_ns() // 10**9
    world.report.latest = loads((CPU, LATEST, 0), end=start)
    world.snapshot.table.add_pod(limited("200m"), "node-1")
    assert world.score(no_containers()) == 70  # 20 percent of the way to 40: (60 * 20 / 40) + 40
    world.report.latest = loads((CPU, LATEST, 20), end=start + 60)  # it is in the metrics now
    assert world.score(no_containers()) == 70


def test_a_pod_that_left_is_not_added():
    world = World("TargetLoadPacking", loads((CPU, LATEST, 0)))
    pod = limited("200m")
    world.snapshot.table.add_pod(pod, "node-1")
    assert world.score(no_containers()) == 70
    world.snapshot.table.remove_pod(pod.uid)
    assert world.score(no_containers()) == 40


@pytest.mark.parametrize(
    ("requests", "limits", "predicted"),
    [
        ({"cpu": "300m"}, {"cpu": "500m"}, 500),
        ({"cpu": "300m"}, {}, 450),
        ({}, {}, 1000),
    ],
)
def test_what_a_container_is_taken_to_use(
    requests: dict[str, str], limits: dict[str, str], predicted: int
):
    world = World("TargetLoadPacking", None)
    pod = one_container(container={"resources": {"requests": requests, "limits": limits}})
    assert world.plugin._predicted(pod) == predicted
