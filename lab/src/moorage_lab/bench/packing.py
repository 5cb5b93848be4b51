"""Compares how well the profiles of a configuration pack the same mix of pods.

Every profile gets an empty cluster of GPU nodes and the same pods in the same order: training jobs
of one, two and four GPUs that come between replicas of services. Packing and spreading differ less
in the number of pods that fit than in the resources still free afterwards.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from moorage.api.codec import from_dict
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.requests import pod_requests, to_units
from moorage.api.workloads import Service
from moorage.base.clock import Clock
from moorage.base.digests import digest
from moorage.base.errors import UsageError
from moorage.base.ids import new_uid
from moorage.base.rng import Random, Streams
from moorage.config.own import LoadedConfiguration
from moorage.framework.registry import Registry
from moorage.service.core import Core, build_core
from moorage.service.intake.ingest import NodeIngest, PodIngest
from moorage.service.process.facts import Facts
from moorage.snapshot.pod_info import PodInfo

GPU: Final = "nvidia.com/gpu"
_GPUS: Final = 8
_ZONES: Final = ("zone-a", "zone-b", "zone-c")
_SERVICES: Final = ("search", "chat", "feed")
# Of every ten pods; the other pods are replicas of services.
_TRAINING: Final = ((1, 2), (2, 2), (4, 1))
# Pods for each node: about 60 % of the GPUs are taken.
_PODS_PER_NODE: Final = 5


class Packing(msgspec.Struct, frozen=True, kw_only=True):
    """The placements that one profile made of the pods.

    Parameters
    ----------
    profile
        The ``schedulerName`` of the profile.
    nodes, pods
        The cluster afterwards; pods that found no node have no nodeName.
    pending
        Number of pods that found no node.
    gpus_percent
        Share of all GPUs that pods requested.
    whole_nodes
        Nodes with every GPU free.
    gpus_stranded
        Free GPUs on nodes with other GPUs in use.
    digest
        Digest of the placements.
    """

    profile: str
    nodes: tuple[Node, ...]
    pods: tuple[Pod, ...]
    pending: int
    gpus_percent: int
    whole_nodes: int
    gpus_stranded: int
    digest: str

    def as_json(self) -> dict[str, Any]:
        """Return the figures, for programs."""
        return {
            "profile": self.profile,
            "pods": len(self.pods),
            "pending": self.pending,
            "gpusPercent": self.gpus_percent,
            "wholeNodesFree": self.whole_nodes,
            "gpusStranded": self.gpus_stranded,
            "digest": self.digest,
        }


def pack(
    config: LoadedConfiguration,
    registry: Registry,
    *,
    node_count: int,
    clock: Clock,
    streams: Streams,
) -> list[Packing]:
    """Place the pods under every profile of a configuration.

    Raises
    ------
    ConfigError
        A profile cannot be built.
    UsageError
        A profile uses extenders, which this benchmark does not call.
    """
    if config.scheduler.extenders:
        raise UsageError("this benchmark asks no extenders; leave them out of the configuration")
    manifests = _pods(node_count, streams.stream("packing/order"), streams.stream("packing/uids"))
    nodes = tuple(_node(index) for index in range(node_count))
    packings = []
    for profile in config.scheduler.profiles:
        core = build_core(config, registry, clock=clock, streams=Streams(streams.seed))
        cluster = _Cluster(core, nodes, clock)
        pods = cluster.place(profile.scheduler_name, manifests)
        packings.append(_judge(profile.scheduler_name, nodes, pods))
    return packings


class _Cluster:
    """The deciding half with nodes and services in it, and no pods yet."""

    def __init__(self, core: Core, nodes: Sequence[Node], clock: Clock) -> None:
        self._cycles = core.cycles
        facts = Facts(clock)
        self._pods = PodIngest(
            core.cache, core.queue, core.store, profiles=(), writes=None, facts=facts
        )
        add_node = NodeIngest(core.cache, core.queue, facts).on_add
        for node in nodes:
            add_node(node)
        for name in _SERVICES:
            core.snapshot.listers.services.put(_service(name))

    def place(self, profile: str, manifests: Sequence[Mapping[str, Any]]) -> tuple[Pod, ...]:
        """Decide about one pod after another; a pod that fits no node stays pending."""
        cycle, pods = self._cycles[profile], []
        for manifest in manifests:
            spec = {**manifest["spec"], "schedulerName": profile}
            pod = from_dict(Pod, {**manifest, "spec": spec})
            node_name = cycle.decide(PodInfo(pod)).node_name
            if node_name:
                bound = msgspec.structs.replace(pod.spec, node_name=node_name)
                pod = msgspec.structs.replace(pod, spec=bound)
                self._pods.on_add(pod)
            pods.append(pod)
        return tuple(pods)


def _judge(profile: str, nodes: tuple[Node, ...], pods: tuple[Pod, ...]) -> Packing:
    free = {node.name: _GPUS for node in nodes}
    for pod in pods:
        if pod.spec.node_name:
            free[pod.spec.node_name] -= _gpus(pod)
    total = _GPUS * len(nodes)
    return Packing(
        profile=profile,
        nodes=nodes,
        pods=pods,
        pending=sum(not pod.spec.node_name for pod in pods),
        gpus_percent=round(100 * (total - sum(free.values())) / total),
        whole_nodes=sum(left == _GPUS for left in free.values()),
        gpus_stranded=sum(left for left in free.values() if left < _GPUS),
        digest=digest((pod.full_name, pod.spec.node_name) for pod in pods),
    )


def _gpus(pod: Pod) -> int:
    requests = pod_requests(pod, use_status=False, pod_level=True)
    return to_units(GPU, requests.get(GPU, 0))


def _node(index: int) -> Node:
    name = f"gpu-{index + 1}"
    room = {"cpu": "64", "memory": "256Gi", "pods": "110", GPU: str(_GPUS)}
    labels = {
        "kubernetes.io/hostname": name,
        "topology.kubernetes.io/zone": _ZONES[index % len(_ZONES)],
    }
    return from_dict(
        Node,
        {
            "metadata": {"name": name, "labels": labels},
            "status": {"capacity": room, "allocatable": room},
        },
    )


def _service(name: str) -> Service:
    return from_dict(
        Service,
        {
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"selector": {"app": name}},
        },
    )


def _pods(node_count: int, order: Random, uids: Random) -> list[dict[str, Any]]:
    """Return the pods in the order in which they come."""
    count = node_count * _PODS_PER_NODE
    sizes = [gpus for gpus, share in _TRAINING for _ in range(count * share // 10)]
    sizes += [0] * (count - len(sizes))
    order.shuffle(sizes)
    services = itertools.cycle(_SERVICES)
    return [
        _pod(index, gpus, app="" if gpus else next(services), uid=new_uid(uids))
        for index, gpus in enumerate(sizes)
    ]


def _pod(index: int, gpus: int, *, app: str, uid: str) -> dict[str, Any]:
    if gpus:
        app = f"train, {gpus} GPU"
        requests = {"cpu": str(4 * gpus), "memory": f"{16 * gpus}Gi", GPU: str(gpus)}
    else:
        requests = {"cpu": "2", "memory": "4Gi"}
    container = {"name": "main", "image": "app", "resources": {"requests": requests}}
    return {
        "metadata": {
            "name": f"pod-{index}",
            "namespace": "default",
            "uid": uid,
            "labels": {"app": app},
        },
        "spec": {"containers": [container]},
    }
