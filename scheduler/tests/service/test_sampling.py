"""percentageOfNodesToScore from the configuration to the decision, over two profiles."""

from __future__ import annotations

from moorage.base.clock import ManualClock
from moorage.base.rng import Streams
from moorage.config.load import config_from_values
from moorage.config.own import LoadedConfiguration
from moorage.plugins.in_tree import in_tree_registry
from moorage.service.core import build_core
from moorage.snapshot.pod_info import PodInfo
from moorage_sandbox.testing.builders import node, pod

CONFIG = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "leaderElection": {"leaderElect": False},
    "percentageOfNodesToScore": 0,
    "profiles": [
        {"schedulerName": "adaptive"},
        {"schedulerName": "more", "percentageOfNodesToScore": 80},
        {"schedulerName": "every", "percentageOfNodesToScore": 100},
    ],
}


def test_profiles_search_as_many_nodes_as_configured_and_go_on_where_the_last_one_ended():
    config = config_from_values(CONFIG)
    core = build_core(
        LoadedConfiguration(config), in_tree_registry(), clock=ManualClock(), streams=Streams(1)
    )
    for i in range(150):
        core.snapshot.table.add_node(node(f"n{i:03}"))
    seen = []
    for name in ("adaptive", "more", "every", "adaptive"):
        decision = core.cycles[name].decide(PodInfo(pod("p", schedulerName=name)))
        seen.append((decision.feasible, decision.evaluated))
    assert seen == [(100, 100), (120, 120), (150, 150), (100, 100)]
    # The searches began at 0, 100, 70, 70 and 70; so this one begins at 20.
    searched = core.cycles["adaptive"].decide(PodInfo(pod("q", schedulerName="adaptive")))
    assert searched.node_name in {f"n{i:03}" for i in range(20, 120)}
