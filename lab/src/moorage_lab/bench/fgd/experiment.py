"""Runs one experiment: the pods of a trace, one after another, through the engine.

The cycle of the production scheduler decides, with NodeResourcesFit, GpuShare and one policy.
Reserve chooses the devices. No pod leaves. A pod that fits nowhere is not tried again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from moorage.api.codec import from_dict
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.yaml_text import write_yaml
from moorage.base.clock import Clock, processor_ns
from moorage.base.digests import digest
from moorage.base.rng import Streams
from moorage.config.load import parse_config
from moorage.config.plugin_args_gpu import GpuShareArgs, TypicalPod
from moorage.framework.registry import Registry
from moorage.framework.runner import run_reserve
from moorage.plugins.gpu_share.fragmentation import FragmentationLog
from moorage.plugins.gpu_share.policies import EXPECTING, POLICIES
from moorage.plugins.gpu_share.sharing import device_columns
from moorage.service.core import Core, build_core
from moorage.snapshot.pod_info import PodInfo
from moorage_lab.bench.fgd.curves import Curves, Step, curves
from moorage_lab.bench.fgd.openb import TraceNode, TracePod, typical_of
from moorage_lab.bench.fgd.protocol import prepare
from moorage_lab.bench.timing import Stopwatch

_PROFILE: Final = "default-scheduler"
_NAMES: Final = GpuShareArgs()
_PODS_MOST: Final = 1001  # pods of one node, as published
_ENABLED: Final = {
    "queueSort": ["PrioritySort"],
    "preFilter": ["NodeResourcesFit", "GpuShare"],
    "filter": ["NodeResourcesFit", "GpuShare"],
    "reserve": ["GpuShare"],
    "bind": ["DefaultBinder"],
}


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one experiment.

    Parameters
    ----------
    trace, policy, seed
        The experiment.
    curves
        Its columns.
    failed
        Number of pods that found no node.
    decisions
        Number of pods.
    seconds
        Processor time from the first pod to the last.
    seconds_in_all
        Processor time with preparation and evaluation.
    digest
        Digest of the placements.
    """

    trace: str
    policy: str
    seed: int
    curves: Curves
    failed: int
    decisions: int
    seconds: float
    seconds_in_all: float
    digest: str

    @property
    def unallocated_percent(self) -> float:
        """Percent of all GPUs that no pod has when the pods have asked for 100 %."""
        allocated = self.curves.allocated[100]
        return 100.0 if allocated is None else 100 - allocated


class Trace(msgspec.Struct, frozen=True):
    """A trace in memory.

    Parameters
    ----------
    name
        Its name.
    nodes, pods
        Its rows, by name.
    """

    name: str
    nodes: tuple[TraceNode, ...]
    pods: tuple[TracePod, ...]


def configuration(policy: str, typical: Sequence[TypicalPod]) -> str:
    """Return the scheduler's configuration for one policy, as YAML.

    Parameters
    ----------
    policy
        A key of `POLICIES`.
    typical
        The pods to come, for policies that look at them.
    """
    plugin = POLICIES[policy]
    points = {**_ENABLED, "preScore": [plugin], "score": [plugin]}
    plugins: dict[str, Any] = {
        point: {"enabled": [{"name": name} for name in names]} for point, names in points.items()
    }
    plugins["multiPoint"] = {"disabled": [{"name": "*"}]}
    profile: dict[str, Any] = {"schedulerName": _PROFILE, "plugins": plugins}
    if policy in EXPECTING:
        args = {"typicalPods": [msgspec.to_builtins(pod) for pod in typical]}
        profile["pluginConfig"] = [{"name": plugin, "args": args}]
    return write_yaml(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [profile],
        }
    )


