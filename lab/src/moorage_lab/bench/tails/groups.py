"""Gangs that arrive one after another: the time of each group's decision.

`moorage_lab.bench.gangs` measures one gang again and again; here each gang finds the earlier ones.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from moorage.api.codec import from_dict
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.pod_group import PodGroup
from moorage.base.clock import Clock
from moorage.base.digests import digest
from moorage.base.errors import UsageError
from moorage.base.memory import settle_memory
from moorage.base.rng import Streams
from moorage.config.feature_gates import feature_gates, group_gates
from moorage.config.gate_table import TOPOLOGY_AWARE
from moorage.config.own import LoadedConfiguration
from moorage.engine.groups.cycle import GroupCycle
from moorage.engine.groups.decision import GroupOutcome
from moorage.framework.registry import Registry
from moorage.service.core import Core, build_core
from moorage.snapshot.pod_groups import GroupKey
from moorage.snapshot.pod_info import PodInfo
from moorage_lab.bench.gangs.run import add_gang
from moorage_lab.bench.manifests import ZONE
from moorage_lab.bench.timing import Samples
from moorage_lab.bench.workload import NAMESPACE, default_node, default_pod

GANG_PODS: Final = 8
"""Number of pods in each gang."""
_PROFILE: Final = "default-scheduler"


def decide_gangs(
    nodes: int, gangs: int, registry: Registry, *, topology: bool, clock: Clock, streams: Streams
) -> tuple[list[int], str]:
    """Decide about gangs of plain pods, each next to the earlier ones.

    Parameters
    ----------
    nodes, gangs
        The numbers of nodes and of gangs.
    topology
        Whether all pods of a gang have to be in one zone.

    Returns
    -------
    tuple
        The time of each decision, nanoseconds, and the digest of the placements.

    Raises
    ------
    UsageError
        A gang does not fit.
    """
    gates = {**group_gates(), TOPOLOGY_AWARE: topology}
    config = LoadedConfiguration(gates=feature_gates(gates))
    core = build_core(config, registry, clock=clock, streams=streams)
    for index in range(nodes):
        core.cache.add_node(from_dict(Node, default_node(index)))
    waiting = [_gang(core, f"gang-{index}", topology=topology) for index in range(gangs)]
    cycle, samples = GroupCycle(core.cycles[_PROFILE]), Samples(clock.monotonic_ns)
    places: list[tuple[str, str]] = []
    settle_memory()
    for key, pods in waiting:
        decision = samples.measure_work(partial(cycle.decide_group, key, pods))
        if decision.outcome is not GroupOutcome.PLACED or len(decision.members) < GANG_PODS:
            raise UsageError(f"gang {key.full_name} does not fit: {decision.explanation(pods)}")
        for member in decision.members:
            core.cache.assume_pod(member.decision.pod.pod, member.node_name)
            places.append((member.decision.pod.key, member.node_name))
    return samples.durations_ns, digest(places)


def _gang(core: Core, name: str, *, topology: bool) -> tuple[GroupKey, list[PodInfo]]:
    spec: dict[str, Any] = {"schedulingPolicy": {"gang": {"minCount": GANG_PODS}}}
    if topology:
        spec["schedulingConstraints"] = {"topology": [{"key": ZONE}]}
    metadata = {"namespace": NAMESPACE, "name": name, "uid": f"group-{name}"}
    group = from_dict(PodGroup, {"metadata": metadata, "spec": spec})
    pods = [from_dict(Pod, _member(name, index)) for index in range(GANG_PODS)]
    return add_gang(core, group, pods)


def _member(group: str, index: int) -> dict[str, Any]:
    manifest = default_pod(group)(index)
    manifest["metadata"]["uid"] = f"uid-{group}-{index}"
    manifest["spec"] |= {"schedulerName": _PROFILE, "schedulingGroup": {"podGroupName": group}}
    return manifest
