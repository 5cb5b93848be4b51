"""Administrators and operators: what they do with nodes, and with the configuration.

Administrators cordon, label, taint, remove and add nodes. Operators drain them, let nodes come by
themselves, and change the configuration. Node agents refuse pods here as well: a pod that the
scheduler bound fails on its node.
"""

from __future__ import annotations

from moorage_lab.fault_sim import acts
from moorage_lab.fault_sim.users.plot import ZONE, ZONES, Maker, Plot, a_node

_RELOADS = ("default", "scores", "broken plugin", "coscheduling")


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


def _drain(plot: Plot) -> None:
    """Drain a node; half of the time it is taken back into service later."""
    rng, node = plot.rng, plot.rng.choice(plot.nodes)
    seconds = rng.uniform(1, 30)
    plot.acts.append(acts.Drain(at=plot.now, node=node, seconds=seconds))
    if rng.random() < 0.5:
        back = acts.Patch(
            at=plot.now + seconds * rng.random(),
            kind="Node",
            name=node,
            namespace="",
            changes={"spec": {"unschedulable": None}},
        )
        plot.acts.append(back)


def _autoscale(plot: Plot) -> None:
    plot.acts.append(acts.Autoscale(at=plot.now, seconds=plot.rng.uniform(20, 120)))


def _reload(plot: Plot) -> None:
    """Give a scheduler another configuration; some are refused."""
    setup = plot.rng.choice(_RELOADS)
    plot.acts.append(acts.Reload(at=plot.now, process=plot.a_scheduler(), setup=setup))


def _node_refuses(plot: Plot) -> None:
    """Let the node of a pod refuse the pod, as a kubelet that knows of less room."""
    if plot.pods:
        status = {"phase": "Failed", "reason": plot.rng.choice(("OutOfcpu", "OutOfmemory"))}
        plot.add_change("Pod", plot.rng.choice(plot.pods), {"status": status}, subresource="status")


OPERATIONS: tuple[Maker, ...] = (
    *([_drain] * 10),
    *([_autoscale] * 4),
    *([_reload] * 6),
    *([_node_refuses] * 6),
)
"""The doings of operators, each as often as it stands here."""
