"""What users do, drawn from a seed: a script of acts over minutes of a small cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal

from moorage.base.rng import Random, Streams
from moorage.sim import acts
from moorage.sim.acts import AnyAct, Script
from moorage.sim.faults import WIRE_FAULTS
from moorage.testing.builders import Manifest, node_manifest, pod_manifest

ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"
_ZONES = ("a", "b", "c")
CLASSES = {"low": -10, "high": 100, "top": 1000}
PROGRAMS = ("controllers", "nodes")


class Plot:
    """A script under way: what there is, and what comes next.

    Parameters
    ----------
    seed
        Decides the whole script.
    nodes, steps, replicas
        Nodes at the start, acts of users, and schedulers.
    faults, rate
        Kinds of faults, keys of `FAULT_KINDS`, and their number per act of a user.
    """

    def __init__(
        self,
        seed: int,
        *,
        nodes: int = 5,
        steps: int = 60,
        replicas: int = 1,
        faults: Sequence[str] = (),
        rate: float = 0.0,
    ) -> None:
        self.rng = Streams(seed).stream("script")
        self.seed = seed
        self.steps = steps
        self.replicas = replicas
        self.faults = [each for kind in faults for each in FAULT_KINDS[kind]]
        self.rate = rate
        self.now = 5.0
        self.names = 0
        self.pods: list[str] = []
        self.gated: list[str] = []
        self.sets: list[str] = []
        self.nodes = [f"n{number}" for number in range(nodes)]
        self.away: list[str] = []
        self.made: list[AnyAct] = []

    def script(self) -> Script:
        """Return the whole script."""
        rng = self.rng
        nodes = [a_node(rng, name) for name in self.nodes]
        self._classes()
        makers = [each for each, weight in _ACTS for _ in range(weight)]
        for _ in range(self.steps):
            self.now += rng.expovariate(1 / 1.5)
            rng.choice(makers)(self)
            if self.faults and rng.random() < self.rate:
                self.now += rng.random()
                rng.choice(self.faults)(self)
        return Script(seed=self.seed, replicas=self.replicas, nodes=nodes, acts=self.made)

    def _classes(self) -> None:
        for name, value in CLASSES.items():
            self.create(
                {
                    "apiVersion": "scheduling.k8s.io/v1",
                    "kind": "PriorityClass",
                    "metadata": {"name": name},
                    "value": value,
                },
                at=1.0,
            )

    # --- tools ------------------------------------------------------------------------------------

    def name(self, prefix: str) -> str:
        """Return a name that was not used yet."""
        self.names += 1
        return f"{prefix}{self.names}"

    def create(self, obj: Manifest, *, at: float | None = None) -> None:
        """Add the creation of an object."""
        self.made.append(acts.Create(at=self.now if at is None else at, object=obj))

    def patch(self, kind: str, name: str, changes: dict[str, Any], *, namespace: str) -> None:
        """Add a change of an object."""
        self.made.append(
            acts.Patch(at=self.now, kind=kind, name=name, changes=changes, namespace=namespace)
        )

    def delete(self, kind: str, name: str, *, namespace: str = "default") -> None:
        """Add a deletion."""
        self.made.append(acts.Delete(at=self.now, kind=kind, name=name, namespace=namespace))

    def a_scheduler(self) -> str:
        """Return the name of one of the schedulers."""
        return f"scheduler-{self.rng.randrange(self.replicas)}"


def a_node(rng: Random, name: str) -> Manifest:
    """Return a node of random size, zone and taints."""
    taints = [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}] if rng.random() < 0.2 else []
    labels = {ZONE: rng.choice(_ZONES), "disk": rng.choice(("ssd", "hdd"))}
    return node_manifest(
        name,
        cpu=str(rng.randint(2, 6)),
        pods=str(rng.choice((4, 110))),
        labels=labels,
        taints=taints,
    )


def pod_spec(rng: Random, app: str) -> dict[str, Any]:
    """Return the fields of a random pod: one or two things that restrict where it goes."""
    spec: dict[str, Any] = {}
    if rng.random() < 0.35:
        spec["priorityClassName"] = rng.choice(tuple(CLASSES))
    if rng.random() < 0.2:
        spec["tolerations"] = [{"key": "gpu", "operator": "Exists"}]
    if rng.random() < 0.15:
        spec["nodeSelector"] = {ZONE: rng.choice(_ZONES)}
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


# --- acts of users --------------------------------------------------------------------------------


def _pod(plot: Plot) -> None:
    app = plot.rng.choice(("web", "db", "job"))
    for _ in range(plot.rng.choice((1, 1, 2, 4))):
        name = plot.name("p")
        plot.pods.append(name)
        plot.create(a_pod(plot.rng, name, app))


def _gated_pod(plot: Plot) -> None:
    name = plot.name("g")
    plot.gated.append(name)
    plot.create(a_pod(plot.rng, name, "gated", gates=["example.com/wait"]))


def _ungate(plot: Plot) -> None:
    if plot.gated:
        name = plot.gated.pop(plot.rng.randrange(len(plot.gated)))
        plot.pods.append(name)
        plot.patch("Pod", name, {"spec": {"schedulingGates": []}}, namespace="default")


def _delete_pod(plot: Plot) -> None:
    if plot.pods:
        plot.delete("Pod", plot.pods.pop(plot.rng.randrange(len(plot.pods))))


def _label_pod(plot: Plot) -> None:
    if plot.pods:
        app = plot.rng.choice(("web", "db", "job"))
        name = plot.rng.choice(plot.pods)
        plot.patch("Pod", name, {"metadata": {"labels": {"app": app}}}, namespace="default")


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
    plot.create({"apiVersion": version, "kind": kind, "metadata": meta, "spec": spec})


def _scale(plot: Plot) -> None:
    if plot.sets:
        kind, _, name = plot.rng.choice(plot.sets).partition("/")
        plot.patch(kind, name, {"spec": {"replicas": plot.rng.randint(0, 6)}}, namespace="default")


def _delete_set(plot: Plot) -> None:
    if plot.sets:
        kind, _, name = plot.sets.pop(plot.rng.randrange(len(plot.sets))).partition("/")
        plot.delete(kind, name)


def _budget(plot: Plot) -> None:
    name = plot.name("b")
    app = plot.rng.choice(("web", "db", "job"))
    plot.create(
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": app}}},
        }
    )


def _cordon(plot: Plot) -> None:
    name = plot.rng.choice(plot.nodes)
    cordoned = plot.rng.random() < 0.5
    plot.patch("Node", name, {"spec": {"unschedulable": cordoned or None}}, namespace="")


def _label_node(plot: Plot) -> None:
    labels = {"disk": plot.rng.choice(("ssd", "hdd")), ZONE: plot.rng.choice(_ZONES)}
    name = plot.rng.choice(plot.nodes)
    plot.patch("Node", name, {"metadata": {"labels": labels}}, namespace="")


def _taint_node(plot: Plot) -> None:
    effect = plot.rng.choice(("NoSchedule", "NoSchedule", "PreferNoSchedule", "NoExecute"))
    taints = [{"key": "busy", "value": "yes", "effect": effect}]
    name = plot.rng.choice(plot.nodes)
    changes = {"spec": {"taints": taints if plot.rng.random() < 0.4 else None}}
    plot.patch("Node", name, changes, namespace="")


def _remove_node(plot: Plot) -> None:
    if len(plot.nodes) > 2:
        name = plot.nodes.pop(plot.rng.randrange(len(plot.nodes)))
        plot.delete("Node", name, namespace="")


def _add_node(plot: Plot) -> None:
    name = plot.name("x")
    plot.nodes.append(name)
    plot.made.append(acts.Join(at=plot.now, node=a_node(plot.rng, name)))


_ACTS: tuple[tuple[Callable[[Plot], None], int], ...] = (
    (_pod, 12),
    (_gated_pod, 2),
    (_ungate, 2),
    (_delete_pod, 8),
    (_label_pod, 1),
    (_set, 4),
    (_scale, 4),
    (_delete_set, 2),
    (_budget, 1),
    (_cordon, 3),
    (_label_node, 2),
    (_taint_node, 2),
    (_remove_node, 1),
    (_add_node, 2),
)


# --- faults ---------------------------------------------------------------------------------------


def _wire(plot: Plot) -> None:
    rng = plot.rng
    process = plot.a_scheduler() if rng.random() < 0.8 else rng.choice(PROGRAMS)
    plot.made.append(
        acts.Disturb(
            at=plot.now,
            process=process,
            fault=rng.choice(WIRE_FAULTS),
            rate=rng.choice((0.1, 0.3, 1.0)),
            seconds=rng.uniform(0.5, 20),
        )
    )


def _stop(plot: Plot) -> None:
    seconds = plot.rng.choice((0.01, 1.0, 5.0, 20.0, 120.0))
    plot.made.append(acts.Stop(at=plot.now, process=plot.a_scheduler(), seconds=seconds))


def _kill(plot: Plot) -> None:
    signal: Literal["KILL", "TERM"] = "KILL" if plot.rng.random() < 0.5 else "TERM"
    seconds = plot.rng.uniform(0.1, 10)
    plot.made.append(
        acts.Kill(at=plot.now, process=plot.a_scheduler(), signal=signal, seconds=seconds)
    )


def _jump(plot: Plot) -> None:
    seconds = plot.rng.choice((-30.0, -2.0, 2.0, 30.0))
    plot.made.append(acts.Jump(at=plot.now, process=plot.a_scheduler(), seconds=seconds))


def _outage(plot: Plot) -> None:
    seconds = plot.rng.uniform(0.1, 30)
    plot.made.append(acts.Outage(at=plot.now, seconds=seconds, forgets=plot.rng.random() < 0.5))


FAULT_KINDS: Mapping[str, Sequence[Callable[[Plot], None]]] = MappingProxyType(
    {
        "wire": (_wire, _wire, _wire, _wire),
        "stop": (_stop,),
        "kill": (_kill,),
        "jump": (_jump,),
        "outage": (_outage,),
    }
)
"""What adds a fault of each kind to a script; a kind with several is drawn more often."""
