"""Users of plain pods: they create, gate, relabel and delete them, in every state."""

from __future__ import annotations

from typing import Any

from moorage.base.rng import Random
from moorage_lab.fault_sim import acts
from moorage_lab.fault_sim.users.plot import CLASSES, HOST, ZONE, ZONES, Maker, Plot
from moorage_sandbox.testing.builders import Manifest, pod_manifest


def pod_spec(rng: Random, app: str) -> dict[str, Any]:
    """Return the fields of a random pod: one or two things that restrict where it goes."""
    spec: dict[str, Any] = {}
    if rng.random() < 0.35:
        spec["priorityClassName"] = rng.choice(tuple(CLASSES))
    if rng.random() < 0.2:
        spec["tolerations"] = [{"key": "gpu", "operator": "Exists"}]
    if rng.random() < 0.15:
        spec["nodeSelector"] = {ZONE: rng.choice(ZONES)}
    if rng.random() < 0.1:
        spec["terminationGracePeriodSeconds"] = rng.choice((0, 1, 5))
    draw = rng.random()
    selector = {"matchLabels": {"app": app}}
    if draw < 0.15:
        term = {"labelSelector": selector, "topologyKey": rng.choice((HOST, ZONE))}
        spec["affinity"] = {
            "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        }
    elif draw < 0.22:
        term = {"labelSelector": selector, "topologyKey": ZONE}
        spec["affinity"] = {
            "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        }
    elif draw < 0.4:
        spec["topologySpreadConstraints"] = [
            {
                "maxSkew": rng.choice((1, 2)),
                "topologyKey": rng.choice((HOST, ZONE)),
                "whenUnsatisfiable": rng.choice(("DoNotSchedule", "ScheduleAnyway")),
                "labelSelector": selector,
            }
        ]
    return spec


def a_pod(rng: Random, name: str, app: str, **fields: Any) -> Manifest:
    """Return a random pod."""
    cpu = rng.choice(("250m", "500m", "1", "1", "2", "3"))
    ports = [rng.choice((8080, 9090))] if rng.random() < 0.08 else []
    return pod_manifest(
        name,
        cpu=cpu,
        memory="256Mi",
        labels={"app": app},
        host_ports=ports,
        **{**pod_spec(rng, app), **fields},
    )


def _pod(plot: Plot) -> None:
    app = plot.rng.choice(("web", "db", "job"))
    for _ in range(plot.rng.choice((1, 1, 2, 4))):
        name = plot.name("p")
        plot.pods.append(name)
        plot.add_creation(a_pod(plot.rng, name, app))


def _gated_pod(plot: Plot) -> None:
    name = plot.name("g")
    plot.gated.append(name)
    plot.add_creation(a_pod(plot.rng, name, "gated", gates=["example.com/wait"]))


def _ungate(plot: Plot) -> None:
    if plot.gated:
        name = plot.gated.pop(plot.rng.randrange(len(plot.gated)))
        plot.pods.append(name)
        plot.add_change("Pod", name, {"spec": {"schedulingGates": []}}, namespace="default")


def _delete_pod(plot: Plot) -> None:
    if plot.pods:
        plot.add_deletion("Pod", plot.pods.pop(plot.rng.randrange(len(plot.pods))))


def _label_pod(plot: Plot) -> None:
    if plot.pods:
        app = plot.rng.choice(("web", "db", "job"))
        name = plot.rng.choice(plot.pods)
        plot.add_change("Pod", name, {"metadata": {"labels": {"app": app}}}, namespace="default")


def _delete_at_once(plot: Plot) -> None:
    """Delete a pod a few milliseconds after its creation, while it is on its way."""
    name = plot.name("q")
    plot.add_creation(a_pod(plot.rng, name, "web"))
    plot.now += plot.rng.uniform(0, 0.02)
    plot.add_deletion("Pod", name)


def _delete_on_its_way(plot: Plot) -> None:
    """Delete a pod after some steps of a scheduler, so in the midst of an attempt or a binding."""
    name = plot.name("q")
    plot.add_creation(a_pod(plot.rng, name, "web"))
    plot.acts.append(
        acts.Delete(
            at=plot.now,
            kind="Pod",
            name=name,
            process=plot.a_scheduler(),
            steps=plot.rng.randrange(60),
        )
    )


def _replace(plot: Plot) -> None:
    """Delete a pod and create another one of the same name."""
    if plot.pods:
        name = plot.rng.choice(plot.pods)
        plot.add_deletion("Pod", name)
        plot.now += plot.rng.choice((0.005, 0.05, 3.0))
        plot.add_creation(a_pod(plot.rng, name, "web"))


def _foreign(plot: Plot) -> None:
    """Create a pod of another scheduler, which is bound to a node at once."""
    name = plot.name("f")
    pod = a_pod(plot.rng, name, "web", schedulerName="other")
    if plot.rng.random() < 0.5:
        pod["spec"]["nodeName"] = plot.rng.choice(plot.nodes)
    plot.add_creation(pod)


PODS: tuple[Maker, ...] = (
    *([_pod] * 12),
    *([_gated_pod] * 2),
    *([_ungate] * 2),
    *([_delete_pod] * 7),
    _label_pod,
    _delete_at_once,
    _delete_on_its_way,
    *([_replace] * 3),
    _foreign,
    _foreign,
)
"""The doings of users with plain pods, each as often as it stands here."""
