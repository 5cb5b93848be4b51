"""Fields of the configuration that 1.37 added: what they do, and that 1.36 refuses them."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.base.errors import ConfigError
from moorage.config.differences import differences
from moorage.config.feature_gates import FeatureGates, feature_gates
from moorage.config.load import config_from_values
from moorage.config.merge import ProfileSpec, expand_profiles
from moorage.config.own import LoadedConfiguration
from moorage.plugins.in_tree import in_tree_registry

OF_1_36 = feature_gates({}, "1.36")
OF_1_37 = feature_gates({}, "1.37")
TOPOLOGY = feature_gates({"GenericWorkload": True, "TopologyAwareWorkloadScheduling": True}, "1.37")
OFF = {"disabled": [{"name": "DefaultPreemption"}]}
PERCENTAGE = "percentageOfPlacementsToScore"


def loaded(plugins: Any = (), *, own: Any = (), **fields: Any) -> LoadedConfiguration:
    profile = {"schedulerName": "a", "plugins": dict(plugins), **dict(own)}
    values = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [profile],
        **fields,
    }
    return LoadedConfiguration(config_from_values(values))


def spec_of(config: LoadedConfiguration, gates: FeatureGates) -> ProfileSpec:
    (spec,) = expand_profiles(config.scheduler, in_tree_registry(), gates=gates)
    return spec


@pytest.mark.parametrize(
    ("config", "path"),
    [
        pytest.param(loaded(**{PERCENTAGE: 50}), PERCENTAGE, id="the percentage for all profiles"),
        pytest.param(
            loaded(own={PERCENTAGE: 0}),
            f"profiles[0].{PERCENTAGE}",
            id="the percentage of a profile",
        ),
        pytest.param(
            loaded({"podGroupPostFilter": {}}),
            "profiles[0].plugins.podGroupPostFilter",
            id="an empty set of plugins that make room for groups",
        ),
        pytest.param(
            loaded({"placementFeasible": {"enabled": [{"name": "GangScheduling"}]}}),
            "profiles[0].plugins.placementFeasible",
            id="plugins that say whether a group has its minimum",
        ),
    ],
)
def test_1_36_does_not_know_a_field_of_1_37(config, path):
    with pytest.raises(ConfigError) as caught:
        spec_of(config, OF_1_36)
    expected = f'unknown field "{path}": 1.36 does not have it, 1.37 has'
    assert list(caught.value.faults) == [expected]
    spec_of(config, TOPOLOGY)
    row = differences(
        LoadedConfiguration(config.scheduler, gates=OF_1_36),
        LoadedConfiguration(config.scheduler, gates=TOPOLOGY),
        in_tree_registry(),
    )
    assert [(e.name, e.before, e.now) for e in row if e.kind == "field"] == [
        (path, "unknown", "in force")
    ]


@pytest.mark.parametrize(
    ("plugins", "in_1_36", "in_1_37"),
    [
        pytest.param({}, "DefaultPreemption", "DefaultPreemption", id="by default"),
        pytest.param({"postFilter": OFF}, "", "DefaultPreemption", id="off for single pods"),
        pytest.param({"podGroupPostFilter": OFF}, None, "", id="off for groups"),
        pytest.param({"multiPoint": OFF}, "", "", id="off everywhere"),
        pytest.param(
            {"multiPoint": OFF, "podGroupPostFilter": {"enabled": [{"name": "DefaultPreemption"}]}},
            None,
            "DefaultPreemption",
            id="on for groups alone",
        ),
    ],
)
def test_the_plugins_that_make_room_for_groups(plugins, in_1_36, in_1_37):
    config = loaded(plugins)
    if in_1_36 is not None:
        found = spec_of(config, OF_1_36).points["podGroupPostFilter"]
        assert " ".join(found) == in_1_36
    assert " ".join(spec_of(config, OF_1_37).points["podGroupPostFilter"]) == in_1_37


@pytest.mark.parametrize(
    ("config", "gates", "expected"),
    [
        pytest.param(
            loaded(**{PERCENTAGE: 50}),
            OF_1_37,
            f"{PERCENTAGE}: Forbidden: needs the feature gate TopologyAwareWorkloadScheduling",
            id="a percentage of placements without placements",
        ),
        pytest.param(
            loaded({"podGroupPostFilter": {"enabled": [{"name": "NodeName"}]}}),
            OF_1_37,
            'creating profile for scheduler name a: plugin "NodeName" does not extend '
            "PodGroupPostFilterPlugin plugin",
            id="a plugin that makes no room for groups",
        ),
        pytest.param(
            loaded({"placementFeasible": {"enabled": [{"name": "NodeName"}]}}),
            OF_1_37,
            "profiles[0].plugins.placementFeasible.enabled[0]: Forbidden: only GangScheduling is "
            "asked there; another plugin is not built yet",
            id="a plugin that knows no minimum",
        ),
        pytest.param(
            loaded({"placementFeasible": {"disabled": [{"name": "*"}]}}),
            OF_1_37,
            "profiles[0].plugins.placementFeasible.disabled: Forbidden: a group without its "
            "minimum is not built yet: disable GangScheduling at multiPoint",
            id="groups without a minimum",
        ),
    ],
)
def test_what_1_37_or_moorage_refuses(config, gates, expected):
    with pytest.raises(ConfigError) as caught:
        spec_of(config, gates)
    assert list(caught.value.faults) == [expected]


@pytest.mark.parametrize(
    ("everywhere", "own", "expected"),
    [
        pytest.param({}, {}, 100, id="unset: every placement"),
        pytest.param({PERCENTAGE: 30}, {}, 30, id="for all profiles"),
        pytest.param({PERCENTAGE: 30}, {PERCENTAGE: 0}, 0, id="the profile's own, even 0"),
    ],
)
def test_how_many_placements_are_tried(everywhere, own, expected):
    spec = spec_of(loaded(own=own, **everywhere), TOPOLOGY)
    assert spec.percentage_of_placements_to_score == expected


def test_a_percentage_of_placements_is_in_range():
    with pytest.raises(ConfigError) as caught:
        loaded(**{PERCENTAGE: 101})
    assert list(caught.value.faults) == [
        f"{PERCENTAGE}: Invalid value: 101: not in valid range [0-100]"
    ]


def test_placement_scores_have_weights_of_their_own():
    plugins = {
        "score": {"enabled": [{"name": "NodeResourcesFit", "weight": 7}]},
        "placementScore": {"enabled": [{"name": "PodGroupPodsCount", "weight": 4}]},
    }
    spec = spec_of(loaded(plugins), TOPOLOGY)
    assert spec.placement_weights == {"PodGroupPodsCount": 4, "NodeResourcesFit": 1}
    assert spec.score_weights["NodeResourcesFit"] == 7
