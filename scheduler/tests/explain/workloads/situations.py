"""Drawn situations of workloads, groups, claims and nodes, each with one planted cause.

Every function plants its cause with drawn numbers, and returns what the answer has to begin with
and to name. Distractors are pods that run, a wide quota, and a node that is closed by two faults.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from moorage.base.rng import Random, Streams
from moorage_sandbox.testing.builders import Manifest, node_manifest, pod_manifest
from scheduler.tests.explain.planted_devices import (
    device_class,
    offered,
    resource_claim,
    using,
)
from scheduler.tests.explain.workloads.owned import owner
from scheduler.tests.explain.workloads.playing import Situation
from tests.scenarios.gangs import coscheduling, of_labels, of_object, pod_group

_OFFERING: Final = 2
"""Nodes of situations with devices; each offers one."""
ZONE: Final = "topology.kubernetes.io/zone"
_KINDS: Final = ("Deployment", "ReplicaSet", "StatefulSet", "Job")
_NEVER: Final = "never fits here, not even on an empty node, because of"


def nodes(draw: Random, *, cpu: str = "8", **fields: Any) -> list[Manifest]:
    """Return open nodes in two zones, and sometimes one that is closed by two faults."""
    made = [
        node_manifest(f"n{index}", cpu=cpu, memory="16Gi", labels={ZONE: "ab"[index % 2]}, **fields)
        for index in range(draw.randint(2, 5))
    ]
    if draw.random() < 0.5:
        team = {"key": "team", "value": "x", "effect": "NoSchedule"}
        made.append(node_manifest("closed", cpu=cpu, taints=[team], unschedulable=True))
    return made


def _open(made: list[Manifest]) -> int:
    """Return how many of some nodes are open."""
    return sum(each["metadata"]["name"] != "closed" for each in made)


def workload(
    kind: str, name: str, replicas: int, *, cpu: str = "1", metadata: Any = None, **spec: Any
) -> Manifest:
    """Return a workload of one container."""
    container = {"name": "main", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    container |= spec.pop("container", {})
    template = {
        "metadata": {"labels": {"app": name}, **(metadata or {})},
        "spec": {"containers": [container], **spec},
    }
    counts: dict[str, Any] = {"replicas": replicas}
    if kind == "StatefulSet":
        counts |= {"podManagementPolicy": "Parallel", "serviceName": name}
    if kind == "Job":
        template["spec"]["restartPolicy"] = "Never"
        counts = {"parallelism": replicas, "completions": replicas}
    made = owner(kind, name, template=template, **counts)
    for each in ("uid", "generation"):
        del made["metadata"][each]
    del made["status"]
    if kind == "Job":
        del made["spec"]["selector"]
    return made


def _of(kind: str, draw: Random, made: list[Manifest], about: str, **fields: Any) -> Situation:
    """Return the situation of a workload of a drawn kind, none of whose pods gets a node."""
    type_, number = draw.choice(_KINDS), draw.randint(1, 4)
    others = fields.pop("others", [])
    parts = [others, [workload(type_, "w", number, **fields)]]
    start = f"0 of {number} pods are ready; {number} "
    return Situation(kind, made, parts, type_.lower(), "w", start, about)


# --- workloads whose pods wait --------------------------------------------------------------------


def too_large(draw: Random) -> Situation:
    return _of("too_large", draw, nodes(draw), f"{_NEVER} cpu", cpu=f"{draw.randint(20, 60)}")


def no_room(draw: Random) -> Situation:
    made = nodes(draw)
    others = [workload("Deployment", "other", _open(made), cpu="6")]
    return _of("no_room", draw, made, "but for cpu", cpu="4", others=others)


def too_many_pods(draw: Random) -> Situation:
    made = nodes(draw, pods="1")
    others = [workload("StatefulSet", "other", _open(made), cpu="1")]
    return _of("too_many_pods", draw, made, "but for the number of pods", others=others)


def taint(draw: Random) -> Situation:
    dedicated = {"key": "dedicated", "value": f"v{draw.randint(1, 9)}", "effect": "NoSchedule"}
    made = nodes(draw)
    for each in made:
        each["spec"]["taints"] = [*each["spec"].get("taints", []), dedicated]
    return _of("taint", draw, made, "dedicated=")


def cordon(draw: Random) -> Situation:
    made = nodes(draw)
    for each in made:
        each["spec"]["unschedulable"] = True
    return _of("cordon", draw, made, "cordon")


def selector(draw: Random) -> Situation:
    chosen = {"disk": draw.choice(["ssd", "nvme"])}
    return _of("selector", draw, nodes(draw), "nodeSelector disk=", nodeSelector=chosen)


def node_affinity(draw: Random) -> Situation:
    term = {"matchExpressions": [{"key": "gen", "operator": "In", "values": ["2", "3"]}]}
    required = {"nodeSelectorTerms": [term]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    return _of("node_affinity", draw, nodes(draw), "gen", affinity=affinity)


def partner(draw: Random) -> Situation:
    term = {"labelSelector": {"matchLabels": {"app": "absent"}}, "topologyKey": ZONE}
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return _of("partner", draw, nodes(draw), "app=absent", affinity=affinity)


def enemy(draw: Random) -> Situation:
    made = nodes(draw)
    term = {"labelSelector": {"matchLabels": {"app": "other"}}, "topologyKey": ZONE}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    others = [workload("Deployment", "other", 4 * len(made), cpu="100m")]
    return _of("enemy", draw, made, "app=other", affinity=affinity, others=others)


def host_port(draw: Random) -> Situation:
    made = nodes(draw)
    ports = {"ports": [{"containerPort": 80, "hostPort": 80}]}
    others = [workload("Deployment", "other", _open(made), cpu="100m", container=ports)]
    return _of("host_port", draw, made, "port 80", container=ports, others=others)


def gates(draw: Random) -> Situation:
    gate = [{"name": "example.com/approval"}]
    return _of("gates", draw, nodes(draw), "example.com/approval", schedulingGates=gate)


def missing_claim(draw: Random) -> Situation:
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "absent"}}
    return _of("missing_claim", draw, nodes(draw), "absent", volumes=[volume])


def no_such_resource(draw: Random) -> Situation:
    amounts = {"example.com/fpga": "1"}
    container = {"resources": {"requests": amounts, "limits": amounts}}
    return _of("no_such_resource", draw, nodes(draw), "example.com/fpga", container=container)


# --- workloads whose pods do not exist ------------------------------------------------------------


def _refused(kind: str, draw: Random, objects: list[Manifest], about: str) -> Situation:
    """Return the situation of a Deployment of which pods are not created."""
    number = draw.randint(1, 6)
    parts = [objects, [workload("Deployment", "w", number)]]
    return Situation(kind, nodes(draw), parts, "deployment", "w", f"0 of {number} ", about)


def _quota(name: str, **hard: str) -> Manifest:
    bounds = {key.replace("_", "."): value for key, value in hard.items()}
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"hard": bounds},
    }


def _partly(kind: str, draw: Random, quota: Callable[[int], Manifest], about: str) -> Situation:
    """Return the situation of a Deployment of which a quota lets some pods exist."""
    there, lacking = draw.randint(1, 3), draw.randint(1, 6)
    number = there + lacking
    parts = [[quota(there), _quota("wide", pods="500")], [workload("Deployment", "w", number)]]
    start = f"{there} of {number} pods are ready; {lacking} are not created"
    start = start.replace("1 are not", "1 is not") if lacking == 1 else start
    return Situation(kind, nodes(draw), parts, "deployment", "w", start, about)


def quota_of_cpu(draw: Random) -> Situation:
    about = "quota team is used up"
    return _partly("quota_of_cpu", draw, lambda n: _quota("team", requests_cpu=str(n)), about)


def quota_of_pods(draw: Random) -> Situation:
    about = "quota few is used up"
    return _partly("quota_of_pods", draw, lambda n: _quota("few", pods=str(n)), about)


def quota_of_limits(draw: Random) -> Situation:
    hard = _quota("limits", limits_memory="8Gi")
    return _refused("quota_of_limits", draw, [hard], "must specify limits.memory")


def limit_range(draw: Random) -> Situation:
    limit = {"type": "Container", "min": {"cpu": "2"}}
    made = {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": "large", "namespace": "default"},
        "spec": {"limits": [limit]},
    }
    return _refused("limit_range", draw, [made], "a limit range refuses them")


def priority_class(draw: Random) -> Situation:
    number = draw.randint(1, 6)
    made = workload("Deployment", "w", number, priorityClassName="absent")
    about = "their priority class is missing"
    return Situation(
        "priority_class", nodes(draw), [[made]], "deployment", "w", f"0 of {number} ", about
    )


# --- groups ---------------------------------------------------------------------------------------


def _group(kind: str, draw: Random, about: str, *, lacking: int = 0, **fields: Any) -> Situation:
    """Return a group, defined by labels or by an object, of which no member has a node."""
    made = fields.pop("made", None) or nodes(draw)
    least = fields.pop("least", 0) or draw.randint(2, 4)
    there, by_object = least - lacking, draw.random() < 0.5
    make = of_object if by_object else of_labels
    pods = [make(f"m{index}", least=least, **{"cpu": "1", **fields}) for index in range(there)]
    objects = [[pod_group(least=least)] if by_object else [], pods]
    start = f"0 of {least} pods are ready; "
    return Situation(kind, made, objects, "podgroup", "g", start, about, coscheduling())


def group_incomplete(draw: Random) -> Situation:
    return _group("group_incomplete", draw, "lacks", lacking=1)


def group_without_room(draw: Random) -> Situation:
    made = [node_manifest(f"n{index}", cpu="4") for index in range(draw.randint(1, 3))]
    least = len(made) + draw.randint(1, 2)
    about = f"needs {least} pods with a place, and only {len(made)} "
    about += "fits" if len(made) == 1 else "fit"
    return _group("group_without_room", draw, about, made=made, least=least, cpu="3")


def group_too_large(draw: Random) -> Situation:
    return _group("group_too_large", draw, "cpu", cpu="20")


def group_selector(draw: Random) -> Situation:
    chosen = {"pool": "train"}
    return _group("group_selector", draw, "pool=train", node_selector=chosen)


def group_cordon(draw: Random) -> Situation:
    made = nodes(draw)
    for each in made:
        each["spec"]["unschedulable"] = True
    return _group("group_cordon", draw, "cordon", made=made)


def group_taint(draw: Random) -> Situation:
    made = nodes(draw)
    for each in made:
        dedicated = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
        each["spec"]["taints"] = [*each["spec"].get("taints", []), dedicated]
    return _group("group_taint", draw, "gpu=yes", made=made)


# --- claims ---------------------------------------------------------------------------------------


def _claimed(kind: str, draw: Random, objects: list[Manifest], about: str) -> Situation:
    made = [node_manifest(f"n{index}") for index in range(_OFFERING)]
    number = draw.randint(0, 1)
    pods = [pod_manifest(f"p{index}", resourceClaims=using()) for index in range(number)]
    return Situation(kind, made, [objects, pods], "resourceclaim", "c", "is not allocated", about)


def _offers(**fields: Any) -> list[Manifest]:
    return [offered(f"n{index}", **fields) for index in range(_OFFERING)]


def claim_without_device(draw: Random) -> Situation:
    about = "offer no device"
    return _claimed("claim_without_device", draw, [device_class(), resource_claim()], about)


def claim_of_missing_class(draw: Random) -> Situation:
    return _claimed("claim_of_missing_class", draw, [resource_claim()], "gpu")


def claim_of_too_many(draw: Random) -> Situation:
    objects = [device_class(), *_offers(), resource_claim(count=draw.randint(2, 4))]
    return _claimed("claim_of_too_many", draw, objects, "asks for more devices")


def claim_that_selects_none(draw: Random) -> Situation:
    none = [{"cel": {"expression": 'device.driver == "other.example"'}}]
    objects = [device_class(), *_offers(), resource_claim(selectors=none)]
    return _claimed("claim_that_selects_none", draw, objects, "select")


def claim_of_tainted_device(draw: Random) -> Situation:
    broken = {"key": "example.com/broken", "effect": "NoSchedule"}
    objects = [device_class(), *_offers(taints=[broken]), resource_claim()]
    return _claimed("claim_of_tainted_device", draw, objects, "taint")


def _volume_claim(kind: str, draw: Random, start: str, about: str, **spec: Any) -> Situation:
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "default"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": f"{draw.randint(1, 9)}Gi"}},
            **spec,
        },
    }
    local = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "local"},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    return Situation(kind, nodes(draw), [[local, claim]], "pvc", "data", start, about)


def volume_of_missing_class(draw: Random) -> Situation:
    return _volume_claim(
        "volume_of_missing_class", draw, "has no volume: ", "gone", storageClassName="gone"
    )


def volume_without_volumes(draw: Random) -> Situation:
    about = "these nodes have no free volume"
    return _volume_claim(
        "volume_without_volumes", draw, "has no volume: ", about, storageClassName="local"
    )


# --- nodes ----------------------------------------------------------------------------------------


def _node(kind: str, draw: Random, made: list[Manifest], start: str, about: str) -> Situation:
    pods = [pod_manifest(f"p{index}", cpu="20") for index in range(draw.randint(1, 4))]
    return Situation(kind, made, [[], pods], "node", "n0", start, about)


def cordoned_node(draw: Random) -> Situation:
    made = nodes(draw)
    made[0]["spec"]["unschedulable"] = True
    return _node("cordoned_node", draw, made, "is cordoned; ", "NodeUnschedulable")


def tainted_node(draw: Random) -> Situation:
    made, key = nodes(draw), f"pool-{draw.randint(1, 9)}"
    made[0]["spec"]["taints"] = [{"key": key, "effect": "NoSchedule"}]
    start = f"has the taint {key}:NoSchedule; "
    return _node("tainted_node", draw, made, start, "TaintToleration")


def small_node(draw: Random) -> Situation:
    about = "NodeResourcesFit: Insufficient cpu"
    return _node("small_node", draw, nodes(draw), "is open and has room; ", about)


def full_node(draw: Random) -> Situation:
    made = [node_manifest("n0", cpu="8"), node_manifest("n1", cpu="1")]
    filler = workload("Deployment", "other", 1, cpu="8")
    situation = _node("full_node", draw, made, "has no cpu left; ", "Insufficient cpu")
    return situation._replace(objects=[[filler], *situation.objects[1:]])


def open_node(draw: Random) -> Situation:
    gate = [{"name": "example.com/approval"}]
    pods = [pod_manifest(f"p{index}", schedulingGates=gate) for index in range(2)]
    start, about = "is open and has room; ", "no pod is pending"
    return Situation("open_node", nodes(draw), [[], pods], "node", "n0", start, about)


FAMILIES: Final[tuple[Callable[[Random], Situation], ...]] = (
    too_large,
    no_room,
    too_many_pods,
    taint,
    cordon,
    selector,
    node_affinity,
    partner,
    enemy,
    host_port,
    gates,
    missing_claim,
    no_such_resource,
    quota_of_cpu,
    quota_of_pods,
    quota_of_limits,
    limit_range,
    priority_class,
    group_incomplete,
    group_without_room,
    group_too_large,
    group_selector,
    group_cordon,
    group_taint,
    claim_without_device,
    claim_of_missing_class,
    claim_of_too_many,
    claim_that_selects_none,
    claim_of_tainted_device,
    volume_of_missing_class,
    volume_without_volumes,
    cordoned_node,
    tainted_node,
    small_node,
    full_node,
    open_node,
)


def situation(seed: int) -> Situation:
    """Return the situation of a seed; successive seeds go through the causes."""
    family = FAMILIES[seed % len(FAMILIES)]
    return family(Streams(seed).stream("situation"))
