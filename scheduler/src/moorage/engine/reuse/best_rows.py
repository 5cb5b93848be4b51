"""The best rows: the greatest sum of fixed scores, and the rows that have it, for one shape.

Rows are divided into blocks. Each block keeps its greatest sum, and the rows that have it. After a
pod was placed its row is put in or taken out, and then the blocks' greatest sums are compared. A
block is looked at again when its last best row is gone. The time of a decision thus hardly grows
with the number of nodes.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, insort
from collections.abc import Iterator
from itertools import chain
from typing import Final

import msgspec
import numpy as np

from moorage.engine.filters.filter_results import FilterResults
from moorage.engine.filters.tally import PASSED
from moorage.engine.reuse.filters import FilterCache
from moorage.engine.reuse.scores import ScoreCache
from moorage.framework.caches import Changes
from moorage.framework.points import ScoreArray

_SHIFT: Final = 10
_BLOCK: Final = 1 << _SHIFT
"""Rows of a block: one look at so many costs little more than NumPy's overhead; a guess."""

_NOT_FEASIBLE: Final = np.iinfo(np.int64).min
"""In place of the sum of a row that did not pass Filter."""


class BestRows:
    """Finds the feasible rows with the greatest sum of fixed scores.

    Parameters
    ----------
    filters, scores
        The caches of the shape. Both follow changes before this one.
    """

    __slots__ = (
        "_filtered",
        "_filters",
        "_fixed_n",
        "_scores",
        "_stale",
        "_sum_n",
        "_tied",
        "_tops",
    )

    def __init__(self, filters: FilterCache, scores: ScoreCache) -> None:
        self._filters = filters
        self._scores = scores
        self.forget()

    def forget(self) -> None:
        """Forget all sums."""
        # The arrays of the caches that the sums were made of: a cache that begins anew has others.
        self._filtered: FilterResults | None = None
        self._fixed_n: ScoreArray | None = None
        # int64, (n,): sums of fixed scores.
        self._sum_n: ScoreArray | None = None
        # By block: the greatest sum, and the rows that have it, ascending; and the blocks for which
        # these have to be found again. Lists, because blocks are few.
        self._tops: list[int] = []
        self._tied: list[array[int]] = []
        self._stale: set[int] = set()

    @property
    def nbytes(self) -> int:
        """Memory of the sums and of tied rows at most, bytes."""
        return 0 if self._sum_n is None else 2 * self._sum_n.nbytes

    # -- answers -------------------------------------------------------------------------------

    @property
    def known(self) -> bool:
        """Whether the sums of every row are kept."""
        return (
            self._sum_n is not None
            and self._fixed_n is self._scores.fixed_n
            and self._filtered is self._filters.filtered
        )

    def ask(self) -> None:
        """Take over the sums of every row."""
        filtered, fixed_n = self._filters.filtered, self._scores.fixed_n
        assert filtered is not None, "rows have been filtered"
        self._filtered, self._fixed_n = filtered, fixed_n
        self._sum_n = np.where(filtered.plugin_n == PASSED, fixed_n, _NOT_FEASIBLE)
        blocks = (len(fixed_n) + _BLOCK - 1) >> _SHIFT
        self._tops, self._tied = [0] * blocks, [array("q")] * blocks
        self._stale = set(range(blocks))

    def find(self) -> TiedInBlocks:
        """Return the feasible rows with the greatest sum; there is at least one."""
        sum_n, tops, tied = self._sum_n, self._tops, self._tied
        assert sum_n is not None, "sums are kept once they were asked for"
        for block in self._stale:
            begin = block << _SHIFT
            part_n = sum_n[begin : begin + _BLOCK]
            tops[block] = top = part_n.item(part_n.argmax())
            tied[block] = array("q", ((part_n == top).nonzero()[0] + begin).tobytes())
        self._stale.clear()
        top = max(tops)
        best = [rows for rows, each in zip(tied, tops, strict=True) if each == top]
        return TiedInBlocks(sum_n, top, best, sum(map(len, best)))

    # -- changes -------------------------------------------------------------------------------

    def follow(self, changes: Changes) -> None:
        """Take over the sums of the changed rows."""
        sum_n, filtered, fixed_n = self._sum_n, self._filtered, self._fixed_n
        if sum_n is None or filtered is None or fixed_n is None:
            return
        if changes.are_few:
            plugin_n = filtered.plugin_n
            for row in changes.rows:
                passed = plugin_n.item(row) == PASSED
                self._put_sum(row, fixed_n.item(row) if passed else _NOT_FEASIBLE)
            return
        rows = np.array(changes.rows, np.int64)
        passed_k = filtered.plugin_n[rows] == PASSED
        sum_n[rows] = np.where(passed_k, fixed_n[rows], _NOT_FEASIBLE)
        self._stale.update((rows >> _SHIFT).tolist())

    def _put_sum(self, row: int, new: int) -> None:
        """Take over the sum of one row; its block becomes stale when no best row is left."""
        assert self._sum_n is not None, "sums are kept once they were asked for"
        before, block = self._sum_n.item(row), row >> _SHIFT
        self._sum_n[row] = new
        if new == before or block in self._stale:
            return
        top, tied = self._tops[block], self._tied[block]
        if new > top:
            self._tops[block], self._tied[block] = new, array("q", [row])
        elif new == top:
            insort(tied, row)
        elif before == top:
            del tied[bisect_left(tied, row)]
            if not tied:
                self._stale.add(block)


class TiedInBlocks(msgspec.Struct, eq=False):
    """The rows with the greatest sum, ascending; read before any row changes.

    Parameters
    ----------
    sum_n
        int64, (n,): the sum of each row.
    top
        The greatest sum.
    blocks
        The rows, by block.
    length
        How many rows there are.
    """

    sum_n: ScoreArray
    top: int
    blocks: list[array[int]]
    length: int

    def __len__(self) -> int:
        return self.length

    def __contains__(self, row: int) -> bool:
        return 0 <= row < len(self.sum_n) and self.sum_n.item(row) == self.top

    def __getitem__(self, position: int) -> int:
        left = position
        if left >= 0:
            for tied in self.blocks:
                if left < len(tied):
                    return tied[left]
                left -= len(tied)
        raise IndexError(f"there are {self.length} rows, and none at position {position}")

    def __iter__(self) -> Iterator[int]:
        return chain.from_iterable(self.blocks)
