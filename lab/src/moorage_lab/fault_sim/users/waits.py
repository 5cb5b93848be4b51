"""Pods that wait for one thing each, on a node of their own; later somebody gives them this thing.

Each maker sets the scene and returns `enable_binding`, the later part. A scheduler that misses it
lets the pod wait for ever, or until the next flush of pods that nothing woke. So each way in which
an event can wake a pod has an entry here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moorage.snapshot.shape import USER_NAMESPACES_HOST_NETWORK
from moorage_lab.fault_sim import acts
from moorage_lab.fault_sim.users.plot import ZONE, Maker, Plot
from moorage_sandbox.testing.builders import node_manifest, pod_manifest

SatisfiedWait = Callable[[Plot, str], Maker]
"""Sets the scene under a name that is its own, and returns the acts that let its pods be bound."""


def own_node(plot: Plot, tag: str, **fields: Any) -> str:
    """Add a node at the start that only the pods of one wait select; return its name."""
    labels = {"wait": tag, ZONE: tag, **fields.pop("labels", {})}
    name = fields.pop("name", f"{tag}-n")
    plot.standing.append(node_manifest(name, cpu="2", labels=labels, **fields))
    return str(name)


def own_pod(plot: Plot, tag: str, name: str = "", **fields: Any) -> str:
    """Create a pod that selects the nodes of a wait; return its name."""
    name = name or f"{tag}-p"
    fields.setdefault("cpu", "1500m")
    fields.setdefault("terminationGracePeriodSeconds", 1)
    fields.setdefault("node_selector", {"wait": tag})
    plot.add_creation(pod_manifest(name, memory="64Mi", **fields))
    plot.now += 0.3
    return name


def holder_pod(plot: Plot, tag: str, **fields: Any) -> str:
    """Create a pod that is on the node before the waiting one comes."""
    name = own_pod(plot, tag, f"{tag}-h", **fields)
    plot.now += 1.0
    return name


def stops_within(seconds: int) -> dict[str, Any]:
    """Return the fields of a pod that takes all of its grace period to stop."""
    slow = {"moorage.dev/stop-seconds": str(seconds)}
    return {"terminationGracePeriodSeconds": seconds, "annotations": slow}


def _taint(value: str = "v", effect: str = "NoSchedule", key: str = "k") -> dict[str, str]:
    return {"key": key, "value": value, "effect": effect}


def _taint_goes(plot: Plot, tag: str) -> Maker:
    node = own_node(plot, tag, taints=[_taint()])
    own_pod(plot, tag)
    return lambda later: later.add_change("Node", node, {"spec": {"taints": None}}, namespace="")


def _taint_softens(plot: Plot, tag: str) -> Maker:
    """Replace a taint by one that is only a wish, or leave one of two that is tolerated."""
    hard = plot.rng.choice(("NoSchedule", "NoExecute"))
    node = own_node(plot, tag, taints=[_taint(effect=hard), _taint(key="mine")])
    own_pod(plot, tag, tolerations=[{"key": "mine", "operator": "Exists"}])
    left = [*plot.rng.choice(([], [_taint(effect="PreferNoSchedule")])), _taint(key="mine")]
    return lambda later: later.add_change("Node", node, {"spec": {"taints": left}}, namespace="")


def _taint_changes(plot: Plot, tag: str) -> Maker:
    """Give a taint the value that the pod tolerates."""
    node = own_node(plot, tag, taints=[_taint("other")])
    own_pod(plot, tag, tolerations=[{"key": "k", "operator": "Equal", "value": "v"}])
    return lambda later: later.add_change(
        "Node", node, {"spec": {"taints": [_taint()]}}, namespace=""
    )


def _toleration_comes(plot: Plot, tag: str) -> Maker:
    own_node(plot, tag, taints=[_taint()])
    pod = own_pod(plot, tag, tolerations=[{"key": "other", "operator": "Exists"}])
    both = [{"key": "other", "operator": "Exists"}, {"key": "k", "operator": "Exists"}]
    return lambda later: later.add_change("Pod", pod, {"spec": {"tolerations": both}})


def _tolerates_under_other_label(plot: Plot, tag: str) -> Maker:
    """Let one update change several parts of the pod, one of which helps."""
    own_node(plot, tag, taints=[_taint()])
    pod = own_pod(plot, tag, labels={"app": tag})
    change = {
        "metadata": {"labels": {"app": f"{tag}-other"}},
        "spec": {"tolerations": [{"key": "k", "operator": "Exists"}]},
    }
    return lambda later: later.add_change("Pod", pod, change)


def _cordon_goes(plot: Plot, tag: str) -> Maker:
    node = own_node(plot, tag, unschedulable=True)
    own_pod(plot, tag)
    return lambda later: later.add_change(
        "Node", node, {"spec": {"unschedulable": None}}, namespace=""
    )


def _cordon_is_tolerated(plot: Plot, tag: str) -> Maker:
    own_node(plot, tag, unschedulable=True)
    pod = own_pod(plot, tag)
    cordon = {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}
    return lambda later: later.add_change("Pod", pod, {"spec": {"tolerations": [cordon]}})


def _cordon_goes_alone(plot: Plot, tag: str) -> Maker:
    """Take a cordon back before the node controller has put its taint on the node.

    The pod comes when every scheduler must know of the cordon.
    """
    seconds = plot.rng.uniform(30, 40)
    for fault in ("refused", "watch-silent"):
        strike = acts.Disturb(
            at=plot.now, process="controllers", fault=fault, rate=1.0, seconds=seconds
        )
        plot.acts.append(strike)
    plot.now += 1.0
    node = node_manifest(f"{tag}-n", cpu="2", labels={"wait": tag}, unschedulable=True)
    plot.acts.append(acts.Join(at=plot.now, node=node))
    plot.now += 10.0
    own_pod(plot, tag)
    plot.now += 3.0
    plot.add_change("Node", f"{tag}-n", {"spec": {"unschedulable": None}}, namespace="")
    return lambda later: None


def _label_comes(plot: Plot, tag: str) -> Maker:
    node = own_node(plot, tag)
    own_pod(plot, tag, node_selector={"wait": tag, "ready-for": tag})
    changes = {"metadata": {"labels": {"ready-for": tag}}}
    return lambda later: later.add_change("Node", node, changes, namespace="")


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
    return lambda later: later.add_change("Node", node, changes, namespace="")


def _node_comes(plot: Plot, tag: str) -> Maker:
    own_pod(plot, tag)
    node = node_manifest(f"{tag}-n", cpu="2", labels={"wait": tag})
    return lambda later: later.acts.append(acts.Join(at=later.now, node=node))


def _room_comes(plot: Plot, tag: str) -> Maker:
    own_node(plot, tag)
    holder = holder_pod(plot, tag)
    own_pod(plot, tag)
    return lambda later: later.add_deletion("Pod", holder)


def _holder_ends(plot: Plot, tag: str) -> Maker:
    """Let the holder of the room succeed, which frees the room without a deletion."""
    own_node(plot, tag)
    holder = holder_pod(plot, tag)
    own_pod(plot, tag)
    succeeded = {"status": {"phase": "Succeeded"}}
    return lambda later: later.add_change("Pod", holder, succeeded, subresource="status")


def _slot_comes(plot: Plot, tag: str) -> Maker:
    own_node(plot, tag, pods="1")
    holder = holder_pod(plot, tag, cpu="100m")
    own_pod(plot, tag, cpu="100m")
    return lambda later: later.add_deletion("Pod", holder)


def _resource_comes(plot: Plot, tag: str) -> Maker:
    node = own_node(plot, tag)
    pod = pod_manifest(f"{tag}-p", cpu="100m", node_selector={"wait": tag})
    amounts = {"example.com/thing": "1"}
    pod["spec"]["containers"][0]["resources"] = {"requests": amounts, "limits": amounts}
    plot.add_creation(pod)
    status = {"status": {"capacity": amounts, "allocatable": amounts}}
    return lambda later: later.add_change("Node", node, status, namespace="", subresource="status")


def _resource_comes_back(plot: Plot, tag: str) -> Maker:
    """Take a resource from the node before the pod comes, and give it back."""
    node = own_node(plot, tag, **{"example.com/thing": "1"})
    for part in ("capacity", "allocatable"):
        gone = {"status": {part: {"example.com/thing": None}}}
        plot.add_change("Node", node, gone, namespace="", subresource="status")
    plot.now += 3.0
    amounts = {"example.com/thing": "1"}
    pod = pod_manifest(f"{tag}-p", cpu="100m", node_selector={"wait": tag})
    pod["spec"]["containers"][0]["resources"] = {"requests": amounts, "limits": amounts}
    plot.add_creation(pod)
    status = {"status": {"capacity": amounts, "allocatable": amounts}}
    return lambda later: later.add_change("Node", node, status, namespace="", subresource="status")


def _resource_grows(plot: Plot, tag: str) -> Maker:
    """Wait for more of one resource that the node has, the others staying as they are."""
    resource, much = plot.rng.choice((("cpu", "6"), ("memory", "64Gi"), ("pods", "5")))
    node = own_node(plot, tag, pods="1")
    if resource == "pods":
        holder_pod(plot, tag, cpu="100m")
        own_pod(plot, tag, cpu="100m")
    else:
        pod = pod_manifest(f"{tag}-p", cpu="1", memory="1Gi", node_selector={"wait": tag})
        pod["spec"]["containers"][0]["resources"]["requests"][resource] = _HALF_OF[much]
        plot.add_creation(pod)
    status = {"status": {"capacity": {resource: much}, "allocatable": {resource: much}}}
    return lambda later: later.add_change("Node", node, status, namespace="", subresource="status")


_HALF_OF = {"6": "3", "64Gi": "32Gi"}


def _holder_shrinks(plot: Plot, tag: str) -> Maker:
    """Let the holder of the room ask for less, by a resize in place."""
    own_node(plot, tag)
    holder = holder_pod(plot, tag)
    own_pod(plot, tag)
    less = [{"name": "main", "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}]
    return lambda later: later.add_change(
        "Pod", holder, {"spec": {"containers": less}}, subresource="resize"
    )


def _asks_less(plot: Plot, tag: str) -> Maker:
    """Let the waiting pod itself ask for less."""
    own_node(plot, tag)
    pod = own_pod(plot, tag, cpu="3")
    less = [{"name": "main", "resources": {"requests": {"cpu": "1", "memory": "64Mi"}}}]
    return lambda later: later.add_change(
        "Pod", pod, {"spec": {"containers": less}}, subresource="resize"
    )


def _feature_comes(plot: Plot, tag: str) -> Maker:
    """Wait until the node says that it can run the pod in a namespace of users."""
    node = own_node(plot, tag)
    own_pod(plot, tag, hostNetwork=True, hostUsers=False)
    status = {"status": {"declaredFeatures": [USER_NAMESPACES_HOST_NETWORK]}}
    return lambda later: later.add_change("Node", node, status, namespace="", subresource="status")


def _pods_before_node(plot: Plot, tag: str) -> Maker:
    """Let a node come whose room is taken by a pod that has been bound to it before."""
    own_pod(plot, tag, f"{tag}-h", node_name=f"{tag}-n", schedulerName="other")
    plot.now += 1.0
    node = node_manifest(f"{tag}-n", cpu="2", labels={"wait": tag})
    plot.acts.append(acts.Join(at=plot.now, node=node))
    own_pod(plot, tag)
    return lambda later: later.add_deletion("Pod", f"{tag}-h")


def _port_comes(plot: Plot, tag: str) -> Maker:
    own_node(plot, tag)
    holder = holder_pod(plot, tag, cpu="100m", host_ports=[7070])
    own_pod(plot, tag, cpu="100m", host_ports=[7070])
    return lambda later: later.add_deletion("Pod", holder)


def _gate_opens(plot: Plot, tag: str) -> Maker:
    own_node(plot, tag)
    pod = own_pod(plot, tag, gates=["example.com/one"])
    return lambda later: later.add_change("Pod", pod, {"spec": {"schedulingGates": []}})


def _one_after_another(plot: Plot, tag: str) -> Maker:
    """Let pods come within milliseconds, and then nothing more."""
    own_node(plot, tag)

    def enable_binding(later: Plot) -> None:
        for number in range(4):
            own_pod(later, tag, f"{tag}-{number}", cpu="100m")
            later.now += later.rng.uniform(0, 0.06) - 0.3

    return enable_binding


def nodes_in_turn(plot: Plot, tag: str) -> Maker:
    """Let pods alike come one after another, each of which several nodes would take."""
    for number in range(3):
        own_node(plot, tag, name=f"{tag}-n{number}")

    def enable_binding(later: Plot) -> None:
        for number in range(5):
            own_pod(later, tag, f"{tag}-{number}", cpu="300m")

    return enable_binding


WAITS: tuple[SatisfiedWait, ...] = (
    _taint_goes,
    _taint_softens,
    _taint_changes,
    _toleration_comes,
    _tolerates_under_other_label,
    _cordon_goes,
    _cordon_is_tolerated,
    _label_comes,
    _label_goes,
    _node_comes,
    _room_comes,
    _holder_ends,
    _holder_shrinks,
    _asks_less,
    _feature_comes,
    _slot_comes,
    _resource_comes,
    _resource_comes_back,
    _resource_grows,
    _pods_before_node,
    _port_comes,
    _gate_opens,
    _one_after_another,
)
"""The things of a pod and its node that the pod can wait for."""


def _friend_in_labelled_namespace(plot: Plot, tag: str) -> Maker:
    """Let a friend come of whom no hint tells; after five minutes each pod is tried again."""
    own_node(plot, tag)
    space = {"apiVersion": "v1", "kind": "Namespace"}
    plot.add_creation({**space, "metadata": {"name": tag, "labels": {"of": tag}}})
    term = {
        "labelSelector": {"matchLabels": {"app": tag}},
        "topologyKey": ZONE,
        "namespaceSelector": {"matchLabels": {"of": tag}},
    }
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    own_pod(plot, tag, cpu="100m", affinity={"podAffinity": required})

    def enable_binding(later: Plot) -> None:
        own_pod(later, tag, f"{tag}-f", namespace=tag, cpu="100m", labels={"app": tag})
        later.now += FLUSH_SECONDS

    return enable_binding


FLUSH_SECONDS = 340.0
"""Longer than a pod waits before it is tried again without an event, with the round of the look."""

WAITS_ALONE: tuple[SatisfiedWait, ...] = (_cordon_goes_alone, _friend_in_labelled_namespace)
"""Things whose making disturbs other pods that wait."""
