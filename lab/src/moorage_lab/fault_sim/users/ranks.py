"""Pods that wait for room that a more important pod has, wants, or has been promised."""

from __future__ import annotations

from typing import Any

from moorage_lab.fault_sim import acts
from moorage_lab.fault_sim.users.neighbours import apart
from moorage_lab.fault_sim.users.plot import Maker, Plot
from moorage_lab.fault_sim.users.waits import (
    SatisfiedWait,
    holder_pod,
    own_node,
    own_pod,
    stops_within,
)
from moorage_sandbox.testing.builders import node_manifest, pod_manifest

SETTLED_SECONDS = 3.0
"""After this time every scheduler of a script without faults must know of all that is there."""


def _victim(plot: Plot, tag: str) -> Maker:
    """Let a more important pod make room for itself."""
    own_node(plot, tag)
    holder_pod(plot, tag, priorityClassName="low")
    own_pod(plot, tag, priorityClassName=plot.rng.choice(("high", "top")))
    return lambda later: None


def _victim_with_port(plot: Plot, tag: str) -> Maker:
    """Let one of two lesser pods make room: the one that has the port."""
    own_node(plot, tag)
    holder_pod(plot, tag, cpu="100m", priorityClassName="low", host_ports=[7070])
    own_pod(plot, tag, f"{tag}-other", cpu="100m", priorityClassName="low")
    plot.now += SETTLED_SECONDS
    own_pod(plot, tag, cpu="100m", priorityClassName="high", host_ports=[7070])
    return lambda later: None


def _equal_keeps_port(plot: Plot, tag: str) -> Maker:
    """Let a pod wait for the port of one that is as important, next to a lesser one."""
    own_node(plot, tag)
    holder = holder_pod(plot, tag, cpu="100m", priorityClassName="high", host_ports=[7070])
    own_pod(plot, tag, f"{tag}-low", cpu="100m", priorityClassName="low")
    plot.now += SETTLED_SECONDS
    own_pod(plot, tag, cpu="100m", priorityClassName="high", host_ports=[7070])
    return lambda later: later.add_deletion("Pod", holder)


def _victim_rival(plot: Plot, tag: str) -> Maker:
    """Let one of two lesser pods make room: the one that the preemptor keeps away from."""
    own_node(plot, tag)
    fields: dict[str, Any] = {"cpu": "100m", "priorityClassName": "low"}
    holder_pod(plot, tag, labels={"app": tag}, **fields)
    own_pod(plot, tag, f"{tag}-other", **fields)
    plot.now += SETTLED_SECONDS
    own_pod(plot, tag, cpu="100m", priorityClassName="high", affinity=apart(tag))
    return lambda later: None


def _equal_rival(plot: Plot, tag: str) -> Maker:
    """Let a pod keep away from one that is as important, next to a lesser one."""
    own_node(plot, tag)
    fields: dict[str, Any] = {"cpu": "100m", "priorityClassName": "high"}
    holder = holder_pod(plot, tag, labels={"app": tag}, **fields)
    own_pod(plot, tag, f"{tag}-low", cpu="100m", priorityClassName="low")
    plot.now += SETTLED_SECONDS
    own_pod(plot, tag, affinity=apart(tag), **fields)
    return lambda later: later.add_deletion("Pod", holder)


def _promise_in_vain(plot: Plot, tag: str) -> Maker:
    """Let a node turn away the preemptor to which it was promised."""
    node = own_node(plot, tag)
    small = holder_pod(plot, tag, cpu="100m", priorityClassName="top")
    own_pod(plot, tag, f"{tag}-low", priorityClassName="low", **stops_within(25))
    plot.now += 2.0
    own_pod(plot, tag, priorityClassName="top")
    plot.now += 1.0
    taints = [{"key": "k", "value": "v", "effect": "NoSchedule"}]
    plot.add_change("Node", node, {"spec": {"taints": taints}}, namespace="")
    plot.now += 1.0
    return lambda later: later.add_deletion("Pod", small)  # which has the preemptor tried


