"""Pods that wait on a node of their own, until a second node comes that has what the first lacks.

Each plugin that turns a pod away has to hear of a new node. Here the first node lacks something for
each of them.
"""

from __future__ import annotations

from typing import Any

from moorage_lab.fault_sim.situations.neighbours import apart, evenly, near
from moorage_lab.fault_sim.situations.situation import Situation, SituationTable, Steps, taint
from moorage_lab.fault_sim.users.plot import ZONE

WAITS = SituationTable()
"""The plugins that may turn a pod away from its first node, each with a node that comes later."""

ALONE = SituationTable(disturbs=True)
"""The nodes that no other node may come before."""


def _wait_for_second_node(s: Situation, **fields: Any) -> Steps:
    s.create_pod(**fields)
    yield
    s.join_node("n2", labels={"wait": s.tag, ZONE: s.tag})


@WAITS.declare()
def other_node_than_tainted(s: Situation) -> Steps:
    s.create_node(taints=[taint()])
    yield from _wait_for_second_node(s)


@WAITS.declare()
def other_node_than_cordoned(s: Situation) -> Steps:
    s.create_node(unschedulable=True)
    yield from _wait_for_second_node(s)


@WAITS.declare()
def other_node_than_full(s: Situation) -> Steps:
    s.create_node()
    s.create_holder()
    yield from _wait_for_second_node(s)


@WAITS.declare()
def other_node_than_port_taken(s: Situation) -> Steps:
    s.create_node()
    s.create_holder(cpu="100m", host_ports=[7070])
    yield from _wait_for_second_node(s, cpu="100m", host_ports=[7070])


@WAITS.declare()
def other_node_than_with_rival(s: Situation) -> Steps:
    s.create_node()
    s.create_holder(cpu="100m", labels={"app": s.tag})
    yield from _wait_for_second_node(s, cpu="100m", affinity=apart(s.tag))


@WAITS.declare()
def other_node_than_without_friend(s: Situation) -> Steps:
    """Put the friend into the zone that the second node will be in."""
    s.create_node(labels={ZONE: f"{s.tag}-old"})
    far = s.part("far")
    far.create_node(labels={ZONE: s.tag})
    far.create_holder(cpu="100m", labels={"app": s.tag})
    yield from _wait_for_second_node(s, cpu="100m", affinity=near(s.tag))


@WAITS.declare()
def other_node_than_without_zone(s: Situation) -> Steps:
    s.create_node(labels={ZONE: None})
    fields: dict[str, Any] = {"cpu": "100m", "labels": {"app": s.tag}}
    yield from _wait_for_second_node(s, **fields, topologySpreadConstraints=evenly(s.tag))


@WAITS.declare()
def other_node_than_disk_taken(s: Situation) -> Steps:
    s.create_node()
    disk = {"name": "d", "gcePersistentDisk": {"pdName": s.tag}}
    s.create_holder(cpu="100m", volumes=[disk])
    yield from _wait_for_second_node(s, cpu="100m", volumes=[disk])


@ALONE.declare()
def first_node_without_rival(s: Situation) -> Steps:
    """Let each node have a rival, so that nothing but anti-affinity keeps the pod away."""
    s.create_node()
    anywhere: dict[str, Any] = {"cpu": "100m", "node_selector": {}}
    anywhere["tolerations"] = [{"operator": "Exists"}]
    for number, node in enumerate(s.plot.standing):
        name = node["metadata"]["name"]
        s.create_bound_pod(f"h{number}", name, labels={"app": s.tag}, **anywhere)
    s.wait_seconds(1.0)
    s.create_pod(affinity=apart(s.tag), **anywhere)
    yield
    s.join_node("n2", labels={})
