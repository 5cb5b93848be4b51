"""Pods whose way to their node fails late: after the decision, or when their victims should go."""

from __future__ import annotations

import math
from typing import Any

from moorage_lab.fault_sim import acts
from moorage_lab.fault_sim.delayed_step import (
    AWAITS_CALL,
    BREAKS,
    CALLS,
    CALLS_LATE,
    GATED,
    LABEL,
    REFUSED,
    SLOW,
)
from moorage_lab.fault_sim.users.groups import gang
from moorage_lab.fault_sim.users.plot import Maker, Plot
from moorage_lab.fault_sim.users.waits import SatisfiedWait, own_node, own_pod, stops_within
from moorage_sandbox.testing.builders import node_manifest, pod_manifest


def _delayed_step_succeeds(plot: Plot, tag: str) -> Maker:
    """Finish the delayed step of a pod while its refusal is under way, and other pods come."""
    node = own_node(plot, tag)
    labelled = {"metadata": {"labels": {LABEL: tag}}}

    def enable_binding(later: Plot) -> None:
        own_pod(later, tag, cpu="500m", labels={LABEL: tag})
        later.now += 0.5
        later.add_change("Node", node, labelled, namespace="")
        later.now += 0.3
        own_pod(later, tag, f"{tag}-other", cpu="100m")

    return enable_binding


def _delayed_step_fails(plot: Plot, tag: str) -> Maker:
    """Let a pod hold room for its delayed step in vain, while another pod comes for the room."""
    own_node(plot, tag)

    def enable_binding(later: Plot) -> None:
        own_pod(later, tag, f"{tag}-h", labels={later.rng.choice((LABEL, BREAKS)): tag})
        later.now += 0.7
        # That the node is no longer promised to the first pod wakes no more important one.
        own_pod(later, tag, priorityClassName="polite")
        # The delayed step has failed, and the pod is not tried again yet.
        later.now += 1.2
        later.add_deletion("Pod", f"{tag}-h")

    return enable_binding


def _delayed_step_is_refused(plot: Plot, tag: str) -> Maker:
    """Let a delayed step be refused, which gives the room to a pod that is more important."""
    own_node(plot, tag)

    def enable_binding(later: Plot) -> None:
        own_pod(later, tag, f"{tag}-h", labels={LABEL: tag})
        later.now += 0.7
        own_pod(later, tag, priorityClassName="polite")

    return enable_binding


def _pod_changes_in_delayed_step(plot: Plot, tag: str) -> Maker:
    """Change a pod while the refusal is under way: its label, or what helps it, or both."""
    node = own_node(plot, tag)
    mine = {"key": LABEL, "operator": "Exists"}
    change = plot.rng.choice(
        ({"spec": {"tolerations": [mine]}}, _relabelled(tag) | {"spec": {"tolerations": [mine]}})
    )

    def enable_binding(later: Plot) -> None:
        pod = own_pod(later, tag, labels={LABEL: tag})
        later.now += 0.5
        later.add_change("Pod", pod, change)
        later.now += 1.0
        later.add_change("Node", node, {"metadata": {"labels": {"any": "label"}}}, namespace="")

    return enable_binding


def _relabelled(tag: str) -> dict[str, Any]:
    return {"metadata": {"labels": {LABEL: f"{tag}-other"}}}


def _labels_change_in_delayed_step(plot: Plot, tag: str) -> Maker:
    """Give the node the label that the pod got while the refusal was under way."""
    node = own_node(plot, tag)
    pod = own_pod(plot, tag, labels={LABEL: tag})
    plot.now += 0.5
    plot.add_change("Pod", pod, _relabelled(tag))
    plot.now += 3.0
    return lambda later: later.add_change("Node", node, _relabelled(tag), namespace="")


def _called_by_another(plot: Plot, tag: str) -> Maker:
    """Let two pods wait for a third one, whose plugin has them tried."""
    return _called_by(plot, tag, label=CALLS)


def _called_by_node(plot: Plot, tag: str) -> Maker:
    """Let a pod wait for a label of its node, of which the plugin tells only that pod."""
    node = own_node(plot, tag)
    own_pod(plot, tag, cpu="100m", labels={AWAITS_CALL: tag})
    plot.now += 3.0
    calls = {"metadata": {"labels": {CALLS: tag}}}
    return lambda later: later.add_change("Node", node, calls, namespace="")


