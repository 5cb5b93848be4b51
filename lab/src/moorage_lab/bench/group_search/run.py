"""Decides about groups that fit by construction: how many are placed, and how long it takes.

Only the decision is measured, and nothing is written. The profile is the default one with
Coscheduling, as for a group of scheduler-plugins.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from moorage.api.codec import from_dict
from moorage.api.coscheduling import (
    GROUP_LABEL,
    PREFERRED_TOPOLOGY,
    REQUIRED_TOPOLOGY,
    CoschedulingGroup,
)
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.base.clock import ManualClock, processor_ns
from moorage.base.digests import digest
from moorage.base.memory import settle_memory, unsettle_memory
from moorage.base.rng import Streams
from moorage.config.load import parse_config
from moorage.engine.groups.cycle import GroupCycle
from moorage.engine.groups.decision import GroupDecision, GroupOutcome
from moorage.engine.groups.trying import Steps
from moorage.framework.registry import Registry
from moorage.service.core import Core, build_core
from moorage.snapshot.pod_info import PodInfo
from moorage_lab.bench.configurations import coscheduling
from moorage_lab.bench.group_search.generator import RACK, ZONE, Case, FreeNode, Shape
from moorage_lab.bench.timing import NS_PER_MS, Samples

_PROFILE: Final = "default-scheduler"
_GROUP: Final = "g"
_POOL: Final = "pool"


class GroupEnd(msgspec.Struct, frozen=True, kw_only=True):
    """The decision about one group.

    Parameters
    ----------
    family, seed
        The group, as its generator names it.
    members, nodes
        Numbers of pods and of nodes.
    placed
        Whether all members have a place.
    searched
        How the search ended: "places", "impossible" or "gave up"; "" where one order did.
    sets, rejections
        Steps of the search, and how often plugins rejected its places.
    took_ms
        Time of the whole decision: the first order, and the search.
    longest_step_ms
        The longest time between two steps, at which others may have their turn.
    places
        Digest of the places.
    """

    family: str
    seed: int
    members: int
    nodes: int
    placed: bool
    searched: str
    sets: int
    rejections: int
    took_ms: float
    longest_step_ms: float
    places: str


def decide_cases(cases: Iterable[Case], registry: Registry) -> list[GroupEnd]:
    """Decide about each group on its own cluster.

    Parameters
    ----------
    cases
        The groups.
    registry
        Every known plugin.
    """
    ends = []
    for case in cases:
        core, pods = _cluster(case, registry)
        settle_memory()  # as in a running scheduler: no collection looks at the whole cluster
        ends.append(_decided(case, core, pods))
        unsettle_memory()
    return ends


def _decided(case: Case, core: Core, pods: Sequence[PodInfo]) -> GroupEnd:
    cycle, key = GroupCycle(core.cycles[_PROFILE]), core.snapshot.groups.key_of(pods[0].pod)
    assert key is not None, "the pods name their group"
    cycle.cycle.decide(pods[0])  # columns are compiled once a cluster, not once a group
    steps = Samples(processor_ns)
    found = _take_steps(cycle.deciding(key, pods), steps)
    report = found.search
    places = [(each.decision.pod.key, each.node_name) for each in found.members]
    placed = found.outcome is GroupOutcome.PLACED and all(node for _, node in places)
    return GroupEnd(
        family=case.family,
        seed=case.seed,
        members=len(pods),
        nodes=len(case.nodes),
        placed=placed,
        searched="" if report is None else report.end.value,
        sets=0 if report is None else report.sets,
        rejections=0 if report is None else report.rejections,
        took_ms=sum(steps.durations_ns) / NS_PER_MS,
        longest_step_ms=max(steps.durations_ns) / NS_PER_MS,
        places=digest(places),
    )


def _take_steps(steps: Steps, samples: Samples) -> GroupDecision:
    """Measure every step; return the decision."""

    def take_step() -> GroupDecision | None:
        try:
            next(steps)
        except StopIteration as end:
            decision: GroupDecision = end.value
            return decision
        return None

    while True:
        decision = samples.measure_work(take_step)
        if decision is not None:
            return decision


def _cluster(case: Case, registry: Registry) -> tuple[Core, list[PodInfo]]:
    """Return a cluster that knows the nodes and the group of a case."""
    config, streams = parse_config(coscheduling("trial")), Streams(case.seed)
    core = build_core(config, registry, clock=ManualClock(), streams=streams)
    for number, node in enumerate(case.nodes):
        core.cache.add_node(from_dict(Node, _node(number, node)))
    core.snapshot.listers.coscheduling_groups.put(from_dict(CoschedulingGroup, _group(case)))
    pods = [
        from_dict(Pod, _pod(number, shape, case.pool)) for number, shape in enumerate(case.members)
    ]
    for pod in pods:
        core.snapshot.groups.put_pod(pod)
    return core, [PodInfo(pod) for pod in pods]


def _node(number: int, free: FreeNode) -> dict[str, Any]:
    name = f"node-{number}"
    labels = {ZONE: free.zone, RACK: free.rack, _POOL: free.pool, "kubernetes.io/hostname": name}
    room = {"cpu": f"{free.cpu_milli}m", "memory": f"{free.memory_mib}Mi", "pods": "110"}
    return {
        "metadata": {
            "name": name,
            "labels": {key: value for key, value in labels.items() if value},
        },
        "status": {"capacity": room, "allocatable": room},
    }


def _group(case: Case) -> dict[str, Any]:
    levels = {REQUIRED_TOPOLOGY: ZONE, PREFERRED_TOPOLOGY: RACK} if case.two_levels else {}
    return {
        "metadata": {
            "namespace": "default",
            "name": _GROUP,
            "uid": "group",
            "annotations": levels,
        },
        "spec": {"minMember": len(case.members)},
    }


def _pod(number: int, shape: Shape, pool: str) -> dict[str, Any]:
    amounts = {"cpu": f"{shape.cpu_milli}m", "memory": f"{shape.memory_mib}Mi"}
    requests = amounts if shape.memory_mib else {"cpu": amounts["cpu"]}
    spec: dict[str, Any] = {
        "containers": [{"name": "main", "image": "app", "resources": {"requests": requests}}],
        "schedulerName": _PROFILE,
    }
    if pool:
        spec["nodeSelector"] = {_POOL: pool}
    if shape.apart:
        values = {"key": "app", "operator": "In", "values": [*shape.apart]}
        term = {
            "topologyKey": "kubernetes.io/hostname",
            "labelSelector": {"matchExpressions": [values]},
        }
        spec["affinity"] = {
            "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        }
    name = f"pod-{number}"
    labels = {GROUP_LABEL: _GROUP, "app": shape.app}
    metadata = {"namespace": "default", "name": name, "uid": f"uid-{name}", "labels": labels}
    return {"metadata": metadata, "spec": spec}
