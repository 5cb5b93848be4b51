"""Answers kept between questions: by part of a shape, by set of a node, until a node changes.

A question about taints, ports or features is answered once for each distinct set. The answers are
then gathered over the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from moorage.framework.points import MAX_NODE_SCORE, ScoreArray
from moorage.snapshot.sets import SetColumn
from moorage.snapshot.shape import Part
from moorage.snapshot.snapshot import Snapshot
from moorage.snapshot.view import NodeView

S = TypeVar("S", bound=Hashable)
T = TypeVar("T")
M = TypeVar("M")

_UNKNOWN = -1
_TABLE_MOST = 512  # up to this score, scaling each value is cheaper than scaling each row; a guess


def memo_of(part: Part[T], owner: object, make: Callable[[T], M]) -> M:
    """Return the value that `owner` compiled from a part; compile the value on first use.

    Parameters
    ----------
    part
        A part of a pod's shape; replicas share the part.
    owner
        The plugin instance: profiles with different arguments do not share values.
    make
        Compiles the part's value; must not return None.
    """
    found: M | None = part.memo.get(owner)
    if found is None:
        found = part.memo[owner] = make(part.value)
    return found


class SetAnswers:
    """One question asked of interned sets: a non-negative int32 for each set id, filled lazily.

    Parameters
    ----------
    answer
        Returns the answer for the content of a set; called once for each known set.
    """

    __slots__ = ("_answer", "_column", "_table", "_unknown", "_version")

    def __init__(self, answer: Callable[[Any], int]) -> None:
        self._answer = answer
        self._column: SetColumn[Any] | None = None
        self._version = 0
        self._table = np.full(0, _UNKNOWN, np.int32)
        self._unknown = 0

    def gather(self, column: SetColumn[S], view: NodeView) -> NDArray[np.int32]:
        """Return int32, (rows of the view,): the answer for each row's set.

        The cost is proportional to the rows of the view, plus one call of the question for each
        new set.
        """
        self._follow(column)
        ids = view.take_rows(column.ids)
        answers = self._table[ids]
        if self._unknown == 0:
            return answers
        unknown = answers == _UNKNOWN
        if unknown.any():
            for set_id in np.unique(ids[unknown]).tolist():
                self._table[set_id] = self._answer(column.item(set_id))
                self._unknown -= 1
            answers = self._table[ids]
        return answers

    def of_row(self, column: SetColumn[S], row: int) -> int:
        """Return the answer for the set of one row."""
        self._follow(column)
        set_id = column.ids.item(row)
        known = self._table.item(set_id)
        if known == _UNKNOWN:
            known = self._table[set_id] = self._answer(column.item(set_id))
            self._unknown -= 1
        return known

    def _follow(self, column: SetColumn[S]) -> None:
        # An id may get a new meaning (version), and another column numbers its sets separately.
        if column is not self._column or column.version != self._version:
            self._column, self._version = column, column.version
            self._table = np.full(column.size, _UNKNOWN, np.int32)
            self._unknown = column.size
        elif column.size > len(self._table):
            wider = np.full(max(column.size, 2 * len(self._table)), _UNKNOWN, np.int32)
            wider[: len(self._table)] = self._table
            self._unknown += len(wider) - len(self._table)
            self._table = wider


class NodeAnswers(Generic[S, M]):
    """Answers that depend on Node objects only, forgotten when any Node changes.

    Parameters
    ----------
    snapshot
        The cluster.
    most
        Greatest number of kept answers; one more clears the cache.
    """

    __slots__ = ("_answers", "_most", "_nodes", "_of_nodes", "_structure")

    def __init__(self, snapshot: Snapshot, most: int) -> None:
        self._nodes, self._structure = snapshot.table.node_log, snapshot.table.columns
        self._most = most
        self._of_nodes = (-1, -1)
        self._answers: dict[S, M] = {}

    def find(self, question: S) -> M | None:
        """Return the kept answer for a question, or None."""
        of_nodes = (self._nodes.position, self._structure.structure)
        if of_nodes != self._of_nodes:
            self._of_nodes = of_nodes
            self._answers.clear()
        return self._answers.get(question)

    def keep(self, question: S, answer: M) -> M:
        """Keep and return an answer, directly after `find` returned None."""
        if len(self._answers) >= self._most:
            self._answers.clear()
        self._answers[question] = answer
        return answer


def normalize_to_max(raw_n: ScoreArray, *, reverse: bool = False) -> ScoreArray:
    """Scale scores so that the greatest becomes 100.

    Parameters
    ----------
    raw_n
        int64, (feasible nodes,), not negative; not changed.
    reverse
        Whether a high raw score is bad: the result is then 100 minus the scaled score.

    Returns
    -------
    ScoreArray
        int64, (feasible nodes,), 0 to 100. Without any score above 0: all 0, reversed all 100.

    Notes
    -----
    kubernetes v1.36 ``pkg/scheduler/framework/plugins/helper/normalize_score.go``.
    """
    top = int(raw_n.max()) if len(raw_n) else 0
    if top == 0:
        return np.full_like(raw_n, MAX_NODE_SCORE) if reverse else raw_n.copy()
    raw = np.arange(top + 1) if top < _TABLE_MOST else raw_n
    scaled = raw * MAX_NODE_SCORE // top
    if reverse:
        np.subtract(MAX_NODE_SCORE, scaled, out=scaled)
    return scaled[raw_n] if raw is not raw_n else scaled
