"""Pods that wait for other pods: for a friend that comes, a rival that goes, or the balance."""

from __future__ import annotations

from typing import Any

from moorage_lab.fault_sim.situations.situation import Situation, SituationTable, Steps, taint
from moorage_lab.fault_sim.users.plot import HOST, ZONE

WAITS = SituationTable()
"""The things of other pods that a pod can wait for."""

ALONE = SituationTable(disturbs=True)
"""The things of other pods that are not to be disturbed."""


def _term(tag: str, key: str = HOST) -> dict[str, Any]:
    return {"labelSelector": {"matchLabels": {"app": tag}}, "topologyKey": key}


def apart(tag: str, key: str = HOST) -> dict[str, Any]:
    """Return the affinity of a pod that keeps away from the pods of a situation."""
    term = _term(tag, key)
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def near(tag: str) -> dict[str, Any]:
    """Return the affinity of a pod that goes where a pod of a situation is."""
    term = _term(tag, ZONE)
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def evenly(tag: str, **fields: Any) -> list[dict[str, Any]]:
    """Return the constraint of a pod that spreads with the pods of a situation over the zones."""
    constraint = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": tag}},
    }
    return [constraint | fields]


@WAITS.declare()
def rival_goes(s: Situation) -> Steps:
    """Anti-affinity of the waiting pod."""
    s.create_node()
    holder = s.create_holder(cpu="100m", labels={"app": s.tag})
    s.create_pod(cpu="100m", affinity=apart(s.tag))
    yield
    s.delete_pod(holder)


@WAITS.declare()
def choosy_goes(s: Situation) -> Steps:
    """Anti-affinity of the pod that is there."""
    s.create_node()
    holder = s.create_holder(cpu="100m", affinity=apart(s.tag))
    s.create_pod(cpu="100m", labels={"app": s.tag})
    yield
    s.delete_pod(holder)


@WAITS.declare()
def choosy_moves_in(s: Situation) -> Steps:
    """Let the node of a pod that keeps others away come into the zone, before the pod comes."""
    s.create_node()
    far = s.part("far")
    node = far.create_node()
    holder = far.create_holder(cpu="100m", affinity=apart(s.tag, ZONE))
    s.label_node(node, {ZONE: s.tag})
    s.wait_seconds(3.0)
    s.create_pod(cpu="100m", labels={"app": s.tag})
    yield
    s.delete_pod(holder)


@WAITS.declare()
def rival_relabelled(s: Situation) -> Steps:
    s.create_node()
    holder = s.create_holder(cpu="100m", labels={"app": s.tag})
    s.create_pod(cpu="100m", affinity=apart(s.tag))
    yield
    s.label_pod(holder, {"app": "no-more"})


@WAITS.declare()
def rival_moves_away(s: Situation) -> Steps:
    """Let the rival's node leave the zone."""
    s.create_node()
    far = s.part("far")
    node = far.create_node(labels={ZONE: s.tag})
    far.create_pod(cpu="100m", labels={"app": s.tag})
    s.wait_seconds(1.0)
    s.create_pod(cpu="100m", affinity=apart(s.tag, ZONE))
    yield
    s.label_node(node, {ZONE: far.tag})


@WAITS.declare(binds=("p", "f"))
def friend_comes(s: Situation) -> Steps:
    s.create_node()
    s.create_pod(cpu="100m", affinity=near(s.tag))
    yield
    s.create_pod("f", cpu="100m", labels={"app": s.tag})


@WAITS.declare()
def friend_relabelled(s: Situation) -> Steps:
    s.create_node()
    holder = s.create_holder(cpu="100m", labels={"app": "not-yet"})
    s.create_pod(cpu="100m", affinity=near(s.tag))
    yield
    s.label_pod(holder, {"app": s.tag})


@WAITS.declare()
def friend_gets_zone(s: Situation) -> Steps:
    """Put the friend's node into the zone of the node that the waiting pod selects."""
    s.create_node()
    far = s.part("far")
    node = far.create_node()
    far.create_pod(cpu="100m", labels={"app": s.tag})
    s.wait_seconds(1.0)
    s.create_pod(cpu="100m", affinity=near(s.tag))
    yield
    s.label_node(node, {ZONE: s.tag})


