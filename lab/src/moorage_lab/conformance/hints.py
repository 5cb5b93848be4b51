"""Runs recorded hints: the cluster events of each object change, and the waiting pods they wake.

The mode "hint" of the conformance runner. Nothing is scheduled. Every change is translated to
cluster events as in ingest. For each event, the plugins that registered the event are asked about
every waiting pod.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from moorage.api.changes import (
    Action,
    ClusterEvent,
    Resource,
    action_name,
    matches,
    node_changes,
    pod_changes,
)
from moorage.api.codec import from_dict
from moorage.api.devices import DeviceClass, ResourceClaim, ResourceSlice
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.pod_group import PodGroup
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
from moorage.config.args import default_args
from moorage.config.merge import ProfileSpec
from moorage.engine.attempt import Attempt
from moorage.engine.filters.asking import ask_filter
from moorage.framework.cycle_state import CycleState
from moorage.framework.handle import Handle
from moorage.framework.points import EventRegistration, EventsToRegister
from moorage.framework.profile import Profile
from moorage.framework.registry import Registry
from moorage.framework.runner import pre_filter_one
from moorage.framework.status import Code, ReasonTable
from moorage.snapshot.pod_info import PodInfo
from moorage_lab.conformance.recordings import Json, ObjectEvent, RecordedObjects, Scenario
from moorage_lab.conformance.world import World, build_snapshot

_KINDS: Final[Mapping[str, tuple[str, type[Any]]]] = {
    "Pod": (Resource.POD, Pod),
    "Node": (Resource.NODE, Node),
    "PersistentVolume": (Resource.PERSISTENT_VOLUME, PersistentVolume),
    "PersistentVolumeClaim": (Resource.PERSISTENT_VOLUME_CLAIM, PersistentVolumeClaim),
    "StorageClass": (Resource.STORAGE_CLASS, StorageClass),
    "CSINode": (Resource.CSI_NODE, CSINode),
    "CSIDriver": (Resource.CSI_DRIVER, CSIDriver),
    "CSIStorageCapacity": (Resource.CSI_STORAGE_CAPACITY, CSIStorageCapacity),
    "VolumeAttachment": (Resource.VOLUME_ATTACHMENT, VolumeAttachment),
    "DeviceClass": (Resource.DEVICE_CLASS, DeviceClass),
    "ResourceClaim": (Resource.RESOURCE_CLAIM, ResourceClaim),
    "ResourceSlice": (Resource.RESOURCE_SLICE, ResourceSlice),
    "PodGroup": (Resource.POD_GROUP, PodGroup),
}
"""Kind's name in recordings to the resource of its cluster events and its type."""

_ACTIONS: Final = {"Add": Action.ADD, "Delete": Action.DELETE, "Update": Action.UPDATE}

_ADMITTING: Final = ("NodeResourcesFit", "NodeAffinity", "NodeName", "NodePorts", "TaintToleration")
_SAID: Final = {"TaintToleration": "taint"}
_OF_RESOURCES: Final = re.compile("Insufficient (.+)|Too many (pods)")

Change = tuple[Any, Any]
_Registrations = Sequence[tuple[str, EventRegistration]]
_Registered = Mapping[str, _Registrations]
"""The events that the plugins of each profile registered."""


def run_hints(scenario: Scenario, world: World, registry: Registry) -> Json:
    """Judge every event of a scenario by itself, against the same cluster."""
    admission = _Admission(scenario, registry)
    registered = {name: [*_registered(each)] for name, each in world.profiles.items()}
    return {"events": [_event(event, world, registered, admission) for event in scenario.events]}


def run_changes(scenario: Scenario) -> Json:
    """Return the cluster events of every change of a scenario: mode "change"."""
    incoming = (
        each for event in scenario.events for each in _cluster_events(event, change_of(event))
    )
    return {"clusterEvents": [_name(each) for each in incoming]}


def _row(event: str, pods: Mapping[str, Json], always: Sequence[str]) -> Json:
    row: Json = {"event": event}
    answers = {pod: asked for pod, asked in pods.items() if asked}
    row |= {"pods": answers} if answers else {}
    return row | ({"always": sorted(always)} if always else {})


def _event(
    event: ObjectEvent, world: World, registered: _Registered, admission: _Admission
) -> Json:
    change = change_of(event)
    incoming = list(_cluster_events(event, change))
    row: Json = {
        "clusterEvents": [_name(each) for each in incoming],
        "hints": [_hints(each, change, world, registered) for each in incoming],
    }
    node = change[1]
    if isinstance(node, Node):
        row["preCheck"] = {info.key: admission.reasons(node, info) for info in world.pending}
    return row


def change_of(event: ObjectEvent) -> Change:
    """Return the object before and after a change; None where it does not exist."""
    type_ = _KINDS[event.resource][1]
    old, new = (None if side is None else from_dict(type_, side) for side in (event.old, event.new))
    return old, new


