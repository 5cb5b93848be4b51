"""A recorded cluster built for scheduling: columns, profiles, cycles and waiting pods.

Shared by `case` and the modules that run single modes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moorage.api.pod import Pod
from moorage.base.clock import ManualClock
from moorage.base.rng import Streams
from moorage.config.gate_table import GENERIC_WORKLOAD
from moorage.config.merge import ProfileSpec
from moorage.engine.cycle import Cycle
from moorage.engine.decision import Decision, Outcome
from moorage.engine.sampling import Rotation
from moorage.engine.select_node import smallest_name
from moorage.framework.handle import Handle
from moorage.framework.profile import Profile
from moorage.framework.registry import Registry
from moorage.framework.runner import run_pre_enqueue, run_reserve
from moorage.framework.status import ReasonTable, Status
from moorage.snapshot.group_sources import ApiGroups
from moorage.snapshot.listers import Listers
from moorage.snapshot.pod_groups import PodGroups
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot
from moorage_lab.conformance.devices import publish
from moorage_lab.conformance.needs import gates_of
from moorage_lab.conformance.recordings import Json, RecordedObjects, Scenario


class World:
    """A scenario's cluster in columns, its profiles and its pending pods.

    Attributes
    ----------
    snapshot
        The cluster.
    pending
        The waiting pods, as given.
    profiles, cycles
        By scheduler name.
    rotation
        Where the next search starts, in all cycles.
    """

    def __init__(
        self, scenario: Scenario, specs: Mapping[str, ProfileSpec], registry: Registry
    ) -> None:
        self.snapshot = build_snapshot(scenario.objects)
        self.pending = [PodInfo(pod) for pod in scenario.pending]
        self._nominated = {
            info.uid: (info, info.pod.status.nominated_node_name)
            for info in self.pending
            if info.pod.status.nominated_node_name
        }
        self._nominate()
        gates = gates_of(scenario)
        if gates(GENERIC_WORKLOAD):
            count_groups(self.snapshot, scenario)
        reasons, streams = ReasonTable(), Streams(0)
        self.profiles: dict[str, Profile] = {}
        for name, spec in specs.items():
            handle = Handle(
                profile_name=name,
                snapshot=self.snapshot,
                reasons=reasons,
                clock=ManualClock(),
                streams=streams,
                gates=gates,
            )
            self.profiles[name] = Profile(spec, registry, handle)
        self.rotation = Rotation()
        self.cycles = {
            name: Cycle(profile, self.snapshot, smallest_name, rotation=self.rotation)
            for name, profile in self.profiles.items()
        }

    def _nominate(self) -> None:
        by_node: dict[str, list[PodInfo]] = {}
        for info, node_name in self._nominated.values():
            by_node.setdefault(node_name, []).append(info)
        self.snapshot.nominations = by_node

    def nominate(self, info: PodInfo, node_name: str) -> None:
        """Nominate a pod to a node, "" to none."""
        self._nominated.pop(info.uid, None)
        if node_name:
            self._nominated[info.uid] = info, node_name
        self._nominate()

    def profile(self, pod: Pod) -> Profile | None:
        """Return the profile a pod names, or None."""
        return self.profiles.get(pod.spec.scheduler_name)

    def unscheduled(self, info: PodInfo) -> Json | None:
        """Return the row of a pod that never reaches PreFilter; None for other pods."""
        profile = self.profile(info.pod)
        if profile is None:
            return {"pod": info.key, "outcome": "notResponsible"}
        if info.pod.metadata.deletion_timestamp is not None:
            return {"pod": info.key, "outcome": "skipped"}
        gate = run_pre_enqueue(profile, info.pod)
        if gate.ok:
            return None
        return {"pod": info.key, "outcome": "gated", "preEnqueue": signed(gate)}

    def assume(self, profile: Profile, decision: Decision) -> None:
        """Count the pod of a decision on its node, and reserve its volumes and devices."""
        info = decision.pod
        self.snapshot.table.add_pod(info, decision.node_name)
        self.snapshot.groups.assume(info.uid)
        self.nominate(info, "")
        status = run_reserve(profile, decision.state, info, decision.node_name)
        assert status.ok, f"Reserve of {info.key} on {decision.node_name}: {status.message}"
        publish(decision.state, info, self.snapshot)


def count_groups(snapshot: Snapshot, scenario: Scenario) -> None:
    """Count the members of pod groups, bound and unbound."""
    snapshot.groups = PodGroups(ApiGroups(snapshot.listers.pod_groups))
    for pod in (*scenario.objects.pods, *scenario.pending):
        if pod.status.phase not in ("Succeeded", "Failed"):
            snapshot.groups.put_pod(pod)


def build_snapshot(objects: RecordedObjects) -> Snapshot:
    """Return a recorded cluster as a snapshot; finished pods are left out.

    Nominated pods count as kube-scheduler counts them, which is one of the deviations.
    """
    snapshot = Snapshot(listers=_listers(objects), nominated_everywhere=False)
    for node in objects.nodes:
        snapshot.table.add_node(node)
    for pod in objects.pods:
        if pod.status.phase not in ("Succeeded", "Failed"):
            snapshot.table.add_pod(pod, pod.spec.node_name)
    return snapshot


def _listers(objects: RecordedObjects) -> Listers:
    listers = Listers()
    for name in RecordedObjects.__struct_fields__:
        lister = getattr(listers, name, None)
        if lister is not None:
            for obj in getattr(objects, name):
                lister.put(obj)
    return listers


# -- the format of the recordings --------------------------------------------------------------


def failed(decision: Decision) -> Json:
    """Return the row of a failed attempt, without the part that PostFilter adds to its text."""
    if decision.outcome is Outcome.ERROR:
        return {"pod": decision.pod.key, "outcome": f"error: {decision.message}"}
    diagnosis = decision.diagnosis
    text = decision.message if diagnosis is None else diagnosis.with_post_filter("").message
    return {"pod": decision.pod.key, "outcome": "unschedulable", "message": text}


def plain(status: Status) -> Json:
    """Return a status as recorded."""
    return {"code": status.code.text, "reasons": list(status.reasons)}


def signed(status: Status) -> dict[str, Any]:
    """Return a status as recorded, with the plugin it comes from."""
    return {"plugin": status.plugin, **plain(status)}
