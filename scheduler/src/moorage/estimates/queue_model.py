"""A queue in short: free room by node, what runs and until when, and who waits in which order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import msgspec

from moorage.estimates.laws import RunTimeLaw

Amounts: TypeAlias = tuple[int, ...]
"""Amounts of the resources of a model, in its order."""


class Shape(msgspec.Struct, frozen=True):
    """The needs of pods of one kind.

    Parameters
    ----------
    requests
        What one pod requests.
    nodes
        The nodes that would take it if they had room, by index; None for all.
    """

    requests: Amounts
    nodes: frozenset[int] | None = None


class RunningPod(msgspec.Struct, frozen=True):
    """A pod on a node.

    Parameters
    ----------
    node
        Index of its node.
    requests
        What its end frees.
    law
        Its run time; None where nothing is known, so no roll-out lets it end.
    elapsed
        Seconds that it has run.
    name
        ``namespace/name``.
    """

    node: int
    requests: Amounts
    law: RunTimeLaw | None
    elapsed: float = 0.0
    name: str = ""


class WaitingUnit(msgspec.Struct, frozen=True):
    """A pod that waits, or the members of a group, which start together.

    Parameters
    ----------
    shapes
        Index of the shape of each member, in order.
    laws
        The law of each member.
    rank
        The smallest rank is tried first; equal ones in the order of the queue.
    name
        ``namespace/name`` of the first pod; "" for one that has not come yet.
    """

    shapes: tuple[int, ...]
    laws: tuple[RunTimeLaw | None, ...]
    rank: int = 0
    name: str = ""


class QueueModel(msgspec.Struct, frozen=True, kw_only=True):
    """The start of all roll-outs.

    Parameters
    ----------
    free
        Free amounts by node.
    shapes
        All shapes.
    running
        All pods on nodes.
    queue
        Who waits, in the order of the queue.
    target
        Index of the unit in question.
    arrivals
        What came lately: roll-outs draw from it what comes next. Empty: nothing comes.
    arrivals_a_second
        How often a unit comes.
    """

    free: Sequence[Amounts]
    shapes: Sequence[Shape]
    running: Sequence[RunningPod]
    queue: Sequence[WaitingUnit]
    target: int
    arrivals: Sequence[WaitingUnit] = ()
    arrivals_a_second: float = 0.0
