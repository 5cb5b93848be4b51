"""Whole files of the past: what they become, and that ``config check`` accepts it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.api.yaml_text import write_yaml
from moorage.base.errors import ConfigError
from moorage.config.convert.files import Converted, convert_flags, convert_text
from moorage.config.load import read_config
from moorage.config.merge import ProfileSpec, expand_profiles
from moorage.config.past import PAST_PLUGINS, PAST_VERSIONS, PREDICATES, PRIORITIES, STRATEGIES
from moorage.plugins.in_tree import in_tree_registry

GROUP = "kubescheduler.config.k8s.io"
KIND = "KubeSchedulerConfiguration"
KEPT = {"InterPodAffinity": 1, "NodeAffinity": 1, "TaintToleration": 1}


def old(version: str, **fields: Any) -> str:
    return json.dumps({"apiVersion": f"{GROUP}/{version}", "kind": KIND, **fields})


def profile_of(found: Converted) -> ProfileSpec:
    """Return what the only profile of a converted file runs; the file has no fault."""
    config, faults = read_config("\n---\n".join(write_yaml(each) for each in found.documents))
    assert faults == []
    [spec] = expand_profiles(config.scheduler, in_tree_registry())
    return spec


def told(found: Converted) -> list[str]:
    return [f"{each.kind} {each.path}" for each in found.remarks]


GOVERNED = {plugin for plugins in PREDICATES.values() for plugin in plugins}
"""The plugins that filter by a predicate of Policy files."""
DEFAULT = profile_of(Converted([{"apiVersion": f"{GROUP}/v1", "kind": KIND}], ()))


@pytest.mark.parametrize("version", PAST_VERSIONS)
def test_an_empty_file_of_a_version_means_the_plugins_and_weights_of_that_version(
    version: str,
) -> None:
    spec = profile_of(convert_text(old(version)))
    weights = {} if version == "v1beta3" else KEPT
    assert {point: {*names} for point, names in spec.points.items()} == {
        point: {*names} for point, names in DEFAULT.points.items()
    }
    assert spec.score_weights == {**DEFAULT.score_weights, **weights}
    assert spec.plugin_args == DEFAULT.plugin_args


def test_a_file_of_v1alpha1_becomes_a_profile() -> None:
    text = old(
        "v1alpha1",
        schedulerName="batch",
        algorithmSource={"provider": "ClusterAutoscalerProvider"},
        leaderElection={"leaderElect": True, "lockObjectName": "a", "lockObjectNamespace": "b"},
        healthzBindAddress="0.0.0.0:10251",
        disablePreemption=True,
        hardPodAffinitySymmetricWeight=7,
        bindTimeoutSeconds=30,
        plugins={"postFilter": {"enabled": [{"name": "NodeResourcesFit"}]}},
    )
    found = convert_text(text)
    spec = profile_of(found)
    assert found.documents[0]["leaderElection"] == {
        "leaderElect": True,
        "resourceName": "a",
        "resourceNamespace": "b",
    }
    assert spec.scheduler_name == "batch"
    assert "DefaultPreemption" not in spec.points["postFilter"]
    assert spec.plugin_args["InterPodAffinity"].hard_pod_affinity_weight == 7
    assert spec.plugin_args["VolumeBinding"].bind_timeout_seconds == 30
    assert spec.plugin_args["NodeResourcesFit"].scoring_strategy.type == "MostAllocated"
    assert told(found) == [
        "dropped healthzBindAddress",
        "changed leaderElection.lockObjectName",
        "changed leaderElection.lockObjectNamespace",
        "changed algorithmSource.provider",
        "changed hardPodAffinitySymmetricWeight",
        "changed bindTimeoutSeconds",
        "changed plugins.postFilter",
        "changed plugins.score.enabled[0]",
        "changed disablePreemption",
        "changed plugins.score",
    ]


POLICY = {
    "kind": "Policy",
    "apiVersion": "v1",
    "predicates": [
        {"name": "PodFitsHostPorts"},
        {"name": "PodFitsResources"},
        {"name": "MatchNodeSelector"},
    ],
    "priorities": [
        {"name": "LeastRequestedPriority", "weight": 1},
        {"name": "ServiceSpreadingPriority", "weight": 4},
        {"name": "EqualPriority", "weight": 1},
    ],
    "extenders": [
        {
            "urlPrefix": "http://127.0.0.1:1",
            "filterVerb": "filter",
            "enableHttps": False,
            "httpTimeout": 100_000_000,
        }
    ],
}


def test_a_policy_file_becomes_a_profile_with_the_filters_and_weights_it_names() -> None:
    found = convert_text(json.dumps(POLICY))
    spec = profile_of(found)
    assert {*spec.points["filter"]} & GOVERNED == {
        "NodeAffinity",
        "NodePorts",
        "NodeResourcesFit",
        "NodeUnschedulable",
        "TaintToleration",
    }
    assert "VolumeBinding" not in spec.points["preBind"]
    assert "PodTopologySpread" not in spec.points["preFilter"]
    weights = dict(spec.score_weights)
    weights.pop("DynamicResources", None)
    weights.pop("VolumeBinding", None)
    assert weights == {"NodeResourcesFit": 1, "PodTopologySpread": 4}
    assert found.documents[0]["extenders"][0]["httpTimeout"] == "100ms"
    assert told(found) == [
        "changed priorities[1]",
        "dropped priorities[2]",
        "changed plugins.score.enabled[0]",
        "changed extenders[0].httpTimeout",
    ]


def test_flags_of_the_time_complete_a_policy_file() -> None:
    flags = {
        "schedulerName": "batch",
        "hardPodAffinitySymmetricWeight": 9,
        "leaderElection": {"lockObjectName": "batch"},
    }
    found = convert_flags(flags, json.dumps(POLICY))
    assert found.documents[0]["profiles"][0]["schedulerName"] == "batch"
    assert found.documents[0]["leaderElection"] == {"resourceName": "batch"}
    assert "InterPodAffinity" not in profile_of(found).points["filter"]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        pytest.param("", "the file is empty", id="an empty file"),
        pytest.param("{}", "apiVersion None and kind None cannot be converted", id="no kind"),
        pytest.param(
            f"apiVersion: {GROUP}/v7\nkind: {KIND}",
            f"apiVersion '{GROUP}/v7' and kind '{KIND}' cannot be converted",
            id="a version that never was",
        ),
        pytest.param(
            old("v1alpha1", algorithmSource={"provider": "Best"}),
            "no algorithm provider 'Best'",
            id="a provider that never was",
        ),
    ],
)
def test_files_that_cannot_be_converted(text: str, fault: str) -> None:
    with pytest.raises(ConfigError) as caught:
        convert_text(text)
    assert fault in str(caught.value)


# RequestedToCapacityRatio without a shape was a fault in every version.
NAMES = st.sampled_from(
    sorted(
        {*PAST_PLUGINS, *STRATEGIES, "NodeResourcesFit", "NodeAffinity", "TaintToleration"}
        - {"RequestedToCapacityRatio"}
    )
)
LISTS = st.fixed_dictionaries(
    {},
    optional={
        key: st.lists(NAMES, max_size=4, unique=True).map(
            lambda names: [{"name": name, "weight": 2} for name in names]
        )
        for key in ("enabled", "disabled")
    },
)


@given(st.sampled_from(PAST_VERSIONS), LISTS, st.sampled_from(["", "profiles"]))
def test_score_lists_of_any_past_plugins_convert_to_a_file_without_faults(
    version: str, lists: dict[str, Any], where: str
) -> None:
    profile = {"plugins": {"score": lists}}
    fields = {"profiles": [{**profile, "schedulerName": "a"}]} if where else profile
    profile_of(convert_text(old(version, **fields)))


CHOICES = st.fixed_dictionaries(
    {},
    optional={
        "predicates": st.lists(st.sampled_from(sorted(PREDICATES)), max_size=6),
        "priorities": st.lists(
            st.sampled_from(sorted({*PRIORITIES} - {"RequestedToCapacityRatioPriority"})),
            max_size=6,
        ),
    },
)


@given(CHOICES)
def test_policies_of_any_names_convert_to_a_file_without_faults(
    chosen: dict[str, list[str]],
) -> None:
    body = {key: [{"name": name} for name in names] for key, names in chosen.items()}
    spec = profile_of(convert_text(json.dumps({"kind": "Policy", **body})))
    if "predicates" in chosen:
        wanted = {plugin for name in chosen["predicates"] for plugin in PREDICATES[name]}
        assert {*spec.points["filter"]} & GOVERNED == wanted | {
            "NodeUnschedulable",
            "TaintToleration",
        }


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["name", "enabled", "argument", "args", "x"]), inner)
    ),
    max_leaves=8,
)
FIELDS = (
    "predicates",
    "priorities",
    "extenders",
    "profiles",
    "plugins",
    "pluginConfig",
    "leaderElection",
    "algorithmSource",
)


@given(st.sampled_from(["Policy", *PAST_VERSIONS]), st.dictionaries(st.sampled_from(FIELDS), JUNK))
def test_values_of_wrong_types_end_in_a_file_or_in_faults(
    kind: str, fields: dict[str, Any]
) -> None:
    text = json.dumps({"kind": "Policy", **fields}) if kind == "Policy" else old(kind, **fields)
    try:
        found = convert_text(text)
    except ConfigError:
        return
    read_config("\n---\n".join(write_yaml(each) for each in found.documents))
