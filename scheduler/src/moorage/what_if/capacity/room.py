"""The answers about room for more pods, as data."""

from __future__ import annotations

import msgspec

from moorage.api.mentions import NodeName, Prose
from moorage.service.questions.folding.folds import Fold


class Room(msgspec.Struct, frozen=True, rename="camel"):
    """The number of pods that still fit.

    Parameters
    ----------
    fit
        Number of whole mixes that fit; for one kind of pod, the number of pods.
    pods
        Number of pods in these mixes.
    reached_most
        Whether more might fit: the count was ended at the limit.
    message
        Why the next pod finds no node; "" where the limit was reached.
    reasons
        Binding reasons with their number of nodes, the most frequent first.
    by_node
        How many of the pods each node takes.
    refused
        Whether a bound of the namespace refuses the next pod; `message` says which.
    limit
        The limit of time or memory that ended the count; "" where none did.
    """

    fit: int
    pods: int
    reached_most: bool
    message: Prose
    reasons: dict[Prose, int]
    by_node: dict[NodeName, int]
    refused: bool = False
    limit: str = ""


class Need(msgspec.Struct, frozen=True, rename="camel"):
    """The number of nodes of a shape that would place the waiting pods.

    Parameters
    ----------
    like
        The node that has the shape, or the shape as it was written.
    allocatable
        Allocatable of one such node.
    nodes
        Number of added nodes.
    placed, left
        Numbers of waiting pods that got a node, and of pods that still wait.
    reason
        Why the others wait, "" where none does.
    limit
        The limit at which no further node was tried, "" where none was reached.
    differs
        Labels, taints and amounts in which the shape differs from another one of the same cpu and
        memory; "" for one that the shape does not have.
    waiting
        The pods that still wait, those of equal owner, group and reason as one row.
    """

    like: Prose
    allocatable: dict[str, str]
    nodes: int
    placed: int
    left: int
    reason: Prose = ""
    limit: str = ""
    differs: dict[str, str] = {}
    waiting: tuple[Fold, ...] = ()
