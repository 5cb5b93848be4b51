"""Gangs of identical pods on plain nodes: time of a group's decision, and gangs a second.

Only decisions are measured; nothing is written. A decision tries every member next to the earlier
members and undoes all trials, so it can be measured repeatedly on the same cluster. To measure the
rate, each gang's members are assumed on their nodes before the next gang arrives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

import msgspec

from moorage.api.codec import from_dict
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.pod_group import PodGroup
from moorage.base.clock import Clock
from moorage.base.digests import digest
from moorage.base.errors import UsageError
from moorage.base.rng import Streams
from moorage.config.feature_gates import feature_gates, group_gates
from moorage.config.own import LoadedConfiguration
from moorage.engine.groups.cycle import GroupCycle
from moorage.engine.groups.decision import GroupDecision, GroupOutcome
from moorage.framework.registry import Registry
from moorage.service.core import Core, build_core
from moorage.snapshot.pod_groups import GroupKey
from moorage.snapshot.pod_info import PodInfo
from moorage_lab.bench.timing import NS_PER_MS, NS_PER_US, Samples, Stopwatch
from moorage_lab.bench.workload import CreateNodes, basic

_PROFILE = "default-scheduler"
_WHOLE_NODE = "4"  # cpu of every node

Decide: TypeAlias = Callable[[GroupKey, Sequence[PodInfo]], GroupDecision]


class GangSize(msgspec.Struct, frozen=True):
    """The measurements for gangs of one size.

    Parameters
    ----------
    pods
        Members of the gang.
    best_ms, median_ms
        Best and median milliseconds for the whole group's decision, over `repeats` decisions.
    per_pod_us
        Microseconds of the best decision for each member.
    digest
        Digest of the placements.
    """

    pods: int
    best_ms: float
    median_ms: float
    per_pod_us: float
    repeats: int
    digest: str


class GangResult(msgspec.Struct, frozen=True):
    """Everything that was measured.

    Parameters
    ----------
    nodes
        Number of nodes in the cluster.
    sizes
        Measurements by size of gang.
    gangs, gang_pods
        Number of gangs that arrived one after another, and of pods in each.
    gangs_per_second
        Gangs decided and assumed in a second.
    digest
        Digest of the placements of these gangs.
    refused
        Gangs of the same sizes that are rejected as a whole. The second half of each gang requires
        nodes without other pods, and no such node exists.
    """

    nodes: int
    sizes: tuple[GangSize, ...]
    gangs: int
    gang_pods: int
    gangs_per_second: float
    digest: str
    refused: tuple[GangSize, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the result as plain values."""
        return msgspec.to_builtins(self)  # type: ignore[no-any-return]

    def as_lines(self) -> list[str]:
        """Return the result as lines for people."""
        return [
            f"gangs of identical pods, {self.nodes} nodes, all scored",
            *map(_line, self.sizes),
            f"  {self.gangs} gangs of {self.gang_pods}: {self.gangs_per_second:.0f} gangs/s, "
            f"{self.gangs_per_second * self.gang_pods:.0f} pods/s   {self.digest[:12]}",
            "gangs of which half fits no node as it is, refused",
            *map(_line, self.refused),
        ]


def _line(size: GangSize) -> str:
    return (
        f"  {size.pods:4} pods   best {size.best_ms:8.2f} ms, median {size.median_ms:8.2f} ms "
        f"of {size.repeats}   {size.per_pod_us:7.1f} us a pod   {size.digest[:12]}"
    )


