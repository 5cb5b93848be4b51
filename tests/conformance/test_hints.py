"""Recorded hints: what each object change means, and which waiting pods it wakes.

The runner does not support the mode yet, because a case asks every plugin. Here the plugins that
are built are asked, and the translation of node and pod updates to cluster events is compared.
Not covered: hints of plugins not built, what nodes mean to pods whose extended resources are
devices, and which kind of event ingest makes of adds and deletes.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from moorage.api.changes import (
    Action,
    ClusterEvent,
    action_name,
    matches,
    node_changes,
    pod_changes,
)
from moorage.api.claims import DeviceClass
from moorage.api.codec import from_dict
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.volume import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from moorage.base.clock import ManualClock
from moorage.base.rng import Streams
from moorage.config.defaults import default_config
from moorage.config.load import config_from_values
from moorage.config.merge import expand_profiles
from moorage.framework.handle import Handle
from moorage.framework.points import EventsToRegister
from moorage.framework.status import ReasonTable
from moorage.plugins.in_tree import IN_TREE, in_tree_registry
from moorage.plugins.node_resources_fit import IMPLICIT_CLASS_PREFIX
from moorage.testing.conformance_format import RecordedObjects
from moorage.testing.conformance_needs import is_built
from moorage.testing.conformance_run import _snapshot

PUBLIC = Path(__file__).parent / "data" / "public"
TYPES: dict[str, type[Any]] = {
    "Pod": Pod,
    "Node": Node,
    "DeviceClass": DeviceClass,
    "PersistentVolume": PersistentVolume,
    "PersistentVolumeClaim": PersistentVolumeClaim,
    "StorageClass": StorageClass,
    "CSINode": CSINode,
    "CSIDriver": CSIDriver,
    "CSIStorageCapacity": CSIStorageCapacity,
    "VolumeAttachment": VolumeAttachment,
}
ACTIONS = {action_name(action): action for action in Action.__members__.values()}
BUILT = [entry.name for entry in IN_TREE if is_built(in_tree_registry(), entry.name)]


@cache
def recordings() -> list[dict[str, Any]]:
    with gzip.open(PUBLIC / "hints.jsonl.gz") as lines:
        return [json.loads(line) for line in lines]


def events() -> Iterator[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]]:
    """Yield (scenario, object event, what was recorded of it)."""
    for line in recordings():
        scenario = line["scenario"]
        for event, recorded in zip(scenario["events"], line["expected"]["events"], strict=True):
            yield scenario, event, recorded


def decoded(event: dict[str, Any]) -> tuple[Any, Any]:
    """Return the object before and after; None for what is absent."""
    type_ = TYPES[event["resource"]]
    old, new = (
        from_dict(type_, event[side]) if event.get(side) else None for side in ("old", "new")
    )
    return old, new


def cluster_event(text: str) -> ClusterEvent:
    resource, _, action = text.rpartition("/")
    return ClusterEvent(resource, ACTIONS[action])


def shown(event: ClusterEvent) -> str:
    return f"{event.resource}/{action_name(event.action)}"


@pytest.mark.parametrize(
    ("resource", "changes"), [("Node", node_changes), ("Pod", pod_changes)], ids=["Node", "Pod"]
)
def test_updates_are_translated_to_the_recorded_cluster_events(resource, changes):
    different, compared = [], 0
    for scenario, event, recorded in events():
        if event["resource"] != resource or event["action"] != "Update":
            continue
        ours = [shown(change) for change in changes(*decoded(event))]
        compared += 1
        if ours != recorded["clusterEvents"]:
            different.append((scenario["name"], recorded["clusterEvents"], ours))
    assert different == []
    assert compared > 100


def plugins(scenario: dict[str, Any]) -> dict[tuple[str, str], object]:
    """Return the built plugins of a scenario, over its cluster, by (schedulerName, plugin)."""
    values, registry = scenario.get("config"), in_tree_registry()
    loaded = default_config() if values is None else config_from_values(values)
    snapshot = _snapshot(from_dict(RecordedObjects, scenario["objects"]))
    made: dict[tuple[str, str], object] = {}
    for spec in expand_profiles(loaded, registry):
        handle = Handle(spec.scheduler_name, snapshot, ReasonTable(), ManualClock(), Streams(0))
        for name in BUILT:
            entry = registry.find(name)
            if entry is not None and any(name in names for names in spec.points.values()):
                args = spec.plugin_args.get(name)
                made[spec.scheduler_name, name] = entry.make(args, handle)
    return made


def answer(plugin: object, incoming: ClusterEvent, waiting: Pod, change: tuple[Any, Any]) -> str:
    """Return what a plugin says to an event: Queue, Skip, or nothing when it did not register."""
    if not isinstance(plugin, EventsToRegister):
        return ""
    for registration in plugin.events_to_register():
        if matches(registration.event, incoming):
            hint = registration.hint
            return "always" if hint is None else "Queue" if hint(waiting, *change) else "Skip"
    return ""


def asks_for_devices(pod: Pod, scenario: dict[str, Any]) -> bool:
    """Whether a device class stands behind a resource the pod requests."""
    classes = scenario["objects"].get("deviceclasses", [])
    names = {one["spec"].get("extendedResourceName") for one in classes}
    return any(
        name in names or name.startswith(IMPLICIT_CLASS_PREFIX)
        for container in pod.spec.containers
        for name in container.resources.requests
    )


@cache
def asked() -> dict[str, list[tuple[str, str, str]]]:
    """Return, by plugin, (which question, recorded answer, our answer) for every question."""
    questions: dict[str, list[tuple[str, str, str]]] = {name: [] for name in BUILT}
    made: dict[str, dict[tuple[str, str], object]] = {}
    for scenario, event, recorded in events():
        if event["resource"] not in TYPES:
            continue
        if scenario["name"] not in made:
            made[scenario["name"]] = plugins(scenario)
        change, known = decoded(event), made[scenario["name"]]
        waiting = {
            f"{pod['metadata']['namespace']}/{pod['metadata']['name']}": from_dict(Pod, pod)
            for pod in scenario["pending"]
        }
        for hints in recorded["hints"]:
            incoming = cluster_event(hints["event"])
            for key, by_plugin in hints.get("pods", {}).items():
                pod, always = waiting[key], hints.get("always", ())
                if event["resource"] == "Node" and asks_for_devices(pod, scenario):
                    continue
                for name in BUILT:
                    plugin = known.get((pod.spec.scheduler_name, name))
                    expected = "always" if name in always else by_plugin.get(name, "")
                    ours = answer(plugin, incoming, pod, change)
                    question = f"{scenario['name']} {hints['event']} {key}"
                    questions[name].append((question, expected, ours))
    return questions


@pytest.mark.parametrize("name", BUILT)
def test_hints_are_the_recorded_ones(name):
    questions = asked()[name]
    assert len(questions) > 1000
    assert [question for question in questions if question[1] != question[2]][:5] == []
