"""Topologies while they lag behind the scheduler: nodes left out, or use assumed.

A topology is written some time after a pod started. Until then the scheduler knows more than the
topology. `ReservedNodes` leaves a node out while a pod is being bound to it. `AssumedUse` counts
the requests of placed pods on every NUMA node, because which one they get is the kubelet's choice.
It believes a newer topology only when the fingerprint says that it has counted the same pods.

Rules mirrored: scheduler-plugins v0.35 ``pkg/noderesourcetopology/cache`` (discardreserved.go,
overreserve.go, store.go, foreign_pods.go, watch.go). Upstream looks at lagging topologies by a
timer; here it is done before the first decision after the period, so that nothing runs next to
decisions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from moorage.api.custom.node_topology import NodeResourceTopology
from moorage.base.clock import Clock
from moorage.config.scheduler_plugins.numa import (
    ALL,
    AUTODETECT,
    DEDICATED,
    NONE,
    ONLY_EXCLUSIVE,
    TopologyCache,
)
from moorage.plugins.numa.fingerprints import fingerprint
from moorage.plugins.numa.requests import NUMA_REQUESTS, has_exclusive_resources
from moorage.plugins.numa.zone_columns import ApiZones
from moorage.plugins.numa.zones import NodeZones, manager_of, without, zones_of
from moorage.plugins.pod_changes import PodChanges
from moorage.snapshot.key_log import KeyLog
from moorage.snapshot.listers import Lister
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.table import NodeTable

_NANO: Final = 10**9
_FINGERPRINT: Final = "nodeTopologyPodsFingerprint"
_FINGERPRINT_METHOD: Final = "nodeTopologyPodsFingerprintMethod"
_FINGERPRINT_ANNOTATION: Final = "topology.node.k8s.io/fingerprint"
_WITH_EXCLUSIVE: Final = "with-exclusive-resources"


class TopologyLog:
    """The names of nodes whose topology, or what is assumed of it, changed.

    Parameters
    ----------
    lister
        The objects of the API.
    """

    def __init__(self, lister: Lister[NodeResourceTopology]) -> None:
        self._lister = lister
        self._listed = 0
        self._log: KeyLog[str] = KeyLog()

    @property
    def position(self) -> int:
        """Rises with every change."""
        return self._log.position

    def append(self, node: str) -> None:
        """Note a change."""
        self._log.append(node)

    def since(self, position: int) -> list[str] | None:
        """Return the nodes that changed since a position; None where any may have changed."""
        return self._log.since(position) if position >= 0 else None

    def listed(self, known: Iterable[str]) -> list[str]:
        """Return the nodes whose objects changed since the last call; `known` are all others."""
        keys = self._lister.log.since(self._listed)
        self._listed = self._lister.log.position
        if keys is None:
            return sorted({*known, *(each.name for each in self._lister.all())})
        return [name for _, name in keys]


class ReservedNodes(ApiZones):
    """The topologies of the API; a node is left out between Reserve and PostBind.

    Parameters
    ----------
    lister
        The objects of the API.
    """

    def __init__(self, lister: Lister[NodeResourceTopology]) -> None:
        super().__init__(lister)
        self._log = TopologyLog(lister)
        self._reserved: dict[str, set[str]] = {}

    @property
    def position(self) -> int:
        """Rises with every change."""
        return self._log.position

    def is_stale(self, node: str) -> bool:
        """Whether a pod is being bound to the node."""
        return node in self._reserved

    def changed_since(self, position: int) -> list[str] | None:
        """Return the nodes with a new object, or with a pod more or less."""
        for name in self._log.listed(()):
            self._log.append(name)
        return self._log.since(position)

    def reserve(self, pod: PodInfo, node: str) -> None:
        """Leave the node out."""
        self._reserved.setdefault(node, set()).add(pod.uid)
        self._log.append(node)

    def unreserve(self, pod: PodInfo, node: str) -> None:
        """Take the node in again, unless another pod is being bound to it."""
        uids = self._reserved.get(node)
        if uids is None:
            return
        uids.discard(pod.uid)
        if not uids:
            del self._reserved[node]
        self._log.append(node)

    def forget_bound(self, pod: PodInfo, node: str) -> None:
        """Take the node in again, as the pod is bound."""
        self.unreserve(pod, node)


class AssumedUse:
    """Topologies less the requests of the pods that were placed since.

    Parameters
    ----------
    lister
        The objects of the API.
    table
        The pods on nodes.
    clock
        Says when lagging topologies are looked at again.
    settings
        How to look at them.
    period_seconds
        The time between two looks.
    schedulers
        The names of the schedulers whose pods are known by Reserve; the set may grow.
    """

    def __init__(
        self,
        lister: Lister[NodeResourceTopology],
        table: NodeTable,
        clock: Clock,
        *,
        settings: TopologyCache,
        period_seconds: int,
        schedulers: set[str],
    ) -> None:
        self._lister = lister
        self._table = table
        self._clock = clock
        self._settings = settings
        self._period_ns = period_seconds * _NANO
        self._looked_ns = clock.now_ns()
        self._log = TopologyLog(lister)
        self._believed: dict[str, NodeResourceTopology] = {}
        self._assumed: dict[str, dict[str, Mapping[str, int]]] = {}
        self._rejecting: set[str] = set()
        self._reconfigured: set[str] = set()
        self._foreign = ForeignPods(table, self._is_foreign)
        self._schedulers = schedulers

    @property
    def position(self) -> int:
        """Rises with every change."""
        return self._log.position

    def zones(self, node: str) -> NodeZones | None:
        """Return the zones as believed, less what is assumed."""
        topology = self._believed.get(node)
        if topology is None:
            return None
        total: dict[str, int] = {}
        for request in self._assumed.get(node, {}).values():
            for name, amount in request.items():
                total[name] = total.get(name, 0) + amount
        zones = zones_of(topology)
        return without(zones, total) if total else zones

    def is_stale(self, node: str) -> bool:
        """Whether another scheduler placed a pod there since the topology was believed."""
        return node in self._foreign.nodes

    def changed_since(self, position: int) -> list[str] | None:
        """Return changed nodes, after a look at lagging topologies if the period is over."""
        self._take_in()
        for node in self._foreign.follow(self._believed):
            self._log.append(node)
        if self._clock.now_ns() - self._looked_ns >= self._period_ns:
            self._looked_ns = self._clock.now_ns()
            self._renew()
        return self._log.since(position)

    def note_rejection(self, nodes: Iterable[str]) -> None:
        """Remember nodes where a pod was not aligned: perhaps too much is assumed there."""
        self._rejecting.update(nodes)

    def reserve(self, pod: PodInfo, node: str) -> None:
        """Assume the requests of a pod on each NUMA node of a node."""
        self._assumed.setdefault(node, {})[pod.uid] = pod.part(NUMA_REQUESTS).value.whole
        self._rejecting.discard(node)
        self._log.append(node)

    def unreserve(self, pod: PodInfo, node: str) -> None:
        """Assume them no longer."""
        if self._assumed.get(node, {}).pop(pod.uid, None) is not None:
            self._log.append(node)

    def forget_bound(self, pod: PodInfo, node: str) -> None:
        """Do nothing: the requests are assumed until a topology has counted the pod."""

    def _take_in(self) -> None:
        """Believe the first topology of a node, and forget the topology of a deleted object."""
        for name in self._log.listed(self._believed):
            topology, believed = self._lister.get(name), self._believed.get(name)
            if topology is None:
                self._forget(name)
            elif believed is None:
                self._believed[name] = topology
                self._log.append(name)
            elif self._settings.resync_scope == ALL and manager_of(topology) != manager_of(
                believed
            ):
                self._reconfigured.add(name)

    def _forget(self, node: str) -> None:
        if self._believed.pop(node, None) is not None:
            self._drop_marks(node)

    def _renew(self) -> None:
        """Believe newer topologies where the fingerprints agree, or the settings changed."""
        for node in sorted({*self._foreign.nodes, *self._rejecting, *self._reconfigured}):
            topology = self._lister.get(node)
            if topology is None:
                continue
            if node in self._reconfigured or self._has_counted_all(topology):
                self._believed[node] = topology
                self._drop_marks(node)

    def _drop_marks(self, node: str) -> None:
        self._assumed.pop(node, None)
        for marks in (self._rejecting, self._reconfigured, self._foreign.nodes):
            marks.discard(node)
        self._log.append(node)

    def _has_counted_all(self, topology: NodeResourceTopology) -> bool:
        """Whether a topology was written when the node had the pods that it has now."""
        attributes = {each.name: each.value for each in topology.attributes}
        signed = attributes.get(_FINGERPRINT)
        only_exclusive = False
        if signed is None:
            signed = topology.metadata.annotations.get(_FINGERPRINT_ANNOTATION, "")
        else:
            method = self._settings.resync_method
            only_exclusive = method == ONLY_EXCLUSIVE or (
                method == AUTODETECT and attributes.get(_FINGERPRINT_METHOD) == _WITH_EXCLUSIVE
            )
        if not signed:
            return False
        devices = _devices(topology)
        pods = [
            (pod.namespace, pod.name)
            for pod in self._pods_of(topology.name)
            if not only_exclusive or has_exclusive_resources(pod.pod, devices)
        ]
        return fingerprint(pods) == signed

    def _pods_of(self, node: str) -> list[PodInfo]:
        row = self._table.row_of(node)
        pods = () if row is None else self._table.pods_by_row[row].values()
        return [pod for pod in pods if self._counts(pod.pod.status.phase)]

    def _counts(self, phase: str) -> bool:
        """Whether a pod in a phase is one of those that the exporter sees."""
        return (
            phase != "Pending" if self._settings.informer_mode == DEDICATED else phase == "Running"
        )

    def _is_foreign(self, pod: PodInfo) -> bool:
        detect = self._settings.foreign_pods_detect
        if detect == NONE or pod.pod.spec.scheduler_name in self._schedulers:
            return False
        if detect != ONLY_EXCLUSIVE:
            return True
        topology = self._lister.get(pod.pod.spec.node_name)
        return topology is not None and has_exclusive_resources(pod.pod, _devices(topology))


class ForeignPods:
    """The nodes where a pod came, changed or left that another scheduler placed.

    Parameters
    ----------
    table
        The pods on nodes.
    is_foreign
        Whether another scheduler placed a pod.

    Attributes
    ----------
    nodes
        The nodes; the owner removes those that are known again.
    """

    def __init__(self, table: NodeTable, is_foreign: Callable[[PodInfo], bool]) -> None:
        self._changes = PodChanges(table)
        self._is_foreign = is_foreign
        self.nodes: set[str] = set()

    def follow(self, judged: Mapping[str, object]) -> list[str]:
        """Take in changes of pods; return the nodes that were added, of those that are judged."""
        new = [
            change.node
            for change in self._changes.read()
            if change.node in judged
            and change.node not in self.nodes
            and any(self._is_foreign(pod) for pod in (*change.after, *change.departures))
        ]
        self.nodes.update(new)
        return new


def _devices(topology: NodeResourceTopology) -> frozenset[str]:
    """Return the names of the resources that the NUMA nodes report."""
    return frozenset(each.name for zone in topology.zones for each in zone.resources)