def could_concern(registered: ClusterEvent, event: ObjectEvent) -> bool:
    """Whether a plugin that registered an event could be asked about a change of this kind.

    Upstream's tests of hints call them with changes that hold less than the part they registered.
    """
    action = _ACTIONS[event.action]
    same = registered.resource in (_KINDS[event.resource][0], Resource.WILDCARD)
    return same and registered.action & action != 0


def _cluster_events(event: ObjectEvent, change: Change) -> Iterator[ClusterEvent]:
    old, new = change
    resource, action = _KINDS[event.resource][0], _ACTIONS[event.action]
    if isinstance(old, Node) and isinstance(new, Node):
        yield from node_changes(old, new)
    elif isinstance(old, Pod) and isinstance(new, Pod):
        yield from pod_changes(old, new)
    elif resource == Resource.POD:
        yield ClusterEvent(_pod_resource(new or old, action), action)
    else:
        yield ClusterEvent(resource, action)


def _pod_resource(pod: Pod, action: Action) -> str:
    """Return the event resource of a pod; a deleted pod with a nomination counts as assigned."""
    nominated = action is Action.DELETE and pod.status.nominated_node_name
    assigned = pod.spec.node_name or nominated
    return Resource.ASSIGNED_POD if assigned else Resource.UNSCHEDULABLE_POD


def _hints(incoming: ClusterEvent, change: Change, world: World, registered: _Registered) -> Json:
    pods: dict[str, Json] = {}
    always: set[str] = set()
    for info in world.pending:
        profile = world.profile(info.pod)
        if profile is not None:
            pods[info.key] = _answers(registered[profile.name], incoming, change, info)
    for registrations in registered.values():
        always |= {
            name
            for name, registration in registrations
            if registration.hint is None and matches(registration.event, incoming)
        }
    return _row(_name(incoming), pods, [*always])


def _answers(
    registrations: _Registrations, incoming: ClusterEvent, change: Change, info: PodInfo
) -> Json:
    return {
        name: "Queue" if registration.hint(info.pod, *change) else "Skip"
        for name, registration in registrations
        if registration.hint is not None and matches(registration.event, incoming)
    }


def _registered(profile: Profile) -> Iterator[tuple[str, EventRegistration]]:
    for name, plugin in profile.plugins.items():
        if isinstance(plugin, EventsToRegister):
            for registration in plugin.events_to_register():
                yield name, registration


def _name(event: ClusterEvent) -> str:
    return f"{event.resource}/{action_name(event.action)}"


class _Admission:
    """A kubelet's admission checks of a pod, made by the plugins with the same checks.

    Recorded with changes of nodes. Queueing hints are always on, so no code acts on the result.
    """

    def __init__(self, scenario: Scenario, registry: Registry) -> None:
        self._pods = scenario.objects.pods
        self._registry = registry
        self._profiles: dict[int, Profile] = {}

    def reasons(self, node: Node, info: PodInfo) -> list[str]:
        """Return the sorted reasons why the node would refuse the pod; empty if it would accept."""
        profile = self._profile(node)
        state, snapshot = CycleState(), profile.handle.snapshot
        attempt = Attempt(profile, snapshot, state, info)
        skipped = {
            plugin.name
            for plugin in profile.pre_filters
            if pre_filter_one(plugin, state, info, snapshot)[1].code is Code.SKIP
        }
        reasons = []
        for forms in profile.filter_forms:
            if forms.name in skipped:
                continue
            answer = ask_filter(attempt, forms, snapshot.all())
            if answer is not None and answer.code_n[0]:
                texts = profile.handle.reasons.reasons(int(answer.reason_n[0]))
                reasons += _admission_reasons(forms.name, texts)
        return sorted(reasons)

    def _profile(self, node: Node) -> Profile:
        """Return the checking plugins' profile over a cluster of just this node and its pods."""
        profile = self._profiles.get(id(node))
        if profile is None:
            pods = [pod for pod in self._pods if pod.spec.node_name == node.name]
            snapshot = build_snapshot(RecordedObjects(nodes=[node], pods=pods))
            handle = Handle(
                profile_name="kubelet",
                snapshot=snapshot,
                reasons=ReasonTable(),
                clock=ManualClock(),
                streams=Streams(0),
            )
            points = {
                point: tuple(n for n in _ADMITTING if self._registry.extends(n, point))
                for point in ("preFilter", "filter")
            }
            args = {name: default_args(name) for name in _ADMITTING}
            profile = Profile(ProfileSpec("kubelet", points, {}, args), self._registry, handle)
            self._profiles = {id(node): profile}
        return profile


def _admission_reasons(plugin: str, texts: Sequence[str]) -> list[str]:
    if plugin != "NodeResourcesFit":
        return [_SAID.get(plugin, plugin)]
    matches = filter(None, map(_OF_RESOURCES.fullmatch, texts))
    return [f"resource {match[1] or match[2]}" for match in matches]
