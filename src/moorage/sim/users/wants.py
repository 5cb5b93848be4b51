"""Pods that wait for one thing each, on a node of their own; later somebody gives them this thing.

Each maker sets the scene and returns the gift. A scheduler that misses the gift lets the pod wait
for ever, or until the next flush of pods that nothing woke. So each way in which an event can wake
a pod has an entry here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moorage.sim import acts
from moorage.sim.users.plot import HOST, ZONE, Maker, Plot
from moorage.testing.builders import node_manifest, pod_manifest

Want = Callable[[Plot, str], Maker]
"""Sets the scene under a name that is its own, and returns the gift."""


def own_node(plot: Plot, tag: str, **fields: Any) -> str:
    """Add a node at the start that only the pods of one want select; return its name."""
    labels = {"want": tag, ZONE: tag, **fields.pop("labels", {})}
    name = fields.pop("name", f"{tag}-n")
    plot.standing.append(node_manifest(name, cpu="2", labels=labels, **fields))
    return str(name)


def own_pod(plot: Plot, tag: str, name: str = "", **fields: Any) -> str:
    """Create a pod that selects the nodes of a want; return its name."""
    name = name or f"{tag}-p"
    fields.setdefault("cpu", "1500m")
    fields.setdefault("terminationGracePeriodSeconds", 1)
    fields.setdefault("node_selector", {"want": tag})
    plot.create(pod_manifest(name, memory="64Mi", **fields))
    plot.now += 0.3
    return name


def _holder(plot: Plot, tag: str, **fields: Any) -> str:
    """Create a pod that is on the node before the waiting one comes."""
    name = own_pod(plot, tag, f"{tag}-h", **fields)
    plot.now += 1.0
    return name


def _taint_goes(plot: Plot, tag: str) -> Maker:
    node = own_node(plot, tag, taints=[{"key": "k", "value": "v", "effect": "NoSchedule"}])
    own_pod(plot, tag)
    return lambda later: later.patch("Node", node, {"spec": {"taints": None}}, namespace="")


def _toleration_comes(plot: Plot, tag: str) -> Maker:
    own_node(plot, tag, taints=[{"key": "k", "value": "v", "effect": "NoSchedule"}])
    pod = own_pod(plot, tag, tolerations=[{"key": "other", "operator": "Exists"}])
    both = [{"key": "other", "operator": "Exists"}, {"key": "k", "operator": "Exists"}]
    return lambda later: later.patch("Pod", pod, {"spec": {"tolerations": both}})


def _cordon_goes(plot: Plot, tag: str) -> Maker:
    node = own_node(plot, tag, unschedulable=True)
    own_pod(plot, tag)
    return lambda later: later.patch("Node", node, {"spec": {"unschedulable": None}}, namespace="")


def _label_comes(plot: Plot, tag: str) -> Maker:
    node = own_node(plot, tag)
    own_pod(plot, tag, node_selector={"want": tag, "ready-for": tag})
    changes = {"metadata": {"labels": {"ready-for": tag}}}
    return lambda later: later.patch("Node", node, changes, namespace="")


def _label_goes(plot: Plot, tag: str) -> Maker:
    node = own_node(plot, tag, labels={"busy": "5"})
    expression = plot.rng.choice(
        (
            {"key": "busy", "operator": "DoesNotExist"},
            {"key": "busy", "operator": "NotIn", "values": ["5"]},
            {"key": "free", "operator": "Gt", "values": ["3"]},
            {"key": "free", "operator": "Exists"},
        )
    )
    required = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    own_pod(plot, tag, affinity=affinity)
    changes = {"metadata": {"labels": {"busy": None, "free": "4"}}}
    return lambda later: later.patch("Node", node, changes, namespace="")


def _node_comes(plot: Plot, tag: str) -> Maker:
    own_pod(plot, tag)
    node = node_manifest(f"{tag}-n", cpu="2", labels={"want": tag})
    return lambda later: later.made.append(acts.Join(at=later.now, node=node))


def _room_comes(plot: Plot, tag: str) -> Maker:
    own_node(plot, tag)
    holder = _holder(plot, tag)
    own_pod(plot, tag)
    return lambda later: later.delete("Pod", holder)


def _holder_ends(plot: Plot, tag: str) -> Maker:
    """Let the holder of the room succeed, which frees the room without a deletion."""
    own_node(plot, tag)
    holder = _holder(plot, tag)
    own_pod(plot, tag)
    done = {"status": {"phase": "Succeeded"}}
    return lambda later: later.patch("Pod", holder, done, subresource="status")


def _slot_comes(plot: Plot, tag: str) -> Maker:
    own_node(plot, tag, pods="1")
    holder = _holder(plot, tag, cpu="100m")
    own_pod(plot, tag, cpu="100m")
    return lambda later: later.delete("Pod", holder)


def _resource_comes(plot: Plot, tag: str) -> Maker:
    node = own_node(plot, tag)
    pod = pod_manifest(f"{tag}-p", cpu="100m", node_selector={"want": tag})
    amounts = {"example.com/thing": "1"}
    pod["spec"]["containers"][0]["resources"] = {"requests": amounts, "limits": amounts}
    plot.create(pod)
    status = {"status": {"capacity": amounts, "allocatable": amounts}}
    return lambda later: later.patch("Node", node, status, namespace="", subresource="status")


def _port_comes(plot: Plot, tag: str) -> Maker:
    own_node(plot, tag)
    holder = _holder(plot, tag, cpu="100m", host_ports=[7070])
    own_pod(plot, tag, cpu="100m", host_ports=[7070])
    return lambda later: later.delete("Pod", holder)


def _term(tag: str, key: str = HOST) -> dict[str, Any]:
    return {"labelSelector": {"matchLabels": {"app": tag}}, "topologyKey": key}


def _apart(tag: str) -> dict[str, Any]:
    return {
        "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [_term(tag)]},
    }


def _near(tag: str) -> dict[str, Any]:
    term = _term(tag, ZONE)
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def _rival_goes(plot: Plot, tag: str) -> Maker:
    """Anti-affinity of the waiting pod, or of the pod that is there."""
    own_node(plot, tag)
    fields: dict[str, Any] = {"cpu": "100m", "labels": {"app": tag}}
    choosy = {**fields, "affinity": _apart(tag)}
    first, second = plot.rng.choice(((fields, choosy), (choosy, fields)))
    holder = _holder(plot, tag, **first)
    own_pod(plot, tag, **second)
    return lambda later: later.delete("Pod", holder)


def _rival_relabelled(plot: Plot, tag: str) -> Maker:
    own_node(plot, tag)
    holder = _holder(plot, tag, cpu="100m", labels={"app": tag})
    own_pod(plot, tag, cpu="100m", affinity=_apart(tag))
    return lambda later: later.patch("Pod", holder, {"metadata": {"labels": {"app": "no-more"}}})


def _friend_comes(plot: Plot, tag: str) -> Maker:
    own_node(plot, tag)
    own_pod(plot, tag, cpu="100m", affinity=_near(tag))
    return lambda later: _friend(later, tag)


def _friend(plot: Plot, tag: str) -> None:
    own_pod(plot, tag, f"{tag}-f", cpu="100m", labels={"app": tag})


def _friend_relabelled(plot: Plot, tag: str) -> Maker:
    own_node(plot, tag)
    holder = _holder(plot, tag, cpu="100m", labels={"app": "not-yet"})
    own_pod(plot, tag, cpu="100m", affinity=_near(tag))
    return lambda later: later.patch("Pod", holder, {"metadata": {"labels": {"app": tag}}})


def _friend_gets_zone(plot: Plot, tag: str) -> Maker:
    """Put the friend's node into the zone of the node that the waiting pod selects."""
    own_node(plot, tag)
    far = own_node(plot, f"{tag}-far")
    own_pod(plot, f"{tag}-far", cpu="100m", labels={"app": tag})
    plot.now += 1.0
    own_pod(plot, tag, cpu="100m", affinity=_near(tag))
    return lambda later: later.patch(
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


def _balance_comes(plot: Plot, tag: str) -> Maker:
    """One zone has a pod more; the other is full. The pod that is too many goes."""
    own_node(plot, tag, name=f"{tag}-a", labels={ZONE: f"{tag}-a"})
    own_node(plot, tag, name=f"{tag}-b", labels={ZONE: f"{tag}-b"}, unschedulable=True)
    fields: dict[str, Any] = {"cpu": "100m", "labels": {"app": tag}}
    holder = _holder(plot, tag, **fields)
    own_pod(plot, tag, topologySpreadConstraints=_evenly(tag), **fields)
    return plot.rng.choice(
        (
            lambda later: later.delete("Pod", holder),
            lambda later: later.patch("Pod", holder, {"metadata": {"labels": {"app": "other"}}}),
            lambda later: _forced(later, tag, f"{tag}-b"),
            lambda later: later.delete("Node", f"{tag}-b", namespace=""),
        )
    )


def _forced(plot: Plot, tag: str, node: str) -> None:
    """Another scheduler puts a pod on a node, whatever our scheduler thinks of it."""
    fields = {"cpu": "100m", "labels": {"app": tag}, "node_name": node}
    own_pod(plot, tag, f"{tag}-f", schedulerName="other", **fields)


def _gate_opens(plot: Plot, tag: str) -> Maker:
    own_node(plot, tag)
    pod = own_pod(plot, tag, gates=["example.com/one"])
    return lambda later: later.patch("Pod", pod, {"spec": {"schedulingGates": []}})


def _victim(plot: Plot, tag: str) -> Maker:
    """Let a more important pod make room for itself."""
    own_node(plot, tag)
    _holder(plot, tag, priorityClassName="low")
    own_pod(plot, tag, priorityClassName=plot.rng.choice(("high", "top")))
    return lambda later: None


def _nominated_goes(plot: Plot, tag: str) -> Maker:
    """Delete the preemptor while its victim ends, which leaves the room to a lesser pod."""
    own_node(plot, tag)
    _holder(plot, tag, priorityClassName="low", terminationGracePeriodSeconds=25)
    preemptor = own_pod(plot, tag, f"{tag}-top", priorityClassName="top")
    own_pod(plot, tag)
    return lambda later: later.delete("Pod", preemptor)


def _never_preempts(plot: Plot, tag: str) -> Maker:
    own_node(plot, tag)
    holder = _holder(plot, tag, priorityClassName="low")
    own_pod(plot, tag, priorityClassName="polite")
    return lambda later: later.delete("Pod", holder)


WANTS: tuple[Want, ...] = (
    _taint_goes,
    _toleration_comes,
    _cordon_goes,
    _label_comes,
    _label_goes,
    _node_comes,
    _room_comes,
    _holder_ends,
    _slot_comes,
    _resource_comes,
    _port_comes,
    _rival_goes,
    _rival_relabelled,
    _friend_comes,
    _friend_relabelled,
    _friend_gets_zone,
    _balance_comes,
    _gate_opens,
    _victim,
    _nominated_goes,
    _never_preempts,
)
"""The things that a pod can wait for, those of volumes, devices and groups left out."""
