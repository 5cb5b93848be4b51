"""Feature gates: which there are, their defaults, and what a wrong one is answered."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from moorage.base.errors import ConfigError
from moorage.config.feature_gates import DEFAULT_GATES, GATES, feature_gates, parse_feature_gates

REFERENCE = Path(__file__).parents[1] / "conformance/data/reference.json"


def test_the_known_gates_and_their_defaults_are_the_references():
    recorded = json.loads(REFERENCE.read_text())["featureGates"]
    pages = {"ComponentFlagz": True, "ComponentStatusz": True}  # component-base's own, v1.36
    assert {gate.name: gate.default for gate in GATES} == recorded | pages


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
            "StorageCapacityScoring=true,VolumeLimitScaling=true",
            [
                f"featureGates.{name}: moorage does not implement {name}=true yet; "
                "leave the gate out"
                for name in ("StorageCapacityScoring", "VolumeLimitScaling")
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
