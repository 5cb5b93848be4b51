"""The answers of the extenders in one round, put together for the choice of a node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from moorage.engine.notes.extender_answers import ExtenderNote
from moorage.framework.extender import Extender
from moorage.framework.status import Status
from moorage.snapshot.table import NodeTable

# Farther from zero, sums of extenders' scores are not distinguished; plugins stay far below.
_SCORE_BOUND: Final = 2**61


class ExtenderReplies:
    """The answers of the extenders in one round.

    Attributes
    ----------
    nodes_sent
        Names of the nodes that passed the Filters.
    passed
        Names of the nodes that every extender accepted, in the order asked.
    statuses
        Node to the status with which an extender rejected the node; may lack rejected nodes, and
        may name any node.
    scores
        Node to the sum that extenders add to the node's total.
    only
        The nominated node, where no other node was considered.
    answers
        The answers of each extender, by name, for the note of the attempt.
    """

    def __init__(self) -> None:
        self.nodes_sent: tuple[str, ...] = ()
        self.passed: tuple[str, ...] = ()
        self.statuses: dict[str, Status] = {}
        self.scores: dict[str, int] = {}
        self.only = ""
        self.answers: dict[str, ExtenderNote] = {}
        self._rows: tuple[tuple[str, ...], int, list[int]] = ((), -1, [])

    def rows_of(self, names: tuple[str, ...], table: NodeTable) -> list[int]:
        """Return the rows of the nodes that exist; not to be changed.

        The same names are looked up for filters, for scores and for the choice, so the last rows
        are kept until a node comes or goes.
        """
        known, at, rows = self._rows
        if known is not names or at != table.columns.structure:
            rows = table.rows_of(names)
            self._rows = names, table.columns.structure, rows
        return rows

    def replies_of(self, extender: Extender) -> ExtenderNote:
        """Return what takes down the answers of an extender."""
        found = self.answers.get(extender.name)
        if found is None:
            found = self.answers[extender.name] = ExtenderNote(extender.name, extender.weight)
        return found

    def add_scores(self, scores: Mapping[str, int], factor: int) -> None:
        """Add an extender's scores, each multiplied; sums stay within `_SCORE_BOUND`."""
        known = self.scores
        more = {name: score * factor for name, score in scores.items() if score}
        if known:
            more = {**known, **{name: add + known.get(name, 0) for name, add in more.items()}}
        low, high = min(more.values(), default=0), max(more.values(), default=0)
        if low < -_SCORE_BOUND or high > _SCORE_BOUND:
            more = {n: max(-_SCORE_BOUND, min(sum_, _SCORE_BOUND)) for n, sum_ in more.items()}
        self.scores = more
