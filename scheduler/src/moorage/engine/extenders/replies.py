"""The answers of the extenders in one round, put together for the choice of a node."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import repeat
from typing import Final

import numpy as np
from numpy.typing import NDArray

from moorage.engine.answers import Rows
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
    failure
        Why an extender that may not be left out gave no answer; "" where all answered.
    """

    def __init__(self) -> None:
        self.nodes_sent: tuple[str, ...] = ()
        self.passed: tuple[str, ...] = ()
        self.statuses: dict[str, Status] = {}
        self.scores: dict[str, int] = {}
        self.only = ""
        self.answers: dict[str, ExtenderNote] = {}
        self.failure = ""
        self._rows: tuple[tuple[str, ...], int, list[int]] = ((), -1, [])
        self._scores_n: tuple[int, NDArray[np.int64]] | None = None

    def question(self) -> ExtenderReplies:
        """Return replies without an answer yet, to the question about the same nodes."""
        again = ExtenderReplies()
        again.nodes_sent, again._rows = self.nodes_sent, self._rows
        return again

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

    def scores_at(self, rows: Rows, table: NodeTable) -> NDArray[np.int64]:
        """Return int64, (rows,): the sums for rows of nodes that passed."""
        structure = table.columns.structure
        if self._scores_n is None or self._scores_n[0] != structure:
            score_n = np.zeros(table.columns.n, np.int64)
            names = map(table.names.__getitem__, passed := self.rows_of(self.passed, table))
            score_n[passed] = list(map(self.scores.get, names, repeat(0)))
            self._scores_n = structure, score_n
        return self._scores_n[1][rows]

    def replies_of(self, extender: Extender) -> ExtenderNote:
        """Return what takes down the answers of an extender."""
        found = self.answers.get(extender.name)
        if found is None:
            found = self.answers[extender.name] = ExtenderNote(extender.name, extender.weight)
        return found

    def add_scores(self, scores: Mapping[str, int], factor: int) -> None:
        """Add an extender's scores, each multiplied; sums stay within `_SCORE_BOUND`."""
        known, self._scores_n = self.scores, None
        more = {name: score * factor for name, score in scores.items() if score}
        if known:
            more = {**known, **{name: add + known.get(name, 0) for name, add in more.items()}}
        low, high = min(more.values(), default=0), max(more.values(), default=0)
        if low < -_SCORE_BOUND or high > _SCORE_BOUND:
            more = {n: max(-_SCORE_BOUND, min(sum_, _SCORE_BOUND)) for n, sum_ in more.items()}
        self.scores = more
