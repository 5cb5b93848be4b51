"""Pods that wait for room that a more important pod has, wants, or has been promised."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moorage_lab.fault_sim import acts
from moorage_lab.fault_sim.situations.neighbours import apart
from moorage_lab.fault_sim.situations.situation import (
    Situation,
    SituationTable,
    Steps,
    node_affinity,
    stops_within,
    taint,
)

WAITS = SituationTable()
"""The things that happen between pods of different importance."""

_SETTLED_SECONDS = 3.0
"""After this time every scheduler of a script without faults must know of all that is there."""


@WAITS.declare()
def victim(s: Situation) -> None:
    """Let a more important pod make room for itself."""
    s.create_node()
    s.create_holder(priorityClassName="low")
    s.create_pod(priorityClassName=s.rng.choice(("high", "top")))


@WAITS.declare()
def victim_with_port(s: Situation) -> None:
    """Let one of two lesser pods make room: the one that has the port."""
    s.create_node()
    s.create_holder(cpu="100m", priorityClassName="low", host_ports=[7070])
    s.create_pod("other", cpu="100m", priorityClassName="low")
    s.wait_seconds(_SETTLED_SECONDS)
    s.create_pod(cpu="100m", priorityClassName="high", host_ports=[7070])


@WAITS.declare()
def equal_keeps_port(s: Situation) -> Steps:
    """Let a pod wait for the port of one that is as important, next to a lesser one."""
    s.create_node()
    holder = s.create_holder(cpu="100m", priorityClassName="high", host_ports=[7070])
    s.create_pod("low", cpu="100m", priorityClassName="low")
    s.wait_seconds(_SETTLED_SECONDS)
    s.create_pod(cpu="100m", priorityClassName="high", host_ports=[7070])
    yield
    s.delete_pod(holder)


@WAITS.declare()
def victim_rival(s: Situation) -> None:
    """Let one of two lesser pods make room: the one that the preemptor keeps away from."""
    s.create_node()
    s.create_holder(cpu="100m", priorityClassName="low", labels={"app": s.tag})
    s.create_pod("other", cpu="100m", priorityClassName="low")
    s.wait_seconds(_SETTLED_SECONDS)
    s.create_pod(cpu="100m", priorityClassName="high", affinity=apart(s.tag))


@WAITS.declare()
def equal_rival(s: Situation) -> Steps:
    """Let a pod keep away from one that is as important, next to a lesser one."""
    s.create_node()
    holder = s.create_holder(cpu="100m", priorityClassName="high", labels={"app": s.tag})
    s.create_pod("low", cpu="100m", priorityClassName="low")
    s.wait_seconds(_SETTLED_SECONDS)
    s.create_pod(affinity=apart(s.tag), cpu="100m", priorityClassName="high")
    yield
    s.delete_pod(holder)


@WAITS.declare(binds=())
def promise_in_vain(s: Situation) -> Steps:
    """Let a node turn away the preemptor to which it was promised."""
    node = s.create_node()
    small = s.create_holder(cpu="100m", priorityClassName="top")
    s.create_pod("low", priorityClassName="low", **stops_within(25))
    s.wait_seconds(2.0)
    s.create_pod(priorityClassName="top")
    s.wait_seconds(1.0)
    s.change_node(node, spec={"taints": [taint()]})
    s.wait_seconds(1.0)
    yield
    s.delete_pod(small)  # which has the preemptor tried


@WAITS.declare(within_seconds=8.0, anyway=True)
def second_choice(s: Situation) -> Steps:
    """Let a node with a lesser pod come while the victims of a preemptor are ending."""
    s.create_node()
    for suffix in ("h0", "h1"):  # fewer victims are better, and the second node has one
        s.create_pod(suffix, cpu="800m", priorityClassName="low", **stops_within(25))
    small = s.create_pod("small", cpu="100m", priorityClassName="top")
    s.wait_seconds(2.0)
    s.create_pod(priorityClassName="top")
    yield
    s.create_bound_pod("far", s.object_name("n2"), priorityClassName="low")
    s.wait_seconds(3.0)
    s.join_node("n2")
    s.wait_seconds(3.0)
    s.delete_pod(small)  # which has the preemptor tried


@WAITS.declare(within_seconds=15.0)
def nominated_goes(s: Situation) -> Steps:
    """Delete the preemptor while its victim ends, which leaves the room to a lesser pod."""
    s.create_node()
    s.create_holder(priorityClassName="low", **stops_within(25))
    preemptor = s.create_pod("top", priorityClassName="top")
    s.create_pod()
    yield
    s.delete_pod(preemptor)


@WAITS.declare(within_seconds=20.0)
def claimed_by_another(s: Situation) -> Steps:
    """Promise half of a node to one pod, and then all of it to a more important one."""
    s.create_node()
    # The younger holder is evicted first, and leaves last.
    for suffix, seconds in (("h0", 5), ("h1", 20)):
        s.create_pod(suffix, cpu="1", priorityClassName="low", **stops_within(seconds))
    s.wait_seconds(1.0)
    yield
    s.create_pod("high", cpu="1", priorityClassName="high")
    s.wait_seconds(4.0)
    s.create_pod(cpu="2", priorityClassName="top")


@WAITS.declare()
def never_preempts(s: Situation) -> Steps:
    s.create_node()
    holder = s.create_holder(priorityClassName="low")
    s.create_pod(priorityClassName="polite")
    yield
    s.delete_pod(holder)


@WAITS.declare(binds=())
def polite_pod_waits(s: Situation) -> Steps:
    """Let a pod that evicts nobody come long after everything else, and then leave."""
    s.create_node()
    s.create_holder(priorityClassName="low")
    yield
    s.wait_seconds(10.0)
    polite = s.create_pod(priorityClassName="polite")
    s.wait_seconds(3.0)
    s.delete_pod(polite)


def _promise(
    s: Situation, node: str, *, cpu: str = "1500m", pod: Mapping[str, Any] | None = None
) -> str:
    """Promise a node's room to a pod that waits for a label; return the pod's name.

    Another pod, of the fields `pod`, comes for the room.
    """
    selector = {"wait": s.tag, "ready-for": s.tag}
    first = s.create_pod("first", cpu=cpu, priorityClassName="polite", node_selector=selector)
    s.wait_seconds(1.0)
    s.change_pod(first, status={"nominatedNodeName": node})
    s.wait_seconds(10.0)
    by_name = {"key": "metadata.name", "operator": "In", "values": [node]}
    # A scheduler asks its Filters in another way where a pod names its nodes.
    drawn = s.rng.choice(({}, {"affinity": node_affinity({"matchFields": [by_name]})}))
    s.create_pod(**(pod or drawn))
    return first


@WAITS.declare()
def promised_pod_goes(s: Situation) -> Steps:
    """Delete the pod to which the room was promised, which leaves it to a lesser pod."""
    first = _promise(s, s.create_node())
    yield
    s.delete_pod(first)


@WAITS.declare()
def promise_ends(s: Situation) -> Steps:
    """Take the promise back, while the pod waits on."""
    first = _promise(s, s.create_node())
    yield
    s.change_pod(first, status={"nominatedNodeName": None})


@WAITS.declare()
def room_beside_promised(s: Situation) -> Steps:
    """Wait for room on a node of which a part is promised, and stays so."""
    node = s.create_node()
    holder = s.create_holder(cpu="500m")
    _promise(s, node, cpu="1", pod={"cpu": "700m"})
    yield
    s.delete_pod(holder)


@WAITS.declare()
def promised_to_equal(s: Situation) -> Steps:
    """Promise the room to a pod that is as important as the one that waits for it."""
    fields = {"labels": {"app": s.tag}, "affinity": apart(f"{s.tag}-nobody")}
    first = _promise(s, s.create_node(), pod={"priorityClassName": "polite", **fields})
    yield
    s.delete_pod(first)


@WAITS.declare()
def promised_to_two(s: Situation) -> Steps:
    """Promise the room to the pod that waits for it, too, which is less important."""
    node = s.create_node()
    small = s.create_holder(cpu="100m")
    first = _promise(s, node, pod={"priorityClassName": "low"})
    s.wait_seconds(1.0)
    s.change_pod(s.object_name("p"), status={"nominatedNodeName": node})
    s.wait_seconds(1.0)
    s.delete_pod(small)  # which has the pod tried
    s.wait_seconds(3.0)
    yield
    s.delete_pod(first)


@WAITS.declare()
def unprotected_victim(s: Situation) -> None:
    """Let one of two lesser pods make room: the older one, because a budget protects the other."""
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": s.tag, "namespace": "default"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": s.tag}}},
    }
    s.create_objects(budget)
    for number, labels in (("0", {}), ("1", {"app": s.tag})):
        s.create_node(f"n{number}", labels={"number": number})
        fields = {"node_selector": {"wait": s.tag, "number": number}, "labels": labels}
        s.create_pod(f"h{number}", priorityClassName="low", **fields)
        s.wait_seconds(5.0)
    s.wait_seconds(5.0)
    s.create_pod(priorityClassName="top")


@WAITS.declare()
def replica_may_preempt(s: Situation) -> Steps:
    """Let a second pod evict others where the first one of its kind could not, a moment before."""
    node = s.create_node()
    yield
    on_node: dict[str, Any] = {"node_name": node, "schedulerName": "other"}
    on_node["terminationGracePeriodSeconds"] = 0
    top = s.create_pod("top", priorityClassName="top", **on_node)
    first = s.create_pod("first", priorityClassName="high")
    s.delete_pod(first)
    s.wait_seconds(0.1)
    s.delete_pod(top)
    s.wait_seconds(0.1)
    s.create_bound_pod("low", node, priorityClassName="low")
    s.create_pod(priorityClassName="high")


@WAITS.declare(binds=())
def leaves_slowly(s: Situation) -> Steps:
    """Delete a waiting pod that a finalizer holds, and let its room come then."""
    s.create_node()
    holder = s.create_holder()
    pod = s.create_plain_pod(cpu="1500m", memory="64Mi", finalizers=["example.com/slow"])
    s.wait_seconds(1.0)
    s.delete_pod(pod)
    yield
    s.delete_pod(holder)
    s.wait_seconds(10.0)
    s.change_pod(pod, metadata={"finalizers": None})


@WAITS.declare(binds=())
def bound_again(s: Situation) -> Steps:
    """Let another scheduler bind a pod that has a node to another node."""
    s.create_node()
    other = s.part("other").create_node()
    holder = s.create_holder()
    yield
    s.add_acts(acts.Bind(at=s.now, pod=holder, node=other))
