"""The configurations of benchmarks: the scheduler accepts them, and examples show the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from moorage.api.yaml_text import read_yaml
from moorage.config.load import parse_config
from moorage_lab.bench.configurations import coscheduling, filling, with_extender

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
KIND = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}


def example(name: str) -> list[Any]:
    return list(read_yaml((EXAMPLES / name).read_bytes()))


@pytest.mark.parametrize("mode", ["trial", "permit"])
def test_coscheduling_is_the_example_and_the_group_mode(mode) -> None:
    own = {
        "apiVersion": "moorage.dev/v1alpha1",
        "kind": "MoorageConfiguration",
        "profiles": [{"schedulerName": "default-scheduler", "groupMode": mode}],
    }
    expected = [*example("profiles/coscheduling.yaml"), own]
    assert list(read_yaml(coscheduling(mode))) == expected


def test_filling_is_the_example_of_a_second_scheduler_that_prefers_full_nodes() -> None:
    (expected,) = example("profiles/second-scheduler.yaml")
    strategy = {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 1}]}
    fit = {"name": "NodeResourcesFit", "args": {"scoringStrategy": strategy}}
    expected["profiles"][0]["pluginConfig"] = [fit]
    assert list(read_yaml(filling("batch-scheduler"))) == [expected]


@pytest.mark.parametrize("names_only", [True, False])
def test_the_extender_filters_and_prioritizes(names_only) -> None:
    extender = {
        "urlPrefix": "http://127.0.0.1:8888",
        "filterVerb": "filter",
        "prioritizeVerb": "prioritize",
        "weight": 1,
        "nodeCacheCapable": names_only,
    }
    text = with_extender("http://127.0.0.1:8888", names_only=names_only)
    assert list(read_yaml(text)) == [{**KIND, "extenders": [extender]}]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(coscheduling("trial"), id="coscheduling in trials"),
        pytest.param(coscheduling("permit"), id="coscheduling at Permit"),
        pytest.param(filling("batch"), id="full nodes first"),
        pytest.param(with_extender("http://127.0.0.1:1", names_only=True), id="an extender"),
    ],
)
def test_the_scheduler_accepts_the_configuration(text) -> None:
    parse_config(text)
