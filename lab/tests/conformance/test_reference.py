"""Default profile, arguments and event registrations are the reference's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moorage.api.changes import Action, action_name
from moorage.base.clock import ManualClock
from moorage.base.errors import ConfigError
from moorage.base.rng import Streams
from moorage.config.args import default_args, read_args
from moorage.config.defaults import DEFAULT_MULTI_POINT, default_config
from moorage.config.feature_gates import feature_gates
from moorage.config.load import config_from_values
from moorage.config.merge import ProfileSpec, expand_profiles
from moorage.config.validation import is_not_built
from moorage.framework.handle import Handle
from moorage.framework.points import EventsToRegister
from moorage.framework.profile import Profile
from moorage.framework.status import ReasonTable
from moorage.plugins.in_tree import IN_TREE, in_tree_registry
from moorage.snapshot.snapshot import Snapshot
from moorage_lab.conformance.recordings import read_cases

DATA = Path(__file__).parent / "data"
REFERENCE = json.loads((DATA / "reference.json").read_text())
EVENTS = json.loads((DATA / "reference-events.json").read_text())["default"]
GATES_ON = "GenericWorkload,GangScheduling,TopologyAwareWorkloadScheduling,WorkloadAwarePreemption"
EVENTS_GATES_ON = json.loads((DATA / "reference-events.json").read_text())[GATES_ON]
NAMES = [entry.name for entry in IN_TREE]


def default_spec() -> ProfileSpec:
    (spec,) = expand_profiles(default_config(), in_tree_registry())
    return spec


@pytest.fixture
def plugins():
    handle = Handle(
        profile_name="default-scheduler",
        snapshot=Snapshot(),
        reasons=ReasonTable(),
        clock=ManualClock(),
        streams=Streams(0),
    )
    return Profile(default_spec(), in_tree_registry(), handle).plugins


def test_the_default_plugin_list_is_the_references():
    ours = [
        {"name": ref.name} | ({} if ref.weight is None else {"weight": ref.weight})
        for ref in DEFAULT_MULTI_POINT
    ]
    assert ours == REFERENCE["defaultMultiPoint"]


def test_the_default_profile_runs_the_same_plugins_in_the_same_order():
    spec = default_spec()
    ours: dict[str, Any] = {point: list(names) for point, names in spec.points.items()}
    ours["score"] = [{"name": n, "weight": spec.score_weights[n]} for n in ours["score"]]
    recorded = REFERENCE["profiles"]["default-scheduler"]
    assert {point: ours[point] for point in recorded} == recorded


def recorded_configs() -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Yield (scenario, configuration, recorded profiles), each configuration once."""
    seen = set()
    for path in sorted((DATA / "public").iterdir()):
        for case in read_cases(path):
            config, profiles = case.scenario.config, case.expected.get("profiles")
            text = json.dumps(config)
            if config is not None and profiles is not None and text not in seen:
                seen.add(text)
                yield case.scenario.name, config, profiles


def expanded(config: dict[str, Any]) -> dict[str, Any] | None:
    """Return our profiles in the recordings' shape; None where the configuration is not built."""
    try:
        specs = expand_profiles(config_from_values(config), in_tree_registry())
    except ConfigError as error:
        if not all(map(is_not_built, error.faults)):
            raise
        return None
    result: dict[str, Any] = {}
    for spec in specs:
        points: dict[str, Any] = {point: list(names) for point, names in spec.points.items()}
        points["score"] = [{"name": n, "weight": spec.score_weights[n]} for n in points["score"]]
        result[spec.scheduler_name] = points
    return result


def test_every_recorded_configuration_expands_to_the_recorded_profiles():
    compared, different = 0, []
    for name, config, recorded in recorded_configs():
        ours = expanded(config)
        if ours is None:
            continue
        compared += 1
        for scheduler, points in recorded.items():
            theirs = {point: plugins or [] for point, plugins in points.items()}
            if {point: ours[scheduler][point] for point in theirs} != theirs:
                different.append((name, scheduler))
        if ours.keys() != recorded.keys():
            different.append((name, "profiles"))
    assert different == []
    assert compared > 150


@pytest.mark.parametrize(
    "entry", REFERENCE["defaultPluginConfig"], ids=lambda entry: str(entry["name"])
)
def test_default_arguments_are_the_references(entry):
    faults: list[str] = []
    theirs = read_args(entry["name"], entry["args"], path="args", faults=faults)
    assert (theirs, faults) == (default_args(entry["name"]), [])