class GangRun:
    """One measurement.

    Parameters
    ----------
    nodes
        Number of nodes.
    registry
        Every known plugin.
    clock, streams
        Time for measuring, and ties.
    """

    def __init__(self, nodes: int, registry: Registry, *, clock: Clock, streams: Streams) -> None:
        gates = feature_gates(group_gates())
        config = LoadedConfiguration(gates=gates)
        self._clock = clock
        self._nodes = nodes
        self._core = build_core(config, registry, clock=clock, streams=streams)
        self._cycle = GroupCycle(self._core.cycles[_PROFILE])
        for op in basic(nodes=nodes, init_pods=0, pods=1).ops:
            if isinstance(op, CreateNodes):
                for index in range(op.count):
                    self._core.cache.add_node(from_dict(Node, op.template(index)))

    def run(self, sizes: Sequence[int], *, repeats: int, gangs: int, gang_pods: int) -> GangResult:
        """Measure decisions of several sizes, then gangs one after another.

        Raises
        ------
        UsageError
            The gangs do not fit the nodes.
        """
        measured = tuple(
            self._size(*self._gang(f"of-{size}", size), self._placed, repeats) for size in sizes
        )
        waiting = [self._gang(f"gang-{index}", gang_pods) for index in range(gangs)]
        places: list[tuple[str, str]] = []
        watch = Stopwatch(self._clock.monotonic_ns)
        for key, pods in waiting:
            found = self._placed(key, pods)
            for member in found.members:
                self._core.cache.assume_pod(member.decision.pod.pod, member.node_name)
            places += _places(found)
        seconds = watch.seconds
        # Last, because each trial draws random numbers to choose among equal nodes.
        self._occupy()
        refused = tuple(
            self._size(
                *self._gang(f"too-large-{size}", size, fitting=size // 2), self._refused, repeats
            )
            for size in sizes
        )
        rate = gangs / seconds
        return GangResult(
            self._nodes, measured, gangs, gang_pods, rate, digest(places), refused=refused
        )

    def _size(
        self, key: GroupKey, pods: Sequence[PodInfo], decide: Decide, repeats: int
    ) -> GangSize:
        samples = Samples(self._clock.monotonic_ns, warm_up=1)
        for _ in range(repeats + 1):
            decision = samples.measure_work(partial(decide, key, pods))
        best = min(samples.durations_ns)
        return GangSize(
            len(pods),
            best / NS_PER_MS,
            samples.median_in(NS_PER_MS),
            best / NS_PER_US / len(pods),
            repeats,
            digest(_places(decision)),
        )

    def _occupy(self) -> None:
        """Put a pod on every node."""
        for index, name in enumerate(self._core.snapshot.names):
            pod = _pod("filler", index, "100m")
            del pod["spec"]["schedulingGroup"]
            pod["spec"]["nodeName"] = name
            self._core.cache.add_pod(from_dict(Pod, pod))

    def _refused(self, key: GroupKey, pods: Sequence[PodInfo]) -> GroupDecision:
        found = self._cycle.decide_group(key, pods)
        assert found.outcome is GroupOutcome.REJECTED, "pods that fit no node have a place"
        return found

    def _placed(self, key: GroupKey, pods: Sequence[PodInfo]) -> GroupDecision:
        found = self._cycle.decide_group(key, pods)
        if found.outcome is not GroupOutcome.PLACED or len(found.members) < len(pods):
            raise UsageError(f"gang {key.full_name} does not fit: {found.explanation(pods)}")
        return found

    def _gang(
        self, name: str, size: int, *, fitting: int | None = None
    ) -> tuple[GroupKey, list[PodInfo]]:
        """Create a gang; members beyond `fitting` require a node without other pods."""
        metadata = {"namespace": "default", "name": name, "uid": f"group-{name}"}
        policy = {"gang": {"minCount": size}}
        group = from_dict(PodGroup, {"metadata": metadata, "spec": {"schedulingPolicy": policy}})
        small = size if fitting is None else fitting
        cpus = ["100m"] * small + [_WHOLE_NODE] * (size - small)
        pods = [from_dict(Pod, _pod(name, index, cpu)) for index, cpu in enumerate(cpus)]
        return add_gang(self._core, group, pods)


def _places(decision: GroupDecision) -> list[tuple[str, str]]:
    return [(each.decision.pod.key, each.node_name) for each in decision.members]


def _pod(group: str, index: int, cpu: str) -> dict[str, Any]:
    name = f"{group}-{index}"
    requests = {"cpu": cpu, "memory": "500Mi"}
    container = {"name": "pause", "image": "pause", "resources": {"requests": requests}}
    return {
        "metadata": {"namespace": "default", "name": name, "uid": f"uid-{name}"},
        "spec": {
            "containers": [container],
            "schedulerName": _PROFILE,
            "schedulingGroup": {"podGroupName": group},
        },
    }


def add_gang(core: Core, group: PodGroup, pods: Sequence[Pod]) -> tuple[GroupKey, list[PodInfo]]:
    """Add a group and its members, and take the members off the queue; return what is decided."""
    core.snapshot.listers.pod_groups.put(group)
    for pod in pods:
        core.snapshot.groups.put_pod(pod)
    for pod in pods:
        core.queue.add(pod)  # gated until all members exist
    while core.queue.pop() is not None:
        pass
    return GroupKey(group.namespace, group.name), [PodInfo(pod) for pod in pods]
