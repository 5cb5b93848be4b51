"""Random clusters and changes: what a model says beside what happens in a sandbox.

`agreement` plays one scenario, chosen by a seed. A whole cluster runs in virtual time: API server,
controllers, node agents, scheduler. When it is quiet, its objects are listed and the change is
tried in a model made of them. Then the change is made in the cluster itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from moorage.api.codec import decode_untyped
from moorage.api.pod import Pod
from moorage.base import aio
from moorage.base.clock import ManualClock
from moorage.base.errors import ApiError, UsageError
from moorage.base.rng import Random, Streams
from moorage.nodeshapes.templates import complete
from moorage.plugins.in_tree import in_tree_registry
from moorage.snapshot.pod_info import forget_shared_parts
from moorage.virtual.agenda import DRAWN_MOST
from moorage.virtual.deciding_half import ClusterInputs
from moorage.virtual.model import ClusterModel
from moorage.virtual.objects import ClusterObjects
from moorage.what_if.change import (
    AddNode,
    AddTaint,
    Apply,
    Change,
    Cordon,
    Delete,
    Drain,
    RemoveNode,
    Scale,
)
from moorage.what_if.course import BETWEEN_SECONDS, play, scene_of
from moorage.workloads.pods import deletion_order, is_active
from moorage_sandbox.controllers.disruption import DisruptionController
from moorage_sandbox.controllers.workloads import WorkloadControllers
from moorage_sandbox.testing.builders import Manifest, node_manifest, pod_manifest
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from moorage_sandbox.testing.virtual_loop import run_virtual
from scheduler.tests.what_if.cluster_changes import REST_SECONDS, listed, make_change, rest

_ZONES = ("a", "b", "c")
CLASSES = {"low": -10, "high": 100, "top": 1000}
# Longer than the longest backoff of a controller whose pods are refused.
_BACKOFF_SECONDS = 1050.0
_ORDERS = 2 + DRAWN_MOST

Places = Counter[tuple[str, str]]
"""How many pods of an owner, or the pod itself, are on a node; "" for no node."""


class Outcome(msgspec.Struct, frozen=True):
    """What was said, and what happened.

    Parameters
    ----------
    steps
        The changes.
    before
        The places of pods before them.
    said
        The places that models said, one for each order of what happens at one moment.
    happened
        The places after the changes were made.
    is_race
        Whether more owners waited for room in a quota than two orders can say anything about, or
        uids of new pods decided which pods a smaller owner keeps.
    """

    steps: tuple[Change, ...]
    before: Places
    said: tuple[Places, ...]
    happened: Places
    is_race: bool

    @property
    def agrees(self) -> bool:
        """Whether what happened is what was said."""
        return self.happened in self.said

    @property
    def is_uncertain(self) -> bool:
        """Whether the orders come out differently."""
        return any(each != self.said[0] for each in self.said)

    @property
    def changed(self) -> bool:
        """Whether the change led to anything."""
        return self.before != self.happened


def agreement(seed: int) -> Outcome:
    """Play the scenario of a seed, which chooses the cluster and the changes."""
    rng = Streams(seed).stream("scenario")
    nodes = [random_node(rng, f"n{number}") for number in range(rng.randint(2, 5))]
    clock = ManualClock()

    async def main() -> Outcome:
        async with VirtualCluster(
            clock,
            nodes=nodes,
            seed=seed,
            renew_seconds=10_000,
            controllers=(WorkloadControllers, DisruptionController),
        ) as cluster:
            return await _play(cluster, rng)

    try:
        return run_virtual(main(), clock)
    finally:
        forget_shared_parts()


async def _play(cluster: VirtualCluster, rng: Random) -> Outcome:
    for name, value in CLASSES.items():
        await cluster.create_objects(priority_class(name, value))
    for obj in _objects(rng):
        await _create(cluster, obj)
        await aio.sleep(1.1)
    await aio.sleep(REST_SECONDS)
    objects = await listed(cluster)
    inputs = ClusterInputs(
        objects=objects,
        registry=in_tree_registry(),
        draws=cluster.draws.copy(),
        order={uid: rank for rank, uid in enumerate(_known_order(cluster))},
        now_ns=cluster.clock.now_ns(),
    )
    steps, said = _rehearsed(rng, inputs)
    others = (_played(inputs, steps, order=order) for order in range(1, _ORDERS))
    most_waiting = _refused_owners(objects)
    is_tie, draining = False, list[tuple[str, str]]()
    for number, step in enumerate(steps, start=1):
        if isinstance(step, Scale):
            now_ns = cluster.clock.now_ns()
            is_tie |= _is_decided_by_new_uids(await listed(cluster), step, objects, now_ns=now_ns)
        draining += await make_change(cluster, step)
        following = steps[number] if number < len(steps) else None
        await rest(cluster, _seconds_after(step, following), draining)
        if not _together(step, following):
            waiting = _refused_owners(await listed(cluster))
            await aio.sleep(_BACKOFF_SECONDS if waiting else 0.0)
            most_waiting = max(most_waiting, waiting)
    return Outcome(
        steps=steps,
        before=_places(objects),
        said=(said, *others),
        happened=_places(await listed(cluster)),
        is_race=most_waiting > 2 or is_tie,
    )


def _is_decided_by_new_uids(
    now: ClusterObjects, step: Scale, before: ClusterObjects, *, now_ns: int
) -> bool:
    """Whether uids decide which pods go, and some pods are new: no model knows their uids."""
    pods = [
        pod
        for pod in now.pods.values()
        if pod.metadata.labels.get("app") == step.name and is_active(pod)
    ]
    if step.kind != "Deployment" or all(pod.key in before.pods for pod in pods):
        return False
    rank = Counter(pod.spec.node_name for pod in pods if pod.spec.node_name)
    surplus = max(0, len(pods) - step.replicas)
    deleted = []
    for uids in (range(len(pods)), range(len(pods), 0, -1)):
        named = [
            replace(pod, metadata=replace(pod.metadata, uid=f"{uid:04}"))
            for pod, uid in zip(pods, uids, strict=True)
        ]
        order = deletion_order(named, rank=rank, now_ns=now_ns)[:surplus]
        deleted.append({pod.key for pod in order})
    return deleted[0] != deleted[1]


async def _create(cluster: VirtualCluster, obj: Manifest) -> None:
    """Create an object, unless the bounds of its namespace refuse it."""
    try:
        await cluster.create_objects(obj)
    except ApiError as error:
        if error.code not in (403, 422):
            raise


def _rehearsed(rng: Random, inputs: ClusterInputs) -> tuple[tuple[Change, ...], Places]:
    """Return changes and the places they lead to; others if an earlier one takes their object."""
    while True:
        steps = tuple(_steps(rng, inputs.objects))
        try:
            return steps, _played(inputs, steps, order=0)
        except UsageError:
            continue


def _played(inputs: ClusterInputs, steps: Sequence[Change], *, order: int) -> Places:
    """Return the places that changes lead to in a model."""
    scene = scene_of(ClusterModel(inputs))
    scene.model.take_order(order)
    scene.workloads.make_limited_pods()
    scene.model.settle()
    assert not scene.model.bound, "the cluster was quiet"
    scene.model.rewind_draws()
    model = play(scene, steps).model
    assert model.is_quiet
    return _places(model.objects)


def _seconds_after(step: Change, following: Change | None) -> float:
    """Return the time between two changes, as a model takes it."""
    if _together(step, following):
        return BETWEEN_SECONDS
    # The pods of a deleted node are collected after 40 seconds.
    return REST_SECONDS * (3 if isinstance(step, RemoveNode) else 1)


def _together(step: Change, following: Change | None) -> bool:
    return isinstance(step, Apply) and isinstance(following, Apply)


def _refused_owners(objects: ClusterObjects) -> int:
    """Return the number of owners that have fewer pods than they want, maybe for a quota."""
    found = objects.manifests
    if not found.get(("", "ResourceQuota")):
        return 0
    owners = [
        decode_untyped(text)
        for kind in ("ReplicaSet", "StatefulSet", "DaemonSet")
        for text in found.get(("apps", kind), {}).values()
    ]
    return sum(_lacks(each) for each in owners)


def _lacks(owner: Manifest) -> bool:
    status = owner.get("status") or {}
    if owner["kind"] == "DaemonSet":
        wanted, there = "desiredNumberScheduled", "currentNumberScheduled"
        return int(status.get(there) or 0) < int(status.get(wanted) or 0)
    return int(status.get("replicas") or 0) < int(owner["spec"]["replicas"])


def _known_order(cluster: VirtualCluster) -> list[str]:
    """Return the uids of pods in the scheduler's order: of its queue, and on its nodes."""
    core = cluster.scheduler.core
    queue = core.queue.pending()
    waiting = sorted((*queue.unschedulable, *queue.backoff), key=lambda each: each.since_ns)
    found = [each.pod.uid for each in waiting]
    for row in range(core.snapshot.num_nodes):
        found += [info.uid for info in core.snapshot.pods(row)]
    return found


