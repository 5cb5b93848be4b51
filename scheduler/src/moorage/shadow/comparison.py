"""One comparison: what the real scheduler did about a pod, and what the configuration would do."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

import msgspec


class Outcome(Enum):
    """The result of comparing two decisions about a pod."""

    SAME = "same"
    """Both take the same node, or both leave the pod pending."""
    EQUAL = "equallyGood"
    """The real node is among the best nodes; a draw or the start of the search decides."""
    OTHER_NODE = "otherNode"
    """The configuration takes another node, though the real one is feasible."""
    NOT_PLACED = "wouldNotPlace"
    """The configuration does not bind the pod that the real scheduler bound."""
    PLACED = "wouldPlace"
    """The configuration would bind a pod that the real scheduler leaves pending, or evict pods."""
    NOT_COMPARABLE = "notComparable"
    """The states that the two decided on may differ, so nothing is said about them."""


AGREEING: Final = frozenset({Outcome.SAME, Outcome.EQUAL})
"""The outcomes without a difference."""


class PluginScores(msgspec.Struct, frozen=True):
    """The weighted scores of one plugin for the real node, and for the configuration's."""

    plugin: str
    real: int
    shadow: int


class Comparison(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The comparison of two decisions about one pod.

    Parameters
    ----------
    time
        When the decision of the real scheduler was seen, RFC 3339.
    pod
        ``namespace/name``.
    about
        ``binding`` or ``pending``.
    outcome
        How the decisions compare.
    real_node, shadow_node
        The node of the real scheduler and the node of the configuration; "" for none.
    plugin
        The plugin that makes the difference: the one whose scores favour the configuration's node
        most, or the first that rejects the real node; "" where there is none.
    reason
        A sentence for people; "" where both agree.
    scores
        The weighted scores of both nodes, for another node that scored more.
    rejections
        Plugin to its reasons against the real node, or against every node.
    """

    time: str
    pod: str
    about: str
    outcome: Outcome
    real_node: str = ""
    shadow_node: str = ""
    plugin: str = ""
    reason: str = ""
    scores: tuple[PluginScores, ...] = ()
    rejections: Mapping[str, tuple[str, ...]] = {}

    @property
    def agrees(self) -> bool:
        """Whether there is no difference."""
        return self.outcome in AGREEING

    @property
    def differs(self) -> bool:
        """Whether there is a difference that no state explains."""
        return not self.agrees and self.outcome is not Outcome.NOT_COMPARABLE
