"""The rule behind a taint of devices is named, and questions leave rules as they are."""

from __future__ import annotations

import pytest

from moorage.config.feature_gates import feature_gates
from moorage.config.own import LoadedConfiguration
from moorage.explain.explaining import explain
from moorage_sandbox.testing.builders import Manifest, node_manifest
from scheduler.tests.explain.clusters import explained, inputs_of, pod_of, waiting
from scheduler.tests.explain.planted_devices import (
    DRIVER,
    device_class,
    offered,
    resource_claim,
    using,
)

CONFIG = LoadedConfiguration(gates=feature_gates({}, "1.37"))
OWN = {"key": "own", "value": "1", "effect": "NoSchedule"}


def rule(name: str, *, effect: str = "NoExecute", **selector: str) -> Manifest:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceTaintRule",
        "metadata": {"name": name},
        "spec": {"deviceSelector": selector, "taint": {"key": "broken", "effect": effect}},
    }


def cluster(*more: Manifest, **device: object) -> list[Manifest]:
    nodes = [node_manifest("n1"), node_manifest("n2")]
    slices = [offered("n1", **device), offered("n2", **device)]
    pod = waiting("p", resourceClaims=using())
    return [*nodes, *slices, device_class(), resource_claim(), *more, pod]


@pytest.mark.parametrize(
    ("manifests", "taints"),
    [
        pytest.param(
            cluster(rule("all")), "the taint broken:NoExecute (DeviceTaintRule all)", id="one rule"
        ),
        pytest.param(
            cluster(rule("b", pool="n2"), rule("a", pool="n1")),
            "the taints broken:NoExecute (DeviceTaintRule a), broken:NoExecute (DeviceTaintRule b)",
            id="a rule for each node",
        ),
        pytest.param(
            cluster(rule("all", driver=DRIVER), taints=[OWN]),
            "the taints own=1:NoSchedule, broken:NoExecute (DeviceTaintRule all)",
            id="the driver's taint, and a rule",
        ),
        pytest.param(
            cluster(
                rule("all"), rule("idle", effect="None"), rule("elsewhere", driver="other.example")
            ),
            "the taint broken:NoExecute (DeviceTaintRule all)",
            id="rules that keep no pod off these devices are not named",
        ),
    ],
)
def test_the_rule_is_named(manifests: list[Manifest], taints: str) -> None:
    assert explained(*manifests, config=CONFIG).sentence == (
        "never fits here, not even on an empty node, because of its resource claim c "
        f"(device class gpu), which does not tolerate {taints} of devices"
    )


def test_a_question_leaves_rules_as_they_are() -> None:
    inputs = inputs_of(*cluster(rule("all")), config=CONFIG)
    core = inputs.fill().core
    before = list(core.snapshot.listers.device_taint_rules.all())
    first = explain(core, pod_of(inputs, "p")).sentence
    assert explain(core, pod_of(inputs, "p")).sentence == first
    assert list(core.snapshot.listers.device_taint_rules.all()) == before


def test_a_rule_that_is_not_read_is_not_named() -> None:
    """Under 1.36 the pod has a place."""
    assert "DeviceTaintRule" not in explained(*cluster(rule("all"))).sentence
