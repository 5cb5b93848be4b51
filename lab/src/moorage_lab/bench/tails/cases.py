"""The cases of slow decisions, each with two sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from moorage.config.load import parse_config
from moorage.config.own import LoadedConfiguration
from moorage_lab.bench import manifests as m
from moorage_lab.bench.claims.workloads import RESOURCE, claimed, extended
from moorage_lab.bench.growth.axes import AXES
from moorage_lab.bench.plugin_cases import MIXES, claims_and_volumes, node, resident
from moorage_lab.bench.preempting import looking_at_every_node
from moorage_lab.bench.tails import preemptors
from moorage_lab.bench.workload import CreateNodes, CreateObjects, CreatePods, PlacePods, Workload

_SCORED: Final = f"""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy:
        type: LeastAllocated
        resources:
        - {{name: cpu, weight: 1}}
        - {{name: memory, weight: 1}}
        - {{name: {RESOURCE}, weight: 1}}
"""


class Case(msgspec.Struct, frozen=True):
    """One kind of decisions.

    Parameters
    ----------
    name, about
        Its name, and what is decided.
    sizes
        The two sizes.
    counts
        What a size counts: nodes, shapes or label sets.
    workload
        Returns the workload of a size; None where groups are decided instead of single pods.
    configuration
        Returns the scheduler's configuration; None for the default.
    """

    name: str
    about: str
    sizes: tuple[int, int]
    counts: str
    workload: Callable[[int], Workload] | None
    configuration: Callable[[], LoadedConfiguration] | None = None


def _steady(nodes: int) -> Workload:
    return claimed(nodes=nodes, pods=1000, devices=10, present=10)


def _scored(nodes: int) -> Workload:
    return extended(nodes=nodes, pods=10 * nodes, devices=20, classes=nodes // 25 + 2)


def _of_axis(name: str) -> Callable[[int], Workload]:
    workload = AXES[name].workload
    assert workload is not None, "only groups have none"
    return workload


def _everything(nodes: int) -> Workload:
    name, pods = "everything", nodes // 10
    return Workload(
        "Everything",
        {"nodes": nodes, "initPods": nodes, "measurePods": pods},
        (
            CreateObjects(nodes, m.csi_node),
            CreateNodes(nodes, node),
            PlacePods(nodes, resident),
            *claims_and_volumes(name, pods),
            CreatePods(pods, MIXES[name](name), measured=True),
        ),
    )


CASES: Final = {
    case.name: case
    for case in (
        Case(
            "claims",
            "pods with one claim each, 10 devices on each node, until all devices are taken",
            (200, 500),
            "nodes",
            lambda nodes: claimed(nodes=nodes, pods=10 * nodes, devices=10),
        ),
        Case(
            "claims-steady",
            "pods with one claim each that come and go, 10 at a time",
            (100, 500),
            "nodes",
            _steady,
        ),
        Case(
            "claims-scored",
            "pods with an extended resource that devices provide, and that is scored",
            (200, 500),
            "nodes",
            _scored,
            lambda: parse_config(_SCORED, source="the scored case"),
        ),
        Case(
            "claims-wide",
            "pods with one claim each, one for each node",
            (1000, 5000),
            "nodes",
            lambda nodes: claimed(nodes=nodes, pods=nodes, devices=10),
        ),
        Case(
            "preemption",
            "pods that have to evict others; every node is a candidate",
            (1000, 5000),
            "nodes",
            lambda nodes: preemptors.plain(nodes, nodes // 2),
            looking_at_every_node,
        ),
        Case(
            "preemption-terms",
            "the same with affinity, hard spread and a host port",
            (1000, 5000),
            "nodes",
            lambda nodes: preemptors.with_terms(nodes, 20),
            looking_at_every_node,
        ),
        Case(
            "preemption-volumes",
            "the same with a volume, on nodes that can attach no further one",
            (1000, 5000),
            "nodes",
            lambda nodes: preemptors.with_volumes(nodes, 20),
            looking_at_every_node,
        ),
        Case(
            "quota",
            "pods that take back what another namespace borrowed of their elastic quota",
            (1000, 5000),
            "nodes",
            lambda nodes: preemptors.under_quota(nodes, 10),
            preemptors.quota_configuration,
        ),
        Case(
            "quota-terms",
            "the same with affinity, hard spread and a host port",
            (1000, 5000),
            "nodes",
            lambda nodes: preemptors.under_quota_with_terms(nodes, 10),
            preemptors.quota_configuration,
        ),
        Case("gangs", "gangs of 8 plain pods", (1000, 5000), "nodes", None),
        Case("topology", "gangs of 8 pods, each in one zone", (1000, 5000), "nodes", None),
        Case(
            "shapes",
            "pods of so many shapes in turn, 5,000 nodes",
            (1000, 10_000),
            "shapes",
            _of_axis("shapes"),
        ),
        Case(
            "labels",
            "pods of so many label sets in turn, each spread softly by its own, 5,000 nodes",
            (1000, 10_000),
            "label sets",
            _of_axis("labels"),
        ),
        Case(
            "everything",
            "pods that give every plugin work",
            (1000, 5000),
            "nodes",
            _everything,
        ),
    )
}
"""Every case, by name."""
