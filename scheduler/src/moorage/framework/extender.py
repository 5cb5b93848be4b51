"""HTTP extenders as the engine sees them: a Protocol, implemented where HTTP is spoken.

Engine and binding cycle call one verb of an `Extender` at a time. ``client`` implements extenders,
and conformance scripts them. Rules: scheduling spec, cycle section 7 (kubernetes v1.36
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
"""The plugin name that pods rejected by an extender wait for; no such plugin exists."""

SCORE_FACTOR: Final = 10
"""An extender scores 0 to 10, plugins 0 to 100."""

NodeTexts = Mapping[str, str]
Victims = Mapping[str, tuple[Sequence[Pod], int]]
"""Node to the pods to evict there, and how many of them a PodDisruptionBudget protects."""

PodsOnNode = Callable[[str], Sequence[Pod]]
"""Returns the pods on a node at the time of the call; no pods for an unknown node."""

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
    """One extender. Every verb raises `ExtenderError` when it fails or its answer is invalid."""

    @property
    def name(self) -> str:
        """The extender's URL, for messages."""
        ...

    @property
    def ignorable(self) -> bool:
        """Whether attempts go on without the extender when it fails."""
        ...

    @property
    def weight(self) -> int:
        """Multiplier of the extender's scores."""
        ...

    @property
    def filters(self) -> bool:
        """Whether the extender has the filter verb."""
        ...

    @property
    def prioritizes(self) -> bool:
        """Whether the extender scores nodes."""
        ...

    @property
    def preempts(self) -> bool:
        """Whether the extender is asked about preemption."""
        ...

    @property
    def binds(self) -> bool:
        """Whether the extender binds pods."""
        ...

    def interested(self, pod: Pod) -> bool:
        """Whether the extender is to be asked about the pod."""
        ...

    async def filter(
        self, pod: Pod, nodes: Sequence[Node]
    ) -> tuple[Sequence[str], NodeTexts, NodeTexts]:
        """Return passing nodes, failed nodes with reasons, and nodes that eviction cannot help.

        A name that passes is one of `nodes`; the other names may be any text.
        """
        ...

    async def prioritize(self, pod: Pod, nodes: Sequence[Node]) -> Mapping[str, int]:
        """Return scores by node name, unweighted and unchecked."""
        ...

    async def preempt(self, pod: Pod, victims: Victims, *, on_node: PodsOnNode) -> Victims:
        """Return the nodes to keep, each with the victims on it."""
        ...

    async def bind(self, pod: Pod, node_name: str) -> None:
        """Bind the pod; raises `ExtenderSilentError` when the outcome is unknown."""
        ...


def take_part(extenders: Sequence[Extender], pod: Pod) -> bool:
    """Return whether any extender has to be asked before a pod is decided."""
    return any(
        (each.filters or each.prioritizes or each.preempts) and each.interested(pod)
        for each in extenders
    )


def in_order(extenders: Sequence[Extender]) -> tuple[Extender, ...]:
    """Return extenders in the order in which they are asked: ignorable extenders last."""
    return tuple(sorted(extenders, key=lambda extender: extender.ignorable))