# --- the cluster ----------------------------------------------------------------------------------


def random_node(rng: Random, name: str) -> Manifest:
    taints = [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}] if rng.random() < 0.2 else []
    labels = {"topology.kubernetes.io/zone": rng.choice(_ZONES)}
    return node_manifest(name, cpu=str(rng.randint(2, 6)), labels=labels, taints=taints)


def priority_class(name: str, value: int) -> Manifest:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
    }


def _objects(rng: Random) -> list[Manifest]:
    found = [_owner(rng, f"w{number}") for number in range(rng.randint(1, 4))]
    found += [random_pod(rng, f"p{number}") for number in range(rng.randint(0, 4))]
    rng.shuffle(found)
    names = [each["metadata"]["name"] for each in found if each["kind"] != "Pod"]
    if rng.random() < 0.3:
        found.append(_daemon_set(rng))
    if rng.random() < 0.3:
        found.append(_budget(rng, rng.choice(names)))
    if rng.random() < 0.3:
        found.insert(rng.randint(0, len(found)), _bounds(rng))
    return found


def _daemon_set(rng: Random) -> Manifest:
    """Return a DaemonSet whose pods have their own reasons to be on a node or not."""
    spec: Manifest = pod_manifest("agent", cpu="100m", memory="64Mi")["spec"]
    if rng.random() < 0.3:
        spec["tolerations"] = [{"operator": "Exists"}]
    if rng.random() < 0.3:
        spec["nodeSelector"] = {"topology.kubernetes.io/zone": rng.choice(_ZONES)}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "agent", "namespace": "default"},
        "spec": {
            "selector": {"matchLabels": {"app": "agent"}},
            "template": {"metadata": {"labels": {"app": "agent"}}, "spec": spec},
        },
    }


