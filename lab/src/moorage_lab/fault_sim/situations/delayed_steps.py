"""Pods that the plugin DelayedStep turns away late, holds, or calls."""

from __future__ import annotations

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
from moorage_lab.fault_sim.situations.pod_groups import member
from moorage_lab.fault_sim.situations.situation import (
    Situation,
    SituationTable,
    Steps,
    stops_within,
    taint,
    tolerates,
)
from moorage_lab.fault_sim.users.groups import gang

FAILURES = SituationTable(disturbs=True)
"""The ways that fail late by the plugin DelayedStep."""

RELOADS = SituationTable(disturbs=True)
"""The reloads without the plugin that a pod can wait for."""

RELOADS_WITH_PLUGIN = SituationTable(disturbs=True)
"""The reload that adds the plugin."""


@FAILURES.declare(binds=("p", "other"))
def delayed_step_succeeds(s: Situation) -> Steps:
    """Finish the delayed step of a pod while its refusal is under way, and other pods come."""
    node = s.create_node()
    yield
    s.create_pod(cpu="500m", labels={LABEL: s.tag})
    s.wait_seconds(0.5)
    s.label_node(node, {LABEL: s.tag})
    s.wait_seconds(0.3)
    s.create_pod("other", cpu="100m")


@FAILURES.declare()
def delayed_step_fails(s: Situation) -> Steps:
    """Let a pod hold room for its delayed step in vain, while another pod comes for the room."""
    s.create_node()
    yield
    holder = s.create_pod("h", labels={s.rng.choice((LABEL, BREAKS)): s.tag})
    s.wait_seconds(0.7)
    # That the node is no longer promised to the first pod wakes no more important one.
    s.create_pod(priorityClassName="polite")
    # The delayed step has failed, and the pod is not tried again yet.
    s.wait_seconds(1.2)
    s.delete_pod(holder)


@FAILURES.declare()
def delayed_step_is_refused(s: Situation) -> Steps:
    """Let a delayed step be refused, which gives the room to a pod that is more important."""
    s.create_node()
    yield
    s.create_pod("h", labels={LABEL: s.tag})
    s.wait_seconds(0.7)
    s.create_pod(priorityClassName="polite")


@FAILURES.declare()
def pod_changes_in_delayed_step(s: Situation) -> Steps:
    """Change a pod while the refusal is under way: its label, or what helps it, or both."""
    node = s.create_node()
    helps = {"spec": {"tolerations": tolerates(LABEL)}}
    relabelled = {"metadata": {"labels": {LABEL: f"{s.tag}-other"}}}
    change = s.rng.choice((helps, relabelled | helps))
    yield
    pod = s.create_pod(labels={LABEL: s.tag})
    s.wait_seconds(0.5)
    s.change_pod(pod, **change)
    s.wait_seconds(1.0)
    s.label_node(node, {"any": "label"})


@FAILURES.declare()
def labels_change_in_delayed_step(s: Situation) -> Steps:
    """Give the node the label that the pod got while the refusal was under way."""
    node = s.create_node()
    pod = s.create_pod(labels={LABEL: s.tag})
    s.wait_seconds(0.5)
    s.label_pod(pod, {LABEL: f"{s.tag}-other"})
    s.wait_seconds(3.0)
    yield
    s.label_node(node, {LABEL: f"{s.tag}-other"})


def _wait_for_call(s: Situation, label: str) -> Steps:
    s.create_node()
    for suffix in "01":
        s.create_pod(suffix, cpu="100m", labels={AWAITS_CALL: s.tag})
    yield
    s.create_pod("calls", cpu="100m", labels={label: s.tag})


@FAILURES.declare(binds=("0", "1", "calls"))
def called_by_another(s: Situation) -> Steps:
    """Let two pods wait for a third one, whose plugin has them tried."""
    yield from _wait_for_call(s, CALLS)


@FAILURES.declare()
def called_by_node(s: Situation) -> Steps:
    """Let a pod wait for a label of its node, of which the plugin tells only that pod."""
    node = s.create_node()
    s.create_pod(cpu="100m", labels={AWAITS_CALL: s.tag})
    s.wait_seconds(3.0)
    yield
    s.label_node(node, {CALLS: s.tag})


