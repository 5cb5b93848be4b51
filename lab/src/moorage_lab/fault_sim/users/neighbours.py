"""Pods that wait for other pods: for a friend that comes, a rival that goes, or the balance."""

from __future__ import annotations

from typing import Any

from moorage_lab.fault_sim.users.plot import HOST, ZONE, Maker, Plot
from moorage_lab.fault_sim.users.waits import SatisfiedWait, holder_pod, own_node, own_pod


def _term(tag: str, key: str = HOST) -> dict[str, Any]:
    return {"labelSelector": {"matchLabels": {"app": tag}}, "topologyKey": key}


def apart(tag: str, key: str = HOST) -> dict[str, Any]:
    """Return the affinity of a pod that keeps away from the pods of a wait."""
    term = _term(tag, key)
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def near(tag: str) -> dict[str, Any]:
    """Return the affinity of a pod that goes where a pod of a wait is."""
    term = _term(tag, ZONE)
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def _rival_goes(plot: Plot, tag: str) -> Maker:
    """Anti-affinity of the waiting pod."""
    own_node(plot, tag)
    holder = holder_pod(plot, tag, cpu="100m", labels={"app": tag})
    own_pod(plot, tag, cpu="100m", affinity=apart(tag))
    return lambda later: later.add_deletion("Pod", holder)


def _choosy_goes(plot: Plot, tag: str) -> Maker:
    """Anti-affinity of the pod that is there."""
    own_node(plot, tag)
    holder = holder_pod(plot, tag, cpu="100m", affinity=apart(tag))
    own_pod(plot, tag, cpu="100m", labels={"app": tag})
    return lambda later: later.add_deletion("Pod", holder)


def _rival_moves_away(plot: Plot, tag: str) -> Maker:
    """Let the rival's node leave the zone."""
    own_node(plot, tag)
    far = own_node(plot, f"{tag}-far", labels={ZONE: tag})
    own_pod(plot, f"{tag}-far", cpu="100m", labels={"app": tag})
    plot.now += 1.0
    own_pod(plot, tag, cpu="100m", affinity=apart(tag, ZONE))
    return lambda later: later.add_change(
        "Node", far, {"metadata": {"labels": {ZONE: f"{tag}-far"}}}, namespace=""
    )


def _choosy_moves_in(plot: Plot, tag: str) -> Maker:
    """Let the node of a pod that keeps others away come into the zone, before the pod comes."""
    own_node(plot, tag)
    far = own_node(plot, f"{tag}-far")
    holder = holder_pod(plot, f"{tag}-far", cpu="100m", affinity=apart(tag, ZONE))
    plot.add_change("Node", far, {"metadata": {"labels": {ZONE: tag}}}, namespace="")
    plot.now += 3.0
    own_pod(plot, tag, cpu="100m", labels={"app": tag})
    return lambda later: later.add_deletion("Pod", holder)


def _rival_relabelled(plot: Plot, tag: str) -> Maker:
    own_node(plot, tag)
    holder = holder_pod(plot, tag, cpu="100m", labels={"app": tag})
    own_pod(plot, tag, cpu="100m", affinity=apart(tag))
    return lambda later: later.add_change(
        "Pod", holder, {"metadata": {"labels": {"app": "no-more"}}}
    )


def _friend_comes(plot: Plot, tag: str) -> Maker:
    own_node(plot, tag)
    own_pod(plot, tag, cpu="100m", affinity=near(tag))
    return lambda later: _friend(later, tag)


def _friend(plot: Plot, tag: str) -> None:
    own_pod(plot, tag, f"{tag}-f", cpu="100m", labels={"app": tag})


def _friend_relabelled(plot: Plot, tag: str) -> Maker:
    own_node(plot, tag)
    holder = holder_pod(plot, tag, cpu="100m", labels={"app": "not-yet"})
    own_pod(plot, tag, cpu="100m", affinity=near(tag))
    return lambda later: later.add_change("Pod", holder, {"metadata": {"labels": {"app": tag}}})


def _friend_gets_zone(plot: Plot, tag: str) -> Maker:
    """Put the friend's node into the zone of the node that the waiting pod selects."""
    own_node(plot, tag)
    far = own_node(plot, f"{tag}-far")
    own_pod(plot, f"{tag}-far", cpu="100m", labels={"app": tag})
    plot.now += 1.0
    own_pod(plot, tag, cpu="100m", affinity=near(tag))
    return lambda later: later.add_change(
        "Node", far, {"metadata": {"labels": {ZONE: tag}}}, namespace=""
    )


def _evenly(tag: str) -> list[dict[str, Any]]:
    return [
        {
            "maxSkew": 1,
            "topologyKey": ZONE,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": tag}},
        }
    ]


def _uneven(plot: Plot, tag: str, **fields: Any) -> tuple[str, dict[str, Any]]:
    """Let one zone have a pod more, the other having no room; return that pod, and the fields."""
    own_node(plot, tag, name=f"{tag}-a", labels={ZONE: f"{tag}-a"})
    own_node(plot, tag, name=f"{tag}-b", labels={ZONE: f"{tag}-b"}, unschedulable=True)
    pod_fields: dict[str, Any] = {"cpu": "100m", "labels": {"app": tag}}
    holder = holder_pod(plot, tag, **pod_fields)
    own_pod(plot, tag, topologySpreadConstraints=_evenly(tag), **pod_fields, **fields)
    return holder, pod_fields