def _second_choice(plot: Plot, tag: str) -> Maker:
    """Let a node with a lesser pod come while the victims of a preemptor are ending."""
    own_node(plot, tag)
    for number in range(2):  # fewer victims are better, and the second node has one
        slow = stops_within(25)
        own_pod(plot, tag, f"{tag}-h{number}", cpu="800m", priorityClassName="low", **slow)
    small = own_pod(plot, tag, f"{tag}-small", cpu="100m", priorityClassName="top")
    plot.now += 2.0
    own_pod(plot, tag, priorityClassName="top")
    fields = {"priorityClassName": "low", "node_name": f"{tag}-n2", "schedulerName": "other"}

    def enable_binding(later: Plot) -> None:
        own_pod(later, tag, f"{tag}-far", **fields)
        later.now += 3.0
        node = node_manifest(f"{tag}-n2", cpu="2", labels={"wait": tag})
        later.acts.append(acts.Join(at=later.now, node=node))
        later.now += 3.0
        later.add_deletion("Pod", small)  # which has the preemptor tried

    return enable_binding


def _nominated_goes(plot: Plot, tag: str) -> Maker:
    """Delete the preemptor while its victim ends, which leaves the room to a lesser pod."""
    own_node(plot, tag)
    holder_pod(plot, tag, priorityClassName="low", **stops_within(25))
    preemptor = own_pod(plot, tag, f"{tag}-top", priorityClassName="top")
    own_pod(plot, tag)
    return lambda later: later.add_deletion("Pod", preemptor)


def _never_preempts(plot: Plot, tag: str) -> Maker:
    own_node(plot, tag)
    holder = holder_pod(plot, tag, priorityClassName="low")
    own_pod(plot, tag, priorityClassName="polite")
    return lambda later: later.add_deletion("Pod", holder)


def _polite_pod_waits(plot: Plot, tag: str) -> Maker:
    """Let a pod that evicts nobody come long after everything else, and then leave."""
    own_node(plot, tag)
    holder_pod(plot, tag, priorityClassName="low")

    def enable_binding(later: Plot) -> None:
        later.now += 10.0
        polite = own_pod(later, tag, priorityClassName="polite")
        later.now += 3.0
        later.add_deletion("Pod", polite)

    return enable_binding


def _claimed_by_another(plot: Plot, tag: str) -> Maker:
    """Promise half of a node to one pod, and then all of it to a more important one."""
    own_node(plot, tag)
    # The younger holder is evicted first, and leaves last.
    for number, seconds in enumerate((5, 20)):
        fields = {"priorityClassName": "low", **stops_within(seconds)}
        own_pod(plot, tag, f"{tag}-h{number}", cpu="1", **fields)
    plot.now += 1.0

    def enable_binding(later: Plot) -> None:
        own_pod(later, tag, f"{tag}-high", cpu="1", priorityClassName="high")
        later.now += 4.0
        own_pod(later, tag, cpu="2", priorityClassName="top")

    return enable_binding


def _promised(
    plot: Plot, tag: str, *, node_made: bool = False, promised_cpu: str = "1500m", **fields: Any
) -> str:
    """Promise a node's room to a pod that waits for a label; return the pod's name.

    Another pod, of these fields, comes for the room.
    """
    node = f"{tag}-n" if node_made else own_node(plot, tag)
    pod = own_pod(
        plot,
        tag,
        f"{tag}-first",
        cpu=promised_cpu,
        priorityClassName="polite",
        node_selector={"wait": tag, "ready-for": tag},
    )
    plot.now += 1.0
    status = {"status": {"nominatedNodeName": node}}
    plot.add_change("Pod", pod, status, subresource="status")
    plot.now += 10.0
    by_name = [{"key": "metadata.name", "operator": "In", "values": [node]}]
    required = {"nodeSelectorTerms": [{"matchFields": by_name}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    # A scheduler asks its Filters in another way where a pod names its nodes.
    drawn: dict[str, Any] = plot.rng.choice(({}, {"affinity": affinity}))
    own_pod(plot, tag, **(fields or drawn))
    return pod


def _promised_pod_goes(plot: Plot, tag: str) -> Maker:
    """Delete the pod to which the room was promised, which leaves it to a lesser pod."""
    first = _promised(plot, tag)
    return lambda later: later.add_deletion("Pod", first)


def _promise_ends(plot: Plot, tag: str) -> Maker:
    """Take the promise back, while the pod waits on."""
    first = _promised(plot, tag)
    status = {"status": {"nominatedNodeName": None}}
    return lambda later: later.add_change("Pod", first, status, subresource="status")


def _room_beside_promised(plot: Plot, tag: str) -> Maker:
    """Wait for room on a node of which a part is promised, and stays so."""
    own_node(plot, tag)
    holder = holder_pod(plot, tag, cpu="500m")
    _promised(plot, tag, node_made=True, cpu="700m", promised_cpu="1")
    return lambda later: later.add_deletion("Pod", holder)


def _promised_to_equal(plot: Plot, tag: str) -> Maker:
    """Promise the room to a pod that is as important as the one that waits for it."""
    first = _promised(
        plot, tag, priorityClassName="polite", labels={"app": tag}, affinity=apart(f"{tag}-nobody")
    )
    return lambda later: later.add_deletion("Pod", first)


def _promised_to_two(plot: Plot, tag: str) -> Maker:
    """Promise the room to the pod that waits for it, too, which is less important."""
    own_node(plot, tag)
    small = holder_pod(plot, tag, cpu="100m")
    first = _promised(plot, tag, node_made=True, priorityClassName="low")
    plot.now += 1.0
    status = {"status": {"nominatedNodeName": f"{tag}-n"}}
    plot.add_change("Pod", f"{tag}-p", status, subresource="status")
    plot.now += 1.0
    plot.add_deletion("Pod", small)  # which has the pod tried
    plot.now += 3.0
    return lambda later: later.add_deletion("Pod", first)


def _unprotected_victim(plot: Plot, tag: str) -> Maker:
    """Let one of two lesser pods make room: the older one, because a budget protects the other."""
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": tag, "namespace": "default"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": tag}}},
    }
    plot.add_creation(budget)
    for number, labels in enumerate(({}, {"app": tag})):
        own_node(plot, tag, name=f"{tag}-n{number}", labels={"number": str(number)})
        select = {"wait": tag, "number": str(number)}
        fields = {"priorityClassName": "low", "node_selector": select, "labels": labels}
        own_pod(plot, tag, f"{tag}-h{number}", **fields)
        plot.now += 5.0
    plot.now += 5.0
    own_pod(plot, tag, priorityClassName="top")
    return lambda later: None


