"""Makes changes happen in a model.

A change is data (`change`); `apply_change` makes it happen. What follows from it (pods that
start, move, are evicted) follows in the model, and is not part of the change.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial, singledispatch
from typing import Any, Final

import msgspec

from moorage.api.codec import decode, encode, from_dict
from moorage.api.node import Node, Taint
from moorage.api.pod import MIRROR, Pod
from moorage.api.resources import ResourceType
from moorage.base.clock import NS_PER_SECOND
from moorage.base.errors import UsageError
from moorage.kinds.cluster.namespace import PERMANENT
from moorage.virtual.effects import CALL_SECONDS
from moorage.virtual.kinds import is_read_plain, kind_of, readable, resources_of
from moorage.virtual.model import ClusterModel
from moorage.virtual.objects import KINDS, Key, checked_node, checked_pod
from moorage.virtual.owner_kinds import DAEMON_SET, OWNERS, SCALABLE, is_of_one_node
from moorage.virtual.owner_kinds import kind_of as kind_of_owner
from moorage.what_if.change import (
    AddNode,
    AddTaint,
    Apply,
    Cordon,
    Delete,
    Drain,
    RemoveNode,
    Scale,
    SetPriority,
)
from moorage.what_if.claims.pod_claims import PodClaims
from moorage.what_if.claims.volumes import ClaimVolumes
from moorage.what_if.consequences import DrainFlag, NotEvicted
from moorage.what_if.fullness import ZONE
from moorage.what_if.owners.deletions import delete_namespace, delete_object
from moorage.what_if.owners.workloads import Workloads
from moorage.what_if.rules.admission import Admission
from moorage.what_if.rules.bounds import Bounds
from moorage.what_if.rules.budgets import Budgets
from moorage.workloads.node_steps import UNSCHEDULABLE, eviction_in

# kubectl v1.36 pkg/drain: an eviction that a budget refuses is tried again so much later.
_DRAIN_RETRY_NS: Final = 5 * NS_PER_SECOND
_UNPLAYED: Final[Mapping[str, str]] = {
    "CronJob": "makes Jobs by its schedule, which is not played; apply one of its Jobs",
    "HorizontalPodAutoscaler": "scales by measured load, which is not played; scale its target",
}


class Scene(msgspec.Struct, frozen=True):
    """A model, and the other parts that changes need.

    Parameters
    ----------
    not_evicted
        The evictions of drains that a budget refuses so far, by the uid of the pod.
    flags
        The flags that `kubectl drain` needs, and the pods that need them.
    """

    model: ClusterModel
    admission: Admission
    workloads: Workloads
    budgets: Budgets
    bounds: Bounds
    claims: PodClaims
    volumes: ClaimVolumes
    not_evicted: dict[str, NotEvicted] = msgspec.field(default_factory=dict)
    flags: dict[DrainFlag, list[str]] = msgspec.field(default_factory=dict)

    @property
    def refused_claims(self) -> dict[str, str]:
        """Why the namespace of a pod refuses a claim that the pod needs, by the uid of the pod."""
        return {**self.volumes.refused, **self.claims.refused}

    def reasons(self) -> dict[str, str]:
        """Return why pods have no node, by uid; a claim that is refused comes first."""
        return {**self.model.reasons(), **self.refused_claims}


@singledispatch
def apply_change(change: object, on: Scene) -> None:
    """Make a change happen in a model, up to the moment when nothing is due any more.

    Raises
    ------
    UsageError
        The change is about an object that is not there, or cannot be made.
    """
    raise NotImplementedError(f"{type(change).__name__} is no change")


def readable_node(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of the manifest of a node, which may leave out its kind.

    Raises
    ------
    UsageError
        A value has a wrong type, or there is no name.
    """
    whole = {**manifest, "apiVersion": "v1", "kind": "Node"}
    obj = readable(whole, kind_of(whole))
    if not obj["metadata"].get("name"):
        raise UsageError("a node without a name cannot be added")
    return obj


@apply_change.register
def _add_node(change: AddNode, on: Scene) -> None:
    obj = readable_node(change.manifest)
    name = obj["metadata"]["name"]
    if name in on.model.objects.nodes:
        raise UsageError(f"there is a node {name} already")
    if change.zone_turn is not None:
        obj = _in_zone(obj, change.zone_turn, on)
    on.model.put_node(_readable_node(obj))
    # Pods that wait have seen the node before a controller has made its pods of DaemonSets.
    on.model.soon(on.workloads.nodes_changed)


def _in_zone(obj: Mapping[str, Any], turn: int, on: Scene) -> dict[str, Any]:
    """Return the manifest of a node with the zone of a turn; without zones it stays as it is."""
    nodes = on.model.objects.nodes.values()
    zones = sorted({node.metadata.labels[ZONE] for node in nodes if ZONE in node.metadata.labels})
    if not zones:
        return dict(obj)
    labels = {**(obj["metadata"].get("labels") or {}), ZONE: zones[turn % len(zones)]}
    return {**obj, "metadata": {**obj["metadata"], "labels": labels}}


