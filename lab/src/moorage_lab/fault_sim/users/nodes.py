"""Administrators: they cordon, label, taint, remove, add and drain nodes."""

from __future__ import annotations

from moorage_lab.fault_sim import acts
from moorage_lab.fault_sim.users.plot import ZONE, ZONES, Maker, Plot, a_node


def _cordon(plot: Plot) -> None:
    name = plot.rng.choice(plot.nodes)
    cordoned = plot.rng.random() < 0.5
    plot.add_change("Node", name, {"spec": {"unschedulable": cordoned or None}}, namespace="")


def _label_node(plot: Plot) -> None:
    labels = {"disk": plot.rng.choice(("ssd", "hdd")), ZONE: plot.rng.choice(ZONES)}
    name = plot.rng.choice(plot.nodes)
    plot.add_change("Node", name, {"metadata": {"labels": labels}}, namespace="")


def _taint_node(plot: Plot) -> None:
    effect = plot.rng.choice(("NoSchedule", "NoSchedule", "PreferNoSchedule", "NoExecute"))
    taints = [{"key": "busy", "value": "yes", "effect": effect}]
    name = plot.rng.choice(plot.nodes)
    changes = {"spec": {"taints": taints if plot.rng.random() < 0.4 else None}}
    plot.add_change("Node", name, changes, namespace="")


def _remove_node(plot: Plot) -> None:
    if len(plot.nodes) > 2:
        name = plot.nodes.pop(plot.rng.randrange(len(plot.nodes)))
        plot.add_deletion("Node", name, namespace="")


def _add_node(plot: Plot) -> None:
    name = plot.name("x")
    plot.nodes.append(name)
    plot.acts.append(acts.Join(at=plot.now, node=a_node(plot.rng, name)))


NODES: tuple[Maker, ...] = (
    *([_cordon] * 3),
    *([_label_node] * 2),
    *([_taint_node] * 2),
    _remove_node,
    *([_add_node] * 2),
)
"""The doings of administrators, each as often as it stands here."""
