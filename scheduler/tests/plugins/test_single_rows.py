"""The answers of plugins about one row in scalars equal their answers in arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from moorage.api.pod import Pod
from moorage.config.plugin_args import (
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    ResourceSpec,
    ScoringStrategy,
)
from moorage.framework.capabilities import capabilities_of
from moorage.framework.cycle_state import CycleState
from moorage.framework.status import Code, FilterAnswer
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.shifted import NOTHING_MORE, RowSums, ShiftedSums
from moorage.snapshot.snapshot import Snapshot
from scheduler.tests.plugins.builders import cluster, make, node, pod
from scheduler.tests.plugins.strategies import clusters, pods
from scheduler.tests.plugins.test_against_reference import RESOURCE_NAMES, Cluster, build

FEW = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
resources = st.lists(st.sampled_from(RESOURCE_NAMES), min_size=1, max_size=4, unique=True)


def test_the_plugins_that_read_pods_by_sums_answer_for_single_rows():
    snapshot = cluster(node("n"))
    scalar = {
        name: [
            each for each in capabilities_of(name, plugin).declared() if "row" in each.split("_")
        ]
        for name in ("NodeResourcesFit", "NodePorts", "NodeResourcesBalancedAllocation")
        for plugin in [make(name, snapshot)[0]]
    }
    assert scalar == {
        "NodeResourcesFit": ["filter_row", "row_scorer"],
        "NodePorts": ["filter_row"],
        "NodeResourcesBalancedAllocation": ["row_scorer"],
    }


@FEW
@given(random_cluster=clusters(), asked=pods())
def test_the_ports_of_one_row_equal_filter(random_cluster, asked):
    snapshot = build(random_cluster)
    plugin, state, info = make("NodePorts", snapshot)[0], CycleState(), PodInfo(asked)
    if plugin.pre_filter(state, info, snapshot)[1].code is Code.SKIP:
        return
    answer = plugin.filter(state, info, snapshot.all())
    rows = range(snapshot.num_nodes)
    found = [plugin.filter_row(state, info, row, NOTHING_MORE) for row in rows]
    assert found == pairs(answer, snapshot)


def pairs(answer: FilterAnswer | None, snapshot: Snapshot) -> list[tuple[int, int]]:
    if answer is None:
        return [(0, 0)] * snapshot.num_nodes
    return list(zip(answer.code_n.tolist(), answer.reason_n.tolist(), strict=True))


shifts = st.one_of(st.integers(-4, 4), st.integers(-(2**34), 2**34))


@FEW
@given(
    random_cluster=clusters(),
    asked=pods(),
    more=st.dictionaries(st.sampled_from(RESOURCE_NAMES), shifts, max_size=4),
    pods_more=st.integers(-4, 4),
)
def test_filter_row_with_more_requests_on_the_row_equals_filter(
    random_cluster, asked, more, pods_more
):
    snapshot = build(random_cluster)
    plugin, state, info = make("NodeResourcesFit", snapshot)[0], CycleState(), PodInfo(asked)
    plugin.pre_filter(state, info, snapshot)
    rows = range(snapshot.num_nodes)
    found = [plugin.filter_row(state, info, row, RowSums(more, pods_more)) for row in rows]
    with ShiftedSums(snapshot.table, snapshot.all(), frozenset(more)) as sums:
        every = np.ones(snapshot.num_nodes, np.int64)
        sums.shift({name: amount * every for name, amount in more.items()}, pods_more * every)
        answer = plugin.filter(state, info, snapshot.all())
    assert found == pairs(answer, snapshot)


@pytest.mark.parametrize("strategy", ["LeastAllocated", "MostAllocated"])
@FEW
@given(random_cluster=clusters(), asked=pods(), names=resources, weight=st.integers(1, 100))
def test_fit_score_row_equals_score(strategy, random_cluster, asked, names, weight):
    weights = [min(weight + i, 100) for i in range(len(names))]
    specs = tuple(ResourceSpec(name=n, weight=w) for n, w in zip(names, weights, strict=True))
    args = NodeResourcesFitArgs(scoring_strategy=ScoringStrategy(type=strategy, resources=specs))
    scores_agree("NodeResourcesFit", args, random_cluster, asked)


@FEW
@given(random_cluster=clusters(), asked=pods(), names=resources)
def test_balanced_score_row_equals_score(random_cluster, asked, names):
    specs = tuple(ResourceSpec(name=name, weight=1) for name in names)
    args = NodeResourcesBalancedAllocationArgs(resources=specs)
    scores_agree("NodeResourcesBalancedAllocation", args, random_cluster, asked)


def scored_by_row(plugin: Any, info: PodInfo, snapshot: Snapshot) -> list[int | None]:
    scorer = plugin.row_scorer(CycleState(), info)
    return [None if scorer is None else scorer(row) for row in range(snapshot.num_nodes)]


def scores_agree(name: str, args: object, random_cluster: Cluster, asked: Pod) -> None:
    snapshot = build(random_cluster)
    plugin, state, info = make(name, snapshot, args=args)[0], CycleState(), PodInfo(asked)
    expected = plugin.score(state, info, snapshot.all()).tolist()
    found = scored_by_row(plugin, info, snapshot)
    assert [e if f is None else f for e, f in zip(expected, found, strict=True)] == expected


def test_amounts_beyond_exact_floats_need_arrays():
    snapshot = cluster(node("n", allocatable={"memory": "100Ti", "cpu": "4", "pods": "9"}))
    plugin, info = make("NodeResourcesFit", snapshot)[0], PodInfo(pod(requests={"cpu": "1"}))
    assert plugin.row_scorer(CycleState(), info) is None


def test_an_ordinary_row_needs_no_arrays():
    snapshot = cluster(node("n", allocatable={"memory": "4Gi", "cpu": "4", "pods": "9"}))
    asked = PodInfo(pod(requests={"cpu": "2", "memory": "1Gi"}))
    fit = make("NodeResourcesFit", snapshot)[0]
    balanced = make("NodeResourcesBalancedAllocation", snapshot)[0]
    found = [plugin.row_scorer(CycleState(), asked)(0) for plugin in (fit, balanced)]
    assert found == [62, 68]


def test_a_resource_that_appears_between_two_pods_counts_for_the_second():
    snapshot = cluster(node("n", allocatable={"cpu": "4", "memory": "4Gi", "pods": "9"}))
    plugin, asked = make("NodeResourcesFit", snapshot)[0], PodInfo(pod(requests={"a.b/c": "1"}))
    found = []
    for gpus, held in (("0", "0"), ("1", "0"), ("1", "1")):
        found_on = {"cpu": "4", "memory": "4Gi", "pods": "9", "a.b/c": gpus}
        snapshot.table.add_node(node("n", allocatable=found_on))
        if held == "1":
            snapshot.table.add_pod(pod("holder", requests={"a.b/c": held}), "n")
        state = CycleState()
        plugin.pre_filter(state, asked, snapshot)
        code, _ = plugin.filter_row(state, asked, 0, NOTHING_MORE)
        answer = plugin.filter(state, asked, snapshot.all())
        assert code == (0 if answer is None else answer.code_n[0])
        found.append(Code(code))
    assert found == [Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.SUCCESS, Code.UNSCHEDULABLE]


@pytest.mark.parametrize("name", ["NodeResourcesFit", "NodeResourcesBalancedAllocation"])
def test_a_score_of_one_row_follows_nodes_and_columns_that_change_between_two_pods(name):
    specs = tuple(ResourceSpec(name=each, weight=1) for each in ("cpu", "memory", "a.b/c"))
    args = (
        NodeResourcesFitArgs(
            scoring_strategy=ScoringStrategy(type="LeastAllocated", resources=specs)
        )
        if name == "NodeResourcesFit"
        else NodeResourcesBalancedAllocationArgs(resources=specs)
    )
    snapshot = cluster(node("n", allocatable={"cpu": "4", "memory": "4Gi", "pods": "9"}))
    plugin, table = make(name, snapshot, args=args)[0], snapshot.table
    asked = PodInfo(pod(requests={"cpu": "1", "memory": "1Gi", "a.b/c": "1"}))

    def agree() -> list[int | None]:
        state = CycleState()
        expected = plugin.score(state, asked, snapshot.all()).tolist()
        found = scored_by_row(plugin, asked, snapshot)
        assert [e if f is None else f for e, f in zip(expected, found, strict=True)] == expected
        return found

    agree()
    larger = {"cpu": "8", "memory": "4Gi", "a.b/c": "4", "pods": "9"}
    table.update_node(node("n", allocatable=larger))
    agree()
    table.add_pod(pod("held", requests={"a.b/c": "2"}), "n")
    agree()
    for i in range(200):  # until the arrays grow
        table.add_node(node(f"more-{i}", allocatable={"cpu": "2", "a.b/c": "1"}))
    agree()
    table.update_node(node("n", allocatable={**larger, "memory": "100Ti"}))
    needs_arrays = agree()[0] is None
    assert needs_arrays == (name == "NodeResourcesFit")
