"""The named workloads, after the test cases of kubernetes v1.36 scheduler_perf."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from moorage_lab.bench import manifests as m
from moorage_lab.bench.workload import (
    CreateNodes,
    CreateObjects,
    CreatePods,
    JsonObject,
    Op,
    Template,
    Workload,
    basic,
    default_node,
    default_pod,
)

_SCOPE: Final = {"namespaces": ["sched-0", "sched-1"]}
_NAMESPACES: Final = 100
_TEAM: Final = {"team": "devops"}


class Size(msgspec.Struct, frozen=True):
    """The numbers of nodes, of pods placed before measuring, and of pods measured."""

    nodes: int
    init_pods: int
    pods: int


class Recipe(msgspec.Struct, frozen=True):
    """A named workload of any size.

    Parameters
    ----------
    title, about
        scheduler_perf's name, and a description of the pods.
    size
        The default size.
    operations
        Returns the operations for a size.
    """

    title: str
    about: str
    size: Size
    operations: Callable[[Size], tuple[Op, ...]]

    def workload(self, size: Size) -> Workload:
        """Return the workload of a size."""
        params = {
            "nodes": size.nodes,
            "initPods": size.init_pods,
            "measurePods": size.pods,
        }
        return Workload(self.title, params, self.operations(size))


def _node_in_zone1(index: int) -> JsonObject:
    node = default_node(index)
    node["metadata"]["labels"][m.ZONE] = "zone1"
    return node


def _same(
    spec: JsonObject, labels: dict[str, str], *, node: Template = default_node
) -> Callable[[Size], tuple[Op, ...]]:
    """Pods of one kind before and while measuring, in two namespaces."""

    def operations(size: Size) -> tuple[Op, ...]:
        return (
            CreateNodes(size.nodes, node),
            CreatePods(size.init_pods, m.pod("init", spec, labels=labels, namespace="sched-0")),
            CreatePods(
                size.pods,
                m.pod("measured", spec, labels=labels, namespace="sched-1"),
                measured=True,
            ),
        )

    return operations


def _across_namespaces(kind: str, *, node: Template) -> Callable[[Size], tuple[Op, ...]]:
    """Pods of a hundred labelled namespaces that select each other through the label."""
    labels = {"color": "green"}
    key = m.HOSTNAME if kind == "podAntiAffinity" else m.ZONE
    spec = m.required(kind, m.term(labels, key, namespaceSelector={"matchLabels": _TEAM}))

    def operations(size: Size) -> tuple[Op, ...]:
        init = m.pod("init", spec, labels=labels, namespace="init", namespaces=_NAMESPACES)
        measured = m.pod("measured", spec, labels=labels, namespace="measure-0")
        return (
            CreateNodes(size.nodes, node),
            CreateObjects(_NAMESPACES, m.namespace_of("init", _TEAM)),
            CreateObjects(1, m.namespace_of("measure", _TEAM)),
            CreatePods(size.init_pods, init),
            CreatePods(size.pods, measured, measured=True),
        )

    return operations


def _plain_then(spec: JsonObject, labels: dict[str, str]) -> Callable[[Size], tuple[Op, ...]]:
    """Plain pods first, then measured pods with additional fields."""

    def operations(size: Size) -> tuple[Op, ...]:
        return (
            CreateNodes(size.nodes, default_node),
            CreatePods(size.init_pods, default_pod("init")),
            CreatePods(size.pods, m.pod("measured", spec, labels=labels), measured=True),
        )

    return operations


def _basic(size: Size) -> tuple[Op, ...]:
    return basic(nodes=size.nodes, init_pods=size.init_pods, pods=size.pods).ops


def _spread(when: str) -> Callable[[Size], tuple[Op, ...]]:
    labels = {"color": "blue"}
    constraint = m.spread(labels, m.ZONE, skew=5, when=when)
    return _plain_then({"topologySpreadConstraints": [constraint]}, labels)


def _mixed(size: Size) -> tuple[Op, ...]:
    kinds: tuple[tuple[str, dict[str, str], JsonObject], ...] = (
        ("plain", {"app": "plain"}, {}),
        ("blue", *_AFFINITY),
        ("green", *_ANTI_AFFINITY),
        ("red", *_PREFERRED),
        ("yellow", *_PREFERRED_ANTI),
    )
    share = size.init_pods // len(kinds)
    fill = (
        CreatePods(share, m.pod(name, spec, labels=labels, namespace="sched-0"))
        for name, labels, spec in kinds
    )
    measured = CreatePods(size.pods, default_pod("measured"), measured=True)
    return (CreateNodes(size.nodes, _node_in_zone1), *fill, measured)


def _volumes(size: Size) -> tuple[Op, ...]:
    def operations(prefix: str, count: int) -> tuple[Op, ...]:
        return (
            CreateObjects(count, m.bound_volume(prefix)),
            CreateObjects(count, m.bound_claim(prefix)),
            CreatePods(
                count, m.with_claims(default_pod(prefix), prefix), measured=prefix == "measured"
            ),
        )

    nodes = (CreateNodes(size.nodes, default_node), CreateObjects(size.nodes, m.csi_node))
    return (*nodes, *operations("init", size.init_pods), *operations("measured", size.pods))


def _wave(size: Size) -> tuple[Op, ...]:
    """Full nodes, then pods of higher priority that are too large for the free resources."""
    low = m.sized_pod("pod-low-priority", cpu="900m", priority=0)
    high = m.sized_pod("pod-high-priority", cpu="3000m", priority=10)
    return (
        CreateNodes(size.nodes, default_node),
        CreatePods(size.init_pods, low),
        CreatePods(size.pods, high, measured=True, preempting=True),
    )


_Kind = tuple[dict[str, str], JsonObject]


def _kind(color: str, form: Callable[..., JsonObject], kind: str, key: str) -> _Kind:
    labels = {"color": color}
    return labels, form(kind, m.term(labels, key, **_SCOPE))


_AFFINITY = _kind("blue", m.required, "podAffinity", m.ZONE)
_ANTI_AFFINITY = _kind("green", m.required, "podAntiAffinity", m.HOSTNAME)
_PREFERRED = _kind("red", m.preferred, "podAffinity", m.HOSTNAME)
_PREFERRED_ANTI = _kind("yellow", m.preferred, "podAntiAffinity", m.HOSTNAME)
_IN_TWO_ZONES: Final = {
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [m.zone_in("zone1", "zone2")]
            }
        }
    }
}


def _of(kind: _Kind, *, node: Template = default_node) -> Callable[[Size], tuple[Op, ...]]:
    labels, spec = kind
    return _same(spec, labels, node=node)


WORKLOADS: Final = {
    "basic": Recipe("SchedulingBasic", "plain pods", Size(5000, 1000, 10_000), _basic),
    "pod-affinity": Recipe(
        "SchedulingPodAffinity",
        "each demands the zone of the others",
        Size(5000, 5000, 1000),
        _of(_AFFINITY, node=_node_in_zone1),
    ),
    "pod-anti-affinity": Recipe(
        "SchedulingPodAntiAffinity",
        "each demands a node without the others",
        Size(5000, 2000, 1000),
        _of(_ANTI_AFFINITY),
    ),
    "preferred-pod-affinity": Recipe(
        "PreferredPodAffinity",
        "each prefers the others' nodes",
        Size(5000, 5000, 1000),
        _of(_PREFERRED),
    ),
    "preferred-pod-anti-affinity": Recipe(
        "PreferredPodAntiAffinity",
        "each prefers nodes without the others",
        Size(5000, 5000, 1000),
        _of(_PREFERRED_ANTI),
    ),
    "affinity-namespace-selector": Recipe(
        "SchedulingRequiredPodAffinityWithNSSelector",
        "as pod-affinity, across 100 namespaces by label",
        Size(5000, 5000, 1000),
        _across_namespaces("podAffinity", node=_node_in_zone1),
    ),
    "anti-affinity-namespace-selector": Recipe(
        "SchedulingRequiredPodAntiAffinityWithNSSelector",
        "as pod-anti-affinity, across 100 namespaces by label",
        Size(5000, 2000, 1000),
        _across_namespaces("podAntiAffinity", node=default_node),
    ),
    "hard-spread": Recipe(
        "TopologySpreading",
        "spread over zones, DoNotSchedule",
        Size(5000, 5000, 2000),
        _spread("DoNotSchedule"),
    ),
    "soft-spread": Recipe(
        "PreferredTopologySpreading",
        "spread over zones, ScheduleAnyway",
        Size(5000, 5000, 2000),
        _spread("ScheduleAnyway"),
    ),
    "mixed": Recipe(
        "MixedSchedulingBasePod",
        "plain pods among pods with affinities of four kinds",
        Size(5000, 10_000, 1000),
        _mixed,
    ),
    "node-affinity": Recipe(
        "SchedulingNodeAffinity",
        "each demands one of two zones",
        Size(5000, 5000, 1000),
        _plain_then(_IN_TWO_ZONES, {"app": "measured"}),
    ),
    "volumes": Recipe(
        "SchedulingCSIPVs",
        "each has a bound PersistentVolume of its own",
        Size(5000, 5000, 1000),
        _volumes,
    ),
    "preemption": Recipe(
        "PreemptionBasic",
        "each has to evict others to fit",
        Size(5000, 20_000, 5000),
        _wave,
    ),
}
"""Every named workload."""