def names_of(actions: int) -> list[str]:
    """Return the actions as the reference prints them: Update for all update bits at once."""
    names = ["Update"] if actions & Action.UPDATE == Action.UPDATE else []
    left = actions & ~Action.UPDATE if names else actions
    names += [action_name(1 << bit) for bit in range(left.bit_length()) if left >> bit & 1]
    return sorted(names)


@pytest.fixture
def plugins_gates_on():
    gates = feature_gates(dict.fromkeys(GATES_ON.split(","), True))
    (spec,) = expand_profiles(default_config(), in_tree_registry(), gates=gates)
    clock, streams = ManualClock(), Streams(0)
    handle = Handle(
        profile_name="mine",
        snapshot=Snapshot(),
        reasons=ReasonTable(),
        clock=clock,
        streams=streams,
        gates=gates,
    )
    return Profile(spec, in_tree_registry(), handle).plugins


@pytest.mark.parametrize("name", NAMES)
def test_event_registrations_are_the_references(name, plugins, plugins_gates_on):
    check_registrations(name, plugins_gates_on[name], EVENTS_GATES_ON)
    if name in plugins:
        check_registrations(name, plugins[name], EVENTS)


OWN_EVENTS = {"TopologyPlacementGenerator"}
"""Plugins that register events in moorage alone (docs, deviations)."""

OWN_ACTIONS = {
    ("DynamicResources", "resource.k8s.io/ResourceClaim"): ["Delete"],
    ("DynamicResources", "Reservation"): ["Delete"],
    ("VolumeBinding", "Reservation"): ["Delete"],
    ("VolumeRestrictions", "Node"): ["Delete"],
    ("NodeVolumeLimits", "Node"): ["Add"],
    ("NodeVolumeLimits", "storage.k8s.io/StorageClass"): ["Delete"],
    ("NodeVolumeLimits", "PersistentVolume"): ["Delete"],
    ("InterPodAffinity", "Namespace"): ["Add", "Delete", "Update"],
}
"""Actions that a plugin registers in moorage alone, in a registration of their own."""

WIDER_ACTIONS = {
    ("DynamicResources", "resource.k8s.io/ResourceSlice"): (
        ["Add", "Update"],
        ["Add", "Delete", "Update"],
    ),
    ("NodeVolumeLimits", "storage.k8s.io/CSINode"): (["Update"], ["Delete", "Update"]),
    ("NodeVolumeLimits", "PersistentVolumeClaim"): (["Add"], ["Add", "Update"]),
    ("VolumeBinding", "storage.k8s.io/CSIDriver"): (["Update"], ["Delete", "Update"]),
    ("PodTopologySpread", "Pod"): (
        ["Add", "Delete", "UpdatePodLabel", "UpdatePodToleration"],
        ["Add", "Delete", "Update"],
    ),
    ("InterPodAffinity", "Node"): (
        ["Add", "UpdateNodeLabel"],
        ["Add", "Delete", "UpdateNodeLabel"],
    ),
}
"""Actions of one registration, in the reference and in moorage, which hears more of them."""


def _widened(name: str, registration: dict[str, Any]) -> dict[str, Any]:
    theirs, ours = WIDER_ACTIONS.get((name, registration["resource"]), (None, None))
    return {**registration, "actions": ours} if registration["actions"] == theirs else registration


def check_registrations(name: str, plugin: object, recorded: dict[str, Any]) -> None:
    if not isinstance(plugin, EventsToRegister) or name in OWN_EVENTS:
        assert name in recorded["withoutEvents"]
        return
    ours = [
        {
            "resource": registration.event.resource,
            "actions": names_of(registration.event.action),
            "hint": registration.hint is not None,
        }
        for registration in plugin.events_to_register()
    ]
    own = [
        each for each in ours if OWN_ACTIONS.get((name, str(each["resource"]))) == each["actions"]
    ]
    assert [each for each in ours if each not in own] == [
        _widened(name, each) for each in recorded["plugins"][name]
    ]
    assert len(own) == sum(name == plugin for plugin, _ in OWN_ACTIONS)


def test_every_plugin_of_the_reference_is_known():
    known = {entry.name for entry in IN_TREE}
    recorded = EVENTS_GATES_ON
    assert known == recorded["plugins"].keys() | set(recorded["withoutEvents"])
