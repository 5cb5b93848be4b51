"""The question about a workload, a selection of pods or a namespace, and its answer, as data."""

from __future__ import annotations

from enum import Enum
from typing import Any, ClassVar

import msgspec

from moorage.api.mentions import PodName, Prose, ProseTree, SubjectPod


class ObjectQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """An object, or a selection of pods, that is asked about.

    Parameters
    ----------
    type_
        The type as kubectl takes it, such as ``deploy`` or ``rollouts.argoproj.io``; empty for a
        selection.
    name
        The object; empty for a selection.
    namespace
        The namespace of the object or of the selection.
    all_namespaces
        Whether the selection is of all namespaces.
    selector
        A label selector, as kubectl takes it; empty for all pods.
    objects
        Manifests that a scheduler does not watch: the owner and the owners of pods below it,
        Events with reason FailedCreate, quotas and limit ranges. Without them the answer says
        what the pods say.
    """

    type_: str = msgspec.field(name="type", default="")
    name: str = ""
    namespace: str = "default"
    all_namespaces: bool = False
    selector: str = ""
    objects: tuple[dict[str, Any], ...] = ()

    @property
    def title(self) -> str:
        """The object in words."""
        return f"{self.type_} {self.name}"


class Stage(Enum):
    """The stage that a pod has reached, in the order of its life."""

    NOT_CREATED = "notCreated"
    """The owner wants the pod, and it does not exist."""
    GATED = "gated"
    """A PreEnqueue plugin keeps the pod out of the queue."""
    PENDING = "pending"
    """The pod exists and has no node."""
    PERMIT = "permit"
    """The pod has a node, and a Permit plugin holds it."""
    BINDING = "binding"
    """The pod is being bound."""
    NOT_READY = "notReady"
    """The pod is bound, and it is not ready."""
    READY = "ready"
    """The pod is bound and ready."""
    TERMINATING = "terminating"
    """The pod is being deleted."""
    ENDED = "ended"
    """The pod has succeeded or failed."""


LACKING = frozenset(
    {Stage.NOT_CREATED, Stage.GATED, Stage.PENDING, Stage.PERMIT, Stage.BINDING, Stage.NOT_READY}
)
"""The stages of pods that are wanted and do not run yet."""


class PodCount(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A number of pods in one stage, for one cause.

    Parameters
    ----------
    stage
        The stage.
    pods
        The number of pods.
    cause
        Why these pods do not get further; empty where nothing keeps them.
    plugins
        The plugins that keep them.
    example
        One of the pods, as ``namespace/name``; empty for pods that do not exist.
    """

    stage: Stage
    pods: int
    cause: Prose = ""
    plugins: tuple[str, ...] = ()
    example: PodName = ""


class ObjectSuggestion(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One change that helps pods of the object; it was tried.

    Parameters
    ----------
    kind
        The kind of change, such as ``request``, ``toleration`` or ``quota``.
    text
        The change as a sentence.
    helps
        How many of the pods that were tried get a node with it.
    tried
        The number of pods that were tried, one after another.
    of
        The number of pods that lack a node for this cause.
    command
        The kubectl command that makes the change; empty where no single command does.
    patch
        The change as JSON patch of one pod (RFC 6902); empty where pods stay as they are.
    delete
        ``namespace/name`` of the pod that would have to go; empty for none.
    also_delete
        ``namespace/name`` of the pods that would have to go with it.
    create
        Objects to create, such as a node.
    copies
        How many of these objects, each with a name of its own.
    """

    counted_as: ClassVar[str] = "suggestion"

    kind: str
    text: Prose
    helps: int
    tried: int
    of: int
    command: Prose = ""
    patch: tuple[ProseTree, ...] = ()
    delete: SubjectPod = ""
    also_delete: tuple[PodName, ...] = ()
    create: tuple[ProseTree, ...] = ()
    copies: int = 1


class AmountUse(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The use of one bounded amount.

    Parameters
    ----------
    of
        What bounds it, such as ``quota team``; empty for a node itself.
    resource
        The resource.
    used, most
        The amount in use and its bound, as quantities.
    note
        What follows, such as "full"; empty for nothing.
    """

    of: Prose = ""
    resource: str
    used: str
    most: str
    note: Prose = ""


class ObjectExplanation(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The answer about one object, or a selection of pods.

    Parameters
    ----------
    type_
        The type in lower case, such as ``deployment``; ``pods`` for a selection.
    namespace, name
        The object; the namespace is empty for all namespaces and for cluster-scoped objects.
    sentence
        The whole answer in one sentence.
    wanted
        How many pods the object wants; null where nobody says.
    pods
        How many of its pods exist and have not ended.
    ready
        How many of these are ready.
    counts
        The pods by stage and cause, the cause that matters first; ready pods last.
    suggestions
        Changes that help; each was tried. Those that help most of the pods come first, the smallest
        change of these at the front.
    amounts
        The quotas of a namespace, or the resources of a node.
    notes
        Further facts, each a sentence.
    source
        Where the facts are from.
    """

    type_: str = msgspec.field(name="type")
    namespace: str = ""
    name: str = ""
    sentence: Prose
    wanted: int | None = None
    pods: int = 0
    ready: int = 0
    counts: tuple[PodCount, ...] = ()
    suggestions: tuple[ObjectSuggestion, ...] = ()
    amounts: tuple[AmountUse, ...] = ()
    notes: tuple[Prose, ...] = ()
    source: str = ""