def _called_late(plot: Plot, tag: str) -> Maker:
    """Let a plugin have two pods tried at a time when nothing else happens."""
    return _called_by(plot, tag, label=CALLS_LATE)


def _called_by(plot: Plot, tag: str, *, label: str) -> Maker:
    own_node(plot, tag)
    for number in range(2):
        own_pod(plot, tag, f"{tag}-{number}", cpu="100m", labels={AWAITS_CALL: tag})

    def enable_binding(later: Plot) -> None:
        own_pod(later, tag, f"{tag}-calls", cpu="100m", labels={label: tag})

    return enable_binding


def _victim_breaks(plot: Plot, tag: str) -> Maker:
    """Break the delayed step of the last victim while the first eviction takes seconds."""
    own_node(plot, tag)
    fields: dict[str, Any] = {"cpu": "1", "priorityClassName": "low"}
    own_pod(plot, tag, f"{tag}-h", terminationGracePeriodSeconds=0, **fields)
    plot.now += 1.0

    def enable_binding(later: Plot) -> None:
        own_pod(later, tag, f"{tag}-breaks", labels={BREAKS: tag}, **fields)
        later.now += 1.0
        later.disturb(("slow", 1.0), seconds=6.0)
        own_pod(later, tag, cpu="2", priorityClassName="top")

    return enable_binding


def _other_binds_in_delayed_step(plot: Plot, tag: str) -> Maker:
    """Let another scheduler bind a pod that evicted a victim, before its delayed step breaks."""
    node = own_node(plot, tag)
    own_pod(plot, tag, f"{tag}-h", priorityClassName="low", **stops_within(2))
    plot.now += 1.0

    def enable_binding(later: Plot) -> None:
        pod = own_pod(later, tag, labels={BREAKS: tag}, priorityClassName="top")
        later.now += 3.0
        later.acts.append(acts.Bind(at=later.now, pod=pod, node=node))

    return enable_binding


def _holder_leaves_delayed_step(plot: Plot, tag: str) -> Maker:
    """Let a pod that holds room for minutes be deleted, which a finalizer holds up."""
    own_node(plot, tag)
    labels = {LABEL: tag, SLOW: "yes"}
    pod = pod_manifest(f"{tag}-h", cpu="1500m", node_selector={"wait": tag}, labels=labels)
    pod["metadata"]["finalizers"] = ["example.com/slow"]

    def enable_binding(later: Plot) -> None:
        later.add_creation(pod)
        later.now += 1.0
        own_pod(later, tag)
        later.now += 1.0
        later.add_deletion("Pod", f"{tag}-h")

    return enable_binding


def _member_refused(plot: Plot, tag: str) -> Maker:
    """Let nothing be reserved for one member of a gang, for which there is room."""
    own_node(plot, tag)
    group = {"schedulingGroup": {"podGroupName": tag}}

    def enable_binding(later: Plot) -> None:
        later.add_creation(gang(tag, 3))
        for number in range(3):
            labels = {REFUSED: tag} if number == 0 else {}
            own_pod(later, tag, f"{tag}-{number}", cpu="500m", labels=labels, **group)

    return enable_binding


def _tolerates_in_backoff(plot: Plot, tag: str) -> Maker:
    """Let a pod that waits out its backoff after an error tolerate what keeps it away since."""
    node = own_node(plot, tag)
    taint = {"key": "k", "value": "v", "effect": "NoSchedule"}

    def enable_binding(later: Plot) -> None:
        pod = own_pod(later, tag, labels={BREAKS: tag})
        later.now += 2.0
        later.add_change("Node", node, {"spec": {"taints": [taint]}}, namespace="")
        both = [{"key": "k", "operator": "Exists"}]
        later.add_change("Pod", pod, {"spec": {"tolerations": both}})

    return enable_binding


def _stubborn_victim(plot: Plot, tag: str) -> Maker:
    """Let the first evictions of a victim fail."""
    own_node(plot, tag)
    own_pod(plot, tag, f"{tag}-h", priorityClassName="low")
    plot.now += 1.0

    def enable_binding(later: Plot) -> None:
        for number in range(later.replicas):
            later.acts.append(
                acts.Disturb(
                    at=later.now,
                    process=f"scheduler-{number}",
                    fault=later.rng.choice(("error-500", "lost", "busy-429")),
                    rate=1.0,
                    seconds=later.rng.choice((0.5, 2.0)),
                )
            )
        own_pod(later, tag, priorityClassName="top")

    return enable_binding


