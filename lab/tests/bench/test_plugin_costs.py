"""Costs of plugins on tiny clusters: every case gives its plugin work, and all are told."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from moorage.base.clock import ManualClock, SystemClock
from moorage.base.errors import UsageError
from moorage.base.rng import Streams
from moorage.cli.main import main
from moorage.config.defaults import DEFAULT_MULTI_POINT
from moorage.framework.registry import POINT_METHODS
from moorage.plugins.in_tree import in_tree_registry
from moorage_lab.bench import plugin_costs
from moorage_lab.bench.plugin_cases import CASES, MIXES, NODES_LEAST
from moorage_lab.bench.plugin_costs import Laboratory, costs_json, costs_lines, machine, measure
from moorage_lab.bench.workload import default_pod

NODES = 300
SCORING = {
    "TaintToleration",
    "NodeAffinity",
    "NodeResourcesFit",
    "PodTopologySpread",
    "InterPodAffinity",
    "NodeResourcesBalancedAllocation",
    "ImageLocality",
}
NOT_FILTERING = {"NodeResourcesBalancedAllocation", "ImageLocality"}


def test_every_plugin_with_work_to_measure_has_a_case() -> None:
    methods = [m for p in ("preFilter", "filter", "preScore", "score") for m in POINT_METHODS[p]]
    registry = in_tree_registry()
    found = set()
    for ref in DEFAULT_MULTI_POINT:
        entry = registry.find(ref.name)
        assert entry is not None
        if any(hasattr(entry.plugin_class, method) for method in methods):
            found.add(ref.name)
    assert found - {"DynamicResources"} == set(CASES)


@pytest.mark.parametrize(("nodes", "seed"), [(NODES_LEAST, 1), (11, 2), (23, 3), (100, 4)])
def test_clusters_of_any_size_have_room_for_every_case(nodes: int, seed: int) -> None:
    streams = Streams(seed)
    costs = measure([nodes], in_tree_registry(), clock=SystemClock(), streams=streams, samples=9)
    assert costs[nodes].plugins.keys() == CASES.keys()
    assert costs[nodes].mixes.keys() == MIXES.keys()


def test_zones_that_grow_apart_with_the_cluster_stay_within_the_skew_asked_for() -> None:
    nodes = 6500  # of which each of two zones has over a thousand blue residents, the third none
    lab = Laboratory(nodes, in_tree_registry(), clock=ManualClock(), streams=Streams(1), samples=1)
    for name in ("spread", "spread + pod affinity", "everything"):
        lab.mix(name)


def test_fewer_nodes_than_the_cases_need_are_refused_before_anything_is_measured() -> None:
    told: list[str] = []
    with pytest.raises(UsageError, match="at least 10 nodes, not 9"):
        measure(
            [5000, 9],
            in_tree_registry(),
            clock=ManualClock(),
            streams=Streams(1),
            progress=told.append,
        )
    assert told == []


def test_a_case_leaves_no_pod_behind() -> None:
    lab = Laboratory(50, in_tree_registry(), clock=SystemClock(), streams=Streams(1), samples=3)
    before = lab._snapshot.table.pod_total
    lab.plugin("NodePorts")
    lab.mix("spread")
    assert lab._snapshot.table.pod_total == before == 50


def test_every_plugin_cost_is_measured_and_reported() -> None:
    costs = measure([NODES], in_tree_registry(), clock=SystemClock(), streams=Streams(1), samples=3)
    plugins = costs[NODES].plugins
    assert {name for name, cost in plugins.items() if cost.score_us is not None} == SCORING
    assert {name for name, cost in plugins.items() if cost.filter_us is None} == NOT_FILTERING
    assert all(cost.total_us > 0 for cost in plugins.values())
    assert all(cost.reused_us > 0 < cost.full_us for cost in costs[NODES].mixes.values())
    told = costs_json(costs, now_ns=ManualClock().now_ns())
    assert (told.pop("machine"), told.pop("measured")) == (machine(), "2026-01-01")
    assert told == {name: {str(NODES): cost.total_us} for name, cost in plugins.items()}
    lines = costs_lines(costs)
    assert [name for name in (*CASES, *MIXES) if not any(x.startswith(name) for x in lines)] == []


def test_a_plugin_that_skips_its_pod_is_no_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CASES, "NodePorts", default_pod)
    lab = Laboratory(9, in_tree_registry(), clock=ManualClock(), streams=Streams(1), samples=1)
    with pytest.raises(UsageError, match="NodePorts had nothing to filter: Skip"):
        lab.plugin("NodePorts")


@pytest.mark.parametrize("sizes", ["", "0", "5,x", "-3", "1,,2"])
def test_faulty_sizes_are_refused(sizes: str) -> None:
    outcome = CliRunner().invoke(main, ["bench", "plugins", f"--nodes={sizes}"])
    assert outcome.exit_code == 2
    assert "is no list of positive numbers" in outcome.stderr


def test_the_command_prints_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugin_costs, "MIXES", {})
    outcome = CliRunner().invoke(main, ["bench", "plugins", "--nodes", str(NODES), "-o", "json"])
    assert set(json.loads(outcome.stdout)) == {*CASES, "machine", "measured"}
