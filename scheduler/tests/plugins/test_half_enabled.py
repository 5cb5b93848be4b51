"""Points are enabled one by one: what Filter and Score do without their Pre-points."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.framework.cycle_state import CycleState, StateMissingError
from moorage.snapshot.pod_info import PodInfo
from scheduler.tests.plugins.builders import cluster, make, node, pod

WISH: dict[str, Any] = {
    "weight": 5,
    "preference": {"matchExpressions": [{"key": "zone", "operator": "Exists"}]},
}


def affine(*wishes: dict[str, Any]) -> PodInfo:
    rule = {"preferredDuringSchedulingIgnoredDuringExecution": list(wishes)}
    return PodInfo(pod(affinity={"nodeAffinity": rule}))


@pytest.mark.parametrize(
    "name",
    [
        "NodePorts",
        "NodeResourcesFit",
        "NodeDeclaredFeatures",
        "DynamicResources",
        "VolumeBinding",
        "VolumeRestrictions",
    ],
)
def test_filter_without_pre_filter_raises(name):
    plugin, _ = make(name, snapshot := cluster(node()))
    with pytest.raises(StateMissingError, match=r"^not found$"):
        plugin.filter(CycleState(), PodInfo(pod()), snapshot.all())


@pytest.mark.parametrize("name", ["TaintToleration", "DynamicResources"])
def test_score_without_pre_score_raises(name):
    plugin, _ = make(name, snapshot := cluster(node()))
    with pytest.raises(StateMissingError, match=r"^not found$"):
        plugin.score(CycleState(), PodInfo(pod()), snapshot.all())


@pytest.mark.parametrize(
    "name", ["NodeName", "NodeUnschedulable", "TaintToleration", "NodeAffinity"]
)
def test_filters_that_need_no_state_pass_a_plain_pod(name):
    plugin, _ = make(name, snapshot := cluster(node()))
    assert plugin.filter(CycleState(), PodInfo(pod()), snapshot.all()) is None


def test_node_affinity_and_fit_score_without_pre_score():
    snapshot = cluster(node("a", labels={"zone": "z"}), node("b"))
    affinity, _ = make("NodeAffinity", snapshot)
    assert affinity.score(CycleState(), affine(WISH), snapshot.all()).tolist() == [5, 0]
    assert affinity.score(CycleState(), PodInfo(pod()), snapshot.all()).tolist() == [0, 0]
    fit, _ = make("NodeResourcesFit", snapshot)
    asked = PodInfo(pod(requests={"cpu": "2", "memory": "4Gi"}))
    assert fit.score(CycleState(), asked, snapshot.all()).tolist() == [50, 50]


def test_an_invalid_preferred_term_fails_at_pre_score_or_score():
    broken = {"weight": 1, "preference": {"matchExpressions": [{"key": "k", "operator": "Near"}]}}
    plugin, _ = make("NodeAffinity", snapshot := cluster(node()))
    status = plugin.pre_score(CycleState(), affine(WISH, broken), snapshot.all())
    text = '[1]: "Near" is not a valid node selector operator'
    assert (status.code.text, status.reasons) == ("Error", (text,))
    with pytest.raises(ValueError, match="Near"):
        plugin.score(CycleState(), affine(WISH, broken), snapshot.all())
    harmless = {**broken, "weight": 0}
    assert plugin.pre_score(CycleState(), affine(harmless), snapshot.all()).ok