def _deaf_binding(plot: Plot, tag: str) -> Maker:
    """Lose the answer to a binding while the watch is late, and let another pod come."""
    own_node(plot, tag)

    def enable_binding(later: Plot) -> None:
        later.disturb(("answer-lost", 0.5), ("watch-slow", 1.0), seconds=3.0)
        for each in ("", "-other", "-third"):
            own_pod(later, tag, f"{tag}{each}")

    return enable_binding


def _refused_again_and_again(plot: Plot, tag: str) -> Maker:
    """Let the binding of a pod fail by errors of the server, one after another."""
    own_node(plot, tag)

    def enable_binding(later: Plot) -> None:
        later.disturb(("error-500", 1.0), seconds=6.0)
        own_pod(later, tag)

    return enable_binding


def _placed_in_haste(plot: Plot, tag: str) -> Maker:
    """Let a node take a pod while the report that it does not is under way."""
    node = own_node(plot, tag, taints=[{"key": "k", "value": "v", "effect": "NoSchedule"}])

    def enable_binding(later: Plot) -> None:
        later.disturb(("slow", 1.0), seconds=8.0)
        own_pod(later, tag)
        later.add_change("Node", node, {"spec": {"taints": None}}, namespace="")

    return enable_binding


def _deleted_on_its_way(plot: Plot, tag: str) -> Maker:
    """Delete pods while the answers to their bindings are under way."""
    own_node(plot, tag)

    def enable_binding(later: Plot) -> None:
        later.disturb(("slow", 1.0), seconds=8.0)
        for number in range(4):
            own_pod(later, tag, f"{tag}-{number}", cpu="100m", terminationGracePeriodSeconds=0)
        for number in range(4):
            later.now += 0.4
            later.add_deletion("Pod", f"{tag}-{number}")

    return enable_binding


def _gone_before_the_answer(plot: Plot, tag: str) -> Maker:
    """Let pods be bound and gone while a watch is broken, before the answers to their bindings.

    The scheduler lists that they are gone, and does not know of their bindings then.
    """
    own_node(plot, tag)
    names = [f"{tag}-{number}" for number in range(12)]

    def enable_binding(later: Plot) -> None:
        comes = later.now
        later.disturb(("slow", 1.0), seconds=1.0)
        for name in names:
            own_pod(later, tag, name, cpu="100m", terminationGracePeriodSeconds=0)
            later.now = comes
        later.now += 0.05
        later.disturb(("watch-gone", 1.0), seconds=0.85)
        later.now += 0.85
        for name in names:
            later.add_deletion("Pod", name)

    return enable_binding


def _listed_as_before(plot: Plot, tag: str) -> Maker:
    """Let a scheduler list everything again, from a server that has not caught up with it."""
    own_node(plot, tag)

    def enable_binding(later: Plot) -> None:
        for number in range(4):
            own_pod(later, tag, f"{tag}-{number}", cpu="100m")
        later.disturb(("list-stale", 1.0), seconds=8.0)
        later.disturb(("watch-gone", 1.0), seconds=0.5)
        own_pod(later, tag, cpu="100m")
        later.now += 8.0

    return enable_binding


def _led_too_long(plot: Plot, tag: str) -> Maker:
    """Let the last renewal of a lease be answered late, and pods come until the lease is over.

    No call comes through any more, and the watches go on. So the scheduler tries to bind each pod.
    The time of day is set back, so only the other clock tells that the lease is over.
    """
    own_node(plot, tag)

    def enable_binding(later: Plot) -> None:
        later.disturb(("answer-slow", 1.0), seconds=3.0)
        later.now += 3.0
        later.disturb(("refused", 1.0), seconds=30.0)
        later.acts += [
            acts.Jump(at=later.now, process=f"scheduler-{number}", seconds=-30.0)
            for number in range(later.replicas)
        ]
        later.now += 7.0
        for number in range(40):
            own_pod(later, tag, f"{tag}-{number}", cpu="10m")
        later.now += 20.0

    return enable_binding


def _asleep_as_leader(plot: Plot, tag: str) -> Maker:
    """Let the computer of a leader sleep for longer than its lease while it binds pods."""
    own_node(plot, tag)

    def enable_binding(later: Plot) -> None:
        comes, steps = later.now, later.rng.randrange(10, 60)
        for number in range(6):
            own_pod(later, tag, f"{tag}-{number}", cpu="100m")
            later.now = comes
        later.acts += [
            acts.Stop(
                at=comes, process=f"scheduler-{number}", seconds=20.0, steps=steps, asleep=True
            )
            for number in range(later.replicas)
        ]
        later.now += 40.0

    return enable_binding


