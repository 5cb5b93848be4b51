"""Vector answers equal the scalar references on random clusters, for all rows and for one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.requests import pod_requests
from moorage.config.plugin_args import (
    NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    RequestedToCapacityRatioParam,
    ResourceSpec,
    ScoringStrategy,
    UtilizationShapePoint,
)
from moorage.framework.cycle_state import CycleState
from moorage.framework.status import Code
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot
from moorage_lab.fault_sim.reference import filters
from moorage_lab.fault_sim.reference import scores as rules
from scheduler.tests.plugins.builders import Rejections, cluster, make, rejections, scores
from scheduler.tests.plugins.strategies import added_affinities, clusters, pods

Cluster = list[tuple[Node, list[Pod]]]
Judge = Callable[[Node, list[Pod]], "tuple[str, tuple[str, ...]] | None"]
Weights = list[tuple[str, int]]

FEW = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)

RESOURCE_NAMES = ("cpu", "memory", "ephemeral-storage", "example.com/gpu", "hugepages-2Mi", "foo")
weighted = st.lists(
    st.tuples(st.sampled_from(RESOURCE_NAMES), st.integers(1, 100)),
    min_size=1,
    max_size=4,
    unique_by=lambda item: item[0],
)
shapes = st.lists(
    st.tuples(st.integers(0, 100), st.integers(0, 10)),
    min_size=1,
    max_size=4,
    unique_by=lambda point: point[0],
).map(sorted)


def build(random_cluster: Cluster) -> Snapshot:
    return cluster(
        *(node for node, _ in random_cluster),
        pods={node.name: placed for node, placed in random_cluster},
    )


def failing(random_cluster: Cluster, judge: Judge) -> Rejections:
    found = {node.name: judge(node, placed) for node, placed in random_cluster}
    return {name: rejection for name, rejection in found.items() if rejection is not None}


FILTERS = [
    pytest.param("NodeUnschedulable", lambda pod, node, _: filters.unschedulable(pod, node)),
    pytest.param("TaintToleration", lambda pod, node, _: filters.taints(pod, node)),
    pytest.param("NodePorts", lambda pod, _, placed: filters.ports(pod, placed)),
    pytest.param("NodeResourcesFit", filters.fit),
    pytest.param("NodeDeclaredFeatures", lambda pod, node, _: filters.features(pod, node)),
]


@pytest.mark.parametrize(("name", "judge"), FILTERS)
@FEW
@given(random_cluster=clusters(), asked=pods())
def test_filter_equals_reference(name, judge, random_cluster, asked):
    snapshot = build(random_cluster)
    expected = failing(random_cluster, lambda node, placed: judge(asked, node, placed))
    assert rejections(name, snapshot, asked) == expected
    last = snapshot.num_nodes - 1
    only = {k: v for k, v in expected.items() if k == snapshot.names[last]}
    assert rejections(name, snapshot, asked, rows=[last]) == only


@FEW
@given(random_cluster=clusters(), asked=pods(), added=st.none() | added_affinities)
def test_node_affinity_filter_equals_reference(random_cluster, asked, added):
    snapshot, args = build(random_cluster), NodeAffinityArgs(added_affinity=added)
    plugin, reasons = make("NodeAffinity", snapshot, args=args)
    info, state = PodInfo(asked), CycleState()
    expected = failing(random_cluster, lambda node, _: filters.node_affinity(asked, node, added))
    for rows in (None, [0], list(range(snapshot.num_nodes))[::-1]):
        view = snapshot.all() if rows is None else snapshot.rows(rows)
        answer = plugin.filter(state, info, view)
        names = [snapshot.names[int(row)] for row in view.row_numbers()]
        codes = [0] * len(view) if answer is None else answer.code_n.tolist()
        ids = [0] * len(view) if answer is None else answer.reason_n.tolist()
        found = {
            name: (Code(code).text, reasons.reasons(reason))
            for name, code, reason in zip(names, codes, ids, strict=True)
            if code
        }
        assert found == {name: expected[name] for name in names if name in expected}


@FEW
@given(random_cluster=clusters(), asked=pods())
def test_ignored_resources_equal_reference(random_cluster, asked):
    ignored, groups = ("example.com/gpu", "hugepages-2Mi"), ("vendor.io",)
    args = NodeResourcesFitArgs(ignored_resources=ignored, ignored_resource_groups=groups)
    expected = failing(
        random_cluster,
        lambda node, placed: filters.fit(asked, node, placed, ignored, groups),
    )
    assert rejections("NodeResourcesFit", build(random_cluster), asked, args=args) == expected


def fit_args(kind: str, resources: Weights, points: Any = None) -> NodeResourcesFitArgs:
    shape = None
    if points is not None:
        shape = RequestedToCapacityRatioParam(
            shape=tuple(UtilizationShapePoint(utilization=u, score=s) for u, s in points)
        )
    specs = tuple(ResourceSpec(name=name, weight=weight) for name, weight in resources)
    strategy = ScoringStrategy(type=kind, resources=specs, requested_to_capacity_ratio=shape)
    return NodeResourcesFitArgs(scoring_strategy=strategy)


def known(resources: Weights) -> Weights:
    return [(name, weight) for name, weight in resources if name != "foo"]


@pytest.mark.parametrize(
    ("kind", "judge"),
    [
        pytest.param("LeastAllocated", rules.least),
        pytest.param("MostAllocated", rules.most),
    ],
)
@FEW
@given(random_cluster=clusters(), asked=pods(), resources=weighted)
def test_allocation_scores_equal_reference(kind, judge, random_cluster, asked, resources):
    snapshot, args = build(random_cluster), fit_args(kind, resources)
    expected = [judge(asked, node, placed, known(resources)) for node, placed in random_cluster]
    assert scores("NodeResourcesFit", snapshot, asked, args=args) == (expected, expected)
    one = scores("NodeResourcesFit", snapshot, asked, args=args, rows=[0])
    assert one == (expected[:1], expected[:1])
    turned = range(snapshot.num_nodes)[:0:-1]  # most rows, for which all are computed
    most = scores("NodeResourcesFit", snapshot, asked, args=args, rows=turned)
    assert most == (expected[:0:-1], expected[:0:-1])


@FEW
@given(random_cluster=clusters(), asked=pods(), resources=weighted, points=shapes)
def test_ratio_scores_equal_reference(random_cluster, asked, resources, points):
    args = fit_args("RequestedToCapacityRatio", resources, points)
    expected = [
        rules.ratio(asked, node, placed, known(resources), points)
        for node, placed in random_cluster
    ]
    found = scores("NodeResourcesFit", build(random_cluster), asked, args=args)
    assert found == (expected, expected)


@FEW
@given(random_cluster=clusters(), asked=pods(), resources=weighted)
def test_balanced_scores_equal_reference(random_cluster, asked, resources):
    specs = tuple(ResourceSpec(name=name, weight=1) for name, _ in resources)
    args = NodeResourcesBalancedAllocationArgs(resources=specs)
    requested = filters.units(pod_requests(asked, use_status=True, pod_level=True))
    snapshot = build(random_cluster)
    found = scores("NodeResourcesBalancedAllocation", snapshot, asked, args=args)
    if not any(requested.get(name, 0) for name, _ in known(resources)):
        assert found is None
        return
    expected = [
        rules.balanced(asked, node, placed, known(resources)) for node, placed in random_cluster
    ]
    assert found == (expected, expected)
    turned = range(snapshot.num_nodes)[:0:-1]
    most = scores("NodeResourcesBalancedAllocation", snapshot, asked, args=args, rows=turned)
    assert most == (expected[:0:-1], expected[:0:-1])


@FEW
@given(random_cluster=clusters(), asked=pods())
def test_image_scores_equal_reference(random_cluster, asked):
    all_nodes = [node for node, _ in random_cluster]
    expected = [rules.image_locality(asked, node, all_nodes) for node in all_nodes]
    assert scores("ImageLocality", build(random_cluster), asked) == (expected, expected)


@FEW
@given(random_cluster=clusters(), asked=pods())
def test_taint_scores_equal_reference(random_cluster, asked):
    raw = [rules.taint_score(asked, node) for node, _ in random_cluster]
    expected = (raw, rules.normalized(raw, reverse=True))
    assert scores("TaintToleration", build(random_cluster), asked) == expected


@FEW
@given(random_cluster=clusters(), asked=pods(), added=st.none() | added_affinities)
def test_affinity_scores_equal_reference(random_cluster, asked, added):
    args = NodeAffinityArgs(added_affinity=added)
    found = scores("NodeAffinity", build(random_cluster), asked, args=args)
    own = filters.node_affinity_of(asked)
    wishes = [
        affinity.preferred_during_scheduling_ignored_during_execution if affinity else None
        for affinity in (own, added)
    ]
    if wishes[0] is None and not wishes[1]:
        assert found is None
        return
    raw = [rules.affinity_score(asked, node, added) for node, _ in random_cluster]
    assert found == (raw, rules.normalized(raw, reverse=False))


@FEW
@given(random_cluster=clusters(), asked=pods(), extra=pods("extra"))
def test_answers_follow_the_rows_inside_a_trial_and_after_it(random_cluster, asked, extra):
    snapshot, info = build(random_cluster), PodInfo(asked)
    first, placed = random_cluster[0]
    judges: dict[str, Callable[[list[Pod]], object]] = {
        "NodePorts": lambda pods: filters.ports(asked, pods),
        "NodeResourcesFit": lambda pods: filters.fit(asked, first, pods),
    }
    for name, judge in judges.items():
        plugin, _ = make(name, snapshot)
        state = CycleState()
        if plugin.pre_filter(state, info, snapshot)[1].code is Code.SKIP:
            continue

        def fails(plugin: Any = plugin, state: CycleState = state) -> bool:
            answer = plugin.filter(state, info, snapshot.rows([0]))
            return answer is not None and bool(answer.code_n[0])

        before = fails()
        assert before == (judge(placed) is not None)
        with snapshot.trial() as trial:
            trial.add_pod(PodInfo(extra), 0)
            assert fails() == (judge([*placed, extra]) is not None)
        assert fails() == before
