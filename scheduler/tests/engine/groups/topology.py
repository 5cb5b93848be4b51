"""Groups with a topology, of every source, on small clusters of racks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from moorage.api.codec import from_dict
from moorage.api.coscheduling import (
    PREFERRED_TOPOLOGY,
    REQUIRED_TOPOLOGY,
    CoschedulingGroup,
)
from moorage.api.pod import Pod
from moorage.api.pod_group import PodGroup
from moorage.base.clock import ManualClock
from moorage.base.rng import Streams
from moorage.config.feature_gates import feature_gates
from moorage.config.gate_table import V1_36, gates_of_version
from moorage.config.merge import expand_profiles
from moorage.config.own import LoadedConfiguration
from moorage.engine.cycle import Cycle
from moorage.engine.groups.cycle import GroupCycle
from moorage.engine.groups.decision import GroupDecision
from moorage.engine.select_node import smallest_name
from moorage.framework.handle import Handle
from moorage.framework.profile import Profile
from moorage.framework.status import ReasonTable
from moorage.plugins.in_tree import in_tree_registry
from moorage.snapshot.group_labels import (
    CUSTOM_SOURCE,
    LABEL_SOURCE,
    CustomGroups,
    LabelledGroups,
    SeveralSources,
)
from moorage.snapshot.group_sources import API_SOURCE, ApiGroups
from moorage.snapshot.pod_groups import GroupKey, GroupSource
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot
from moorage_sandbox.testing.builders import node, pod
from tests.scenarios.gangs import coscheduling

SOURCES = (API_SOURCE, CUSTOM_SOURCE, LABEL_SOURCE)
GATES = ("GenericWorkload", "GangScheduling", "TopologyAwareWorkloadScheduling")


def racks(cpus: Mapping[str, Sequence[int]], labels: Mapping[str, Any] | None = None) -> Snapshot:
    """Return a cluster: the cpus of the nodes of each rack; rack "" has no label.

    `labels` are further labels of the nodes of a rack.
    """
    snapshot = Snapshot()
    for rack, each in cpus.items():
        for index, cpu in enumerate(each):
            own = {"rack": rack} if rack else {}
            more = (labels or {}).get(rack, {})
            name = f"{rack or 'none'}-{index}"
            snapshot.table.add_node(node(name, cpu=str(cpu), labels={**own, **more}))
    return snapshot


class Group:
    """A group of one source with its cycle.

    Parameters
    ----------
    snapshot
        The cluster.
    source
        The group source.
    cpus
        Cpu of each pod that waits.
    least
        The minimum; None means all pods, the bound ones included.
    required, preferred
        The topology.
    bound
        Nodes of members that run already.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        source: str,
        cpus: Sequence[int],
        *,
        least: int | None = None,
        required: str = "",
        preferred: str = "",
        bound: Sequence[str] = (),
        **settings: Any,
    ) -> None:
        self.snapshot = snapshot
        self.key = GroupKey("default", "g", source)
        least = len(cpus) + len(bound) if least is None else least
        self._annotations = {
            name: value
            for name, value in ((REQUIRED_TOPOLOGY, required), (PREFERRED_TOPOLOGY, preferred))
            if value
        }
        members = snapshot.groups.members
        sources: dict[str, GroupSource] = {
            CUSTOM_SOURCE: CustomGroups(snapshot.listers.coscheduling_groups, members),
            LABEL_SOURCE: LabelledGroups(members),
            API_SOURCE: ApiGroups(snapshot.listers.pod_groups),
        }
        snapshot.groups.source = SeveralSources(sources, {}, snapshot.groups.succeeded)
        self._put_object(least, required)
        for index, node_name in enumerate(bound):
            running = self._pod(f"b{index}", 1, least, node_name=node_name)
            snapshot.groups.put_pod(running)
            snapshot.table.add_pod(running, node_name)
        self.pods = [PodInfo(self._pod(f"p{index}", cpu, least)) for index, cpu in enumerate(cpus)]
        for info in self.pods:
            snapshot.groups.put_pod(info.pod)
        self.cycle = self._cycle(**settings)

    def decide(self) -> GroupDecision:
        """Decide, and check that nothing is left behind."""
        before = (self.snapshot.requested("cpu").tolist(), self.snapshot.pod_count.tolist())
        found = GroupCycle(self.cycle).decide_group(self.key, self.pods)
        assert before == (
            self.snapshot.requested("cpu").tolist(),
            self.snapshot.pod_count.tolist(),
        )
        self.snapshot.groups.validate()
        return found

    def _put_object(self, least: int, required: str) -> None:
        metadata = {
            "namespace": "default",
            "name": "g",
            "uid": "u",
            "annotations": self._annotations,
        }
        listers = self.snapshot.listers
        if self.key.source == CUSTOM_SOURCE:
            spec: dict[str, Any] = {"minMember": least}
            made = from_dict(CoschedulingGroup, {"metadata": metadata, "spec": spec})
            listers.coscheduling_groups.put(made)
        elif self.key.source == API_SOURCE:
            spec = {"schedulingPolicy": {"gang": {"minCount": least}}}
            if required:
                spec["schedulingConstraints"] = {"topology": [{"key": required}]}
            listers.pod_groups.put(from_dict(PodGroup, {"metadata": metadata, "spec": spec}))

    def _pod(self, name: str, cpu: int, least: int, *, node_name: str = "") -> Pod:
        fields: dict[str, Any] = {"nodeName": node_name} if node_name else {}
        if self.key.source == API_SOURCE:
            fields["schedulingGroup"] = {"podGroupName": "g"}
        if self.key.source == CUSTOM_SOURCE:
            fields["labels"] = {"scheduling.x-k8s.io/pod-group": "g"}
        if self.key.source == LABEL_SOURCE:
            prefix = "pod-group.scheduling.sigs.k8s.io"
            fields["labels"] = {f"{prefix}/name": "g", f"{prefix}/min-available": str(least)}
            fields["annotations"] = self._annotations
        return pod(name, cpu=str(cpu), **fields)

    def _cycle(
        self, *, reuse: bool = True, orders: int | None = None, version: str = V1_36
    ) -> Cycle:
        names = [gate.name for gate in gates_of_version(version) if gate.name in GATES]
        on = dict.fromkeys(names, True) if not self.key.source else {}
        gates = feature_gates(on, version)
        config = coscheduling() if self.key.source else LoadedConfiguration()
        (made,) = expand_profiles(config.scheduler, in_tree_registry(), gates=gates)
        handle = Handle(
            profile_name="default-scheduler",
            snapshot=self.snapshot,
            reasons=ReasonTable(),
            clock=ManualClock(),
            streams=Streams(1),
            gates=gates,
            group_orders=orders,
        )
        profile = Profile(made, in_tree_registry(), handle)
        return Cycle(profile, self.snapshot, smallest_name, reuse=reuse)


def places(found: GroupDecision) -> dict[str, str]:
    """Return the node of each pod of a decision."""
    return {each.decision.pod.name: each.node_name for each in found.members}