def _surplus_goes(plot: Plot, tag: str) -> Maker:
    holder, _ = _uneven(plot, tag)
    return lambda later: later.add_deletion("Pod", holder)


def _surplus_relabelled(plot: Plot, tag: str) -> Maker:
    holder, _ = _uneven(plot, tag)
    return lambda later: later.add_change("Pod", holder, {"metadata": {"labels": {"app": "other"}}})


def _zone_is_tainted(plot: Plot, tag: str) -> Maker:
    """Take the zone without a pod out of the count, by a taint that the constraint honours."""
    for zone in (f"{tag}-a", f"{tag}-b"):
        own_node(plot, tag, name=zone, labels={ZONE: zone})
    own_pod(plot, tag, f"{tag}-full", node_name=f"{tag}-b", schedulerName="other")
    pod_fields: dict[str, Any] = {"labels": {"app": tag}}
    on_a = {"kubernetes.io/hostname": f"{tag}-a"}
    holder_pod(plot, tag, cpu="100m", node_selector=on_a, **pod_fields)
    spread = [{**_evenly(tag)[0], "nodeTaintsPolicy": "Honor"}]
    own_pod(plot, tag, cpu="1", topologySpreadConstraints=spread, **pod_fields)
    taints = [{"key": "k", "value": "v", "effect": "NoSchedule"}]
    return lambda later: later.add_change(
        "Node", f"{tag}-b", {"spec": {"taints": taints}}, namespace=""
    )


def _zone_is_tainted_alone(plot: Plot, tag: str) -> Maker:
    """Take a node out of the counts of two constraints, where nothing else keeps the pod away.

    Each constraint refuses one of two nodes, and every other node has no such label.
    """
    keys, kinds = (f"{tag}/zone", f"{tag}/rack"), ("app", "kind")
    for each, kind in zip("ab", kinds, strict=True):
        own_node(plot, tag, name=f"{tag}-{each}", labels=dict.fromkeys(keys, each))
        on = {"node_name": f"{tag}-{each}", "schedulerName": "other"}
        own_pod(plot, tag, f"{tag}-h{each}", cpu="100m", labels={kind: tag}, **on)
    plot.now += 1.0
    spread = [
        {
            **_evenly(tag)[0],
            "topologyKey": key,
            "labelSelector": {"matchLabels": {kind: tag}},
            "nodeTaintsPolicy": "Honor",
        }
        for key, kind in zip(keys, kinds, strict=True)
    ]
    fields: dict[str, Any] = {"cpu": "100m", "labels": dict.fromkeys(kinds, tag)}
    own_pod(plot, tag, node_selector={}, topologySpreadConstraints=spread, **fields)
    taints = [{"key": "k", "value": "v", "effect": "NoSchedule"}]
    return lambda later: later.add_change(
        "Node", f"{tag}-b", {"spec": {"taints": taints}}, namespace=""
    )


NEIGHBOURS_ALONE: tuple[SatisfiedWait, ...] = (_zone_is_tainted_alone,)
"""The things of other pods that are not to be disturbed."""


def _balance_comes(plot: Plot, tag: str) -> Maker:
    _uneven(plot, tag)
    return lambda later: _forced(later, tag, f"{tag}-b")


def _zone_goes(plot: Plot, tag: str) -> Maker:
    """Let the zone without a pod vanish with its node."""
    _uneven(plot, tag)
    return lambda later: later.add_deletion("Node", f"{tag}-b", namespace="")


def _zone_merges(plot: Plot, tag: str) -> Maker:
    """Let the node without a pod lose its zone, or join the zone that has a pod."""
    _uneven(plot, tag)
    labels = {ZONE: plot.rng.choice((None, f"{tag}-a"))}
    return lambda later: later.add_change(
        "Node", f"{tag}-b", {"metadata": {"labels": labels}}, namespace=""
    )


def _zone_comes(plot: Plot, tag: str) -> Maker:
    """Wait for a node with a zone at all."""
    own_node(plot, tag, name=f"{tag}-a")
    spread = _evenly(tag)
    spread[0]["topologyKey"] = f"{tag}/rack"
    own_pod(plot, tag, cpu="100m", labels={"app": tag}, topologySpreadConstraints=spread)
    changes = {"metadata": {"labels": {f"{tag}/rack": "one"}}}
    return lambda later: later.add_change("Node", f"{tag}-a", changes, namespace="")


def _no_longer_counted(plot: Plot, tag: str) -> Maker:
    """Let the waiting pod itself lose the label that its constraint counts."""
    _uneven(plot, tag)
    return lambda later: later.add_change(
        "Pod", f"{tag}-p", {"metadata": {"labels": {"app": "other"}}}
    )


def _forced(plot: Plot, tag: str, node: str) -> None:
    """Another scheduler puts a pod on a node, whatever our scheduler thinks of it."""
    fields = {"cpu": "100m", "labels": {"app": tag}, "node_name": node}
    own_pod(plot, tag, f"{tag}-f", schedulerName="other", **fields)


NEIGHBOURS: tuple[SatisfiedWait, ...] = (
    _rival_goes,
    _choosy_goes,
    _choosy_moves_in,
    _rival_relabelled,
    _rival_moves_away,
    _friend_comes,
    _friend_relabelled,
    _friend_gets_zone,
    _surplus_goes,
    _surplus_relabelled,
    _balance_comes,
    _zone_is_tainted,
    _zone_goes,
    _zone_merges,
    _zone_comes,
    _no_longer_counted,
)
"""The things of other pods that a pod can wait for."""
