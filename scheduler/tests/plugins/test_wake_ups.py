"""Every plugin hears of every change that makes a node fit: random clusters and changes.

A plugin rejected a pod on some node. After one change, a node passes that did not pass before. Then
one of the plugin's hints has to say Queue. The slow test looks at 10,000 worlds, about two minutes.
``WAKE_UP_RUNS=100000`` looks longer, from ``WAKE_UP_SEED`` on: half an hour.

Two exceptions, which an API server does not allow: a claim that a pod on a node uses is not
deleted, as its finalizer ``kubernetes.io/pvc-protection`` keeps it, and a bound claim stays bound,
as its volume name is immutable. NodeVolumeLimits would count less and hear of neither, just as
kube-scheduler.

DynamicResources has worlds of its own, with devices and claims, and as many of them.

Not covered: plugins of groups, quotas and shared GPUs, whose tests are in their folders. NodeName,
SchedulingGates and NodeDeclaredFeatures look at one field each.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from moorage.api.changes import Action, ClusterEvent, Resource, matches, node_changes, pod_changes
from moorage.api.codec import from_dict
from moorage.api.devices import DeviceClass, ResourceClaim, ResourceSlice
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.volume import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from moorage.api.workloads import Namespace
from moorage.framework.cycle_state import CycleState
from moorage.framework.status import Code
from moorage.service.intake.hint_map import NODE_TAINT
from moorage.snapshot.pod_info import PodInfo, forget_shared_parts
from moorage.snapshot.snapshot import Snapshot
from moorage_lab.conformance.recordings import RecordedObjects
from moorage_lab.conformance.world import build_snapshot
from scheduler.tests.plugins.builders import make
from scheduler.tests.plugins.device_worlds import DeviceWorld
from scheduler.tests.plugins.wake_up_worlds import Objects, World

RUNS = int(os.environ.get("WAKE_UP_RUNS", "500"))
FIRST = int(os.environ.get("WAKE_UP_SEED", "0"))
PARTS = 5
SLOW_RUNS = 10_000
SLOW_FIRST = 1_000_000
SLOW_PARTS = 10
KEPT_WORLDS = 200

PLUGINS = (
    "NodeUnschedulable",
    "NodeAffinity",
    "NodePorts",
    "NodeResourcesFit",
    "TaintToleration",
    "InterPodAffinity",
    "PodTopologySpread",
    "VolumeRestrictions",
    "NodeVolumeLimits",
    "VolumeBinding",
    "VolumeZone",
)
DEVICE_PLUGINS = ("DynamicResources",)
TYPES: dict[str, tuple[str, type[Any]]] = {
    "nodes": (Resource.NODE, Node),
    "pods": (Resource.ASSIGNED_POD, Pod),
    "namespaces": (Resource.NAMESPACE, Namespace),
    "persistentvolumes": (Resource.PERSISTENT_VOLUME, PersistentVolume),
    "persistentvolumeclaims": (Resource.PERSISTENT_VOLUME_CLAIM, PersistentVolumeClaim),
    "storageclasses": (Resource.STORAGE_CLASS, StorageClass),
    "csinodes": (Resource.CSI_NODE, CSINode),
    "csidrivers": (Resource.CSI_DRIVER, CSIDriver),
    "csistoragecapacities": (Resource.CSI_STORAGE_CAPACITY, CSIStorageCapacity),
    "deviceclasses": (Resource.DEVICE_CLASS, DeviceClass),
    "resourceslices": (Resource.RESOURCE_SLICE, ResourceSlice),
    "resourceclaims": (Resource.RESOURCE_CLAIM, ResourceClaim),
}


def snapshot_of(objects: Objects) -> Snapshot:
    lists = {kind: list(by_name.values()) for kind, by_name in objects.items()}
    return build_snapshot(from_dict(RecordedObjects, lists))


def passing(name: str, snapshot: Snapshot, pod: Pod) -> tuple[set[str], bool] | None:
    """Return the nodes that pass, and whether the plugin rejects any; None for an error."""
    plugin, _ = make(name, snapshot)
    state, info, names = CycleState(), PodInfo(pod), set(snapshot.names)
    found: Any = None
    if hasattr(plugin, "pre_filter"):
        found, status = plugin.pre_filter(state, info, snapshot)
        if status.code is Code.SKIP:
            return names, False
        if status.code is Code.ERROR:
            return None
        if not status.ok:
            return set(), True
    answer = plugin.filter(state, info, snapshot.all())
    passed = names
    if answer is not None:
        if (answer.code_n == Code.ERROR).any():
            return None
        passed = {
            name for name, code in zip(snapshot.names, answer.code_n, strict=True) if not code
        }
    if found is not None and found.node_names is not None:
        passed = passed & found.node_names
    return passed, passed != names


def cluster_events(world: World) -> Iterator[tuple[ClusterEvent, Any, Any]]:
    """The cluster events of the change, as ingest makes them."""
    if world.kind == "waiting":
        was, now = (from_dict(Pod, each) for each in world.waiting)
        for event in pod_changes(was, now):
            yield event, was, now
        return
    old: Any
    new: Any
    resource, type_ = TYPES[world.kind]
    sides = (objects[world.kind].get(world.name) for objects in (world.before, world.after))
    old, new = (None if each is None else from_dict(type_, each) for each in sides)
    if isinstance(old, Node) and isinstance(new, Node):
        changes = node_changes(old, new)
    elif isinstance(old, Pod) and isinstance(new, Pod):
        changes = pod_changes(old, new)
    else:
        action = Action.ADD if old is None else Action.DELETE if new is None else Action.UPDATE
        changes = [ClusterEvent(resource, action)]
    for event in changes:
        yield event, old, new


def hears(name: str, snapshot: Snapshot, pod: Pod, world: World) -> bool:
    plugin, _ = make(name, snapshot)
    registered = plugin.events_to_register()
    for event, old, new in cluster_events(world):
        if (
            event == NODE_TAINT
            and any(
                each.event.resource == Resource.NODE and each.event.action & Action.ADD
                for each in registered
            )
            and not any(each.event.action & Action.UPDATE_NODE_TAINT for each in registered)
        ):
            return True  # `hint_map` lets changed taints count for these
        for each in registered:
            if not matches(each.event, event):
                continue
            concerned = None if each.concerns is None else each.concerns(old, new)
            if isinstance(concerned, list) and pod not in concerned:
                continue
            if each.hint is None or each.hint(pod, old, new):
                return True
    return False


def missed(seed: int, *, devices: bool = False, counts: Counter[str] | None = None) -> list[str]:
    """Return the plugins that do not hear of a change after which a node newly passes.

    `counts` gets one more for each plugin that should hear of the change.
    """
    world = DeviceWorld(seed) if devices else World(seed)
    before, after = snapshot_of(world.before), snapshot_of(world.after)
    was, now = (from_dict(Pod, each) for each in world.waiting)
    found = []
    for name in DEVICE_PLUGINS if devices else PLUGINS:
        first, second = passing(name, before, was), passing(name, after, now)
        if first is None or second is None:
            continue  # an error is retried after its backoff anyway
        (passed, rejects), (passes, _) = first, second
        if not rejects or passes <= passed:
            continue
        if counts is not None:
            counts[name] += 1
        gone = world.kind == "nodes" and world.name not in world.after["nodes"]
        # The queue hears of a deleted node before the cache does.
        if not hears(name, before if gone else after, now, world):
            found.append(f"{seed} {world.kind} {world.name}: {name}")
    return found


def missed_in(
    seeds: Iterable[int], *, devices: bool = False, counts: Counter[str] | None = None
) -> list[str]:
    """Return the plugins that `missed` finds in each of some worlds."""
    found = []
    for number, seed in enumerate(seeds, 1):
        found += missed(seed, devices=devices, counts=counts)
        # Rarely: it looks at the parts of all pods that earlier tests of this process have left.
        if not number % KEPT_WORLDS:
            forget_shared_parts()
    return found


@pytest.mark.parametrize("part", range(PARTS))
def test_a_change_that_makes_a_node_fit_is_heard(part):
    seeds = range(FIRST + part, FIRST + RUNS, PARTS)
    assert missed_in(seeds) == []


@pytest.mark.parametrize("part", range(PARTS))
def test_a_change_that_makes_devices_fit_is_heard(part):
    seeds, counts = range(FIRST + part, FIRST + RUNS, PARTS), Counter[str]()
    assert missed_in(seeds, devices=True, counts=counts) == []
    assert counts["DynamicResources"] >= 2, "hardly any change makes a node fit"


@pytest.mark.slow
@pytest.mark.parametrize("part", range(SLOW_PARTS))
@pytest.mark.parametrize("devices", [False, True])
def test_a_change_that_makes_a_node_fit_is_heard_in_10_000_worlds(part, devices):
    seeds = range(SLOW_FIRST + part, SLOW_FIRST + SLOW_RUNS, SLOW_PARTS)
    assert missed_in(seeds, devices=devices) == []
