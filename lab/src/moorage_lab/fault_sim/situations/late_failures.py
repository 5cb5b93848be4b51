"""Pods whose way to their node fails late: after the decision, or when their victims should go."""

from __future__ import annotations

import math
from typing import Any

from moorage_lab.fault_sim import acts
from moorage_lab.fault_sim.network_faults import WireFault
from moorage_lab.fault_sim.situations.situation import (
    SOME,
    Situation,
    SituationTable,
    Steps,
    stops_within,
    taint,
    tolerates,
)

FAILURES = SituationTable(disturbs=True)
"""The ways that fail late for every configuration."""

_FAILING_CALLS: tuple[WireFault, ...] = ("error-500", "lost", "busy-429")
_AT_ONCE: dict[str, Any] = {"terminationGracePeriodSeconds": 0}


@FAILURES.declare(within_seconds=6.0)
def stubborn_victim(s: Situation) -> Steps:
    """Let the first evictions of a victim fail."""
    s.create_node()
    s.create_pod("h", priorityClassName="low")
    s.wait_seconds(1.0)
    yield
    for scheduler in s.schedulers:
        fault = s.rng.choice(_FAILING_CALLS)
        s.disturb((fault, 1.0), seconds=s.rng.choice((0.5, 2.0)), of=[scheduler])
    s.create_pod(priorityClassName="top")


@FAILURES.declare(within_seconds=6.0)
def first_victim_slow(s: Situation) -> Steps:
    """Let the last victim go by itself while the eviction of the first one takes seconds."""
    s.create_node()
    for suffix in ("h0", "h1"):
        s.create_pod(suffix, **_AT_ONCE, cpu="1", priorityClassName="low")
        s.wait_seconds(1.5)
    s.wait_seconds(1.0)
    yield
    s.disturb(("slow", 1.0), seconds=4.0)
    s.create_pod(cpu="2", priorityClassName="top")
    s.wait_seconds(s.rng.uniform(0.0, 1.0))
    s.delete_pod(s.object_name("h1"))


@FAILURES.declare(within_seconds=6.0)
def victim_at_once(s: Situation) -> Steps:
    """Let a victim be gone before the answer to its eviction comes."""
    s.create_node()
    s.create_pod("h", priorityClassName="low", **_AT_ONCE)
    s.wait_seconds(2.0)
    yield
    s.disturb(("slow", 1.0), seconds=4.0)
    s.create_pod(priorityClassName="top")


@FAILURES.declare(binds=SOME)
def deaf_binding(s: Situation) -> Steps:
    """Lose the answer to a binding while the watch is late, and let another pod come."""
    s.create_node()
    yield
    s.disturb(("answer-lost", 0.5), ("watch-slow", 1.0), seconds=3.0)
    for suffix in ("", "other", "third"):
        s.create_pod(suffix)


@FAILURES.declare(binds=SOME)
def gone_before_the_answer(s: Situation) -> Steps:
    """Let pods be bound and gone while a watch is broken, before the answers to their bindings.

    The scheduler lists that they are gone, and does not know of their bindings then.
    """
    s.create_node()
    yield
    comes = s.now
    s.disturb(("slow", 1.0), seconds=1.0)
    pods = []
    for number in range(12):
        pods.append(s.create_pod(f"{number}", cpu="100m", **_AT_ONCE))
        s.now = comes
    s.wait_seconds(0.05)
    s.disturb(("watch-gone", 1.0), seconds=0.85)
    s.wait_seconds(0.85)
    for pod in pods:
        s.delete_pod(pod)


@FAILURES.declare(binds=("0", "1", "2", "3", "p"))
def listed_as_before(s: Situation) -> Steps:
    """Let a scheduler list everything again, from a server that has not caught up with it."""
    s.create_node()
    yield
    for suffix in "0123":
        s.create_pod(suffix, cpu="100m")
    s.disturb(("list-stale", 1.0), seconds=8.0)
    s.disturb(("watch-gone", 1.0), seconds=0.5)
    s.create_pod(cpu="100m")
    s.wait_seconds(8.0)


@FAILURES.declare(binds=("0", "39"), within_seconds=45.0)
def led_too_long(s: Situation) -> Steps:
    """Let the last renewal of a lease be answered late, and pods come until the lease is over.

    No call comes through any more, and the watches go on. So the scheduler tries to bind each pod.
    The time of day is set back, so only the other clock tells that the lease is over.
    """
    s.create_node()
    yield
    s.disturb(("answer-slow", 1.0), seconds=3.0)
    s.wait_seconds(3.0)
    s.disturb(("refused", 1.0), seconds=30.0)
    for scheduler in s.schedulers:
        s.add_acts(acts.Jump(at=s.now, process=scheduler, seconds=-30.0))
    s.wait_seconds(7.0)
    for number in range(40):
        s.create_pod(f"{number}", cpu="10m")
    s.wait_seconds(20.0)


@FAILURES.declare(binds=("0", "1", "2", "3", "4", "5"), within_seconds=30.0)
def asleep_as_leader(s: Situation) -> Steps:
    """Let the computer of a leader sleep for longer than its lease while it binds pods."""
    s.create_node()
    yield
    comes, steps = s.now, s.rng.randrange(10, 60)
    for suffix in "012345":
        s.create_pod(suffix, cpu="100m")
        s.now = comes
    for scheduler in s.schedulers:
        sleep = acts.Stop(at=comes, process=scheduler, seconds=20.0, steps=steps, asleep=True)
        s.add_acts(sleep)
    s.wait_seconds(40.0)