def _deaf_for_long(plot: Plot, tag: str) -> Maker:
    """Let the watch say nothing more while a pod is bound, until its binding is looked up."""
    own_node(plot, tag)

    def enable_binding(later: Plot) -> None:
        later.disturb(("slow", 1.0), seconds=2.0)
        own_pod(later, tag, cpu="100m")
        later.disturb(("watch-silent", 1.0), seconds=4.0)
        later.now += 60.0

    return enable_binding


def _bound_by_word_only(plot: Plot, tag: str) -> Maker:
    """Let a binding be answered with success and not happen, until it is looked up."""
    own_node(plot, tag)

    def enable_binding(later: Plot) -> None:
        later.disturb(("feigned", 1.0), seconds=1.0)
        own_pod(later, tag, cpu="100m")
        later.now += 60.0

    return enable_binding


def _changed_while_promised(plot: Plot, tag: str) -> Maker:
    """Change a pod after its victims were chosen, and before its status tells so."""
    own_node(plot, tag)
    own_pod(plot, tag, f"{tag}-h", priorityClassName="low", **stops_within(5))
    plot.now += 1.0

    def enable_binding(later: Plot) -> None:
        later.disturb(("slow", 1.0), seconds=3.0)
        pod = own_pod(later, tag, priorityClassName="top")
        later.add_change("Pod", pod, {"metadata": {"labels": {"any": "label"}}})

    return enable_binding


def _first_victim_slow(plot: Plot, tag: str) -> Maker:
    """Let the last victim go by itself while the eviction of the first one takes seconds."""
    own_node(plot, tag)
    fields: dict[str, Any] = {"cpu": "1", "priorityClassName": "low"}
    for number in range(2):
        own_pod(plot, tag, f"{tag}-h{number}", terminationGracePeriodSeconds=0, **fields)
        plot.now += 1.5
    plot.now += 1.0

    def enable_binding(later: Plot) -> None:
        later.disturb(("slow", 1.0), seconds=4.0)
        own_pod(later, tag, cpu="2", priorityClassName="top")
        later.now += later.rng.uniform(0.0, 1.0)
        later.add_deletion("Pod", f"{tag}-h1")

    return enable_binding


def _victim_at_once(plot: Plot, tag: str) -> Maker:
    """Let a victim be gone before the answer to its eviction comes."""
    own_node(plot, tag)
    own_pod(plot, tag, f"{tag}-h", priorityClassName="low", terminationGracePeriodSeconds=0)
    plot.now += 2.0

    def enable_binding(later: Plot) -> None:
        later.disturb(("slow", 1.0), seconds=4.0)
        own_pod(later, tag, priorityClassName="top")

    return enable_binding


def _binding_in_vain(plot: Plot, tag: str) -> Maker:
    """Let a binding fail whose node is no longer right, and leave the room to a pod that waits."""
    mark = f"{tag}-ready"
    node = own_node(plot, tag, labels={mark: "yes"})

    def enable_binding(later: Plot) -> None:
        later.disturb(("slow", 1.0), ("error-500", 1.0), seconds=4.0)
        own_pod(later, tag, f"{tag}-h", node_selector={"wait": tag, mark: "yes"})
        own_pod(later, tag)
        later.add_change("Node", node, {"metadata": {"labels": {mark: None}}}, namespace="")

    return enable_binding


def _nominated_in_turn(plot: Plot, tag: str) -> Maker:
    """Nominate a pod, then a more important one, and let both have room in the end."""
    own_node(plot, tag)
    fields: dict[str, Any] = {"cpu": "1", **stops_within(5)}
    for number in range(2):
        own_pod(plot, tag, f"{tag}-h{number}", priorityClassName="low", **fields)
    plot.now += 1.0

    def enable_binding(later: Plot) -> None:
        own_pod(later, tag, f"{tag}-high", cpu="1", priorityClassName="high")
        later.now += 1.0
        own_pod(later, tag, f"{tag}-top", cpu="1", priorityClassName="top")

    return enable_binding


