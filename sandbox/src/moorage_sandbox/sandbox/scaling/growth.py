"""Says which nodes would let pending pods be placed, by the Filters of the scheduler itself. Pure.

The deciding half of a scheduler is put over the cluster's objects. A pending pod is first tried on
the nodes there are, then on one new node of each group, the smallest group first.

Rules: kubernetes/autoscaler cluster-autoscaler, core/scaleup; but the smallest shape that fits
is taken, where cluster-autoscaler asks an expander.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from moorage.api.codec import encode, from_dict
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.engine.attempt import CycleError
from moorage.engine.cycle import Cycle
from moorage.engine.trials.what_if import NodeStatuses
from moorage.snapshot.pod_info import PodInfo
from moorage.virtual.deciding_half import ClusterInputs, DecidingHalf
from moorage.workloads.daemon_steps import Placement, pod_of
from moorage.workloads.objects import Whole
from moorage_sandbox.sandbox.scaling.groups import NodeGroup
from moorage_sandbox.sandbox.scaling.removal import is_daemon

_EXPENDABLE_BELOW: Final = -10  # expendable-pods-priority-cutoff
MAX_REACHED: Final = "max node group size reached"


class NewNode(msgspec.Struct, frozen=True):
    """A node to create, and the pods that it is created for."""

    number: int
    group: NodeGroup
    pods: list[Pod] = []


class Growth(msgspec.Struct, frozen=True):
    """The nodes to create, and the pods that they do not help.

    Parameters
    ----------
    nodes
        Nodes to create.
    refused
        Pods that no new node would help, each with the reasons.
    used
        Names of nodes that pending pods will be placed on.
    """

    nodes: list[NewNode]
    refused: list[tuple[Pod, str]]
    used: frozenset[str]


def waits_for_node(pod: Pod) -> bool:
    """Whether a pod is pending because the scheduler found no node for it."""
    if pod.metadata.deletion_timestamp or pod.status.nominated_node_name or is_daemon(pod):
        return False
    if pod.priority < _EXPENDABLE_BELOW:
        return False
    failure = pod.status.scheduling_failure
    return failure is not None and failure.reason == "Unschedulable"


class GrowthPlan:
    """One look at a cluster.

    Parameters
    ----------
    cluster
        The objects of the cluster, and the configuration of its scheduler.
    groups
        The groups that new nodes may be of.
    daemon_sets
        DaemonSets: their pods take room on a new node.
    number
        Number of the first new node.
    room
        Largest number of nodes to create.
    """

    def __init__(
        self,
        cluster: ClusterInputs,
        groups: Sequence[NodeGroup],
        *,
        daemon_sets: Iterable[Whole],
        number: int,
        room: int,
    ) -> None:
        self._filled: DecidingHalf = cluster.fill()
        self._groups = groups
        self._sizes = Counter(
            group.name
            for node in cluster.objects.nodes.values()
            for group in groups
            if group.fits_node(node)
        )
        self._daemons = [(found, Placement(found)) for found in daemon_sets]
        self._number = number
        self._room = room
        self._new: dict[str, NewNode] = {}
        self._hopeless: dict[bytes, str] = {}

    def grow(self, pending: Sequence[Pod]) -> Growth:
        """Find nodes for pending pods, the most important pods first."""
        refused: list[tuple[Pod, str]] = []
        used: set[str] = set()
        for pod in sorted(pending, key=lambda each: -each.priority):
            fits = self._where(pod)
            if isinstance(fits, str):
                used.add(fits)
                self._place(pod, fits)
                if fits in self._new:
                    self._new[fits].pods.append(pod)
                continue
            reasons = self._on_new_node(pod)
            if reasons:
                refused.append((pod, reasons))
        return Growth(list(self._new.values()), refused, frozenset(used))

    def _cycle(self, pod: Pod) -> Cycle:
        """Return the cycle of a pod's profile; of the first one, if another scheduler has it."""
        cycles = self._filled.core.cycles
        return cycles.get(pod.spec.scheduler_name) or next(iter(cycles.values()))

    def _where(self, pod: Pod) -> str | NodeStatuses | None:
        """Return a node that takes a pod, else the status of every node; None after a failure."""
        cycle, snapshot = self._cycle(pod), self._filled.core.snapshot
        if not snapshot.num_nodes:
            return None
        try:
            search = cycle.search(cycle.begin(PodInfo(pod)))
        except CycleError:
            return None
        if search.nominated_row is not None:
            return snapshot.names[search.nominated_row]
        rows = search.answers.feasible(search.view, search.filtered)
        if len(rows):
            return min(snapshot.names[int(row)] for row in rows)
        return NodeStatuses(search)

    def _on_new_node(self, pod: Pod) -> str:
        """Create a node for a pod; return why not if no group helps."""
        kind = encode([pod.namespace, pod.metadata.labels, pod.spec])
        if kind in self._hopeless:
            return self._hopeless[kind]
        reasons: Counter[str] = Counter()
        for group in self._by_size():
            name, refusals = self._try(pod, group)
            if not refusals and self._room > 0:
                self._place(pod, name)
                self._new[name] = NewNode(self._number, group, [pod])
                self._sizes[group.name] += 1
                self._number += 1
                self._room -= 1
                return ""
            self._withdraw(name)
            reasons.update(refusals or [MAX_REACHED])
        text = ", ".join(sorted(f"{count} {reason}" for reason, count in reasons.items()))
        self._hopeless[kind] = text
        return text

    def _by_size(self) -> list[NodeGroup]:
        """Return the groups, smallest shape first, and of one shape the zone with fewest nodes."""
        order = {id(group.shape): index for index, group in reversed([*enumerate(self._groups)])}
        return sorted(
            self._groups, key=lambda each: (order[id(each.shape)], self._sizes[each.name])
        )

    def _try(self, pod: Pod, group: NodeGroup) -> tuple[str, Sequence[str]]:
        """Add a node; return its name, and why it does not take a pod."""
        node = from_dict(Node, group.template(self._number))
        self._filled.nodes.on_add(node)
        for found, placement in self._daemons:
            if placement.should_run(node):
                self._filled.core.cache.add_pod(_daemon_pod(found, node.name))
        fits = self._where(pod)
        if fits == node.name:
            return node.name, ()
        if isinstance(fits, NodeStatuses):
            return node.name, fits[node.name].reasons
        return node.name, ("the scheduler cannot decide about the pod",)

    def _withdraw(self, name: str) -> None:
        """Take back a node that was only tried."""
        core = self._filled.core
        row = core.snapshot.row_of(name)
        assert row is not None, "the node was added"
        node = core.snapshot.node(row)
        for info in [*core.snapshot.pods(row)]:
            core.cache.remove_pod(info.pod)
        self._filled.nodes.on_delete(node, missed=False)

    def _place(self, pod: Pod, name: str) -> None:
        spec = msgspec.structs.replace(pod.spec, node_name=name)
        self._filled.pods.on_update(pod, msgspec.structs.replace(pod, spec=spec))


def _daemon_pod(daemon_set: Whole, node_name: str) -> Pod:
    made = pod_of(daemon_set, node_name, "")
    identity = f"{daemon_set.name}-{node_name}"
    made["metadata"] |= {"name": identity, "uid": f"{daemon_set.metadata.uid}/{node_name}"}
    made["spec"]["nodeName"] = node_name
    return from_dict(Pod, made)
