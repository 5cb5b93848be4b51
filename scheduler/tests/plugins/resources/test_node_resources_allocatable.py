"""NodeResourcesAllocatable: worked examples, arguments, and the scalar rule on random clusters."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from moorage.api.node import Node
from moorage.base.errors import ConfigError
from moorage.config.args import read_args
from moorage.config.plugin_args_optional import NodeResourcesAllocatableArgs, WeighedResource
from moorage.snapshot.snapshot import Snapshot
from moorage_lab.fault_sim.reference import filters
from scheduler.tests.plugins.builders import cluster, make, node, pod, scores
from scheduler.tests.plugins.strategies import SCALARS, clusters, pods
from scheduler.tests.plugins.test_against_reference import Cluster, build

FEW = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
NAME = "NodeResourcesAllocatable"
MIB = 2**20
GIB = 2**30

Weights = Sequence[tuple[str, int]]


def allocatable_args(mode: str, weights: Weights) -> NodeResourcesAllocatableArgs:
    specs = tuple(WeighedResource(name=name, weight=weight) for name, weight in weights)
    return NodeResourcesAllocatableArgs(mode=mode, resources=specs)


def three_sizes() -> Snapshot:
    return cluster(
        *(
            node(name, allocatable={"cpu": cpu, "memory": memory, "pods": "9"})
            for name, cpu, memory in (
                ("small", "2", "4Gi"),
                ("middle", "8", "16Gi"),
                ("large", "32", "64Gi"),
            )
        )
    )


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        pytest.param("Least", [100, 80, 0], id="small nodes first"),
        pytest.param("Most", [0, 20, 100], id="large nodes first"),
    ],
)
def test_scores_by_allocatable_amounts(mode, expected):
    args = NodeResourcesAllocatableArgs(mode=mode)
    assert scores(NAME, three_sizes(), pod(), args=args)[1] == expected


def test_by_default_a_millicore_is_worth_a_mebibyte():
    # (2000 millicores * 2**20 + 4 GiB) // (2**20 + 1), and so on; Least counts downwards.
    sums = [2000 * MIB + 4 * GIB, 8000 * MIB + 16 * GIB, 32000 * MIB + 64 * GIB]
    expected = [-(total // (MIB + 1)) for total in sums]
    assert scores(NAME, three_sizes(), pod())[0] == expected


def test_scores_ignore_the_pod_and_the_running_pods():
    snapshot = three_sizes()
    before = scores(NAME, snapshot, pod())
    snapshot.table.add_pod(pod("resident", requests={"cpu": "1", "memory": "3Gi"}), "small")
    assert scores(NAME, snapshot, pod(requests={"cpu": "1"})) == before


def test_equal_nodes_score_zero():
    snapshot = cluster(node("a"), node("b"))
    assert scores(NAME, snapshot, pod())[1] == [0, 0]


def test_of_a_resource_that_is_named_twice_the_last_weight_counts():
    twice, once = (
        allocatable_args("Most", weights)
        for weights in ([("cpu", 9), ("memory", 1), ("cpu", 2)], [("cpu", 2), ("memory", 1)])
    )
    snapshot = three_sizes()
    assert scores(NAME, snapshot, pod(), args=twice) == scores(NAME, snapshot, pod(), args=once)


def test_a_fractional_mean_is_truncated_towards_zero():
    snapshot = cluster(node("a", allocatable={"cpu": "5m", "memory": "2", "pods": "1"}))
    weights = [("cpu", 1), ("memory", 1)]
    assert scores(NAME, snapshot, pod(), args=allocatable_args("Most", weights))[0] == [3]
    assert scores(NAME, snapshot, pod(), args=allocatable_args("Least", weights))[0] == [-3]


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        pytest.param(
            {"mode": "Middle"},
            'args.mode: Unsupported value: "Middle": supported values: "Least", "Most"',
            id="an unknown mode",
        ),
        pytest.param(
            {"resources": [{"name": "cpu", "weight": -1}]},
            "args.resources[0].weight: Invalid value: -1: "
            "resource weight of cpu should be a positive value",
            id="a negative weight",
        ),
        pytest.param(
            {"resources": [{"name": "memory"}]},
            "args.resources[0].weight: Invalid value: 0: "
            "resource weight of memory should be a positive value",
            id="a weight of 0",
        ),
    ],
)
def test_invalid_arguments(given, fault):
    faults: list[str] = []
    args = read_args(NAME, given, path="args", faults=faults)
    assert faults == [fault]
    with pytest.raises(ConfigError):
        make(NAME, args=args)


def test_defaults_of_missing_arguments():
    faults: list[str] = []
    found = read_args(NAME, {"mode": "", "resources": []}, path="args", faults=faults)
    assert (found, faults) == (NodeResourcesAllocatableArgs(), [])


def raw_score(node: Node, weights: Weights, *, most: bool) -> int:
    offered, by_name = filters.allocatable(node), dict(weights)
    known = [
        (name, weight)
        for name, weight in by_name.items()
        if name in filters.FIRST or filters.is_scalar(name)
    ]
    total = sum(offered.get(name, 0) * weight for name, weight in known)
    mean = total // sum(by_name.values())
    return mean if most else -mean


def min_max(raw: list[int]) -> list[int]:
    low, high = min(raw), max(raw)
    return [0 if low == high else (each - low) * 100 // (high - low) for each in raw]


@pytest.mark.parametrize("mode", ["Least", "Most"])
@FEW
@given(
    random_cluster=clusters(),
    asked=pods(),
    weights=st.lists(
        st.tuples(
            st.sampled_from(["cpu", "memory", "ephemeral-storage", *SCALARS]), st.integers(1, 1000)
        ),
        min_size=1,
        max_size=4,
    ),
)
def test_scores_equal_reference(mode: str, random_cluster: Cluster, asked, weights):
    expected = [raw_score(node, weights, most=mode == "Most") for node, _ in random_cluster]
    found = scores(NAME, build(random_cluster), asked, args=allocatable_args(mode, weights))
    assert found == (expected, min_max(expected))
