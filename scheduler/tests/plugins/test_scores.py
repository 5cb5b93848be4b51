"""Score plugins by worked examples, argument by argument."""

from __future__ import annotations

import numpy as np
import pytest

from moorage.config.plugin_args import (
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    ResourceSpec,
    ScoringStrategy,
)
from moorage.framework.cycle_state import CycleState
from moorage.plugins.resources.scoring import (
    RequestedToCapacityRatio,
    ResourceUse,
    least_allocated,
    most_allocated,
)
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot
from scheduler.tests.plugins.builders import cluster, make, node, pod, scores

MIB = 2**20


def two_sizes() -> Snapshot:
    return cluster(
        node("n1", allocatable={"cpu": "4", "memory": "10000", "pods": "9"}),
        node("n2", allocatable={"cpu": "6", "memory": "10000", "pods": "9"}),
    )


ASKED = {"cpu": "3", "memory": "5000"}


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        pytest.param("LeastAllocated", [37, 50], id="the free share, truncated"),
        pytest.param("MostAllocated", [62, 50], id="the used share, truncated"),
    ],
)
def test_fit_strategies(kind, expected):
    args = NodeResourcesFitArgs(scoring_strategy=ScoringStrategy(type=kind))
    found = scores("NodeResourcesFit", two_sizes(), pod(requests=ASKED), args=args)
    assert found == (expected, expected)


def test_fit_weights_shift_the_mean():
    resources = (ResourceSpec(name="cpu", weight=3), ResourceSpec(name="memory", weight=1))
    args = NodeResourcesFitArgs(
        scoring_strategy=ScoringStrategy(type="LeastAllocated", resources=resources)
    )
    found = scores("NodeResourcesFit", two_sizes(), pod(requests=ASKED), args=args)
    assert found == ([31, 50], [31, 50])


def test_a_pod_without_requests_is_scored_with_defaults():
    snapshot = cluster(node("n1", allocatable={"cpu": "1", "memory": "400Mi", "pods": "9"}))
    assert scores("NodeResourcesFit", snapshot, pod()) == ([70], [70])


@pytest.mark.parametrize(
    ("requests", "expected"),
    [
        pytest.param(ASKED, [68, 75], id="a worse balance and an unchanged balance"),
        pytest.param({"ephemeral-storage": "1Gi"}, None, id="no request for the scored resources"),
    ],
)
def test_balanced_allocation(requests, expected):
    found = scores("NodeResourcesBalancedAllocation", two_sizes(), pod(requests=requests))
    assert found == (None if expected is None else (expected, expected))


def test_balanced_allocation_without_pre_score_scores_best_effort_pods_0():
    plugin, _ = make("NodeResourcesBalancedAllocation", snapshot := two_sizes())
    found = plugin.score(CycleState(), PodInfo(pod()), snapshot.all())
    assert found.tolist() == [0, 0]


def test_balanced_allocation_over_one_resource_never_changes():
    args = NodeResourcesBalancedAllocationArgs(resources=(ResourceSpec(name="cpu", weight=1),))
    found = scores("NodeResourcesBalancedAllocation", two_sizes(), pod(requests=ASKED), args=args)
    assert found == ([75, 75], [75, 75])


CAPACITY = np.array([1, 3, 7, 1000, 2**40 + 1, 2**46 + 3, 9 * 10**13 - 1], np.int64)


@pytest.mark.parametrize(
    "strategy",
    [
        pytest.param(least_allocated, id="LeastAllocated"),
        pytest.param(most_allocated, id="MostAllocated"),
        pytest.param(RequestedToCapacityRatio([(0, 0), (100, 10)]), id="RequestedToCapacityRatio"),
    ],
)
def test_float_and_integer_division_agree_where_floats_are_exact(strategy):
    """Every percentage boundary of each capacity, one unit below and above it."""
    assert int(CAPACITY.max()) * 100 < 2**53
    steps = [
        np.clip(CAPACITY * percent // 100 + off, 0, None)
        for percent in range(101)
        for off in (-1, 0, 1)
    ]
    used = np.concatenate(steps)
    capacity = np.tile(CAPACITY, len(steps))
    fast = ResourceUse(1, capacity.astype(np.float64), None, used.astype(np.float64))
    exact = ResourceUse(1, capacity, None, used)
    assert strategy([fast], len(used)).tolist() == strategy([exact], len(used)).tolist()


@pytest.mark.parametrize(
    ("points", "percent", "expected"),
    [
        pytest.param([(10, 3)], 5, 30, id="before the first point its score holds"),
        pytest.param([(10, 3)], 90, 30, id="after the last point its score holds"),
        pytest.param([(0, 0), (100, 10)], 37, 37, id="a rising line"),
        pytest.param([(0, 10), (100, 0)], 37, 63, id="a falling line"),
        pytest.param([(0, 10), (3, 0)], 1, 67, id="a falling line truncates toward the start"),
        pytest.param([(0, 0), (3, 10)], 1, 33, id="a rising line truncates"),
    ],
)
def test_requested_to_capacity_ratio(points, percent, expected):
    use = ResourceUse(1, np.array([100], np.int64), None, np.array([percent], np.int64))
    assert RequestedToCapacityRatio(points)([use], 1).tolist() == [expected]


def test_ratio_leaves_out_resources_that_score_nothing():
    one = np.array([100], np.int64)
    half = ResourceUse(1, one, None, np.array([50], np.int64))
    none = ResourceUse(9, one, None, np.array([0], np.int64))
    assert RequestedToCapacityRatio([(0, 0), (100, 10)])([half, none], 1).tolist() == [50]


def image(name: str, size_mib: int) -> dict[str, object]:
    return {"names": [name], "sizeBytes": size_mib * MIB}


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        pytest.param("app:1", [12, 0], id="an image on half of the nodes counts half its size"),
        pytest.param("small:1", [0, 0], id="below 23 MiB the score is 0"),
        pytest.param("huge:1", [100, 100], id="above 1000 MiB a container the score is 100"),
        pytest.param("absent:1", [0, 0], id="an image on no node"),
        pytest.param("plain", [0, 7], id="a name without tag means latest"),
    ],
)
def test_image_locality(asked, expected):
    shared = image("huge:1", 5000)
    snapshot = cluster(
        node("n1", images=[image("app:1", 285), image("small:1", 40), shared]),
        node("n2", images=[image("plain:latest", 185), shared]),
    )
    found = scores("ImageLocality", snapshot, pod(container={"image": asked}))
    assert found == (expected, expected)


def test_image_locality_epoch_rises_when_another_node_changes_the_spread():
    snapshot = cluster(node("n1", images=[image("app:1", 285)]))
    plugin, _ = make("ImageLocality", snapshot)
    before = plugin.epoch(snapshot)
    snapshot.table.add_node(node("n2", images=[image("app:1", 285)]))
    assert plugin.epoch(snapshot) != before


def test_taint_scores():
    soft = {"key": "k", "effect": "PreferNoSchedule"}
    snapshot = cluster(
        node("a"), node("b", taints=[soft]), node("c", taints=[soft, {**soft, "key": "l"}])
    )
    assert scores("TaintToleration", snapshot, pod()) == ([0, 1, 2], [100, 50, 0])
    tolerant = pod(tolerations=[{"operator": "Exists", "effect": "PreferNoSchedule"}])
    assert scores("TaintToleration", snapshot, tolerant) == ([0, 0, 0], [100, 100, 100])
    hard_only = pod(tolerations=[{"operator": "Exists", "effect": "NoSchedule"}])
    assert scores("TaintToleration", snapshot, hard_only) == ([0, 1, 2], [100, 50, 0])
