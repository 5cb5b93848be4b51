"""Pods that wait for one thing of their node, of themselves, or of the pod that holds the room."""

from __future__ import annotations

from moorage.snapshot.shape import USER_NAMESPACES_HOST_NETWORK
from moorage_lab.fault_sim.situations.situation import (
    Situation,
    SituationTable,
    Steps,
    node_affinity,
    taint,
    tolerates,
)
from moorage_lab.fault_sim.users.plot import ZONE

WAITS = SituationTable()
"""The things of a pod and its node that the pod can wait for."""

ALONE = SituationTable(disturbs=True)
"""Things whose making disturbs other pods that wait."""

UNSCORED = SituationTable()
"""Pods that several nodes would take, where the first one ends the search."""

FLUSH_SECONDS = 340.0
"""Longer than a pod waits before it is tried again without an event, with the round of the look."""


@WAITS.declare()
def taint_goes(s: Situation) -> Steps:
    node = s.create_node(taints=[taint()])
    s.create_pod()
    yield
    s.change_node(node, spec={"taints": None})


@WAITS.declare()
def taint_softens(s: Situation) -> Steps:
    """Replace a taint by one that is only a wish, or leave one of two that is tolerated."""
    hard = s.rng.choice(("NoSchedule", "NoExecute"))
    node = s.create_node(taints=[taint(effect=hard), taint(key="mine")])
    s.create_pod(tolerations=tolerates("mine"))
    left = [*s.rng.choice(([], [taint(effect="PreferNoSchedule")])), taint(key="mine")]
    yield
    s.change_node(node, spec={"taints": left})


@WAITS.declare()
def taint_changes(s: Situation) -> Steps:
    """Give a taint the value that the pod tolerates."""
    node = s.create_node(taints=[taint("other")])
    s.create_pod(tolerations=[{"key": "k", "operator": "Equal", "value": "v"}])
    yield
    s.change_node(node, spec={"taints": [taint()]})


@WAITS.declare()
def toleration_comes(s: Situation) -> Steps:
    s.create_node(taints=[taint()])
    pod = s.create_pod(tolerations=tolerates("other"))
    yield
    s.change_pod(pod, spec={"tolerations": tolerates("other", "k")})


@WAITS.declare()
def tolerates_under_other_label(s: Situation) -> Steps:
    """Let one update change several parts of the pod, one of which helps."""
    s.create_node(taints=[taint()])
    pod = s.create_pod(labels={"app": s.tag})
    yield
    labels = {"app": f"{s.tag}-other"}
    s.change_pod(pod, metadata={"labels": labels}, spec={"tolerations": tolerates("k")})


@WAITS.declare()
def cordon_goes(s: Situation) -> Steps:
    node = s.create_node(unschedulable=True)
    s.create_pod()
    yield
    s.change_node(node, spec={"unschedulable": None})


@WAITS.declare()
def cordon_is_tolerated(s: Situation) -> Steps:
    s.create_node(unschedulable=True)
    pod = s.create_pod()
    yield
    s.change_pod(pod, spec={"tolerations": tolerates("node.kubernetes.io/unschedulable")})


@WAITS.declare()
def label_comes(s: Situation) -> Steps:
    node = s.create_node()
    s.create_pod(node_selector={"wait": s.tag, "ready-for": s.tag})
    yield
    s.label_node(node, {"ready-for": s.tag})


@WAITS.declare()
def label_goes(s: Situation) -> Steps:
    node = s.create_node(labels={"busy": "5"})
    expression = s.rng.choice(
        (
            {"key": "busy", "operator": "DoesNotExist"},
            {"key": "busy", "operator": "NotIn", "values": ["5"]},
            {"key": "free", "operator": "Gt", "values": ["3"]},
            {"key": "free", "operator": "Exists"},
        )
    )
    s.create_pod(affinity=node_affinity({"matchExpressions": [expression]}))
    yield
    s.label_node(node, {"busy": None, "free": "4"})


@WAITS.declare()
def node_comes(s: Situation) -> Steps:
    s.create_pod()
    yield
    s.join_node()


@WAITS.declare()
def room_comes(s: Situation) -> Steps:
    holder = s.create_rivals()
    yield
    s.delete_pod(holder)


@WAITS.declare()
def holder_ends(s: Situation) -> Steps:
    """Let the holder of the room succeed, which frees the room without a deletion."""
    holder = s.create_rivals()
    yield
    s.change_pod(holder, status={"phase": "Succeeded"})


@WAITS.declare()
def holder_shrinks(s: Situation) -> Steps:
    """Let the holder of the room ask for less, by a resize in place."""
    holder = s.create_rivals()
    yield
    s.resize_pod(holder, cpu="100m")


@WAITS.declare()
def asks_less(s: Situation) -> Steps:
    """Let the waiting pod itself ask for less."""
    s.create_node()
    pod = s.create_pod(cpu="3")
    yield
    s.resize_pod(pod, cpu="1")


