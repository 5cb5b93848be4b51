"""Plugin lists and arguments of the past: what today's profile says in their place.

The whole converted profile is compared. Whether a profile decides alike is not covered here.
"""

from __future__ import annotations

from typing import Any

import pytest

from moorage.config.convert.profile import ProfileConversion
from moorage.config.convert.remarks import Remarks

V1 = "kubescheduler.config.k8s.io/v1"


def refs(*names: str) -> list[dict[str, Any]]:
    return [{"name": name} for name in names]


def args(plugin: str, **values: Any) -> dict[str, Any]:
    return {"name": plugin, "args": {"apiVersion": V1, "kind": f"{plugin}Args", **values}}


def fit(**strategy: Any) -> dict[str, Any]:
    return args("NodeResourcesFit", scoringStrategy=strategy)


def converted(profile: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]], list[str]]:
    remarks = Remarks()
    conversion = ProfileConversion("profiles[0]", remarks)
    conversion.arguments(profile.get("pluginConfig"))
    plugins = conversion.plugins(profile.get("plugins", {}))
    told = [f"{each.kind} {each.path}" for each in remarks.remarks]
    return plugins, conversion.plugin_config(), told


@pytest.mark.parametrize(
    ("lists", "plugins", "told"),
    [
        pytest.param(
            {"permit": {"enabled": refs("Mine")}, "score": {"disabled": refs("*")}},
            {"permit": {"enabled": refs("Mine")}, "score": {"disabled": refs("*")}},
            [],
            id="names that are still there stay as they are",
        ),
        pytest.param(
            {"filter": {"disabled": refs("EBSLimits"), "enabled": refs("A")}},
            {"filter": {"enabled": refs("A")}},
            ["dropped profiles[0].plugins.filter.disabled[0]"],
            id="a plugin that is gone is dropped from a list",
        ),
        pytest.param(
            {"unreserve": {"enabled": refs("A")}},
            {},
            ["dropped profiles[0].plugins.unreserve"],
            id="the point unreserve is dropped",
        ),
        pytest.param(
            {"queueSort": {"enabled": refs("QOSSort")}},
            {"queueSort": {"enabled": refs("QOSSort"), "disabled": refs("PrioritySort")}},
            ["changed profiles[0].plugins.queueSort"],
            id="another queue sort plugin disables the default one",
        ),
        pytest.param(
            {"queueSort": {"enabled": refs("QOSSort"), "disabled": refs("*")}},
            {"queueSort": {"enabled": refs("QOSSort"), "disabled": refs("*")}},
            [],
            id="a queue sort list that disables something is left alone",
        ),
        pytest.param(
            {"score": {"disabled": refs("NodeResourcesLeastAllocated")}},
            {"score": {"disabled": refs("NodeResourcesFit")}},
            ["changed profiles[0].plugins.score.disabled"],
            id="without least allocated NodeResourcesFit does not score",
        ),
    ],
)
def test_plugin_lists(lists: dict[str, Any], plugins: dict[str, Any], told: list[str]) -> None:
    assert converted({"plugins": lists}) == (plugins, [], told)


def test_the_strategy_that_a_profile_scores_by_keeps_weight_and_arguments() -> None:
    shape = [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]
    plugins, config, told = converted(
        {
            "plugins": {
                "score": {
                    "disabled": refs("NodeResourcesLeastAllocated"),
                    "enabled": [{"name": "RequestedToCapacityRatio", "weight": 5}],
                }
            },
            "pluginConfig": [
                {
                    "name": "RequestedToCapacityRatio",
                    "args": {"functionshape": shape, "resourcetoweightmap": {"example.com/a": 3}},
                }
            ],
        }
    )
    assert plugins == {"score": {"enabled": [{"name": "NodeResourcesFit", "weight": 5}]}}
    assert config == [
        fit(
            type="RequestedToCapacityRatio",
            resources=[{"name": "example.com/a", "weight": 3}],
            requestedToCapacityRatio={"shape": shape},
        )
    ]
    assert told == ["changed profiles[0].plugins.score.enabled[0]"]


def test_of_two_strategies_the_enabled_one_stays() -> None:
    plugins, config, told = converted(
        {"plugins": {"score": {"enabled": refs("NodeResourcesMostAllocated")}}}
    )
    assert plugins == {"score": {"enabled": refs("NodeResourcesFit")}}
    assert config == [fit(type="MostAllocated")]
    assert told == [
        "dropped profiles[0].plugins.score",
        "changed profiles[0].plugins.score.enabled[0]",
    ]


@pytest.mark.parametrize(
    ("entry", "config", "told"),
    [
        pytest.param(
            {"name": "NodeResourcesLeastAllocated", "args": {"resources": [{"name": "cpu"}]}},
            [fit(type="LeastAllocated", resources=[{"name": "cpu"}])],
            [],
            id="arguments of the default scoring",
        ),
        pytest.param(
            {"name": "NodeResourcesMostAllocated", "args": {"resources": []}},
            [],
            ["dropped profiles[0].pluginConfig"],
            id="arguments of a scoring that is not enabled",
        ),
        pytest.param(
            {"name": "Coscheduling", "args": {"podGroupGCIntervalSeconds": 30}},
            [],
            ["dropped profiles[0].pluginConfig[0].args.podGroupGCIntervalSeconds"],
            id="an argument that is gone",
        ),
        pytest.param(
            {"name": "ServiceAffinity", "args": {"affinityLabels": ["a"]}},
            [],
            ["dropped profiles[0].pluginConfig[0]"],
            id="arguments of a plugin that is gone",
        ),
        pytest.param(
            {"name": "PodTopologySpread", "args": {"defaultConstraints": [{"maxSkew": 1}]}},
            [args("PodTopologySpread", defaultConstraints=[{"maxSkew": 1}], defaultingType="List")],
            [],
            id="default constraints name their type",
        ),
        pytest.param(
            {"name": "Mine", "args": {"apiVersion": "kubescheduler.config.k8s.io/v1beta2", "a": 1}},
            [{"name": "Mine", "args": {"apiVersion": V1, "a": 1}}],
            [],
            id="arguments of a plugin defined elsewhere get the version only",
        ),
        pytest.param(
            {"name": "NodeLabel", "args": {"presentLabels": ["a"], "absentLabels": ["b"]}},
            [
                args(
                    "NodeAffinity",
                    addedAffinity={
                        "requiredDuringSchedulingIgnoredDuringExecution": {
                            "nodeSelectorTerms": [
                                {
                                    "matchExpressions": [
                                        {"key": "a", "operator": "Exists"},
                                        {"key": "b", "operator": "DoesNotExist"},
                                    ]
                                }
                            ]
                        }
                    },
                )
            ],
            ["changed profiles[0].pluginConfig[0].args"],
            id="labels that nodes must have or lack",
        ),
    ],
)
def test_arguments(entry: dict[str, Any], config: list[dict[str, Any]], told: list[str]) -> None:
    assert converted({"pluginConfig": [entry]}) == ({}, config, told)