def _budget(rng: Random, name: str) -> Manifest:
    limit = rng.choice(
        ({"minAvailable": 1}, {"minAvailable": "50%"}, {"maxUnavailable": 1}, {"maxUnavailable": 0})
    )
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": name}}, **limit},
    }


def _bounds(rng: Random) -> Manifest:
    """Return a quota or a limit range of the namespace."""
    metadata = {"name": "bounds", "namespace": "default"}
    if rng.random() < 0.3:
        item = {"type": "Container", "max": {"cpu": rng.choice(("1", "2"))}}
        spec: Manifest = {"limits": [item]}
        return {"apiVersion": "v1", "kind": "LimitRange", "metadata": metadata, "spec": spec}
    hard = rng.choice(({"pods": "8"}, {"requests.cpu": "9"}, {"pods": "12", "cpu": "12"}))
    spec = {"hard": hard}
    if "pods" in hard and len(hard) == 1 and rng.random() < 0.3:
        spec["scopeSelector"] = {
            "matchExpressions": [
                {"scopeName": "PriorityClass", "operator": "In", "values": ["high", "low"]}
            ]
        }
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": spec}


def _owner(rng: Random, name: str) -> Manifest:
    kind = rng.choice(("Deployment", "Deployment", "ReplicaSet", "StatefulSet"))
    pod = random_pod(rng, name)
    spec: Manifest = {
        "replicas": rng.randint(1, 5),
        "selector": {"matchLabels": {"app": name}},
        "template": {"metadata": {"labels": {"app": name}}, "spec": pod["spec"]},
    }
    if kind == "StatefulSet":
        spec |= {
            "serviceName": name,
            "podManagementPolicy": rng.choice(("Parallel", "OrderedReady")),
        }
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    }


