"""The axes of growth: nodes, pods, shapes, waiting pods, pods that went, label sets, groups."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from moorage_lab.bench import manifests as m
from moorage_lab.bench.workload import (
    ChurnPods,
    CreateNodes,
    CreatePods,
    JsonObject,
    PlacePods,
    Template,
    Workload,
    basic,
    default_node,
    default_pod,
)

_NODES: Final = 5000
_MEASURED: Final = 2000
_WIDE_NODES: Final = 10_000
"""Nodes for up to a million pods, 100 on each."""


class Axis(msgspec.Struct, frozen=True):
    """One thing that grows while everything else stays.

    Parameters
    ----------
    name, about
        Its name, and what is measured.
    sizes
        The sizes, ascending.
    workload
        Returns the workload of a size; None where groups are decided instead of single pods.
    """

    name: str
    about: str
    sizes: tuple[int, ...]
    workload: Callable[[int], Workload] | None


def _wide_node(index: int) -> JsonObject:
    node = default_node(index)
    room = {"cpu": "64", "memory": "512Gi", "pods": "250"}
    node["status"] |= {"capacity": room, "allocatable": room}
    return node


def _on_nodes(template: Template, nodes: int) -> Template:
    """Return pods of a template that are spread evenly over the nodes."""

    def placed(index: int) -> JsonObject:
        pod = template(index)
        pod["spec"]["nodeName"] = f"scheduler-perf-{index % nodes}"
        return pod

    return placed


def _shaped(count: int) -> Template:
    """Return pods of so many shapes in turn: their requests differ."""
    plain = default_pod("measured")

    def pod(index: int) -> JsonObject:
        manifest = plain(index)
        amounts = {"cpu": "100m", "memory": f"{500 + index % count}Mi"}
        manifest["spec"]["containers"][0]["resources"] = {"limits": amounts, "requests": amounts}
        return manifest

    return pod


def _labelled(prefix: str, count: int, spec: Callable[[str], JsonObject]) -> Template:
    """Return pods with so many labels in turn, and what their spec says of the own label."""
    plain = default_pod(prefix)

    def pod(index: int) -> JsonObject:
        manifest, app = plain(index), f"app-{index % count}"
        manifest["metadata"]["labels"] = {"app": app}
        manifest["spec"] |= spec(app)
        return manifest

    return pod


def _spread(app: str) -> JsonObject:
    constraint = {
        "maxSkew": 1,
        "topologyKey": m.ZONE,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": app}},
    }
    return {"topologySpreadConstraints": [constraint]}


def _of_nodes(size: int) -> Workload:
    return basic(nodes=size, init_pods=1000, pods=_MEASURED)


def _of_bound(size: int) -> Workload:
    return Workload(
        "Bound",
        {"nodes": _WIDE_NODES, "boundPods": size, "measurePods": _MEASURED},
        (
            CreateNodes(_WIDE_NODES, _wide_node),
            PlacePods(size, _on_nodes(default_pod("bound"), _WIDE_NODES)),
            CreatePods(_MEASURED, default_pod("measured"), measured=True),
        ),
    )


def _of_shapes(size: int) -> Workload:
    pods = max(_MEASURED, 2 * size)
    return Workload(
        "Shapes",
        {"nodes": _NODES, "shapes": size, "measurePods": pods},
        (
            CreateNodes(_NODES, default_node),
            CreatePods(pods, _shaped(size), measured=True),
        ),
    )


def _of_waiting(size: int) -> Workload:
    return Workload(
        "Waiting",
        {"nodes": _NODES, "waitingPods": size, "measurePods": _MEASURED},
        (
            CreateNodes(_NODES, default_node),
            CreatePods(size, m.sized_pod("waiting", cpu="1000", priority=0), waiting=True),
            CreatePods(_MEASURED, default_pod("measured"), measured=True),
        ),
    )


def _of_churn(size: int) -> Workload:
    return Workload(
        "Churn",
        {"nodes": _NODES, "churnedPods": size, "presentPods": 5000, "measurePods": _MEASURED},
        (
            CreateNodes(_NODES, default_node),
            ChurnPods(size, default_pod("churned"), present=5000),
            CreatePods(_MEASURED, default_pod("measured"), measured=True),
        ),
    )


def _of_labels(size: int) -> Workload:
    there = max(10_000, 2 * size)
    return Workload(
        "LabelSets",
        {"nodes": _NODES, "labelSets": size, "boundPods": there, "measurePods": _MEASURED},
        (
            CreateNodes(_NODES, default_node),
            PlacePods(there, _on_nodes(_labelled("bound", size, lambda app: {}), _NODES)),
            CreatePods(_MEASURED, _labelled("measured", size, _spread), measured=True),
        ),
    )


AXES: Final = {
    axis.name: axis
    for axis in (
        Axis(
            "nodes",
            "plain pods on more and more nodes",
            (1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000),
            _of_nodes,
        ),
        Axis(
            "bound",
            f"plain pods on {_WIDE_NODES:,} nodes with more and more pods",
            (10_000, 30_000, 100_000, 300_000, 1_000_000),
            _of_bound,
        ),
        Axis(
            "shapes",
            f"pods of more and more shapes in turn, on {_NODES:,} nodes",
            (1, 10, 100, 1000, 10_000),
            _of_shapes,
        ),
        Axis(
            "waiting",
            f"plain pods on {_NODES:,} nodes, while more and more pods fit nowhere",
            (100, 1000, 10_000, 100_000),
            _of_waiting,
        ),
        Axis(
            "churn",
            f"plain pods on {_NODES:,} nodes, after more and more pods came and went",
            (10_000, 100_000, 1_000_000),
            _of_churn,
        ),
        Axis(
            "labels",
            f"pods spread softly over zones, each by one of more and more labels, {_NODES:,} nodes",
            (1, 10, 100, 1000, 10_000),
            _of_labels,
        ),
        Axis(
            "groups",
            f"more and more gangs of 4 pods, one after another, on {_NODES:,} nodes",
            (100, 1000, 10_000),
            None,
        ),
    )
}
"""Everything that grows, by name."""
