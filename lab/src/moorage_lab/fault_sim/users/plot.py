"""A script under way: what exists so far, and the tools that add acts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from moorage.base.rng import Random, Streams
from moorage_lab.fault_sim import acts
from moorage_lab.fault_sim.acts import AnyAct, Script
from moorage_sandbox.testing.builders import Manifest, node_manifest

ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"
ZONES = ("a", "b", "c")
CLASSES = {"low": -10, "high": 100, "top": 1000, "polite": 100}
NEVER_PREEMPTS = "polite"
"""The class whose pods evict nobody."""

LOOK_SECONDS = 13.0
"""Longer than any backoff: after this time without news each pod was tried that can be placed."""

Maker = Callable[["Plot"], None]
"""Adds what one user does, or one fault, at the plot's time."""

SceneMaker = Callable[["Plot", str], Maker]
"""Sets the scene of a situation under a name that is its own, and returns its event."""


class Mix(msgspec.Struct, frozen=True, kw_only=True):
    """The proportions of a script.

    Parameters
    ----------
    nodes, steps, replicas
        Nodes at the start, acts of users, and schedulers.
    users
        What users do; one that stands there twice is drawn twice as often.
    faults, rate
        The faults, and their number for each act of a user.
    waits
        Situations, whose events come at the end of the script.
    wait_kinds
        The situations from which these are drawn.
    looks
        Whether the cluster is looked at after each of these things.
    founders
        What is done once, before everything else.
    setup
        Configuration of the schedulers.
    rest_seconds
        Time without acts at the end.
    """

    nodes: int
    steps: int
    replicas: int
    users: Sequence[Maker]
    faults: Sequence[Maker] = ()
    rate: float = 0.0
    waits: int = 0
    wait_kinds: Sequence[SceneMaker] = ()
    looks: bool = False
    founders: Sequence[Maker] = ()
    setup: str = "default"
    rest_seconds: float = 150.0


class Plot:
    """A script under way: what there is, and what comes next.

    Parameters
    ----------
    seed
        Decides the whole script.
    mix
        What it consists of.
    """

    def __init__(self, seed: int, mix: Mix) -> None:
        self.rng = Streams(seed).stream("script")
        self.seed = seed
        self.mix = mix
        self.replicas = mix.replicas
        self.now = 5.0
        self.names = 0
        self.pods: list[str] = []
        self.gated: list[str] = []
        self.sets: list[str] = []
        self.groups: list[str] = []
        self.nodes = [f"n{number}" for number in range(mix.nodes)]
        self.notes: dict[str, list[str]] = {}
        """Further names that makers keep for one another, by what they name."""
        self.acts: list[AnyAct] = []
        self.standing: list[Manifest] = []
        """The nodes at the start."""

    def script(self) -> Script:
        """Return the whole script."""
        rng, mix = self.rng, self.mix
        self.standing += [a_node(rng, name) for name in self.nodes]
        self._classes()
        for founder in mix.founders:
            founder(self)
        events = []
        for number, situation in enumerate(
            rng.sample(mix.wait_kinds, min(mix.waits, len(mix.wait_kinds)))
        ):
            self.now += rng.expovariate(1.0)
            events.append(situation(self, f"k{number}"))
        for _ in range(mix.steps):
            self.now += rng.expovariate(1 / 1.5)
            rng.choice(mix.users)(self)
            if mix.faults and rng.random() < mix.rate:
                self.now += rng.random()
                rng.choice(mix.faults)(self)
        self.now += 5.0 * bool(events)
        for event in rng.sample(events, len(events)):
            self.now += rng.choice((0.0, 0.01, 0.5, 3.0))
            event(self)
            if mix.looks:
                self.now += LOOK_SECONDS
                self.acts.append(acts.Look(at=self.now))
        return Script(
            seed=self.seed,
            replicas=mix.replicas,
            nodes=self.standing,
            acts=self.acts,
            rest_seconds=mix.rest_seconds,
            setup=mix.setup,
        )

    def _classes(self) -> None:
        for name, value in CLASSES.items():
            self.add_creation(
                {
                    "apiVersion": "scheduling.k8s.io/v1",
                    "kind": "PriorityClass",
                    "metadata": {"name": name},
                    "value": value,
                    **({"preemptionPolicy": "Never"} if name == NEVER_PREEMPTS else {}),
                },
                at=1.0,
            )

    # --- tools ------------------------------------------------------------------------------------

    def name(self, prefix: str) -> str:
        """Return a name that was not used yet."""
        self.names += 1
        return f"{prefix}{self.names}"

    def add_creation(self, obj: Manifest, *, at: float | None = None) -> None:
        """Add the creation of an object."""
        self.acts.append(acts.Create(at=self.now if at is None else at, object=obj))

    def add_change(
        self,
        kind: str,
        name: str,
        changes: dict[str, Any],
        *,
        namespace: str = "default",
        subresource: str = "",
    ) -> None:
        """Add a change of an object."""
        self.acts.append(
            acts.Patch(
                at=self.now,
                kind=kind,
                name=name,
                changes=changes,
                namespace=namespace,
                subresource=subresource,
            )
        )

    def add_deletion(self, kind: str, name: str, *, namespace: str = "default") -> None:
        """Add a deletion."""
        self.acts.append(acts.Delete(at=self.now, kind=kind, name=name, namespace=namespace))

    def a_scheduler(self) -> str:
        """Return the name of one of the schedulers."""
        return f"scheduler-{self.rng.randrange(self.replicas)}"


def a_node(rng: Random, name: str) -> Manifest:
    """Return a node of random size, zone and taints."""
    taints = [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}] if rng.random() < 0.2 else []
    labels = {ZONE: rng.choice(ZONES), "disk": rng.choice(("ssd", "hdd"))}
    return node_manifest(
        name,
        cpu=str(rng.randint(2, 6)),
        pods=str(rng.choice((4, 110))),
        labels=labels,
        taints=taints,
    )
