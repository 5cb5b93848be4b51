"""Every named workload, tiny: it runs, repeats, and its pods go where they demand."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner

from moorage.base.clock import SystemClock
from moorage.base.errors import UsageError
from moorage.base.rng import Streams
from moorage.cli.main import main
from moorage.plugins.in_tree import in_tree_registry
from moorage.plugins.preemption.search import Search
from moorage.service.core import build_core
from moorage.snapshot.listers import Listers
from moorage_lab.bench import engine_run
from moorage_lab.bench.catalogue import WORKLOADS, Size
from moorage_lab.bench.engine_run import EngineRun
from moorage_lab.bench.objects import put_objects
from moorage_lab.bench.report import Result, make_result
from moorage_lab.bench.workload import CreateObjects, CreatePods

TINY = Size(nodes=40, init_pods=20, pods=15)


def run(name: str) -> Result:
    workload = WORKLOADS[name].workload(TINY)
    engine = EngineRun(workload, in_tree_registry(), clock=SystemClock(), streams=Streams(1))
    return engine.run()


@pytest.mark.parametrize("name", list(WORKLOADS))
def test_a_workload_runs_and_repeats(name: str) -> None:
    result = run(name)
    assert (result.scheduled, result.mode) == (15, "engine")
    assert result.params == {"nodes": 40, "initPods": 20, "measurePods": 15}
    assert run(name).digest == result.digest


@pytest.mark.parametrize("name", list(WORKLOADS))
def test_placements_are_the_same_without_reuse(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    reused: list[bool] = []

    def without_reuse(*args: Any, **kwargs: Any) -> Any:
        core = build_core(*args, reuse=False, **kwargs)
        reused.append(any(cycle.reuse is not None for cycle in core.cycles.values()))
        return core

    expected = run(name).digest
    monkeypatch.setattr(engine_run, "build_core", without_reuse)
    assert (run(name).digest, reused) == (expected, [False])


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("pod-anti-affinity", id="by names of namespaces"),
        pytest.param("anti-affinity-namespace-selector", id="by labels of namespaces"),
    ],
)
def test_anti_affinity_leaves_no_room_for_more_pods_than_nodes(name: str) -> None:
    workload = WORKLOADS[name].workload(Size(nodes=30, init_pods=20, pods=11))
    engine = EngineRun(workload, in_tree_registry(), clock=SystemClock(), streams=Streams(1))
    with pytest.raises(UsageError, match=r"-10: 0/30 nodes are available: 30 .* anti-affinity"):
        engine.run()


@pytest.mark.parametrize("name", ["node-affinity", "hard-spread"])
def test_zones_are_respected(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, str]] = []

    def spy(workload: object, mode: str, **measured: object) -> Result:
        placements = measured["placements"]
        assert isinstance(placements, list)
        seen.extend(placements)
        return make_result(workload, mode, **measured)  # type: ignore[arg-type]

    monkeypatch.setattr(engine_run, "make_result", spy)
    run(name)
    by_zone = [0, 0, 0]
    for _, node in seen:
        by_zone[int(node.rpartition("-")[2]) % 3] += 1
    assert sum(by_zone) == 15
    if name == "node-affinity":
        assert by_zone[2] == 0
    else:
        assert max(by_zone) - min(by_zone) <= 5


def test_every_pod_of_volumes_has_a_volume_and_a_claim() -> None:
    listers = Listers()
    claims: list[str] = []
    for op in WORKLOADS["volumes"].workload(TINY).ops:
        if isinstance(op, CreateObjects):
            put_objects(listers, op)
        elif isinstance(op, CreatePods):
            for index in range(op.count):
                (volume,) = op.template(index)["spec"]["volumes"]
                claims.append(volume["persistentVolumeClaim"]["claimName"])
    assert len(claims) == 35
    for name in claims:
        claim = listers.persistent_volume_claims.get(name, "default")
        assert claim is not None
        assert listers.persistent_volumes.get(claim.spec.volume_name) is not None
    assert listers.csi_nodes.get("scheduler-perf-39") is not None


def test_objects_no_workload_has_are_refused() -> None:
    op = CreateObjects(1, lambda index: {"kind": "Lease", "metadata": {"name": str(index)}})
    with pytest.raises(UsageError, match="a workload cannot create a Lease"):
        put_objects(Listers(), op)


def test_the_command_names_every_workload_and_prints_its_result() -> None:
    told = CliRunner().invoke(main, ["bench", "workload", "--help"]).output
    assert [name for name in WORKLOADS if f"\n    {name} " not in told] == []
    size = ["--nodes", "9", "--init-pods", "3", "--pods", "2"]
    arguments = ["workload", "pod-affinity", *size, "--seed", "4", "-o", "json"]
    outcome = CliRunner().invoke(main, ["bench", *arguments])
    result = json.loads(outcome.stdout)
    assert (result["workload"], result["scheduled"]) == ("SchedulingPodAffinity", 2)
    assert len(result["digest"]) == 64


def test_preemptors_evict_pods_and_the_report_counts_them() -> None:
    workload = WORKLOADS["preemption"].workload(Size(nodes=10, init_pods=40, pods=10))

    def once() -> Result:
        streams = Streams(1)
        return EngineRun(workload, in_tree_registry(), clock=SystemClock(), streams=streams).run()

    result = once()
    assert (result.scheduled, result.evicted) == (10, 30)
    assert result.candidates_per_second
    assert any(line.startswith("  preemption: 30 pods evicted, ") for line in result.as_lines())
    assert result.as_json()["evicted"] == 30
    assert once().digest == result.digest


@pytest.mark.parametrize(
    ("options", "tried"),
    [
        # Without: 100 candidates are enough, and no node is nominated to yet.
        pytest.param([], 100, id="as many candidates as are enough"),
        pytest.param(["--all-candidates"], 120, id="every node"),
    ],
)
def test_every_node_is_a_candidate_where_the_option_says_so(
    options: list[str], tried: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: list[int] = []
    run = Search.run

    def counting(self: Search, rows: Any, first: int, wanted: int) -> None:
        run(self, rows, first, wanted)
        counts.append(self.tried)

    monkeypatch.setattr(Search, "run", counting)
    size = ["--nodes", "120", "--init-pods", "480", "--pods", "1"]
    outcome = CliRunner().invoke(
        main, ["bench", "workload", "preemption", *size, *options, "-o", "json"]
    )
    assert outcome.exit_code == 0
    assert counts == [tried]


def test_preemptors_that_fit_nowhere_end_the_run_with_an_error() -> None:
    workload = WORKLOADS["preemption"].workload(Size(nodes=1, init_pods=4, pods=2))
    engine = EngineRun(workload, in_tree_registry(), clock=SystemClock(), streams=Streams(1))
    with pytest.raises(UsageError, match="does not fit"):
        engine.run()