@FAILURES.declare()
def deaf_for_long(s: Situation) -> Steps:
    """Let the watch say nothing more while a pod is bound, until its binding is looked up."""
    s.create_node()
    yield
    s.disturb(("slow", 1.0), seconds=2.0)
    s.create_pod(cpu="100m")
    s.disturb(("watch-silent", 1.0), seconds=4.0)
    s.wait_seconds(60.0)


@FAILURES.declare(within_seconds=45.0)
def bound_by_word_only(s: Situation) -> Steps:
    """Let a binding be answered with success and not happen, until it is looked up."""
    s.create_node()
    yield
    s.disturb(("feigned", 1.0), seconds=1.0)
    s.create_pod(cpu="100m")
    s.wait_seconds(60.0)


@FAILURES.declare(within_seconds=12.0)
def changed_while_promised(s: Situation) -> Steps:
    """Change a pod after its victims were chosen, and before its status tells so."""
    s.create_node()
    s.create_pod("h", priorityClassName="low", **stops_within(5))
    s.wait_seconds(1.0)
    yield
    s.disturb(("slow", 1.0), seconds=3.0)
    pod = s.create_pod(priorityClassName="top")
    s.label_pod(pod, {"any": "label"})


@FAILURES.declare(within_seconds=6.0)
def placed_in_haste(s: Situation) -> Steps:
    """Let a node take a pod while the report that it does not is under way."""
    node = s.create_node(taints=[taint()])
    yield
    s.disturb(("slow", 1.0), seconds=8.0)
    s.create_pod()
    s.change_node(node, spec={"taints": None})


@FAILURES.declare(binds=SOME)
def deleted_on_its_way(s: Situation) -> Steps:
    """Delete pods while the answers to their bindings are under way."""
    s.create_node()
    yield
    s.disturb(("slow", 1.0), seconds=8.0)
    pods = [s.create_pod(suffix, cpu="100m", **_AT_ONCE) for suffix in "0123"]
    for pod in pods:
        s.wait_seconds(0.4)
        s.delete_pod(pod)


@FAILURES.declare(within_seconds=15.0)
def refused_again_and_again(s: Situation) -> Steps:
    """Let the binding of a pod fail by errors of the server, one after another."""
    s.create_node()
    yield
    s.disturb(("error-500", 1.0), seconds=6.0)
    s.create_pod()


@FAILURES.declare(within_seconds=8.0)
def binding_in_vain(s: Situation) -> Steps:
    """Let a binding fail whose node is no longer right, and leave the room to a pod that waits."""
    mark = s.object_name("ready")
    node = s.create_node(labels={mark: "yes"})
    yield
    s.disturb(("slow", 1.0), ("error-500", 1.0), seconds=4.0)
    s.create_pod("h", node_selector={"wait": s.tag, mark: "yes"})
    s.create_pod()
    s.label_node(node, {mark: None})


@FAILURES.declare(binds=("high", "top"), within_seconds=12.0)
def nominated_in_turn(s: Situation) -> Steps:
    """Nominate a pod, then a more important one, and let both have room in the end."""
    s.create_node()
    for suffix in ("h0", "h1"):
        s.create_pod(suffix, priorityClassName="low", cpu="1", **stops_within(5))
    s.wait_seconds(1.0)
    yield
    s.create_pod("high", cpu="1", priorityClassName="high")
    s.wait_seconds(1.0)
    s.create_pod("top", cpu="1", priorityClassName="top")


@FAILURES.declare(binds=())
def slow_reports(s: Situation) -> Steps:
    """Let a pod be tried twice, with two reasons, while what is written takes seconds."""
    s.create_node(taints=[taint()])
    yield
    s.disturb(("slow", 1.0), seconds=8.0)
    pod = s.create_pod()
    s.join_node("more", cpu="4", labels={})
    s.wait_seconds(1.2)
    s.change_pod(pod, spec={"tolerations": tolerates("other")})


@FAILURES.declare()
def woken_in_vain(s: Situation) -> Steps:
    """Wake a pod by room that is too little for it, again and again, and at last next to another.

    The watch tells in one moment of the last room and of a new pod, which is tried first.
    """
    s.create_node()
    holder = s.create_pod("h", cpu="1")
    small = [s.create_pod(suffix, cpu="100m", **_AT_ONCE) for suffix in "01234"]
    s.wait_seconds(1.0)
    s.create_pod(cpu="2")
    yield
    # The lines that are batched come at the next even second.
    s.now = math.ceil(s.now / 2) * 2 + 1.2
    for pod in small[:-1]:
        s.delete_pod(pod)
        s.wait_seconds(0.1)
    s.disturb(("watch-batched", 1.0), seconds=0.3)
    s.delete_pod(small[-1])
    more = s.create_pod("more", cpu="100m", **_AT_ONCE)
    s.wait_seconds(3.0)
    s.delete_pod(more)
    s.delete_pod(holder)
