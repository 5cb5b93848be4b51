"""The load that a soak puts on a cluster, and its report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from moorage_lab.bench.configurations import filling

NAMESPACE = "default"
FOREIGN = "foreign-binder"
"""``schedulerName`` of the pods that only the foreign binder binds."""
SLOT = "soak.moorage.dev/slot"
"""Label with the slot of a pod; its replacement has the same slot."""

_CPU_MILLI = (100, 250, 500, 1000, 1500)
_IMPOSSIBLE_EVERY = 200
_IMPOSSIBLE_CPU_MILLI = 1_000_000


class SoakPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The load on the cluster.

    Parameters
    ----------
    nodes, pods
        Number of nodes, and of pods.
    node_cpu
        Cores of each node. The pods request 670m on average, so this decides how full nodes get.
    schedulers
        Names of the schedulers; pods are assigned to them in turn.
    foreign_every
        One pod in this many belongs to the foreign binder.
    stolen_share
        Share of the other pods that the foreign binder binds as well.
    pods_per_second
        Rate of pod creation.
    moving_percent, groups
        Percentage of nodes that come and go, and number of groups they form.
    stall_seconds
        After this long without any change the soak gives up.
    """

    nodes: int = 1000
    pods: int = 10_000
    node_cpu: int = 8
    schedulers: tuple[str, ...] = ("soak-one", "soak-two")
    foreign_every: int = 10
    stolen_share: float = 0.03
    pods_per_second: float = 150.0
    moving_percent: int = 20
    groups: int = 4
    stall_seconds: float = 120.0

    @property
    def stay_seconds(self) -> tuple[float, float]:
        """Return the shortest and the longest stay or absence of a group of nodes, seconds."""
        longest = min(20.0, max(1.0, 0.3 * self.pods / self.pods_per_second))
        return longest / 3, longest

    def scheduler_of(self, slot: int) -> str:
        """Return the name of the scheduler of a pod."""
        if slot % self.foreign_every == 0 and not self.is_impossible(slot):
            return FOREIGN
        return self.schedulers[slot % len(self.schedulers)]

    def is_impossible(self, slot: int) -> bool:
        """Whether no node could ever take this pod."""
        return slot % _IMPOSSIBLE_EVERY == _IMPOSSIBLE_EVERY // 2

    def cpu_milli_of(self, slot: int) -> int:
        """Return the cpu request of a pod."""
        if self.is_impossible(slot):
            return _IMPOSSIBLE_CPU_MILLI
        return _CPU_MILLI[slot // 3 % len(_CPU_MILLI)]


def soak_pod(plan: SoakPlan, slot: int, name: str) -> dict[str, Any]:
    """Return the manifest of a pod with a unique name."""
    requests = {"cpu": f"{plan.cpu_milli_of(slot)}m", "memory": "64Mi"}
    container = {"name": "main", "image": "registry.example/soak:1"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": {SLOT: str(slot)}},
        "spec": {
            "schedulerName": plan.scheduler_of(slot),
            "containers": [{**container, "resources": {"requests": requests}}],
        },
    }


def soak_config(scheduler: str) -> str:
    """Return the configuration of one of the schedulers.

    Both schedulers fill nodes up, so that they choose the same nodes and conflict. Each scheduler
    has its own lease, or only one of them would schedule.
    """
    return filling(scheduler)


class SchedulerEnd(msgspec.Struct, frozen=True, kw_only=True):
    """The final state of one of the schedulers.

    Parameters
    ----------
    name
        The scheduler's ``schedulerName``.
    conflicts
        Calls of this scheduler that the server answered with 409.
    agrees
        Whether the scheduler's cache agreed with the server's objects.
    """

    name: str
    conflicts: int
    agrees: bool


class SoakReport(msgspec.Struct, frozen=True, kw_only=True):
    """The report of a soak.

    Parameters
    ----------
    settled
        Whether all changes stopped.
    seconds
        Time from the first pod until all changes stopped.
    nodes, pods
        Number of nodes and pods on the server at the end.
    created, bound
        Pods created and bindings seen, replacements included.
    running, explained, unexplained
        Numbers of wanted pods that run, of pods with a reason why they cannot, and of all others.
    refused
        Pods that a kubelet refused, by reason.
    evacuated
        Pods of nodes that had left.
    replaced
        Refused and evacuated pods that were deleted and created again.
    node_departures
        How often a node left; each came back.
    foreign_conflicts
        Bindings of the foreign binder that the server refused.
    bound_twice
        Pods seen on two nodes.
    overcommitted
        Nodes with more requests than allocatable.
    schedulers
        The final state of each scheduler.
    """

    settled: bool
    seconds: float
    nodes: int
    pods: int
    created: int
    bound: int
    running: int
    explained: int
    unexplained: int
    refused: Mapping[str, int]
    evacuated: int
    replaced: int
    node_departures: int
    foreign_conflicts: int
    bound_twice: tuple[str, ...]
    overcommitted: tuple[str, ...]
    schedulers: tuple[SchedulerEnd, ...] = ()

    @property
    def faults(self) -> list[str]:
        """Faults that were found, one line each; empty when all is well."""
        texts = [f"bound twice: {each}" for each in self.bound_twice]
        texts += [f"too much is on node {each}" for each in self.overcommitted]
        texts += [
            f"the cache of {each.name} differs from the server"
            for each in self.schedulers
            if not each.agrees
        ]
        if self.unexplained:
            texts.append(f"{self.unexplained} pods neither run nor were told why")
        if not self.settled:
            texts.append("it did not come to hold still")
        return texts

    def as_json(self) -> dict[str, Any]:
        """Return the report for programs."""
        return {**msgspec.to_builtins(self), "faults": self.faults}

    def as_lines(self) -> list[str]:
        """Return the report for people."""
        refusals = ", ".join(f"{count} {reason}" for reason, count in self.refused.items())
        conflicts = ", ".join(f"{each.conflicts} {each.name}" for each in self.schedulers)
        agreeing = sum(each.agrees for each in self.schedulers)
        return [
            f"in the end          {self.pods} pods on {self.nodes} nodes, "
            f"after {self.seconds:.0f} s",
            f"pods                {self.running} running, {self.explained} with a reported reason, "
            f"{self.unexplained} unexplained",
            f"created, bound      {self.created}, {self.bound}; "
            f"{len(self.bound_twice)} bound twice",
            f"refused by kubelets {refusals or 'none'}",
            f"nodes that left     {self.node_departures}, with {self.evacuated} pods",
            f"replaced            {self.replaced}",
            f"conflicts           {conflicts or 'none'}; {self.foreign_conflicts} foreign",
            f"nodes too full      {len(self.overcommitted)}",
            f"caches that agree   {agreeing} of {len(self.schedulers)}",
            *(f"FAULT: {fault}" for fault in self.faults),
        ]
