"""A selection of rows: all nodes, or a few."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

A = TypeVar("A", bound=np.generic)

Rows = NDArray[np.int64]


def as_index(rows: Rows) -> Rows | slice:
    """Return an index for these rows: a slice where the rows are consecutive."""
    first, n = (int(rows[0]), len(rows)) if len(rows) else (0, 0)
    if n and int(rows[-1]) - first == n - 1 and bool((rows[1:] - rows[:-1] == 1).all()):
        return slice(first, first + n)
    return rows


class NodeView:
    """A selection of rows; an answer for a view has one entry for each of them, in order.

    Parameters
    ----------
    n_all
        Number of nodes.
    rows
        int64, (len(view),): the rows; None means every row, which costs nothing to take.
    """

    __slots__ = ("_index", "rows", "size_of_all")

    def __init__(self, n_all: int, rows: Rows | None = None) -> None:
        self.size_of_all = n_all
        """Number of all nodes, inside or outside the view."""
        self.rows = rows
        # A view of one row is the most frequent (the node that just got a pod): a slice costs a
        # quarter of an index array.
        self._index: Rows | slice | None = rows
        if rows is not None and len(rows) == 1:
            row = int(rows[0])
            self._index = slice(row, row + 1)

    @classmethod
    def spanning(cls, n_all: int, rows: Rows) -> NodeView:
        """Return the view of these rows; makes no copies where the rows are consecutive."""
        view = cls(n_all, rows)
        view._index = as_index(rows)
        return view

    @property
    def index(self) -> Rows | slice:
        """The index of the view's rows in a column of all rows."""
        return slice(0, self.size_of_all) if self._index is None else self._index

    def __len__(self) -> int:
        return self.size_of_all if self.rows is None else len(self.rows)

    @property
    def is_all(self) -> bool:
        """Whether the view is every row."""
        return self.rows is None

    def take_rows(self, column_n: NDArray[A]) -> NDArray[A]:
        """Return a column's values for the rows of the view; not to be changed.

        All rows and a single row come without a copy.
        """
        return column_n if self._index is None else column_n[self._index]

    def widened(self) -> NodeView:
        """Return the view of every row if this view has most rows, else this view.

        For answers that need several columns: reading them costs nothing then, and the computation
        for the additional rows costs less than a copy of each column would.
        """
        n_all = self.size_of_all
        return self if self.rows is None or 2 * len(self.rows) < n_all else NodeView(n_all)

    def narrowed(self, answer_n: NDArray[A], wide: NodeView) -> NDArray[A]:
        """Return, for the rows of this view, the part of an answer for `widened`."""
        return answer_n if wide is self else self.take_rows(answer_n)

    def row_numbers(self) -> Rows:
        """Return int64, (len(view),): the row numbers, also for the view of all rows."""
        return np.arange(self.size_of_all) if self.rows is None else self.rows
