"""The numbers of a group: bounds that no attempt exceeds, and amounts as the plugins judge them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.base.clock import ManualClock
from moorage.base.rng import Streams
from moorage.config.load import parse_config
from moorage.config.own import LoadedConfiguration
from moorage.engine.decision import Outcome
from moorage.engine.groups.numbers import GroupNumbers, ViewSums
from moorage.plugins.in_tree import in_tree_registry
from moorage.service.core import Core, build_core
from moorage.snapshot.pod_info import PodInfo, info_of
from moorage.state.nominations import NominatingInfo
from moorage_sandbox.testing.builders import node, pod

GPU = "example.com/gpu"
IGNORED = f"""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  pluginConfig:
  - name: NodeResourcesFit
    args: {{ignoredResources: [{GPU}]}}
"""


def cluster(nodes: list[dict[str, Any]], config: str = "") -> Core:
    loaded = parse_config(config) if config else LoadedConfiguration()
    core = build_core(loaded, in_tree_registry(), clock=ManualClock(), streams=Streams(1))
    for index, fields in enumerate(nodes):
        core.snapshot.table.add_node(node(f"n{index}", **fields))
    return core


def member(number: int, **fields: Any) -> PodInfo:
    requests = {"cpu": fields.pop("cpu", "1"), **fields.pop("requests", {})}
    containers = [{"name": "main", "image": "app", "resources": {"requests": requests}}]
    return info_of(pod(f"p{number}", containers=containers, **fields))


def numbers_of(core: Core, pods: list[PodInfo]) -> GroupNumbers:
    return GroupNumbers(core.cycles["default-scheduler"], pods)


def bounds(core: Core, pods: list[PodInfo]) -> list[int]:
    rows = [core.snapshot.rows([row]) for row in range(core.snapshot.num_nodes)]
    return numbers_of(core, pods).bounds(ViewSums(rows))


@pytest.mark.parametrize(
    ("core", "pods", "expected"),
    [
        pytest.param(
            cluster([{"cpu": "8", GPU: "2"}, {"cpu": "8"}]),
            [member(number, requests={GPU: "1"}) for number in range(3)],
            [2, 0],
            id="a resource that few nodes have",
        ),
        pytest.param(
            cluster([{"cpu": "8"}]),
            [member(number, cpu=str(1 + number % 2)) for number in range(8)],
            [6],
            id="the sum of the smallest members",
        ),
        pytest.param(
            cluster([{"cpu": "8"}, {"cpu": "8", "labels": {"disk": "fast"}}]),
            [member(1), member(2, nodeSelector={"disk": "fast"})],
            [1, 2],
            id="a class that the plugins do not admit",
        ),
        pytest.param(
            cluster([{"cpu": "8"}], IGNORED),
            [member(number, requests={GPU: "1"}) for number in range(3)],
            [3],
            id="a resource that NodeResourcesFit ignores",
        ),
    ],
)
def test_at_most_how_many_members_fit_each_node(
    core: Core, pods: list[PodInfo], expected: list[int]
) -> None:
    assert bounds(core, pods) == expected


@pytest.mark.parametrize(
    ("config", "names"), [("", ("pods", "cpu", GPU)), (IGNORED, ("pods", "cpu"))]
)
def test_a_problem_has_the_amounts_that_are_judged(config: str, names: tuple[str, ...]) -> None:
    core = cluster([{"cpu": "8", GPU: "2"}], config)
    pods = [member(number, requests={GPU: str(number)}) for number in (1, 2)]
    problem, proves = numbers_of(core, pods).problem(2, None)
    assert (problem.dimensions, proves) == (names, True)


def test_a_nominated_member_that_pre_filter_rejects_has_no_amounts() -> None:
    core = cluster([{"cpu": "8"}])
    claim = {"name": "data", "persistentVolumeClaim": {"claimName": "missing"}}
    pods = [member(number, volumes=[claim]) for number in (1, 2)]
    core.store.put_pod(pods[0].pod)
    core.queue.nominator.add(pods[0].pod, NominatingInfo("n0"), queued=pods[0].pod)
    problem, proves = numbers_of(core, pods).problem(2, None)
    assert (problem.dimensions, problem.nodes, proves) == ((), (), False)


@settings(max_examples=50, deadline=None)
@given(
    nodes=st.lists(st.tuples(st.integers(1, 6), st.integers(0, 4)), min_size=1, max_size=3),
    wanted=st.lists(st.tuples(st.integers(1, 3), st.integers(0, 2)), min_size=1, max_size=6),
)
def test_no_attempt_places_more_than_the_bound(nodes, wanted):
    core = cluster([{"cpu": str(cpu), GPU: str(gpus)} for cpu, gpus in nodes])
    pods = [
        member(number, cpu=str(cpu), requests={GPU: str(gpus)} if gpus else {})
        for number, (cpu, gpus) in enumerate(wanted)
    ]
    rows = np.arange(len(nodes))
    (bound,) = numbers_of(core, pods).bounds(ViewSums([core.snapshot.rows(rows)]))
    placed = 0
    for each in pods:
        decision = core.cycles["default-scheduler"].decide(each)
        if decision.outcome is Outcome.BIND:
            core.cache.assume_pod(each.pod, decision.node_name)
            placed += 1
    assert placed <= bound <= len(pods)