@apply_change.register
def _remove_node(change: RemoveNode, on: Scene) -> None:
    _node(on, change.name)
    on.model.remove_node(change.name)
    on.workloads.nodes_changed()


@apply_change.register
def _cordon(change: Cordon, on: Scene) -> None:
    node = _node(on, change.name)
    taints = [each for each in node.spec.taints if each.key != UNSCHEDULABLE]
    taints.append(Taint(key=UNSCHEDULABLE, effect="NoSchedule"))
    spec = msgspec.structs.replace(node.spec, unschedulable=True, taints=taints)
    on.model.put_node(msgspec.structs.replace(node, spec=spec))


@apply_change.register
def _drain(change: Drain, on: Scene) -> None:
    """Do what `kubectl drain --ignore-daemonsets --delete-emptydir-data --force` does.

    kubectl v1.36 pkg/drain: the filters say which pods are evicted and which flags that needs. All
    evictions are sent at once, and a server takes one after another; a refused one is sent again
    every five seconds.
    """
    _cordon(Cordon(change.name), on)
    on.model.settle()
    due_ns = on.model.virtual_now_ns
    for pod in on.model.order.arrange(on.model.pods_on(change.name)):
        if MIRROR in pod.metadata.annotations:
            continue
        owner = pod.metadata.controller
        if owner is not None and kind_of_owner(owner) == DAEMON_SET:
            on.flags.setdefault("--ignore-daemonsets", []).append(pod.full_name)
            continue
        if owner is None:
            on.flags.setdefault("--force", []).append(pod.full_name)
        if pod.key in on.model.objects.with_local_data:
            on.flags.setdefault("--delete-emptydir-data", []).append(pod.full_name)
        if not is_of_one_node(pod):
            on.model.call_at(due_ns, partial(_evict, pod, on))
            due_ns += round(CALL_SECONDS * NS_PER_SECOND)


def owner_and_group(pod: Pod, model: ClusterModel) -> tuple[str, str]:
    """Return the owner of a pod as ``kind/name``, and its group; "" for none."""
    group = model.half.core.snapshot.groups.key_of(pod)
    return pod.metadata.owner_title, "" if group is None else group.full_name


def _evict(pod: Pod, on: Scene) -> None:
    """Evict a pod as soon as its budget allows it."""
    current = on.model.current(pod)
    if current is None or current.metadata.deletion_timestamp:
        on.not_evicted.pop(pod.uid, None)
        return
    why = on.budgets.objection(current)
    if not why:
        on.not_evicted.pop(pod.uid, None)
        on.model.leave(current)
        return
    owner, group = owner_and_group(current, on.model)
    on.not_evicted[pod.uid] = NotEvicted(
        current.full_name, current.spec.node_name, why, owner, group
    )
    on.model.call_at(on.model.virtual_now_ns + _DRAIN_RETRY_NS, partial(_evict, pod, on))


@apply_change.register
def _taint(change: AddTaint, on: Scene) -> None:
    node = _node(on, change.name)
    new = Taint(key=change.key, value=change.value, effect=change.effect)
    others = [each for each in node.spec.taints if (each.key, each.effect) != (new.key, new.effect)]
    taints = [*others, new]
    spec = msgspec.structs.replace(node.spec, taints=taints)
    on.model.put_node(msgspec.structs.replace(node, spec=spec))
    now_ns = on.model.virtual_now_ns
    for pod in on.model.order.arrange(on.model.pods_on(change.name)):
        # A pod that tolerates the taint for a time has to leave in the end, too.
        if eviction_in(pod, taints, now_ns, now_ns) is not None:
            on.model.leave(pod)
    on.workloads.nodes_changed()


@apply_change.register
def _apply(change: Apply, on: Scene) -> None:
    kind = kind_of(change.manifest).resource
    if (kind.group, kind.kind) == ("", "Node"):
        _apply_node(change.manifest, on)
        return
    if kind.kind in _UNPLAYED:
        raise UsageError(f"a {kind.kind} {_UNPLAYED[kind.kind]}")
    obj = on.admission.stored(change.manifest, namespace=change.namespace)
    meta = obj["metadata"]
    key: Key = (meta.get("namespace") or "", meta["name"])
    if (kind.group, kind.kind) == ("", "Pod"):
        if key in on.model.objects.pods:
            raise UsageError(f"there is a pod {'/'.join(key)} already; delete it first")
        _check_bounds(kind, obj, on)
        on.model.add_pod(_readable_pod(obj))
        return
    old = on.model.objects.manifest(kind.group, kind.kind, key)
    if kind.kind not in OWNERS or kind.group not in ("", "apps", "batch"):
        if old is not None:
            obj["metadata"]["uid"] = old["metadata"].get("uid") or obj["metadata"]["uid"]
        else:
            _check_bounds(kind, obj, on)
        on.workloads.keep(obj)
    elif old is None:
        _check_bounds(kind, obj, on)
        on.workloads.put_owner(obj)
    else:
        kind_of(old).default(old)  # a file may lack what a server fills in
        _rescale(kind.kind, key, old, obj, on)