@FAILURES.declare(binds=("0", "1", "calls"))
def called_late(s: Situation) -> Steps:
    """Let a plugin have two pods tried at a time when nothing else happens."""
    yield from _wait_for_call(s, CALLS_LATE)


@FAILURES.declare(within_seconds=8.0)
def victim_breaks(s: Situation) -> Steps:
    """Break the delayed step of the last victim while the first eviction takes seconds."""
    s.create_node()
    fields: dict[str, Any] = {"cpu": "1", "priorityClassName": "low"}
    s.create_pod("h", terminationGracePeriodSeconds=0, **fields)
    s.wait_seconds(1.0)
    yield
    s.create_pod("breaks", labels={BREAKS: s.tag}, **fields)
    s.wait_seconds(1.0)
    s.disturb(("slow", 1.0), seconds=6.0)
    s.create_pod(cpu="2", priorityClassName="top")


@FAILURES.declare(binds=())
def other_binds_in_delayed_step(s: Situation) -> Steps:
    """Let another scheduler bind a pod that evicted a victim, before its delayed step breaks."""
    node = s.create_node()
    s.create_pod("h", priorityClassName="low", **stops_within(2))
    s.wait_seconds(1.0)
    yield
    pod = s.create_pod(labels={BREAKS: s.tag}, priorityClassName="top")
    s.wait_seconds(3.0)
    s.add_acts(acts.Bind(at=s.now, pod=pod, node=node))


@FAILURES.declare()
def holder_leaves_delayed_step(s: Situation) -> Steps:
    """Let a pod that holds room for minutes be deleted, which a finalizer holds up."""
    s.create_node()
    yield
    labels = {LABEL: s.tag, SLOW: "yes"}
    holder = s.create_plain_pod("h", cpu="1500m", labels=labels, finalizers=["example.com/slow"])
    s.wait_seconds(1.0)
    s.create_pod()
    s.wait_seconds(1.0)
    s.delete_pod(holder)


@FAILURES.declare(binds=())
def member_refused(s: Situation) -> Steps:
    """Let nothing be reserved for one member of a gang, for which there is room."""
    s.create_node()
    yield
    s.create_objects(gang(s.tag, 3))
    for suffix, labels in (("0", {REFUSED: s.tag}), ("1", {}), ("2", {})):
        s.create_pod(suffix, cpu="500m", labels=labels, **member(s))


@FAILURES.declare(within_seconds=6.0)
def tolerates_in_backoff(s: Situation) -> Steps:
    """Let a pod that waits out its backoff after an error tolerate what keeps it away since."""
    node = s.create_node()
    yield
    pod = s.create_pod(labels={BREAKS: s.tag})
    s.wait_seconds(2.0)
    s.change_node(node, spec={"taints": [taint()]})
    s.change_pod(pod, spec={"tolerations": tolerates("k")})


def _reload_config(s: Situation, setup: str) -> None:
    for scheduler in s.schedulers:
        s.add_acts(acts.Reload(at=s.now, process=scheduler, setup=setup))


@RELOADS.declare()
def reload_helps(s: Situation) -> Steps:
    """Let a plugin that turned a pod away be gone with the next configuration."""
    s.create_node()
    s.create_pod(labels={LABEL: s.tag})
    s.wait_seconds(3.0)
    yield
    _reload_config(s, "default")


@RELOADS.declare()
def reload_opens_gate(s: Situation) -> Steps:
    """Let a plugin that keeps a pod out of the queue be gone with the next configuration."""
    s.create_node()
    s.create_pod(labels={GATED: s.tag})
    s.wait_seconds(3.0)
    yield
    _reload_config(s, "default")


@RELOADS_WITH_PLUGIN.declare()
def reload_adds_plugin(s: Situation) -> Steps:
    """Wait for an event that only a plugin of the next configuration hears."""
    node = s.create_node()
    s.label_node(node, {"any": "label"})
    s.wait_seconds(1.0)
    _reload_config(s, "delayed step")
    s.wait_seconds(1.0)
    s.create_pod(labels={LABEL: s.tag})
    s.wait_seconds(3.0)
    yield
    s.label_node(node, {LABEL: s.tag})
