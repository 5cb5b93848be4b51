"""Feature gates: which there are, their defaults, and what a wrong one is answered."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from moorage.base.errors import ConfigError
from moorage.config.feature_gates import (
    DEFAULT_GATES,
    FeatureGates,
    feature_gates,
    group_flag,
    parse_feature_gates,
)
from moorage.config.gate_table import GATES, VERSIONS, gates_of_version

REFERENCE = Path(__file__).parents[3] / "lab/tests/conformance/data/reference.json"


def test_the_known_gates_and_their_defaults_are_the_references():
    recorded = json.loads(REFERENCE.read_text())["featureGates"]
    pages = {"ComponentFlagz": True, "ComponentStatusz": True}  # component-base's own, v1.36
    gates = {gate.name: gate.states["1.36"].default for gate in gates_of_version("1.36")}
    assert gates == recorded | pages


def test_a_gate_that_was_not_set_has_its_default():
    gates = parse_feature_gates("GenericWorkload=true")
    assert gates("GenericWorkload")
    assert not gates("GangScheduling")
    assert gates("SchedulerAsyncPreemption")
    assert not DEFAULT_GATES("GenericWorkload")


@pytest.mark.parametrize(
    ("text", "switched"),
    [
        pytest.param("", {}, id="nothing is set"),
        pytest.param("GenericWorkload=true", {"GenericWorkload": True}, id="one"),
        pytest.param(
            " GenericWorkload = True , GangScheduling=1,",
            {"GenericWorkload": True, "GangScheduling": True},
            id="spaces, other spellings of true, a comma too many",
        ),
        pytest.param("SidecarContainers=true", {"SidecarContainers": True}, id="a locked default"),
        pytest.param("GangScheduling=f", {"GangScheduling": False}, id="off as by default"),
    ],
)
def test_reading_the_flag(text, switched):
    assert parse_feature_gates(text).switched == switched


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        pytest.param(
            "Gang=true", ["featureGates.Gang: unrecognized feature gate: Gang"], id="typo"
        ),
        pytest.param("Gang", ["featureGates: missing bool value for Gang"], id="no value"),
        pytest.param(
            "GangScheduling=yes",
            ["featureGates.GangScheduling: Invalid value: yes: must be true or false"],
            id="neither true nor false",
        ),
        pytest.param(
            "SidecarContainers=false",
            [
                "featureGates.SidecarContainers: cannot set feature gate SidecarContainers to "
                "false, feature is locked to true"
            ],
            id="locked",
        ),
        pytest.param(
            "SchedulerAsyncAPICalls=true,DRAListTypeAttributes=true",
            [
                f"featureGates.{name}: moorage does not implement {name}=true yet; "
                "leave the gate out"
                for name in ("DRAListTypeAttributes", "SchedulerAsyncAPICalls")
            ],
            id="not built, every fault is told",
        ),
        pytest.param(
            "GangScheduling=true",
            ["featureGates.GangScheduling: Invalid value: true: needs GenericWorkload=true"],
            id="needs another one",
        ),
    ],
)
def test_the_errors_of_wrong_gates(text, faults):
    with pytest.raises(ConfigError) as refused:
        parse_feature_gates(text)
    assert list(refused.value.faults) == faults


def test_gates_are_told_as_the_flag_spells_them():
    gates = feature_gates({"GenericWorkload": True, "GangScheduling": False})
    assert gates.as_text() == "GangScheduling=false,GenericWorkload=true"


def test_every_gate_of_1_37_has_the_default_that_kube_scheduler_gives_it():
    changed = {
        gate.name: gate.states["1.37"].default
        for gate in GATES
        if "1.37" in gate.states
        and ("1.36" not in gate.states or gate.states["1.36"] != gate.states["1.37"])
    }
    assert changed == {
        "CompositePodGroup": False,
        "DRADerivedAttributes": False,
        "DRADeviceCompatibilityGroups": False,
        "DRADeviceTaintRules": True,
        "DRADeviceTaints": True,
        "DRAExtendedResource": True,
        "DRAFractionalCapacityRange": True,
        "DRAOptionalNodeOperations": False,
        "DRAPrioritizedList": True,
        "DRAWorkloadResourceClaims": False,
        "GenericWorkload": False,
        "InPlacePodVerticalScalingSchedulerPreemption": False,
        "InterPodAffinityHostnameFastPath": False,
        "NodeDeclaredFeatures": True,
        "PodGroupPreemptionPolicy": False,
        "SchedulerPreQueueingHints": False,
        "StorageCapacityScoring": True,
        "VolumeLimitScaling": True,
    }
    gone = {gate.name for gate in GATES if "1.37" not in gate.states}
    assert gone == {"GangScheduling", "WorkloadAwarePreemption"}


@pytest.mark.parametrize("version", VERSIONS)
def test_every_default_is_built(version: str):
    gates = FeatureGates({}, version)
    missing = [
        gate.name for gate in gates_of_version(version) if gates(gate.name) not in gate.built
    ]
    assert missing == []


def test_a_decision_is_described_where_a_default_that_a_plugin_follows_differs():
    """A gate that is off in both versions, or has no plugin, changes no decision by itself.

    GenericWorkload is the exception, with a gate that it took in: their plugins decide otherwise in
    1.37 wherever it is on.
    """
    differing = {
        gate.name
        for gate in GATES
        if gate.plugin
        and FeatureGates({}, "1.37")(gate.name)
        and not ("1.36" in gate.states and gate.states["1.36"].default)
    }
    on_request = {"GenericWorkload", "WorkloadAwarePreemption"}
    assert {gate.name for gate in GATES if gate.decision} == differing | on_request


@pytest.mark.parametrize("gate", ["GangScheduling", "WorkloadAwarePreemption"])
@pytest.mark.parametrize("on", [True, False], ids=["on", "off"])
def test_a_gate_that_1_37_has_merged_is_on_with_its_successor(gate, on):
    assert FeatureGates({"GenericWorkload": on}, "1.37")(gate) is on


@pytest.mark.parametrize(
    ("oldest", "on"),
    [
        pytest.param("", True, id="nobody names an oldest version"),
        pytest.param("1.37", True, id="all of the cluster is of 1.37"),
        pytest.param("1.36", False, id="a part of the cluster is of 1.36"),
    ],
)
def test_a_default_may_depend_on_the_oldest_version_in_the_cluster(oldest, on):
    assert FeatureGates({}, "1.37", oldest)("DRAFractionalCapacityRange") is on


@pytest.mark.parametrize(
    ("version", "text", "fault"),
    [
        pytest.param(
            "1.37",
            "GangScheduling=true",
            "featureGates.GangScheduling: unrecognized feature gate: GangScheduling: in 1.37 it is "
            "a part of GenericWorkload: set GenericWorkload alone, or emulate 1.36 "
            "(--emulated-version 1.36)",
            id="a gate that went names its successor",
        ),
        pytest.param(
            "1.36",
            "CompositePodGroup=false",
            "featureGates.CompositePodGroup: unrecognized feature gate: CompositePodGroup: 1.36 "
            "does not have it, 1.37 has (--emulated-version 1.37)",
            id="a gate that came later names its version",
        ),
        pytest.param(
            "1.37",
            "PodGroupPreemptionPolicy=true",
            "featureGates.PodGroupPreemptionPolicy: moorage does not implement "
            "PodGroupPreemptionPolicy=true yet; leave the gate out",
            id="a new gate that is not built",
        ),
        pytest.param(
            "1.37",
            "GenericWorkload=true,CompositePodGroup=true",
            "featureGates.CompositePodGroup: Invalid value: true: needs "
            "TopologyAwareWorkloadScheduling=true",
            id="composite groups without topology",
        ),
        pytest.param(
            "1.37",
            "NodeDeclaredFeatures=false",
            "featureGates.NodeDeclaredFeatures: cannot set feature gate NodeDeclaredFeatures to "
            "false, feature is locked to true; 1.36 lets it be set (--emulated-version 1.36)",
            id="a gate that is locked since 1.37",
        ),
    ],
)
def test_a_gate_of_another_version_is_refused_by_name(version, text, fault):
    with pytest.raises(ConfigError) as refused:
        parse_feature_gates(text, version)
    assert list(refused.value.faults) == [fault]


@pytest.mark.parametrize(
    ("version", "flag"),
    [
        ("1.36", "--feature-gates=GenericWorkload=true,GangScheduling=true"),
        ("1.37", "--feature-gates=GenericWorkload=true"),
    ],
)
def test_the_flag_that_switches_groups_on_is_accepted_by_its_version(version, flag):
    assert group_flag(version) == flag
    gates = parse_feature_gates(flag.removeprefix("--feature-gates="), version)
    assert gates("GangScheduling") is True
