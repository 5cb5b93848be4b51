"""Generated pending pods: one planted cause among distractors, from a seed.

A few nodes are *open*: without the planted cause they take the pod. Every other node is closed by
two faults that have nothing to do with the planted cause, so the planted cause is the smallest set
that stands between the pod and a node. Some nodes are outside the zone that the pod chooses.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from moorage.base.rng import Random, Streams
from moorage.explain.answer import Explanation
from moorage.testing.builders import Manifest, node_manifest
from tests.explain.clusters import bound, waiting

OTHER_TAINT: Final = {"key": "team", "value": "x", "effect": "NoSchedule"}
HOSTNAME: Final = "kubernetes.io/hostname"
ZONE: Final = "topology.kubernetes.io/zone"
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


class Case(NamedTuple):
    """A cluster and its pending pod ``p``.

    Attributes
    ----------
    kind
        The planted cause.
    manifests
        All objects, nodes first.
    expected
        A text that the sentence has, up to its first semicolon.
    """

    kind: str
    manifests: list[Manifest]
    expected: str


class Plan:
    """A cluster in the making: open nodes with some pods, and what the pod asks for."""

    def __init__(self, draw: Random) -> None:
        self.draw = draw
        self.open = [f"open-{index}" for index in range(draw.randint(1, 4))]
        self.nodes = {name: _node(draw, name, zone="a") for name in self.open}
        self.others: list[Manifest] = []
        self.objects: list[Manifest] = []
        self.pod: dict[str, Any] = {"cpu": "1", "memory": "1Gi", "labels": {"app": "p"}}
        self.chooses_zone = draw.random() < 0.5

    def on(self, node: str, name: str, **fields: Any) -> None:
        """Put a pod on a node."""
        self.others.append(bound(name, node, **fields))

    def finish(self, kind: str, expected: str) -> Case:
        """Return the case, with the closed nodes added."""
        draw, nodes = self.draw, dict(self.nodes)
        for name in self.open:
            for index in range(draw.randint(0, 2)):
                self.on(name, f"{name}-w{index}", cpu="100m", labels={"app": "w"})
        for index in range(draw.randint(0, 5)):
            name = f"closed-{index}"
            nodes[name] = _closed(draw, name, zone="a")
        if self.chooses_zone:
            self.pod["node_selector"] = {ZONE: "a", **self.pod.get("node_selector", {})}
            for index in range(draw.randint(1, 4)):
                name = f"outside-{index}"
                nodes[name] = _closed(draw, name, zone="b")
        pod = waiting("p", **self.pod)
        return Case(kind, [*nodes.values(), *self.objects, *self.others, pod], expected)


def _node(draw: Random, name: str, *, zone: str, **fields: Any) -> Manifest:
    cpu = str(draw.choice([4, 6, 8]))
    labels = {ZONE: zone, "pool": draw.choice(["x", "y"])}
    return node_manifest(name, cpu=cpu, memory="16Gi", labels=labels, **fields)


def _closed(draw: Random, name: str, *, zone: str) -> Manifest:
    """Return a node with two faults: any two of a taint, a cordon, and too little of everything."""
    faults = draw.sample(["taint", "cordon", "small"], 2)
    node = _node(draw, name, zone=zone)
    if "taint" in faults:
        node["spec"]["taints"] = [OTHER_TAINT]
    if "cordon" in faults:
        node["spec"]["unschedulable"] = True
    if "small" in faults:
        for amounts in (node["status"]["capacity"], node["status"]["allocatable"]):
            amounts.update(cpu="500m", memory="512Mi")
    return node


# --- the planted causes ---------------------------------------------------------------------------


def too_large(plan: Plan) -> tuple[str, str]:
    resource, amount = plan.draw.choice([("cpu", "64"), ("memory", "512Gi")])
    plan.pod[resource] = amount
    return "never fits here, not even on an empty node, because of", f"{resource} (it requests"


def no_such_resource(plan: Plan) -> tuple[str, str]:
    requests = {"cpu": "1", "example.com/gpu": "1"}
    plan.pod["containers"] = [
        {
            "name": "main",
            "image": "registry.example/app:1",
            "resources": {"requests": requests, "limits": {"example.com/gpu": "1"}},
        }
    ]
    return "never", "example.com/gpu (it requests 1, none of these nodes has any)"


def no_room(plan: Plan) -> tuple[str, str]:
    resource = plan.draw.choice(["cpu", "memory"])
    for name in plan.open:
        have = plan.nodes[name]["status"]["allocatable"][resource]
        left = {"cpu": 500, "memory": 512}[resource]
        count = int(have.removesuffix("Gi"))
        total = count * (1000 if resource == "cpu" else 1024) - left
        unit = "m" if resource == "cpu" else "Mi"
        parts = plan.draw.randint(1, 3)
        for index in range(parts):
            amount = {resource: f"{total // parts - 150}{unit}"}
            plan.on(name, f"{name}-full{index}", **amount)
    return "would fit on", f"{resource} (it requests 1"


def too_many_pods(plan: Plan) -> tuple[str, str]:
    for name in plan.open:
        for amounts in ("capacity", "allocatable"):
            plan.nodes[name]["status"][amounts]["pods"] = "3"
        for index in range(3):
            plan.on(name, f"{name}-many{index}", cpu="10m")
    return "would fit on", "the number of pods"


def taint(plan: Plan) -> tuple[str, str]:
    effect = plan.draw.choice(["NoSchedule", "NoExecute"])
    for node in plan.nodes.values():
        node["spec"]["taints"] = [{"key": "dedicated", "value": "db", "effect": effect}]
    return "never", f"the taint dedicated=db:{effect}"


def cordon(plan: Plan) -> tuple[str, str]:
    for node in plan.nodes.values():
        node["spec"]["unschedulable"] = True
    return "never", "cordoned nodes"


def selector(plan: Plan) -> tuple[str, str]:
    plan.pod["node_selector"] = {"disk": "ssd"}
    return "never", "its nodeSelector"


def node_affinity(plan: Plan) -> tuple[str, str]:
    expressions = [{"key": "disk", "operator": "In", "values": ["ssd"]}]
    if plan.draw.random() < 0.5:
        expressions.insert(0, {"key": ZONE, "operator": "In", "values": ["a"]})
    terms = [{"matchExpressions": expressions}]
    plan.pod["affinity"] = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}
    return "never", "its required node affinity"


def host_port(plan: Plan) -> tuple[str, str]:
    port = plan.draw.choice([80, 8080, 9100])
    for name in plan.open:
        plan.on(name, f"{name}-port", cpu="10m", host_ports=[port])
    plan.pod["host_ports"] = [port]
    return "would fit on", f"the host port {port}/TCP"


def spread(plan: Plan) -> tuple[str, str]:
    plan.chooses_zone = False
    for index in range(2):
        for name in plan.open:
            plan.on(name, f"{name}-p{index}", cpu="10m", labels={"app": "p"})
    empty = _closed(plan.draw, "closed-far", zone="far")
    plan.objects.append(empty)
    plan.pod["topologySpreadConstraints"] = [
        {
            "maxSkew": 1,
            "topologyKey": ZONE,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "p"}},
        }
    ]
    return "would fit on", "its topology spread constraint"


def _pod_term(app: str, key: str) -> list[dict[str, Any]]:
    return [{"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key}]


def pod_affinity(plan: Plan) -> tuple[str, str]:
    key = plan.draw.choice([ZONE, HOSTNAME])
    plan.pod["affinity"] = {"podAffinity": {REQUIRED: _pod_term("nowhere", key)}}
    return "never", "its required pod affinity"


def anti_affinity(plan: Plan) -> tuple[str, str]:
    for name in plan.open:
        plan.on(name, f"{name}-q", cpu="10m", labels={"app": "q"})
    plan.pod["affinity"] = {"podAntiAffinity": {REQUIRED: _pod_term("q", HOSTNAME)}}
    return "would fit on", "its required pod anti-affinity"


def anti_affinity_of_others(plan: Plan) -> tuple[str, str]:
    affinity = {"podAntiAffinity": {REQUIRED: _pod_term("p", HOSTNAME)}}
    for name in plan.open:
        plan.on(name, f"{name}-q", cpu="10m", labels={"app": "q"}, affinity=affinity)
    return "would fit on", "the required anti-affinity of pods that are there"


def missing_claim(plan: Plan) -> tuple[str, str]:
    plan.pod["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": "gone"}}]
    return "is not tried on any node", 'persistentvolumeclaim "gone" not found'


def volume_elsewhere(plan: Plan) -> tuple[str, str]:
    term = {"matchExpressions": [{"key": "rack", "operator": "In", "values": ["r9"]}]}
    claim = {"kind": "PersistentVolumeClaim", "namespace": "default", "name": "data"}
    plan.objects += [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": "pv"},
            "spec": {
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteOnce"],
                "local": {"path": "/data"},
                "claimRef": {**claim, "uid": "uid-claim"},
                "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
            },
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {
                "name": "data",
                "namespace": "default",
                "uid": "uid-claim",
                "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
            },
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
                "volumeName": "pv",
                "storageClassName": "",
            },
        },
    ]
    plan.pod["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
    return "never", "VolumeBinding"


def gates(plan: Plan) -> tuple[str, str]:
    plan.pod["gates"] = ["example.com/quota"]
    return "held before the queue by plugin SchedulingGates", "example.com/quota"


def unserved(plan: Plan) -> tuple[str, str]:
    plan.pod["schedulerName"] = "nobody"
    return "nobody schedules schedulerName", "nobody"


PLANTED: Final[tuple[Callable[[Plan], tuple[str, str]], ...]] = (
    too_large,
    no_such_resource,
    no_room,
    too_many_pods,
    taint,
    cordon,
    selector,
    node_affinity,
    host_port,
    spread,
    pod_affinity,
    anti_affinity,
    anti_affinity_of_others,
    missing_claim,
    volume_elsewhere,
    gates,
    unserved,
)
OUTSIDE_API: Final = frozenset({"volume_elsewhere"})
"""Kinds whose objects an API server would not take as they are; tried in memory only."""


def planted(seed: int) -> Case:
    """Return the case of a seed; successive seeds go through the causes."""
    draw = Streams(seed).stream("planted")
    plant = PLANTED[seed % len(PLANTED)]
    plan = Plan(draw)
    start, about = plant(plan)
    return plan.finish(plant.__name__, f"{start}|{about}")


def names_first(case: Case, found: Explanation) -> bool:
    """Whether an explanation names the planted cause first, and alone."""
    start, about = case.expected.split("|")
    alone = not found.causes or len(found.causes[0].plugins) == 1
    first = found.sentence.split("; on ")[0]
    return alone and first.startswith(start) and about in first.removeprefix(start)
