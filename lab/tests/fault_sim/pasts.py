"""Builders: what happened in a simulation, and writes for the invariants to judge."""

from __future__ import annotations

from typing import Any

from moorage.base.clock import NS_PER_SECOND, ManualClock
from moorage.base.rng import Streams
from moorage_lab.fault_sim.history import History, Placed, Write
from moorage_lab.fault_sim.invariants.write_case import WriteCase
from moorage_lab.fault_sim.served import Served
from moorage_sandbox.cluster.assembly import ClusterSettings
from moorage_sandbox.testing.builders import Manifest, node_manifest, pod_manifest

LATER = 1000 * NS_PER_SECOND


def a_pod(name: str, node: str = "", **fields: Any) -> Manifest:
    fields.setdefault("cpu", "1")
    manifest = pod_manifest(name, node_name=node, schedulerName="default-scheduler", **fields)
    manifest["metadata"]["uid"] = name
    return manifest


class Past(History):
    """A history whose objects besides pods and nodes are given."""

    def __init__(self) -> None:
        clock = ManualClock()
        form = ClusterSettings(clock=clock, streams=Streams(1))
        served = Served(form, on_disk=False, on_death=lambda: None)
        super().__init__(served, clock)
        self.stored: dict[str, dict[tuple[str, str], Manifest]] = {}

    def server_objects(self, qualified: str) -> dict[tuple[str, str], Manifest]:
        return self.stored.get(qualified, {})


def history(*pods: Manifest, nodes: int = 2, **node: Any) -> Past:
    """Return a history with nodes of 2 cpu, each a zone, and pods that were bound long ago."""
    past = Past()
    past.waiting_left_ns = past.pod_gone_ns = past.leaving_before_ns = 0
    for number in range(1, nodes + 1):
        manifest = node_manifest(f"n{number}", cpu="2", labels={"zone": str(number)}, **node)
        past.nodes[f"n{number}"] = manifest
    for pod in pods:
        past.pods[pod["metadata"]["uid"]] = pod
        if pod["spec"].get("nodeName"):
            past.placed[pod["metadata"]["uid"]] = Placed(0, "scheduler-0.1")
    return past


def by_scheduler(call: str, before: Manifest, now: Manifest | None) -> Write:
    """Return a write that a scheduler made just now to a path of a pod."""
    path = f"/api/v1/namespaces/default/pods/{before['metadata']['name']}{call}"
    return Write(
        at_ns=LATER, by="scheduler-1.1", path=path, resource="pods", now=now, before=before
    )


def binding(now: Manifest, past: History, *, before: Manifest | None = None) -> WriteCase:
    """Return the binding of a pod that was written just now."""
    past.pods[now["metadata"]["uid"]] = now
    before = before or a_pod(now["metadata"]["name"])
    write = by_scheduler("/binding", before, now)
    return WriteCase(write=write, history=past, horizon_ns=8 * NS_PER_SECOND)


def eviction(before: Manifest, past: History, *, reported: bool = True) -> WriteCase:
    if reported:
        before["status"] = {"conditions": [{"type": "DisruptionTarget", "status": "True"}]}
    write = by_scheduler("", before, None)
    return WriteCase(write=write, history=past, horizon_ns=8 * NS_PER_SECOND)


def stored(past: Past, kind: str, *objects: Manifest) -> Past:
    """Add objects of a kind to a history."""
    for obj in objects:
        meta = obj["metadata"]
        past.stored.setdefault(kind, {})[meta.get("namespace", ""), meta["name"]] = obj
    return past


def outside_of_every_zone(pod: Manifest) -> Past:
    """Return a history in which a pod is on a node without a zone."""
    pod["spec"]["nodeName"] = "n0"
    past = history(pod)
    past.nodes["n0"] = node_manifest("n0", cpu="2")
    return past


def promised(pod: Manifest, *, by: str = "scheduler-1.1") -> Past:
    """Return a history in which a scheduler promised a node to a pod long ago."""
    pod["status"] = {"nominatedNodeName": "n1"}
    past = history(pod)
    past.nominated_ns[pod["metadata"]["uid"]] = 0
    past.nominated_by[pod["metadata"]["uid"]] = by
    return past


