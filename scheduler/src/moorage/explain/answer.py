"""The explanation of one pod as data; `cli` prints it, JSON encodes it."""

from __future__ import annotations

from enum import Enum
from typing import ClassVar

import msgspec

from moorage.api.mentions import (
    NodeName,
    PodName,
    Prose,
    ProseTree,
    SubjectNamespace,
    SubjectPod,
)
from moorage.estimates.answer import StartEstimate


class Where(Enum):
    """The place of a pod on its way to a node."""

    UNSERVED = "unserved"
    """No profile of the scheduler has the pod's ``schedulerName``."""
    GATED = "held"
    """A PreEnqueue plugin keeps the pod out of the queue."""
    NEVER = "never"
    """No node takes the pod, not even an empty one, and waiting does not change that."""
    REJECTED = "rejected"
    """No node takes the pod as it is now."""
    FITS = "fits"
    """A node takes the pod; the pod waits for its turn."""
    EXTENDERS = "extenders"
    """Plugins let the pod on a node; extenders are asked as well, and none has let it yet."""
    NOMINATED = "nominated"
    """The pod waits for victims to leave its nominated node."""
    PERMIT = "permit"
    """The pod has a node, and a Permit plugin holds it."""
    BINDING = "binding"
    """The pod is being bound."""
    BOUND = "bound"
    """The pod has a node."""
    FINISHED = "finished"
    """The pod has ended."""
    TERMINATING = "terminating"
    """The pod is being deleted, and no node is sought for it."""
    BROKEN = "broken"
    """A plugin failed, so there is no answer."""


class Cause(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A set of plugins that keeps a pod off some nodes; without these rejections it would fit.

    Parameters
    ----------
    plugins
        The plugins, in the order of the profile.
    reasons
        Their reasons on these nodes, each once, the most frequent first.
    fact
        The subject of the rejections, as a noun phrase.
    nodes
        Number of nodes on which exactly these plugins stand in the way.
    code
        The code of the reason that the pod meets last, of the closed vocabulary.
    """

    plugins: tuple[str, ...]
    reasons: tuple[Prose, ...]
    fact: Prose
    nodes: int
    code: str = ""


class NodeAnswer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The answers of all plugins about one node.

    Parameters
    ----------
    node
        The node's name.
    rejections
        Plugin to its reasons, for each Filter that rejects the node.
    score
        Weighted sum of the scores; None where the node is not feasible.
    scores
        Score plugin to its weighted score; empty where the node is not feasible.
    """

    node: NodeName
    rejections: dict[str, tuple[Prose, ...]] = {}
    score: int | None = None
    scores: dict[str, int] = {}


class ObjectChange(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A change of an object that is not the pod.

    Parameters
    ----------
    api_version, kind, namespace, name
        The object; the namespace is that of the pod, or empty for a node.
    patch
        The change as a merge patch (RFC 7386).
    """

    api_version: str
    kind: str
    namespace: str = ""
    name: Prose
    patch: ProseTree


class Suggestion(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One change, or a pair, with which the pod would get a node; it was tried.

    Parameters
    ----------
    kind
        The kind of change, such as ``request`` or ``toleration``.
    text
        The change as a sentence.
    nodes
        How many nodes would take the pod then.
    node
        One of them.
    patch
        The change of the pod as a JSON patch (RFC 6902); empty where the pod stays as it is.
    delete
        ``namespace/name`` of the pod that would have to go; "" for none.
    also_delete
        ``namespace/name`` of the pods that would have to go with it.
    create
        Objects to create: a node, further pods.
    evicted
        ``namespace/name`` of the pods that preemption would evict, or that leave by the changes.
    uncordon
        The node to uncordon; "" for none.
    changes
        Changes of other objects, such as the labels of a node.
    command
        The kubectl command that changes what is not the pod; "" where only the pod is changed, or
        objects are created.
    """

    counted_as: ClassVar[str] = "suggestion"

    kind: str
    text: Prose
    nodes: int
    node: NodeName
    patch: tuple[ProseTree, ...] = ()
    delete: SubjectPod = ""
    also_delete: tuple[PodName, ...] = ()
    create: tuple[ProseTree, ...] = ()
    evicted: tuple[PodName, ...] = ()
    uncordon: NodeName = ""
    changes: tuple[ObjectChange, ...] = ()
    command: Prose = ""


class Explanation(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The answer about one pod.

    Parameters
    ----------
    namespace, name, uid
        The pod.
    where
        Where the pod is on its way.
    sentence
        The whole answer in one sentence.
    reason
        The code of the reason why the pod has no node; "" for a pod that has one, or needs none.
    causes
        Why no node takes the pod, the first cause first; empty where a node takes it.
    suggestions
        Changes that would help, the smallest first; all were tried. Pairs where no single one
        helps.
    notes
        Further facts, each a sentence.
    node_count
        Number of nodes in the cluster.
    feasible
        Number of nodes that take the pod as it is.
    nodes
        The answers of all plugins about nodes, the best node first.
    source
        Where the facts are from.
    start
        When a waiting pod starts; absent where the configuration asks for no estimates.
    """

    namespace: SubjectNamespace
    name: str
    uid: str
    where: Where
    sentence: Prose
    reason: str = ""
    causes: tuple[Cause, ...] = ()
    suggestions: tuple[Suggestion, ...] = msgspec.field(default=(), name="waysOut")
    notes: tuple[Prose, ...] = ()
    node_count: int = 0
    feasible: int = 0
    nodes: tuple[NodeAnswer, ...] = ()
    source: str = ""
    start: StartEstimate | msgspec.UnsetType = msgspec.UNSET
