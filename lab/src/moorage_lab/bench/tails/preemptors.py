"""Workloads of pods that have to evict others, in the forms that are slow to try."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from moorage.config.load import parse_config
from moorage.config.own import LoadedConfiguration
from moorage_lab.bench import manifests as m
from moorage_lab.bench.workload import (
    NAMESPACE,
    CreateNodes,
    CreateObjects,
    CreatePods,
    JsonObject,
    Template,
    Workload,
    default_node,
)

_A_NODE: Final = 4
"""Number of small pods that fill a node."""
_BORROWER: Final = "borrower"
_OWNER: Final = "owner"
_CAPACITY_SCHEDULING: Final = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins:
    multiPoint: {enabled: [{name: CapacityScheduling}], disabled: [{name: DefaultPreemption}]}
"""


def plain(nodes: int, pods: int) -> Workload:
    """Return preemptors without any constraint, on full nodes."""
    return _wave("Preemption", nodes, pods, _large(priority=10))


def with_terms(nodes: int, pods: int) -> Workload:
    """Return preemptors with affinity, hard spread and a host port, on full nodes."""
    return _wave("PreemptionWithTerms", nodes, pods, _with_terms(_large(priority=10)))


def _with_terms(large: Template, *, near: str = NAMESPACE) -> Template:
    labels = {"app": "preemptor"}
    residents = m.term({"app": "small"}, m.ZONE) | {"namespaces": [near]}
    together = m.required("podAffinity", residents)["affinity"]
    apart = m.required("podAntiAffinity", m.term(labels, m.HOSTNAME))["affinity"]
    spread = m.spread(labels, m.ZONE, skew=1, when="DoNotSchedule")

    def preemptor(index: int) -> JsonObject:
        manifest = large(index)
        manifest["metadata"]["labels"] = labels
        manifest["spec"] |= {"affinity": together | apart, "topologySpreadConstraints": [spread]}
        ports = [{"containerPort": 80, "hostPort": 8080}]
        manifest["spec"]["containers"][0]["ports"] = ports
        return manifest

    return preemptor


def with_volumes(nodes: int, pods: int) -> Workload:
    """Return preemptors with a volume, on nodes that can attach no further volume."""
    residents = _A_NODE * nodes
    volumes = (
        CreateObjects(nodes, _csi_node),
        *(
            CreateObjects(count, template(prefix))
            for prefix, count in (("small", residents), ("preemptor", pods))
            for template in (m.bound_volume, m.bound_claim)
        ),
    )
    workload = _wave(
        "PreemptionWithVolumes",
        nodes,
        pods,
        m.with_claims(_large(priority=10), "preemptor"),
        resident=lambda small: m.with_claims(small, "small"),
    )
    return msgspec.structs.replace(workload, ops=(*volumes, *workload.ops))


def _csi_node(index: int) -> JsonObject:
    manifest = m.csi_node(index)
    manifest["spec"]["drivers"][0]["allocatable"] = {"count": _A_NODE}
    return manifest


def under_quota_with_terms(nodes: int, pods: int) -> Workload:
    """Return the pods of `under_quota`, with affinity, hard spread and a host port."""
    preemptor = _with_terms(_large(priority=0), near=_BORROWER)
    return _under_quota("QuotaWithTerms", nodes, pods, preemptor)


def under_quota(nodes: int, pods: int) -> Workload:
    """Return pods that take back what another namespace borrowed of their quota."""
    return _under_quota("PreemptionUnderQuota", nodes, pods, _large(priority=0))


def _under_quota(name: str, nodes: int, pods: int, preemptor: Template) -> Workload:
    least = {"cpu": f"{_A_NODE * nodes}", "memory": f"{32 * nodes}Gi"}
    quotas = (
        CreateObjects(1, _quota(_OWNER, least)),
        CreateObjects(1, _quota(_BORROWER, {"cpu": "0", "memory": "0"})),
    )

    def owned(index: int) -> JsonObject:
        manifest = preemptor(index)
        manifest["metadata"]["namespace"] = _OWNER
        return manifest

    workload = _wave(name, nodes, pods, owned, namespace=_BORROWER)
    return msgspec.structs.replace(workload, ops=(*quotas, *workload.ops))


def quota_configuration() -> LoadedConfiguration:
    """Return the default profile with CapacityScheduling."""
    return parse_config(_CAPACITY_SCHEDULING, source="the quota case")


def _wave(
    name: str,
    nodes: int,
    pods: int,
    preemptor: Template,
    *,
    namespace: str = NAMESPACE,
    resident: Callable[[Template], Template] = lambda small: small,
) -> Workload:
    small = resident(m.sized_pod("small", cpu="900m", priority=0))

    def labelled(index: int) -> JsonObject:
        manifest = small(index)
        manifest["metadata"] |= {"namespace": namespace, "labels": {"app": "small"}}
        return manifest

    return Workload(
        name,
        {"nodes": nodes, "initPods": _A_NODE * nodes, "measurePods": pods},
        (
            CreateNodes(nodes, default_node),
            CreatePods(_A_NODE * nodes, labelled),
            CreatePods(pods, preemptor, measured=True, preempting=True),
        ),
    )


def _large(*, priority: int) -> Template:
    return m.sized_pod("preemptor", cpu="3000m", priority=priority)


def _quota(namespace: str, least: JsonObject) -> Template:
    return lambda index: {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "ElasticQuota",
        "metadata": {"name": f"quota-{index}", "namespace": namespace},
        "spec": {"min": least},
    }
