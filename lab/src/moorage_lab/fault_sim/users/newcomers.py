"""Pods that wait on a node of their own, until a second node comes that has what the first lacks.

Each plugin that turns a pod away has to hear of a new node. Here the first node lacks something for
each of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moorage_lab.fault_sim import acts
from moorage_lab.fault_sim.users.neighbours import apart, near
from moorage_lab.fault_sim.users.plot import ZONE, Maker, Plot
from moorage_lab.fault_sim.users.waits import SatisfiedWait, holder_pod, own_node, own_pod
from moorage_sandbox.testing.builders import node_manifest

Lack = Callable[[Plot, str], dict[str, Any]]
"""Lets the first node lack something; returns the fields of the pod that waits."""


def _tainted(plot: Plot, tag: str) -> dict[str, Any]:
    own_node(plot, tag, taints=[{"key": "k", "value": "v", "effect": "NoSchedule"}])
    return {}


def _cordoned(plot: Plot, tag: str) -> dict[str, Any]:
    own_node(plot, tag, unschedulable=True)
    return {}


def _full(plot: Plot, tag: str) -> dict[str, Any]:
    own_node(plot, tag)
    holder_pod(plot, tag)
    return {}


def _port_taken(plot: Plot, tag: str) -> dict[str, Any]:
    own_node(plot, tag)
    holder_pod(plot, tag, cpu="100m", host_ports=[7070])
    return {"cpu": "100m", "host_ports": [7070]}


def _with_rival(plot: Plot, tag: str) -> dict[str, Any]:
    own_node(plot, tag)
    holder_pod(plot, tag, cpu="100m", labels={"app": tag})
    return {"cpu": "100m", "affinity": apart(tag)}


def _without_friend(plot: Plot, tag: str) -> dict[str, Any]:
    """Put the friend into the zone that the second node will be in."""
    own_node(plot, tag, labels={ZONE: f"{tag}-old"})
    own_node(plot, f"{tag}-far", labels={ZONE: tag})
    holder_pod(plot, f"{tag}-far", cpu="100m", labels={"app": tag})
    return {"cpu": "100m", "affinity": near(tag)}


def _without_zone(plot: Plot, tag: str) -> dict[str, Any]:
    own_node(plot, tag, labels={ZONE: None})
    spread = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": tag}},
    }
    return {"cpu": "100m", "labels": {"app": tag}, "topologySpreadConstraints": [spread]}


def _disk_taken(plot: Plot, tag: str) -> dict[str, Any]:
    own_node(plot, tag)
    fields = {"cpu": "100m", "volumes": [{"name": "d", "gcePersistentDisk": {"pdName": tag}}]}
    holder_pod(plot, tag, **fields)
    return fields


def _until_another_node(lack: Lack) -> SatisfiedWait:
    def wait(plot: Plot, tag: str) -> Maker:
        own_pod(plot, tag, **lack(plot, tag))
        labels = {"wait": tag, ZONE: tag}
        node = node_manifest(f"{tag}-n2", cpu="2", labels=labels)
        return lambda later: later.acts.append(acts.Join(at=later.now, node=node))

    wait.__name__ = f"_other_node_than{lack.__name__}"
    return wait


def _first_node_without_rival(plot: Plot, tag: str) -> Maker:
    """Let each node have a rival, so that nothing but anti-affinity keeps the pod away."""
    own_node(plot, tag)
    anywhere: dict[str, Any] = {
        "cpu": "100m",
        "node_selector": {},
        "tolerations": [{"operator": "Exists"}],
    }
    for number, node in enumerate(plot.standing):
        on = {"node_name": node["metadata"]["name"], "schedulerName": "other"}
        own_pod(plot, tag, f"{tag}-h{number}", labels={"app": tag}, **on, **anywhere)
    plot.now += 1.0
    own_pod(plot, tag, affinity=apart(tag), **anywhere)
    node = node_manifest(f"{tag}-n2", cpu="2")
    return lambda later: later.acts.append(acts.Join(at=later.now, node=node))


NEWCOMERS_ALONE: tuple[SatisfiedWait, ...] = (_first_node_without_rival,)
"""The newcomers that no other node may come before."""

NEWCOMERS: tuple[SatisfiedWait, ...] = tuple(
    _until_another_node(lack)
    for lack in (
        _tainted,
        _cordoned,
        _full,
        _port_taken,
        _with_rival,
        _without_friend,
        _without_zone,
        _disk_taken,
    )
)
"""The plugins that may turn a pod away from its first node, each with a node that comes later."""
