"""HTTP extenders as the engine sees them: a Protocol, implemented where HTTP is spoken.

Engine and binding cycle ask `Extender`s for a verb each; ``client`` implements them, and
conformance scripts them. Rules: scheduling spec, cycle section 7 (kubernetes v1.36
``pkg/scheduler/extender.go``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

from moorage.api.changes import Action, ClusterEvent, Resource
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.framework.points import EventRegistration

EXTENDER: Final = "Extender"
"""The plugin that pods rejected by an extender wait for; no plugin of this name exists."""

SCORE_FACTOR: Final = 10
"""An extender scores 0 to 10, plugins 0 to 100."""

NodeTexts = Mapping[str, str]
Victims = Mapping[str, tuple[Sequence[Pod], int]]
"""Node to the pods to evict there, and how many of them a PodDisruptionBudget protects."""

PodsOnNode = Callable[[str], Sequence[Pod]]
"""Gives the pods on a node as they are when it is called; none for a node that is not there."""

_RESOURCES: Final = (
    Resource.POD,
    Resource.NODE,
    Resource.PERSISTENT_VOLUME,
    Resource.PERSISTENT_VOLUME_CLAIM,
    Resource.CSI_NODE,
    Resource.CSI_DRIVER,
    Resource.CSI_STORAGE_CAPACITY,
    Resource.STORAGE_CLASS,
    Resource.RESOURCE_CLAIM,
    Resource.DEVICE_CLASS,
)

EVERY_EVENT: Final = tuple(
    EventRegistration(ClusterEvent(resource, Action.ALL)) for resource in _RESOURCES
)
"""Events for a plugin that registers none: every action on these (framework section 4)."""


class Extender(Protocol):
    """One extender. Every verb raises `ExtenderError` when it fails or its answer lies."""

    @property
    def name(self) -> str:
        """Its URL, for messages."""
        ...

    @property
    def ignorable(self) -> bool:
        """Whether attempts go on without it when it fails."""
        ...

    @property
    def weight(self) -> int:
        """Multiplier of its scores."""
        ...

    @property
    def filters(self) -> bool:
        """Whether it has the filter verb; the same for the three below."""
        ...

    @property
    def prioritizes(self) -> bool:
        """Whether it scores nodes."""
        ...

    @property
    def preempts(self) -> bool:
        """Whether the extender is asked about preemption."""
        ...

    @property
    def binds(self) -> bool:
        """Whether it binds pods itself."""
        ...

    def interested(self, pod: Pod) -> bool:
        """Whether it wants to be asked about the pod."""
        ...

    async def filter(
        self, pod: Pod, nodes: Sequence[Node]
    ) -> tuple[Sequence[str], NodeTexts, NodeTexts]:
        """Return the nodes that pass, the failed ones with reasons, and those beyond help.

        A name that passes is one of `nodes`; the others may be anything.
        """
        ...

    async def prioritize(self, pod: Pod, nodes: Sequence[Node]) -> Mapping[str, int]:
        """Return scores by node name, unweighted and unchecked."""
        ...

    async def preempt(self, pod: Pod, victims: Victims, *, on_node: PodsOnNode) -> Victims:
        """Return the nodes to keep, each with the pods on it that are to go."""
        ...

    async def bind(self, pod: Pod, node_name: str) -> None:
        """Bind the pod; raises `ExtenderSilentError` when it is not known whether it did."""
        ...


def in_order(extenders: Sequence[Extender]) -> tuple[Extender, ...]:
    """Return extenders in the order they are asked: those that may be ignored last."""
    return tuple(sorted(extenders, key=lambda extender: extender.ignorable))