def run_experiment(
    trace: Trace, policy: str, seed: int, *, registry: Registry, clock: Clock
) -> Run:
    """Place the pods of one experiment and return its columns.

    Parameters
    ----------
    trace
        Nodes and pods.
    policy
        A key of `POLICIES`.
    seed
        Seed of the order of pods and nodes.
    registry
        Every known plugin.
    clock
        The time of the scheduler's parts.
    """
    watch_in_all = Stopwatch(processor_ns)
    experiment = prepare(trace.nodes, trace.pods, seed=seed)
    typical = typical_of(trace.pods)
    core = build_core(
        parse_config(configuration(policy, typical)),
        registry,
        clock=clock,
        streams=Streams(seed),
        tie_break=_first,
    )
    for node in experiment.nodes:
        core.cache.add_node(_node(node))
    pods = _pods(experiment.pods)
    cluster = _Cluster(core, typical)
    watch = Stopwatch(processor_ns)
    for pod, kind in zip(pods, experiment.pods, strict=True):
        cluster.place(pod, kind)
    seconds = watch.seconds
    points = curves(cluster.steps(), experiment.total_gpus)
    return Run(
        trace=trace.name,
        policy=policy,
        seed=seed,
        curves=points,
        failed=cluster.failed,
        decisions=len(pods),
        seconds=seconds,
        seconds_in_all=watch_in_all.seconds,
        digest=digest(cluster.placements),
    )


class _Cluster:
    """The nodes of an experiment, and the pods placed so far."""

    def __init__(self, core: Core, typical: Sequence[TypicalPod]) -> None:
        self._core = core
        self._cycle, self._profile = core.cycles[_PROFILE], core.profiles[_PROFILE]
        self._log = FragmentationLog(typical, core.snapshot, device_columns(core.snapshot, _NAMES))
        self._arrived: list[int] = []
        self._used: list[int] = []
        self.placements: list[tuple[str, str]] = []
        self.failed = 0

    def place(self, pod: Pod, kind: TracePod) -> None:
        """Decide about a pod, and count it on its node."""
        core, info = self._core, PodInfo(pod)
        decision = self._cycle.decide(info)
        row, placed = None, 0
        if decision.node_name:
            core.cache.assume_pod(pod, decision.node_name)
            reserved = run_reserve(self._profile, decision.state, info, decision.node_name)
            assert reserved.ok, f"{pod.full_name}: {reserved.message}"
            row, placed = core.snapshot.row_of(decision.node_name), kind.total_milli
        else:
            self.failed += 1
        self.placements.append((pod.full_name, decision.node_name))
        self._log.note_step(row)
        self._arrived.append(kind.total_milli + (self._arrived[-1] if self._arrived else 0))
        self._used.append(placed + (self._used[-1] if self._used else 0))

    def steps(self) -> list[Step]:
        """Return the cluster after each pod."""
        return [
            Step(arrived, used, fragmented, idle)
            for arrived, used, (fragmented, idle) in zip(
                self._arrived, self._used, self._log.totals(), strict=True
            )
        ]


def _first(rows: Any, names: Sequence[str]) -> int:
    """Take the first of equal nodes: nodes were added in the order of their names."""
    del names
    return int(rows[0])


def _node(node: TraceNode) -> Node:
    room = {
        "cpu": f"{node.cpu_milli}m",
        "memory": f"{node.memory_mib}Mi",
        "pods": str(_PODS_MOST),
        _NAMES.count_resources[0]: str(node.gpus),
    }
    return from_dict(
        Node,
        {
            "metadata": {"name": node.name, "labels": {_NAMES.model_labels[0]: node.model}},
            "status": {"capacity": room, "allocatable": room},
        },
    )


def _pods(arrivals: Sequence[TracePod]) -> list[Pod]:
    """Return the pods in the order in which they come; copies have names of their own."""
    pods_by_name: dict[str, Pod] = {}
    pods = []
    for index, arrival in enumerate(arrivals):
        first = pods_by_name.get(arrival.name)
        if first is None:
            first = pods_by_name[arrival.name] = _pod(arrival)
        name = f"{arrival.name}-{index}"
        metadata = msgspec.structs.replace(first.metadata, name=name, uid=name)
        pods.append(msgspec.structs.replace(first, metadata=metadata))
    return pods


def _pod(pod: TracePod) -> Pod:
    annotations = {}
    if pod.gpus:
        annotations[_NAMES.count_annotation] = str(pod.gpus)
        annotations[_NAMES.milli_annotation] = str(pod.gpu_milli)
        if pod.spec:
            annotations[_NAMES.model_annotation] = pod.spec
    requests = {"cpu": f"{pod.cpu_milli}m", "memory": f"{pod.memory_mib}Mi"}
    container = {"name": "main", "image": "openb", "resources": {"requests": requests}}
    return from_dict(
        Pod,
        {
            "metadata": {"name": pod.name, "namespace": "openb", "annotations": annotations},
            "spec": {"containers": [container], "schedulerName": _PROFILE},
        },
    )
