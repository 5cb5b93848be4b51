"""The map of in-tree plugins: names, order, points."""

from __future__ import annotations

import pytest

from moorage.base.errors import ConfigError
from moorage.config.defaults import DEFAULT_MULTI_POINT, default_multi_point
from moorage.config.feature_gates import feature_gates
from moorage.config.gate_table import gates_of_version
from moorage.config.plugin_args import (
    NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    ResourceSpec,
    ScoringStrategy,
)
from moorage.config.types import PluginRef
from moorage.framework.points import Plugin
from moorage.framework.registry import POINT_METHODS
from moorage.plugins.in_tree import IN_TREE, in_tree_registry
from scheduler.tests.plugins.builders import make

# kubernetes v1.36, default profile: plugins by point, in order.
POINTS = {
    "preEnqueue": "SchedulingGates DynamicResources DefaultPreemption GangScheduling",
    "queueSort": "PrioritySort",
    "preFilter": "NodeAffinity NodePorts NodeResourcesFit VolumeRestrictions NodeVolumeLimits "
    "VolumeBinding VolumeZone PodTopologySpread InterPodAffinity DynamicResources "
    "NodeDeclaredFeatures",
    "filter": "NodeUnschedulable NodeName TaintToleration NodeAffinity NodePorts NodeResourcesFit "
    "VolumeRestrictions NodeVolumeLimits VolumeBinding VolumeZone PodTopologySpread "
    "InterPodAffinity DynamicResources NodeDeclaredFeatures",
    "postFilter": "DynamicResources DefaultPreemption",
    "preScore": "TaintToleration NodeAffinity NodeResourcesFit VolumeBinding PodTopologySpread "
    "InterPodAffinity NodeResourcesBalancedAllocation",
    "score": "TaintToleration NodeAffinity NodeResourcesFit VolumeBinding PodTopologySpread "
    "InterPodAffinity DynamicResources NodeResourcesBalancedAllocation ImageLocality",
    "reserve": "VolumeBinding DynamicResources",
    "permit": "GangScheduling",
    "preBind": "VolumeBinding DynamicResources",
    "bind": "DefaultBinder",
    "postBind": "",
    "placementGenerate": "TopologyPlacementGenerator",
    "placementScore": "NodeResourcesFit PodGroupPodsCount",
    "podGroupPostFilter": "DefaultPreemption",
}


def test_names_and_order_are_those_of_the_default_profile_with_every_gate_on():
    built = [gate.name for gate in gates_of_version("1.36") if True in gate.built]
    gates = feature_gates(dict.fromkeys(built, True))
    assert [entry.name for entry in IN_TREE] == [ref.name for ref in default_multi_point(gates)]
    assert default_multi_point() == DEFAULT_MULTI_POINT


def test_the_plugin_of_a_gate_is_left_out_of_the_default_profile_without_the_gate():
    without = default_multi_point(feature_gates({"NodeDeclaredFeatures": False}))
    assert set(DEFAULT_MULTI_POINT) - set(without) == {PluginRef(name="NodeDeclaredFeatures")}


@pytest.mark.parametrize("point", list(POINT_METHODS))
def test_plugins_extend_the_points_they_extend_upstream(point):
    found = [entry.name for entry in IN_TREE if entry.extends(point)]
    assert found == POINTS[point].split()


def test_normalising_plugins():
    found = [entry.name for entry in IN_TREE if hasattr(entry.plugin_class, "normalize")]
    expected = "TaintToleration NodeAffinity PodTopologySpread InterPodAffinity DynamicResources"
    assert found == expected.split()


def test_every_plugin_can_be_made_with_default_arguments():
    for entry in in_tree_registry():
        plugin, _ = make(entry.name)
        assert isinstance(plugin, Plugin)
        assert plugin.name == entry.name


@pytest.mark.parametrize(
    ("name", "args"),
    [
        pytest.param(
            "NodeResourcesFit",
            NodeResourcesFitArgs(scoring_strategy=ScoringStrategy(type="Best")),
            id="an unknown strategy",
        ),
        pytest.param(
            "NodeResourcesFit",
            NodeResourcesFitArgs(scoring_strategy=None),
            id="no scoring strategy",
        ),
        pytest.param(
            "NodeResourcesBalancedAllocation",
            NodeResourcesBalancedAllocationArgs(resources=(ResourceSpec(name="cpu", weight=2),)),
            id="a weight other than one",
        ),
    ],
)
def test_plugins_reject_invalid_arguments(name, args):
    with pytest.raises(ConfigError):
        make(name, args=args)


def test_plugins_without_arguments_ignore_arguments():
    plugin, _ = make("NodeName", args=NodeAffinityArgs())
    assert plugin.name == "NodeName"