def report(
    pod: Manifest,
    *,
    claimed_by: Manifest,
    claimed_ns: int,
    node: str = "n1",
    evicts: bool = True,
) -> WriteCase:
    """Return a write about a pod to which node n1 was promised long ago, and which it keeps."""
    past = promised(pod)
    claimed_by["status"] = {"nominatedNodeName": node}
    uid = claimed_by["metadata"]["uid"]
    past.pods[uid], past.nominated_ns[uid] = claimed_by, claimed_ns
    past.evicted_on_ns[node] = claimed_ns if evicts else 0
    write = by_scheduler("/status", pod, pod)
    return WriteCase(write=write, history=past, horizon_ns=8 * NS_PER_SECOND, undisturbed=True)


def refusal(
    promised: str, *, wait_seconds: float = 2.0, labels: dict[str, str] | None = None
) -> WriteCase:
    """Return the report about a pod that a plugin held, with the node that its status told."""
    before, now = a_pod("p", labels=labels or {}), a_pod("p", labels=labels or {})
    before["status"] = {"nominatedNodeName": promised}
    now["status"] = {"conditions": [{"type": "PodScheduled", "status": "False"}]}
    past = history(now)
    past.popped_ns["p"] = LATER - round(wait_seconds * NS_PER_SECOND)
    write = by_scheduler("/status", before, now)
    return WriteCase(write=write, history=past, horizon_ns=8 * NS_PER_SECOND, faultless=True)


def of_default(name: str, **fields: Any) -> Manifest:
    return {"metadata": {"name": name, "namespace": "default"}, **fields}


def with_volumes(*pods: Manifest, mode: str = "ReadWriteOnce", zone: str = "1") -> Past:
    """Return a history with claims a and b, bound to volumes of one driver in a zone."""
    past = history(*pods)
    expression = {"key": "zone", "operator": "In", "values": [zone]}
    required = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    for name in ("a", "b"):
        claim = {"accessModes": [mode], "volumeName": f"pv-{name}"}
        stored(past, "persistentvolumeclaims", of_default(name, spec=claim))
        source = {"driver": "csi", "volumeHandle": name}
        volume = {"csi": source, "nodeAffinity": {"required": required}}
        stored(past, "persistentvolumes", {"metadata": {"name": f"pv-{name}"}, "spec": volume})
    return past


def using(*claims: str) -> list[Manifest]:
    return [{"name": each, "persistentVolumeClaim": {"claimName": each}} for each in claims]


def with_claims(**reserved: list[str]) -> Past:
    """Return a history with resource claims on one device, by the pods they are reserved for."""
    past = history()
    results = [{"driver": "d", "pool": "p", "device": "0"}]
    for name, uids in reserved.items():
        users = [{"uid": uid} for uid in uids]
        status = {"allocation": {"devices": {"results": results}}, "reservedFor": users}
        stored(past, "resourceclaims.resource.k8s.io", of_default(name, status=status))
    return past


def with_budget(past: Past, app: str) -> Past:
    """Add a budget that allows no more disruptions."""
    spec = {"selector": {"matchLabels": {"app": app}}}
    budget = of_default("b", spec=spec, status={"disruptionsAllowed": 0})
    return stored(past, "poddisruptionbudgets.policy", budget)


def with_quotas(*pods: Manifest, **bounds: tuple[str, str]) -> Past:
    """Return a history with elastic quotas: the least and the most cpu of each namespace."""
    past = history(*pods)
    past.quota_changed_ns = 0
    for name, (least, most) in bounds.items():
        meta = {"name": name, "namespace": name}
        quota = {"metadata": meta, "spec": {"min": {"cpu": least}, "max": {"cpu": most}}}
        stored(past, "elasticquotas.scheduling.x-k8s.io", quota)
    return past


WEB = {"app": "web"}
NEAR = {
    "podAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": "zone"}
        ]
    }
}
LIMITED = {
    "metadata": {"name": "n1"},
    "spec": {"drivers": [{"name": "csi", "allocatable": {"count": 1}}]},
}
DISK = {"name": "d", "gcePersistentDisk": {"pdName": "d"}}
DEVICE = [{"name": "gpu", "resourceClaimName": "c"}]
APART = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"labelSelector": {"matchLabels": WEB}, "topologyKey": "kubernetes.io/hostname"}
        ]
    }
}
EVENLY = [
    {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": WEB},
    }
]


def named(node: str) -> Manifest:
    """Return an affinity to the node of this name."""
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def ending(pod: Manifest) -> Manifest:
    """Return a pod that is being deleted."""
    pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return pod


TAINT = [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]
LEAVING = ending(a_pod("p"))
