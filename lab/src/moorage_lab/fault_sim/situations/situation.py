"""The verbs in which a situation is written, and the table that it stands in.

What a situation does before its ``yield`` sets the scene. There the other situations of the run set
theirs, and time passes. What follows is the event. A situation without ``yield`` has no event.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from moorage.api.resources import RESOURCES
from moorage_lab.fault_sim import acts
from moorage_lab.fault_sim.acts import AnyAct
from moorage_lab.fault_sim.network_faults import WireFault
from moorage_lab.fault_sim.users.plot import ZONE, Maker, Plot
from moorage_sandbox.testing.builders import Manifest, node_manifest, pod_manifest

_CLUSTER_KINDS = frozenset(each.kind for each in RESOURCES if not each.namespaced)

SOME = ("*",)
"""Promises more bound pods than without the event: chance decides which ones."""


class _Acts:
    """The moments of a situation's acts, and the acts themselves.

    Parameters
    ----------
    plot
        The script that its acts are added to.
    tag
        A name of its own. The pods select nodes with the label ``wait`` of this value.
    """

    def __init__(self, plot: Plot, tag: str) -> None:
        self.plot = plot
        self.tag = tag
        self.rng = plot.rng

    @property
    def schedulers(self) -> list[str]:
        """Names of the schedulers."""
        return [f"scheduler-{number}" for number in range(self.plot.replicas)]

    @property
    def now(self) -> float:
        """The moment of the next act, seconds."""
        return self.plot.now

    @now.setter
    def now(self, at: float) -> None:
        self.plot.now = at

    def wait_seconds(self, seconds: float) -> None:
        """Let time pass before the next act."""
        self.plot.now += seconds

    def object_name(self, suffix: str) -> str:
        """Return the name of an object; an empty suffix is the tag itself."""
        return f"{self.tag}-{suffix}" if suffix else self.tag

    def add_acts(self, *more: AnyAct) -> None:
        """Add acts for which there is no verb."""
        self.plot.acts += more

    def disturb(
        self, *faults: tuple[WireFault, float], seconds: float, of: Sequence[str] = ()
    ) -> None:
        """Let faults, each with its rate, strike the connection of programs, or every scheduler."""
        self.add_acts(
            *(
                acts.Disturb(at=self.now, process=process, fault=fault, rate=rate, seconds=seconds)
                for process in of or self.schedulers
                for fault, rate in faults
            )
        )

    def create_objects(self, *objects: Manifest) -> None:
        """Create objects."""
        for each in objects:
            self.plot.add_creation(each)

    def change_object(self, kind: str, name: str, *, subresource: str = "", **changes: Any) -> None:
        """Change parts of an object; a new status goes to its subresource."""
        subresource = "status" if "status" in changes else subresource
        namespace = "" if kind in _CLUSTER_KINDS else "default"
        self.plot.add_change(kind, name, changes, namespace=namespace, subresource=subresource)

    def delete_object(self, kind: str, name: str, *, namespace: str = "default") -> None:
        """Delete an object."""
        namespace = "" if kind in _CLUSTER_KINDS else namespace
        self.plot.add_deletion(kind, name, namespace=namespace)


class Situation(_Acts):
    """The nodes and pods of one situation; their names begin with its tag."""

    def part(self, suffix: str) -> Situation:
        """Return a part with another tag: its pods select nodes of their own."""
        return Situation(self.plot, self.object_name(suffix))

    def create_node(self, suffix: str = "n", **fields: Any) -> str:
        """Add a node at the start that only the pods of this situation select; return its name."""
        labels = {"wait": self.tag, ZONE: self.tag, **fields.pop("labels", {})}
        self.plot.standing.append(
            node_manifest(self.object_name(suffix), cpu="2", labels=labels, **fields)
        )
        return self.object_name(suffix)

    def join_node(self, suffix: str = "n", **fields: Any) -> str:
        """Let a node join now; return its name."""
        fields = {"cpu": "2", "labels": {"wait": self.tag}} | fields
        node = node_manifest(self.object_name(suffix), **fields)
        self.add_acts(acts.Join(at=self.now, node=node))
        return self.object_name(suffix)

    def create_pod(self, suffix: str = "p", **fields: Any) -> str:
        """Create a pod that selects the nodes of the situation; return its name."""
        fields.setdefault("cpu", "1500m")
        fields.setdefault("terminationGracePeriodSeconds", 1)
        fields.setdefault("node_selector", {"wait": self.tag})
        self.create_objects(pod_manifest(self.object_name(suffix), memory="64Mi", **fields))
        self.wait_seconds(0.3)
        return self.object_name(suffix)

    def create_bound_pod(self, suffix: str, node: str, **fields: Any) -> str:
        """Let another scheduler create a pod that is on a node, also one that has no room."""
        return self.create_pod(suffix, node_name=node, **fields, schedulerName="other")

    def create_holder(self, **fields: Any) -> str:
        """Create a pod that is on the node before the waiting one comes; return its name."""
        holder = self.create_pod("h", **fields)
        self.wait_seconds(1.0)
        return holder

    def create_rivals(self, **fields: Any) -> str:
        """Create a node, a holder, and a pod like it that waits; return the holder."""
        self.create_node()
        holder = self.create_holder(**fields)
        self.create_pod(**fields)
        return holder

    def create_plain_pod(
        self,
        suffix: str = "p",
        *,
        finalizers: list[str] | None = None,
        resources: Mapping[str, Mapping[str, str]] | None = None,
        **fields: Any,
    ) -> str:
        """Create a pod with these resources and finalizers, and the usual grace period."""
        pod = pod_manifest(self.object_name(suffix), node_selector={"wait": self.tag}, **fields)
        if resources is not None:
            pod["spec"]["containers"][0]["resources"] = resources
        if finalizers is not None:
            pod["metadata"]["finalizers"] = finalizers
        self.create_objects(pod)
        return self.object_name(suffix)

    def change_node(self, name: str, **changes: Any) -> None:
        """Change parts of a node."""
        self.change_object("Node", name, **changes)

    def change_pod(self, name: str, **changes: Any) -> None:
        """Change parts of a pod."""
        self.change_object("Pod", name, **changes)

    def change_resources(self, node: str, amounts: Mapping[str, str]) -> None:
        """Change resources that a node has."""
        self.change_node(node, status={"capacity": amounts, "allocatable": amounts})

    def resize_pod(self, name: str, *, cpu: str) -> None:
        """Let a pod ask for less, in place."""
        resources = {"requests": {"cpu": cpu, "memory": "64Mi"}}
        containers = [{"name": "main", "resources": resources}]
        self.change_object("Pod", name, spec={"containers": containers}, subresource="resize")

    def label_node(self, name: str, labels: Mapping[str, str | None]) -> None:
        """Change labels of a node."""
        self.change_node(name, metadata={"labels": labels})

    def label_pod(self, name: str, labels: Mapping[str, str | None]) -> None:
        """Change labels of a pod."""
        self.change_pod(name, metadata={"labels": labels})

    def delete_pod(self, name: str, *, namespace: str = "default") -> None:
        """Delete a pod."""
        self.delete_object("Pod", name, namespace=namespace)


Steps = Iterator[None]
"""The steps of a situation; one without an event has None."""


class Declaration(msgspec.Struct, frozen=True, kw_only=True):
    """A situation and what it promises; see `SituationTable.declare`."""

    name: str
    steps: Callable[[Situation], Steps | None]
    disturbs: bool
    binds: tuple[str, ...]
    within_seconds: float
    anyway: bool

    def __call__(self, plot: Plot, tag: str) -> Maker:
        """Set the scene under a tag; return the event."""
        steps = self.steps(Situation(plot, tag)) or iter(())
        next(steps, None)
        return lambda later: next(steps, None)

    @property
    def has_event(self) -> bool:
        """Whether something happens after the scene."""
        return inspect.isgeneratorfunction(self.steps)


class SituationTable(list[Declaration]):
    """Situations in the order in which they are declared; seeds rely on this order.

    Parameters
    ----------
    disturbs
        Whether they come with a fault, or hold a scheduler up, so that no other may run with them.
    """

    def __init__(self, *, disturbs: bool = False) -> None:
        super().__init__()
        self._disturbs = disturbs

    def declare(
        self,
        *,
        binds: tuple[str, ...] = ("p",),
        within_seconds: float = 3.0,
        anyway: bool = False,
    ) -> Callable[[Callable[[Situation], Steps | None]], Declaration]:
        """Declare the decorated steps, and promise which pods are bound once they are done.

        Parameters
        ----------
        binds
            The ends of the names of these pods. Without any, no pod is bound that would not be
            bound without the event.
        within_seconds
            Time after the last act in which they are bound.
        anyway
            Whether they are bound without the event as well: to another node, or later.
        """

        def declare_steps(steps: Callable[[Situation], Steps | None]) -> Declaration:
            declaration = Declaration(
                name=steps.__name__,
                steps=steps,
                disturbs=self._disturbs,
                binds=binds,
                within_seconds=within_seconds,
                anyway=anyway,
            )
            self.append(declaration)
            return declaration

        return declare_steps


def stops_within(seconds: int) -> dict[str, Any]:
    """Return the fields of a pod that takes all of its grace period to stop."""
    slow = {"moorage.dev/stop-seconds": str(seconds)}
    return {"terminationGracePeriodSeconds": seconds, "annotations": slow}


def taint(value: str = "v", effect: str = "NoSchedule", key: str = "k") -> dict[str, str]:
    """Return a taint, which keeps the pods of most situations away."""
    return {"key": key, "value": value, "effect": effect}


def tolerates(*keys: str) -> list[dict[str, str]]:
    """Return the tolerations of all taints with these keys."""
    return [{"key": key, "operator": "Exists"} for key in keys]


def node_affinity(term: dict[str, Any]) -> dict[str, Any]:
    """Return the affinity of a pod that needs a node of one term."""
    required = {"nodeSelectorTerms": [term]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