def random_pod(rng: Random, name: str) -> Manifest:
    spec: Manifest = {}
    if rng.random() < 0.4:
        spec["priorityClassName"] = rng.choice(tuple(CLASSES))
    if rng.random() < 0.2:
        spec["tolerations"] = [{"key": "gpu", "operator": "Exists"}]
    if rng.random() < 0.15:
        spec["nodeSelector"] = {"topology.kubernetes.io/zone": rng.choice(_ZONES)}
    selector = {"matchLabels": {"app": name}}
    if rng.random() < 0.2:
        topology = rng.choice(("kubernetes.io/hostname", "topology.kubernetes.io/zone"))
        term = {"labelSelector": selector, "topologyKey": topology}
        kind = rng.choice(("podAntiAffinity", "podAffinity"))
        spec["affinity"] = {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    elif rng.random() < 0.25:
        spec["topologySpreadConstraints"] = [
            {
                "maxSkew": 1,
                "topologyKey": rng.choice(
                    ("kubernetes.io/hostname", "topology.kubernetes.io/zone")
                ),
                "whenUnsatisfiable": rng.choice(("DoNotSchedule", "ScheduleAnyway")),
                "labelSelector": selector,
            }
        ]
    cpu = rng.choice(("250m", "500m", "1", "1", "2", "3"))
    return pod_manifest(name, cpu=cpu, memory="256Mi", labels={"app": name}, **spec)


# --- changes --------------------------------------------------------------------------------------


def _steps(rng: Random, objects: ClusterObjects) -> list[Change]:
    makers = [_add, _remove, _cordon, _drain, _taint, _apply, _scale, _delete]
    found: list[Change] = []
    left = objects.copy()
    for number in range(rng.choice((1, 1, 1, 2, 3))):
        found += rng.choice(makers)(rng, left, number)
    return found


def _any_node(rng: Random, objects: ClusterObjects) -> str:
    return rng.choice(sorted(objects.nodes))


def _add(rng: Random, objects: ClusterObjects, number: int) -> Sequence[Change]:
    del objects
    return [AddNode(complete(random_node(rng, f"x{number}")))]


def _remove(rng: Random, objects: ClusterObjects, number: int) -> Sequence[Change]:
    del number
    if len(objects.nodes) < 2:
        return []
    name = _any_node(rng, objects)
    del objects.nodes[name]
    return [RemoveNode(name)]


def _cordon(rng: Random, objects: ClusterObjects, number: int) -> Sequence[Change]:
    del number
    return [Cordon(_any_node(rng, objects))]


def _drain(rng: Random, objects: ClusterObjects, number: int) -> Sequence[Change]:
    """Return the drain of a node, unless pods of so many owners leave that two orders say little.

    A model tries two orders. With three owners there are more, and which one happens is a race.
    """
    del number
    name = _any_node(rng, objects)
    there = (pod for pod in objects.pods.values() if pod.spec.node_name == name)
    owners = {pod.metadata.labels.get("app") for pod in there} - {"agent"}
    return [] if len(owners) > 2 else [Drain(name)]


def _taint(rng: Random, objects: ClusterObjects, number: int) -> Sequence[Change]:
    effect = rng.choice(("NoSchedule", "NoExecute", "PreferNoSchedule"))
    name = _any_node(rng, objects)
    first = _emptied(objects, name, number) if effect == "NoExecute" else []
    return [*first, AddTaint(name, f"key{number}", "on", effect)]


def _emptied(objects: ClusterObjects, name: str, number: int) -> Sequence[Change]:
    """Return the drain of a node, unless it has one pod at most.

    Pods that leave at one moment are made again by controllers side by side; which of the new pods
    comes first is a race, and no model can know its end.
    """
    there = sum(pod.spec.node_name == name for pod in objects.pods.values())
    return [] if number == 0 and there <= 1 else [Drain(name)]


def _apply(rng: Random, objects: ClusterObjects, number: int) -> Sequence[Change]:
    del objects
    make = rng.choice((_owner, random_pod))
    return [Apply(make(rng, f"new{number}{letter}")) for letter in "ab"[: rng.randint(1, 2)]]


def _owners(objects: ClusterObjects) -> list[tuple[str, str]]:
    kinds = ("Deployment", "StatefulSet")
    return sorted(
        (kind, key[1]) for kind in kinds for key in objects.manifests.get(("apps", kind), {})
    )


def _scale(rng: Random, objects: ClusterObjects, number: int) -> Sequence[Change]:
    del number
    found = _owners(objects)
    if not found:
        return []
    kind, name = rng.choice(found)
    replicas = rng.randint(0, 8)
    if _is_race(objects, name, replicas):
        return []
    return [Scale(kind, "default", name, replicas)]


def _is_race(objects: ClusterObjects, owner: str, left: int) -> bool:
    """Return whether pods of an owner leave several nodes at one moment, and others want the room.

    Kubelets end pods side by side. Which node has room first decides where a waiting pod goes, and
    no model can know it.
    """
    waits = any(not pod.spec.node_name for pod in objects.pods.values())
    nodes = [
        pod.spec.node_name
        for pod in objects.pods.values()
        if pod.metadata.labels.get("app") == owner and pod.spec.node_name
    ]
    return waits and len(nodes) - left > 1 and len(set(nodes)) > 1


def _delete(rng: Random, objects: ClusterObjects, number: int) -> Sequence[Change]:
    del number
    bare = sorted(key[1] for key, pod in objects.pods.items() if not pod.metadata.owner_references)
    owners = _owners(objects)
    if bare and (rng.random() < 0.5 or not owners):
        name = rng.choice(bare)
        objects.drop_pod(("default", name))
        return [Delete("Pod", "default", name)]
    if not owners:
        return []
    kind, name = rng.choice(owners)
    if _is_race(objects, name, 0):
        return []
    del objects.manifests["apps", kind]["default", name]
    return [Delete(kind, "default", name)]


# --- looking --------------------------------------------------------------------------------------


def _places(objects: ClusterObjects) -> Places:
    return Counter(
        (_owner_name(pod), pod.spec.node_name)
        for pod in objects.pods.values()
        if not pod.metadata.deletion_timestamp
    )


def _owner_name(pod: Pod) -> str:
    owners = pod.metadata.owner_references
    return owners[0].name if owners else pod.name
