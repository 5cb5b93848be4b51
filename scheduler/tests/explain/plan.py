"""A generated cluster with a pending pod: the frame that planted causes are put into.

A few nodes are *open*: without the planted cause they take the pod. Every other node is closed by
two faults that have nothing to do with the planted cause, so the planted cause is the smallest set
that stands between the pod and a node. Some nodes are outside the zone that the pod chooses.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from moorage.base.rng import Random
from moorage.config.own import LoadedConfiguration
from moorage_sandbox.testing.builders import Manifest, node_manifest
from scheduler.tests.explain.clusters import bound, waiting

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
        The beginning of the sentence, a bar, and a text that follows in its first part.
    config
        The scheduler's configuration.
    """

    kind: str
    manifests: list[Manifest]
    expected: str
    config: LoadedConfiguration


class Plan:
    """A cluster in the making: open nodes with some pods, and what the pod asks for."""

    def __init__(self, draw: Random) -> None:
        self.draw = draw
        self.open = [f"open-{index}" for index in range(draw.randint(1, 4))]
        self.nodes = {name: made_node(draw, name, zone="a") for name in self.open}
        self.others: list[Manifest] = []
        self.objects: list[Manifest] = []
        self.pod: dict[str, Any] = {"cpu": "1", "memory": "1Gi", "labels": {"app": "p"}}
        self.chooses_zone = draw.random() < 0.5
        self.config = LoadedConfiguration()

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
            nodes[name] = closed_node(draw, name, zone="a")
        if self.chooses_zone:
            self.pod["node_selector"] = {ZONE: "a", **self.pod.get("node_selector", {})}
            for index in range(draw.randint(1, 4)):
                name = f"outside-{index}"
                nodes[name] = closed_node(draw, name, zone="b")
        pod = waiting("p", **self.pod)
        manifests = [*nodes.values(), *self.objects, *self.others, pod]
        return Case(kind, manifests, expected, self.config)


def made_node(draw: Random, name: str, *, zone: str, **fields: Any) -> Manifest:
    """Return a node of a drawn size and pool."""
    cpu = str(draw.choice([4, 6, 8]))
    labels = {ZONE: zone, "pool": draw.choice(["x", "y"])}
    return node_manifest(name, cpu=cpu, memory="16Gi", labels=labels, **fields)


def closed_node(draw: Random, name: str, *, zone: str) -> Manifest:
    """Return a node with two faults: any two of a taint, a cordon, and too little of everything."""
    faults = draw.sample(["taint", "cordon", "small"], 2)
    node = made_node(draw, name, zone=zone)
    if "taint" in faults:
        node["spec"]["taints"] = [OTHER_TAINT]
    if "cordon" in faults:
        node["spec"]["unschedulable"] = True
    if "small" in faults:
        for amounts in (node["status"]["capacity"], node["status"]["allocatable"]):
            amounts.update(cpu="500m", memory="512Mi")
    return node
