"""Workloads as data, after the opcodes and templates of kubernetes v1.36 scheduler_perf."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

JsonObject = dict[str, Any]
Template = Callable[[int], JsonObject]

NAMESPACE = "default"
_ZONES = ("zone1", "zone2", "zone3")


class CreateNodes(msgspec.Struct, frozen=True):
    """Create nodes from a template."""

    count: int
    template: Template


class CreatePods(msgspec.Struct, frozen=True):
    """Create pods from a template and wait until they are scheduled.

    Parameters
    ----------
    count
        Number of pods.
    template
        Index to pod.
    measured
        Whether the pods count for the result; other pods only fill the cluster.
    preempting
        Whether all pods exist at once and may evict other pods; otherwise each pod fits when it
        comes.
    waiting
        Whether no pod fits, so that all of them wait from then on.
    present
        Number of these pods that stay: the oldest goes when there are more. 0 for all of them.
    """

    count: int
    template: Template
    measured: bool = False
    preempting: bool = False
    waiting: bool = False
    present: int = 0


class PlacePods(msgspec.Struct, frozen=True):
    """Create pods that have their node already, as when a scheduler starts next to running pods."""

    count: int
    template: Template


class ChurnPods(msgspec.Struct, frozen=True):
    """Create pods one after another, and delete the oldest when more than ``present`` are there."""

    count: int
    template: Template
    present: int


class CreateObjects(msgspec.Struct, frozen=True):
    """Create objects of another kind from a template; ``kind`` of the manifest says which."""

    count: int
    template: Template


Op = CreateNodes | CreatePods | PlacePods | ChurnPods | CreateObjects


class Workload(msgspec.Struct, frozen=True):
    """A named list of operations, with the parameters that the list was made from."""

    name: str
    params: Mapping[str, int]
    ops: tuple[Op, ...]


def default_node(index: int) -> JsonObject:
    """Return the node of scheduler_perf's ``node-default.yaml``, with a zone."""
    name = f"scheduler-perf-{index}"
    room = {"cpu": "4", "memory": "32Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/hostname": name,
                "topology.kubernetes.io/zone": _ZONES[index % len(_ZONES)],
            },
        },
        "status": {
            "capacity": room,
            "allocatable": room,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def default_pod(prefix: str) -> Template:
    """Return the template of scheduler_perf's ``pod-default.yaml`` under a name prefix."""

    def pod(index: int) -> JsonObject:
        amounts = {"cpu": "100m", "memory": "500Mi"}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"{prefix}-{index}",
                "namespace": NAMESPACE,
                "labels": {"app": prefix},
            },
            "spec": {
                "containers": [
                    {
                        "name": "pause",
                        "image": "registry.k8s.io/pause:3.10.1",
                        "ports": [{"containerPort": 80}],
                        "resources": {"limits": amounts, "requests": amounts},
                    }
                ]
            },
        }

    return pod


def basic(*, nodes: int, init_pods: int, pods: int) -> Workload:
    """Return scheduler_perf's SchedulingBasic: plain pods on plain nodes."""
    return Workload(
        "SchedulingBasic",
        {"nodes": nodes, "initPods": init_pods, "measurePods": pods},
        (
            CreateNodes(nodes, default_node),
            CreatePods(init_pods, default_pod("init")),
            CreatePods(pods, default_pod("measured"), measured=True),
        ),
    )