def _check_bounds(resource: ResourceType, obj: Mapping[str, Any], on: Scene) -> None:
    """Refuse a new object that its namespace would refuse, and count it."""
    why = on.bounds.fault(resource.qualified, obj) if resource.namespaced else ""
    if why:
        raise UsageError(f"{resource.kind} {obj['metadata']['name']} would be refused: {why}")
    if resource.qualified != "pods":
        on.bounds.count(resource.qualified, obj)  # pods are counted when they come


def _rescale(
    kind: str, key: Key, old: Mapping[str, Any], new: Mapping[str, Any], on: Scene
) -> None:
    """Change the size of an owner; nothing else of it may change."""
    before, after = old.get("spec") or {}, new["spec"]
    changed = {name for name in {**before, **after} if before.get(name) != after.get(name)}
    if changed - {"replicas"} or kind not in SCALABLE:
        fields = ", ".join(f"spec.{name}" for name in sorted(changed - {"replicas"}))
        raise UsageError(
            f"{kind} {key[1]} exists, and a change of {fields or 'its spec'} is a rollout, which "
            "is not played; delete it and apply another"
        )
    if changed:
        on.workloads.check_size(kind, key)
        on.workloads.scale(kind, key, int(new["spec"]["replicas"]))


def _apply_node(manifest: Mapping[str, Any], on: Scene) -> None:
    new = _readable_node(readable_node(manifest))
    on.model.put_node(new)
    on.workloads.nodes_changed()


@apply_change.register
def _scale(change: Scale, on: Scene) -> None:
    if change.kind not in SCALABLE:
        raise UsageError(f"a {change.kind} is not scaled; {', '.join(SCALABLE)} are")
    key: Key = (change.namespace, change.name)
    on.workloads.check_size(change.kind, key)
    on.workloads.scale(change.kind, key, change.replicas)


@apply_change.register
def _delete(change: Delete, on: Scene) -> None:
    kinds = resources_of(change.kind)
    if not kinds:
        raise UsageError(f"there is no kind {change.kind!r}")
    keys: list[Key] = [(change.namespace if each.namespaced else "", change.name) for each in kinds]
    manifest = on.model.objects.manifest
    there = [n for n, each in enumerate(kinds) if manifest(each.group, each.kind, keys[n])]
    kind, key = kinds[(there or [0])[0]], keys[(there or [0])[0]]
    if (kind.group, kind.kind) == ("", "Node"):
        _remove_node(RemoveNode(change.name), on)
    elif (kind.group, kind.kind) == ("", "Pod"):
        pod = _pod(on, key)
        on.model.leave(pod, returns=pod.metadata.controller is not None, deleted=True)
    elif kind.kind in OWNERS:
        on.workloads.check_size(kind.kind, key)
        on.workloads.delete_owner(kind.kind, key)
    elif (kind.group, kind.kind) == ("", "Namespace"):
        if change.name in PERMANENT:
            raise UsageError(f"the namespace {change.name} may not be deleted")
        delete_namespace(change.name, model=on.model, workloads=on.workloads)
    elif there:
        model, workloads = on.model, on.workloads
        delete_object(kind.group, kind.kind, key, model=model, workloads=workloads)
    elif (kind.group, kind.kind) in KINDS or is_read_plain(kind):
        raise UsageError(f"there is no {kind.kind} {'/'.join(part for part in key if part)}")
    else:
        raise UsageError(f"no {kind.kind} is read here, so none can be deleted; leave it out")


@apply_change.register
def _priority(change: SetPriority, on: Scene) -> None:
    pod = _pod(on, (change.namespace, change.name))
    spec = msgspec.structs.replace(pod.spec, priority=change.value)
    new = msgspec.structs.replace(pod, spec=spec)
    if pod.spec.node_name:
        on.model.update_pod(new)
    else:
        on.model.leave(pod, returns=False)
        on.model.add_pod(new)


def _node(on: Scene, name: str) -> Node:
    found = on.model.objects.nodes.get(name)
    if found is None:
        raise UsageError(f"there is no node {name}")
    return found


def _pod(on: Scene, key: Key) -> Pod:
    found = on.model.objects.pods.get(key)
    if found is None:
        raise UsageError(f"there is no pod {'/'.join(key)}")
    return found


def _readable_node(obj: Mapping[str, Any]) -> Node:
    try:
        return checked_node(decode(Node, encode(obj)))
    except ValueError as problem:
        raise UsageError(f"Node {obj['metadata'].get('name', '')}: {problem}") from problem


def _readable_pod(obj: Mapping[str, Any]) -> Pod:
    try:
        return checked_pod(from_dict(Pod, obj))
    except ValueError as problem:
        raise UsageError(f"Pod {obj['metadata'].get('name', '')}: {problem}") from problem