def _create_uneven(s: Situation) -> str:
    """Let zone a have a pod more, zone b having no room; return that pod."""
    a, b = s.object_name("a"), s.object_name("b")
    s.create_node("a", labels={ZONE: a})
    s.create_node("b", labels={ZONE: b}, unschedulable=True)
    holder = s.create_holder(cpu="100m", labels={"app": s.tag})
    s.create_pod(topologySpreadConstraints=evenly(s.tag), cpu="100m", labels={"app": s.tag})
    return holder


@WAITS.declare()
def surplus_goes(s: Situation) -> Steps:
    holder = _create_uneven(s)
    yield
    s.delete_pod(holder)


@WAITS.declare()
def surplus_relabelled(s: Situation) -> Steps:
    holder = _create_uneven(s)
    yield
    s.label_pod(holder, {"app": "other"})


@WAITS.declare()
def balance_comes(s: Situation) -> Steps:
    """Let another scheduler put a pod on zone b, whatever our scheduler thinks of it."""
    _create_uneven(s)
    yield
    s.create_bound_pod("f", s.object_name("b"), cpu="100m", labels={"app": s.tag})


@WAITS.declare()
def zone_is_tainted(s: Situation) -> Steps:
    """Take the zone without a pod out of the count, by a taint that the constraint honours."""
    a, b = (s.object_name(each) for each in "ab")
    for each in "ab":
        s.create_node(each, labels={ZONE: s.object_name(each)})
    s.create_bound_pod("full", b)
    labels = {"app": s.tag}
    s.create_holder(cpu="100m", node_selector={"kubernetes.io/hostname": a}, labels=labels)
    spread = evenly(s.tag, nodeTaintsPolicy="Honor")
    s.create_pod(cpu="1", topologySpreadConstraints=spread, labels=labels)
    yield
    s.change_node(b, spec={"taints": [taint()]})


@WAITS.declare()
def zone_goes(s: Situation) -> Steps:
    """Let the zone without a pod vanish with its node."""
    _create_uneven(s)
    yield
    s.delete_object("Node", s.object_name("b"))


@WAITS.declare()
def zone_merges(s: Situation) -> Steps:
    """Let the node without a pod lose its zone, or join the zone that has a pod."""
    _create_uneven(s)
    zone = s.rng.choice((None, s.object_name("a")))
    yield
    s.label_node(s.object_name("b"), {ZONE: zone})


@WAITS.declare()
def zone_comes(s: Situation) -> Steps:
    """Wait for a node with a zone at all."""
    node, rack = s.create_node("a"), f"{s.tag}/rack"
    spread = evenly(s.tag, topologyKey=rack)
    s.create_pod(cpu="100m", labels={"app": s.tag}, topologySpreadConstraints=spread)
    yield
    s.label_node(node, {rack: "one"})


@WAITS.declare()
def no_longer_counted(s: Situation) -> Steps:
    """Let the waiting pod itself lose the label that its constraint counts."""
    _create_uneven(s)
    yield
    s.label_pod(s.object_name("p"), {"app": "other"})


@ALONE.declare()
def zone_is_tainted_alone(s: Situation) -> Steps:
    """Take a node out of the counts of two constraints, where nothing else keeps the pod away.

    Each constraint refuses one of two nodes, and every other node has no such label.
    """
    keys, kinds = (f"{s.tag}/zone", f"{s.tag}/rack"), ("app", "kind")
    for each, kind in zip("ab", kinds, strict=True):
        node = s.create_node(each, labels=dict.fromkeys(keys, each))
        s.create_bound_pod(f"h{each}", node, cpu="100m", labels={kind: s.tag})
    s.wait_seconds(1.0)
    spread: list[dict[str, Any]] = []
    for key, kind in zip(keys, kinds, strict=True):
        selector = {"matchLabels": {kind: s.tag}}
        spread += evenly(s.tag, topologyKey=key, labelSelector=selector, nodeTaintsPolicy="Honor")
    fields: dict[str, Any] = {"cpu": "100m", "labels": dict.fromkeys(kinds, s.tag)}
    s.create_pod(node_selector={}, topologySpreadConstraints=spread, **fields)
    yield
    s.change_node(s.object_name("b"), spec={"taints": [taint()]})