def _replica_may_preempt(plot: Plot, tag: str) -> Maker:
    """Let a second pod evict others where the first one of its kind could not, a moment before."""
    node = own_node(plot, tag)
    by_other: dict[str, Any] = {"node_name": node, "schedulerName": "other"}

    def enable_binding(later: Plot) -> None:
        fields = {**by_other, "terminationGracePeriodSeconds": 0}
        own_pod(later, tag, f"{tag}-top", priorityClassName="top", **fields)
        first = own_pod(later, tag, f"{tag}-first", priorityClassName="high")
        later.add_deletion("Pod", first)
        later.now += 0.1
        later.add_deletion("Pod", f"{tag}-top")
        later.now += 0.1
        own_pod(later, tag, f"{tag}-low", priorityClassName="low", **by_other)
        own_pod(later, tag, priorityClassName="high")

    return enable_binding


def _leaves_slowly(plot: Plot, tag: str) -> Maker:
    """Delete a waiting pod that a finalizer holds, and let its room come then."""
    own_node(plot, tag)
    holder = holder_pod(plot, tag)
    pod = pod_manifest(f"{tag}-p", cpu="1500m", memory="64Mi", node_selector={"wait": tag})
    pod["metadata"]["finalizers"] = ["example.com/slow"]
    plot.add_creation(pod)
    plot.now += 1.0
    plot.add_deletion("Pod", f"{tag}-p")

    def enable_binding(later: Plot) -> None:
        later.add_deletion("Pod", holder)
        later.now += 10.0
        later.add_change("Pod", f"{tag}-p", {"metadata": {"finalizers": None}})

    return enable_binding


def _bound_again(plot: Plot, tag: str) -> Maker:
    """Let another scheduler bind a pod that has a node to another node."""
    own_node(plot, tag)
    other = own_node(plot, f"{tag}-other")
    holder = holder_pod(plot, tag)
    return lambda later: later.acts.append(acts.Bind(at=later.now, pod=holder, node=other))


RANKS: tuple[SatisfiedWait, ...] = (
    _victim,
    _victim_with_port,
    _equal_keeps_port,
    _victim_rival,
    _equal_rival,
    _promise_in_vain,
    _second_choice,
    _nominated_goes,
    _claimed_by_another,
    _never_preempts,
    _polite_pod_waits,
    _promised_pod_goes,
    _promise_ends,
    _room_beside_promised,
    _promised_to_equal,
    _promised_to_two,
    _unprotected_victim,
    _replica_may_preempt,
    _leaves_slowly,
    _bound_again,
)
"""The things that happen between pods of different importance."""
