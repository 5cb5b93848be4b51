"""Profiles compared on the same pods: what is left over tells packing from spreading."""

from __future__ import annotations

from pathlib import Path

import pytest

from moorage.base.clock import ManualClock
from moorage.base.errors import UsageError
from moorage.base.rng import Streams
from moorage.config.load import load_config, parse_config
from moorage.plugins.in_tree import in_tree_registry
from moorage_lab.bench.packing import Packing, pack

CONFIG = Path(__file__).resolve().parents[3] / "examples/profiles/packing.yaml"


def packed(nodes: int = 12, seed: int = 1) -> dict[str, Packing]:
    found = pack(
        load_config(CONFIG),
        in_tree_registry(),
        node_count=nodes,
        clock=ManualClock(),
        streams=Streams(seed),
    )
    return {each.profile: each for each in found}


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_packing_leaves_whole_nodes_where_spreading_strands_gpus(seed):
    found = packed(seed=seed)
    packing, spreading = found["gpu-bin-packing"], found["service-spreading"]
    assert (packing.pending, spreading.pending) == (0, 0)
    assert packing.gpus_percent == spreading.gpus_percent
    # 12 nodes, 72 of 96 GPUs wanted at most: three nodes' worth stays free, and in whole nodes.
    assert packing.whole_nodes >= 3
    assert packing.gpus_stranded <= 8
    assert spreading.whole_nodes == 0


def test_both_profiles_are_given_the_same_pods():
    names = [[pod.full_name for pod in each.pods] for each in packed().values()]
    assert names[0] == names[1]


def test_a_run_repeats_to_the_digest():
    first, again = packed(), packed()
    assert {k: v.digest for k, v in first.items()} == {k: v.digest for k, v in again.items()}


def test_replicas_of_a_service_stand_apart_under_spreading():
    spread = packed()["service-spreading"]
    for app in ("search", "chat", "feed"):
        homes = [p.spec.node_name for p in spread.pods if p.metadata.labels["app"] == app]
        assert len(homes) == 10
        assert len(set(homes)) == 10


def test_extenders_are_refused_rather_than_left_out():
    config = parse_config(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "extenders: [{urlPrefix: http://localhost:1, filterVerb: filter}]\n"
    )
    with pytest.raises(UsageError, match="asks no extenders"):
        pack(config, in_tree_registry(), node_count=1, clock=ManualClock(), streams=Streams(1))
