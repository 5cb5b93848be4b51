"""Users of controllers: sets of pods, their scale and their budgets."""

from __future__ import annotations

from typing import Any

from moorage_lab.fault_sim.users.plot import Maker, Plot
from moorage_lab.fault_sim.users.pods import a_pod


def _set(plot: Plot) -> None:
    kind = plot.rng.choice(("Deployment", "Deployment", "StatefulSet", "Job"))
    name = plot.name("w")
    labels = {"app": name}
    template: dict[str, Any] = {
        "metadata": {"labels": labels},
        "spec": a_pod(plot.rng, "template", name)["spec"],
    }
    count = plot.rng.randint(1, 5)
    if kind == "Job":
        template["spec"]["restartPolicy"] = "Never"
        spec: dict[str, Any] = {"parallelism": count, "completions": count, "template": template}
        version = "batch/v1"
    else:
        spec = {"replicas": count, "selector": {"matchLabels": labels}, "template": template}
        version = "apps/v1"
        if kind == "StatefulSet":
            spec["serviceName"] = name
        plot.sets.append(f"{kind}/{name}")
    meta = {"name": name, "namespace": "default"}
    plot.add_creation({"apiVersion": version, "kind": kind, "metadata": meta, "spec": spec})


def _scale(plot: Plot) -> None:
    if plot.sets:
        kind, _, name = plot.rng.choice(plot.sets).partition("/")
        plot.add_change(
            kind, name, {"spec": {"replicas": plot.rng.randint(0, 6)}}, namespace="default"
        )


def _delete_set(plot: Plot) -> None:
    if plot.sets:
        kind, _, name = plot.sets.pop(plot.rng.randrange(len(plot.sets))).partition("/")
        plot.add_deletion(kind, name)


def _budget(plot: Plot) -> None:
    name = plot.name("b")
    app = plot.rng.choice(("web", "db", "job"))
    plot.add_creation(
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": app}}},
        }
    )


SETS: tuple[Maker, ...] = (*([_set] * 4), *([_scale] * 4), *([_delete_set] * 2), _budget)
"""The doings of users with sets, each as often as it stands here."""
