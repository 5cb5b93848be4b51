"""Workloads of pods that have to evict others, in the forms that are slow to try."""

from __future__ import annotations

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
    labels = {"app": "preemptor"}
    near = m.required("podAffinity", m.term({"app": "small"}, m.ZONE))["affinity"]
    apart = m.required("podAntiAffinity", m.term(labels, m.HOSTNAME))["affinity"]
    spread = m.spread(labels, m.ZONE, skew=1, when="DoNotSchedule")
    large = _large(priority=10)

    def preemptor(index: int) -> JsonObject:
        manifest = large(index)
        manifest["metadata"]["labels"] = labels
        manifest["spec"] |= {"affinity": near | apart, "topologySpreadConstraints": [spread]}
        ports = [{"containerPort": 80, "hostPort": 8080}]
        manifest["spec"]["containers"][0]["ports"] = ports
        return manifest

    return _wave("PreemptionWithTerms", nodes, pods, preemptor)


def under_quota(nodes: int, pods: int) -> Workload:
    """Return pods that take back what another namespace borrowed of their quota."""
    least = {"cpu": f"{_A_NODE * nodes}", "memory": f"{32 * nodes}Gi"}
    quotas = (
        CreateObjects(1, _quota(_OWNER, least)),
        CreateObjects(1, _quota(_BORROWER, {"cpu": "0", "memory": "0"})),
    )
    preemptor = _large(priority=0, namespace=_OWNER)
    workload = _wave("PreemptionUnderQuota", nodes, pods, preemptor, namespace=_BORROWER)
    return msgspec.structs.replace(workload, ops=(*quotas, *workload.ops))


def quota_configuration() -> LoadedConfiguration:
    """Return the default profile with CapacityScheduling."""
    return parse_config(_CAPACITY_SCHEDULING, source="the quota case")


def _wave(
    name: str, nodes: int, pods: int, preemptor: Template, *, namespace: str = NAMESPACE
) -> Workload:
    small = m.sized_pod("small", cpu="900m", priority=0)

    def resident(index: int) -> JsonObject:
        manifest = small(index)
        manifest["metadata"] |= {"namespace": namespace, "labels": {"app": "small"}}
        return manifest

    return Workload(
        name,
        {"nodes": nodes, "initPods": _A_NODE * nodes, "measurePods": pods},
        (
            CreateNodes(nodes, default_node),
            CreatePods(_A_NODE * nodes, resident),
            CreatePods(pods, preemptor, measured=True, preempting=True),
        ),
    )


def _large(*, priority: int, namespace: str = NAMESPACE) -> Template:
    sized = m.sized_pod("preemptor", cpu="3000m", priority=priority)

    def large(index: int) -> JsonObject:
        manifest = sized(index)
        manifest["metadata"]["namespace"] = namespace
        return manifest

    return large


def _quota(namespace: str, least: JsonObject) -> Template:
    return lambda index: {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "ElasticQuota",
        "metadata": {"name": f"quota-{index}", "namespace": namespace},
        "spec": {"min": least},
    }