def _slow_reports(plot: Plot, tag: str) -> Maker:
    """Let a pod be tried twice, with two reasons, while what is written takes seconds."""
    own_node(plot, tag, taints=[{"key": "k", "value": "v", "effect": "NoSchedule"}])

    def enable_binding(later: Plot) -> None:
        later.disturb(("slow", 1.0), seconds=8.0)
        pod = own_pod(later, tag)
        later.acts.append(acts.Join(at=later.now, node=node_manifest(f"{tag}-more")))
        later.now += 1.2
        more = {"spec": {"tolerations": [{"key": "other", "operator": "Exists"}]}}
        later.add_change("Pod", pod, more)

    return enable_binding


def _woken_in_vain(plot: Plot, tag: str) -> Maker:
    """Wake a pod by room that is too little for it, again and again, and at last next to another.

    The watch tells in one moment of the last room and of a new pod, which is tried first.
    """
    own_node(plot, tag)
    small: dict[str, Any] = {"cpu": "100m", "terminationGracePeriodSeconds": 0}
    own_pod(plot, tag, f"{tag}-h", cpu="1")
    for number in range(5):
        own_pod(plot, tag, f"{tag}-{number}", **small)
    plot.now += 1.0
    own_pod(plot, tag, cpu="2")

    def enable_binding(later: Plot) -> None:
        # The lines that are batched come at the next even second.
        later.now = math.ceil(later.now / 2) * 2 + 1.2
        for number in range(4):
            later.add_deletion("Pod", f"{tag}-{number}")
            later.now += 0.1
        later.disturb(("watch-batched", 1.0), seconds=0.3)
        later.add_deletion("Pod", f"{tag}-4")
        own_pod(later, tag, f"{tag}-more", **small)
        later.now += 3.0
        later.add_deletion("Pod", f"{tag}-more")
        later.add_deletion("Pod", f"{tag}-h")

    return enable_binding


def _reload_helps(plot: Plot, tag: str) -> Maker:
    """Let a plugin that turned a pod away be gone with the next configuration."""
    own_node(plot, tag)
    own_pod(plot, tag, labels={LABEL: tag})
    plot.now += 3.0
    return lambda later: _reload(later, "default")


def _reload(plot: Plot, setup: str) -> None:
    plot.acts += [
        acts.Reload(at=plot.now, process=f"scheduler-{number}", setup=setup)
        for number in range(plot.replicas)
    ]


def _reload_opens_gate(plot: Plot, tag: str) -> Maker:
    """Let a plugin that keeps a pod out of the queue be gone with the next configuration."""
    own_node(plot, tag)
    own_pod(plot, tag, labels={GATED: tag})
    plot.now += 3.0
    return lambda later: _reload(later, "default")


def _reload_adds_plugin(plot: Plot, tag: str) -> Maker:
    """Wait for an event that only a plugin of the next configuration hears."""
    node = own_node(plot, tag)
    plot.add_change("Node", node, {"metadata": {"labels": {"any": "label"}}}, namespace="")
    plot.now += 1.0
    _reload(plot, "delayed step")
    plot.now += 1.0
    own_pod(plot, tag, labels={LABEL: tag})
    plot.now += 3.0
    labelled = {"metadata": {"labels": {LABEL: tag}}}
    return lambda later: later.add_change("Node", node, labelled, namespace="")


RELOADS: tuple[tuple[str, SatisfiedWait], ...] = (
    ("delayed step", _reload_helps),
    ("delayed step", _reload_opens_gate),
    ("default", _reload_adds_plugin),
)
"""The reloads that a pod can wait for, each with the configuration before it."""

TROUBLE: tuple[SatisfiedWait, ...] = (
    _stubborn_victim,
    _first_victim_slow,
    _victim_at_once,
    _deaf_binding,
    _gone_before_the_answer,
    _listed_as_before,
    _led_too_long,
    _asleep_as_leader,
    _deaf_for_long,
    _bound_by_word_only,
    _changed_while_promised,
    _placed_in_haste,
    _deleted_on_its_way,
    _refused_again_and_again,
    _binding_in_vain,
    _nominated_in_turn,
    _slow_reports,
    _woken_in_vain,
)
"""The ways that fail late for every configuration."""

DELAYED_STEPS: tuple[SatisfiedWait, ...] = (
    _delayed_step_succeeds,
    _delayed_step_fails,
    _delayed_step_is_refused,
    _pod_changes_in_delayed_step,
    _labels_change_in_delayed_step,
    _called_by_another,
    _called_by_node,
    _called_late,
    _victim_breaks,
    _other_binds_in_delayed_step,
    _holder_leaves_delayed_step,
    _member_refused,
    _tolerates_in_backoff,
)
"""The ways that fail late by the plugin DelayedStep."""