@WAITS.declare()
def feature_comes(s: Situation) -> Steps:
    """Wait until the node says that it can run the pod in a namespace of users."""
    node = s.create_node()
    s.create_pod(hostNetwork=True, hostUsers=False)
    yield
    s.change_node(node, status={"declaredFeatures": [USER_NAMESPACES_HOST_NETWORK]})


@WAITS.declare()
def slot_comes(s: Situation) -> Steps:
    s.create_node(pods="1")
    holder = s.create_holder(cpu="100m")
    s.create_pod(cpu="100m")
    yield
    s.delete_pod(holder)


_THING = {"example.com/thing": "1"}


@WAITS.declare()
def resource_comes(s: Situation) -> Steps:
    node = s.create_node()
    s.create_plain_pod(resources={"requests": _THING, "limits": _THING})
    yield
    s.change_resources(node, _THING)


@WAITS.declare()
def resource_comes_back(s: Situation) -> Steps:
    """Take a resource from the node before the pod comes, and give it back."""
    node = s.create_node(**_THING)
    for part in ("capacity", "allocatable"):
        s.change_node(node, status={part: dict.fromkeys(_THING)})
    s.wait_seconds(3.0)
    s.create_plain_pod(resources={"requests": _THING, "limits": _THING})
    yield
    s.change_resources(node, _THING)


@WAITS.declare()
def resource_grows(s: Situation) -> Steps:
    """Wait for more of one resource that the node has, the others staying as they are."""
    drawn = (("cpu", "6", "3"), ("memory", "64Gi", "32Gi"), ("pods", "5", ""))
    resource, much, half = s.rng.choice(drawn)
    node = s.create_node(pods="1")
    if resource == "pods":
        s.create_holder(cpu="100m")
        s.create_pod(cpu="100m")
    else:
        requests = {"cpu": "1", "memory": "1Gi"} | {resource: half}
        s.create_plain_pod(resources={"requests": requests})
    yield
    s.change_resources(node, {resource: much})


@WAITS.declare()
def pods_before_node(s: Situation) -> Steps:
    """Let a node come whose room is taken by a pod that has been bound to it before."""
    holder = s.create_bound_pod("h", s.object_name("n"))
    s.wait_seconds(1.0)
    s.join_node()
    s.create_pod()
    yield
    s.delete_pod(holder)


@WAITS.declare()
def port_comes(s: Situation) -> Steps:
    holder = s.create_rivals(cpu="100m", host_ports=[7070])
    yield
    s.delete_pod(holder)


@WAITS.declare()
def gate_opens(s: Situation) -> Steps:
    s.create_node()
    pod = s.create_pod(gates=["example.com/one"])
    yield
    s.change_pod(pod, spec={"schedulingGates": []})


@WAITS.declare(binds=("0", "1", "2", "3"))
def one_after_another(s: Situation) -> Steps:
    """Let pods come within milliseconds, and then nothing more."""
    s.create_node()
    yield
    for number in range(4):
        s.create_pod(f"{number}", cpu="100m")
        s.wait_seconds(s.rng.uniform(0, 0.06) - 0.3)


@UNSCORED.declare(binds=("0", "1", "2", "3", "4"))
def nodes_in_turn(s: Situation) -> Steps:
    """Let pods alike come one after another, each of which several nodes would take."""
    for number in range(3):
        s.create_node(f"n{number}")
    yield
    for number in range(5):
        s.create_pod(f"{number}", cpu="300m")


@ALONE.declare()
def cordon_goes_alone(s: Situation) -> None:
    """Take a cordon back before the node controller has put its taint on the node.

    The pod comes when every scheduler must know of the cordon.
    """
    seconds = s.rng.uniform(30, 40)
    s.disturb(("refused", 1.0), ("watch-silent", 1.0), seconds=seconds, of=["controllers"])
    s.wait_seconds(1.0)
    node = s.join_node(unschedulable=True)
    s.wait_seconds(10.0)
    s.create_pod()
    s.wait_seconds(3.0)
    s.change_node(node, spec={"unschedulable": None})


@ALONE.declare(binds=("p", "f"))
def friend_in_labelled_namespace(s: Situation) -> Steps:
    """Let a friend come of whom no hint tells; after five minutes each pod is tried again."""
    s.create_node()
    space = {"apiVersion": "v1", "kind": "Namespace"}
    s.create_objects({**space, "metadata": {"name": s.tag, "labels": {"of": s.tag}}})
    term = {
        "labelSelector": {"matchLabels": {"app": s.tag}},
        "topologyKey": ZONE,
        "namespaceSelector": {"matchLabels": {"of": s.tag}},
    }
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    s.create_pod(cpu="100m", affinity={"podAffinity": required})
    yield
    s.create_pod("f", namespace=s.tag, cpu="100m", labels={"app": s.tag})
    s.wait_seconds(FLUSH_SECONDS)
