"""Ready configurations for pods that share GPUs."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from lab.tests.traces.scenes import nodes, pods
from moorage.base.errors import ConfigError, UsageError
from moorage.plugins.gpu_share.policies import POLICIES
from moorage_lab.bench.fgd.openb import read_pods, typical_of
from moorage_lab.traces.in_python import simulate
from moorage_lab.traces.inputs import inputs_of
from moorage_lab.traces.scenario import API_VERSION, KIND, scenario_of
from moorage_lab.traces.variants import variants_of

DATA = Path(__file__).parents[1] / "bench" / "fgd" / "data"


def scenario(*policies: str) -> dict[str, Any]:
    """Return the cut of a trace under some policies."""
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "nodes": [{"trace": str(DATA / "openb_node_list_gpu_node.csv"), "preset": "openb"}],
        "pods": [
            {
                "trace": str(DATA / "openb_pod_list_gpuspec33.csv"),
                "preset": "openb",
                "arrivals": {"kind": "spaced"},
                "runTime": {"kind": "forever"},
            }
        ],
        "configurations": [{"name": each, "gpuPolicy": each} for each in policies],
    }


def test_a_policy_expects_the_most_frequent_pods_of_the_trace() -> None:
    known = scenario_of(scenario("FGD", "Lookahead"), folder=Path())
    expected = typical_of(read_pods(DATA, "gpuspec33"))
    for variant in variants_of(known, partial(inputs_of, known)):
        [profile] = variant.load().config.scheduler.profiles
        [own] = [each for each in profile.plugin_config if each.name in POLICIES.values()]
        assert [
            (each.cpu_milli, each.gpus, each.gpu_milli, set(each.models), each.share)
            for each in own.args.typical_pods
        ] == [
            (each.cpu_milli, each.gpus, each.gpu_milli, set(each.models), each.share)
            for each in expected
        ]


def test_every_policy_places_the_pods_of_a_trace_in_its_own_way() -> None:
    found = simulate(scenario(*POLICIES))
    digests = {run.configuration: run.digest for run in found.of_runs}
    assert set(digests) == set(POLICIES)
    assert len(set(digests.values())) == len(POLICIES)
    for row in found.pods.rows:
        assert row["node"] or "GPU" in row["reason"] or "Insufficient" in row["reason"]


def test_a_policy_decides_alone() -> None:
    known = scenario_of(scenario("BestFit"), folder=Path())
    [variant] = variants_of(known, partial(inputs_of, known))
    loaded = variant.load()
    assert "GpuBestFit" in variant.text
    [profile] = loaded.config.scheduler.profiles
    assert [each.name for each in profile.plugins.score.enabled] == ["GpuBestFit"]


@pytest.mark.parametrize(
    ("configuration", "message"),
    [
        pytest.param({"gpuPolicy": "Best"}, "write one of Random, DotProd", id="unknown"),
        pytest.param(
            {"gpuPolicy": "FGD", "file": "a.yaml"},
            "write a file or a gpuPolicy, not both",
            id="beside a file",
        ),
        pytest.param(
            {"gpuPolicy": "FGD"}, "no pod asks for GPUs", id="nothing is known of GPUs to come"
        ),
    ],
)
def test_a_policy_that_cannot_be_used_is_refused(
    configuration: dict[str, Any], message: str
) -> None:
    named = {"name": "x", **configuration}
    with pytest.raises((ConfigError, UsageError), match=message):
        simulate({"nodes": [nodes(2)], "pods": [pods("1")], "configurations": [named]})
