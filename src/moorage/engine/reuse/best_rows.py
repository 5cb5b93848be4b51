"""The best rows: the greatest sum of fixed scores, and the rows that have it, for one shape.

Rows are divided into blocks. Each block keeps its greatest sum, and how many of its rows have it.
After a pod was placed one block is looked at again, and then the blocks' greatest sums are
compared. The time of a decision thus hardly grows with the number of nodes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from moorage.engine.filters.filter_pass import PASSED, FilterPass
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
        self._filtered: FilterPass | None = None
        self._fixed_n: ScoreArray | None = None
        # int64, (n,): sums of fixed scores.
        self._sum_n: ScoreArray | None = None
        # By block: the greatest sum, and the positions in the block of the rows that have it; and
        # the blocks for which these have to be found again. Lists, because blocks are few.
        self._tops: list[int] = []
        self._tied: list[NDArray[np.int64]] = []
        self._stale: set[int] = set()

    @property
    def nbytes(self) -> int:
        """Memory of the sums and of the positions at most, bytes."""
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
        self._tops, self._tied = [0] * blocks, [np.zeros(0, np.int64)] * blocks
        self._stale = set(range(blocks))

    def find(self) -> TiedInBlocks:
        """Return the feasible rows with the greatest sum; there is at least one."""
        sum_n, tops, tied = self._sum_n, self._tops, self._tied
        assert sum_n is not None, "sums are kept once they were asked for"
        for block in self._stale:
            begin = block << _SHIFT
            part_n = sum_n[begin : begin + _BLOCK]
            tops[block] = top = part_n.item(part_n.argmax())
            tied[block] = (part_n == top).nonzero()[0]
        self._stale.clear()
        top, length = max(tops), 0
        blocks: list[tuple[int, NDArray[np.int64]]] = []
        for block, each in enumerate(tops):
            if each == top:
                blocks.append((block << _SHIFT, tied[block]))
                length += len(tied[block])
        return TiedInBlocks(sum_n, top, blocks, length)

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
                sum_n[row] = fixed_n.item(row) if passed else _NOT_FEASIBLE
                self._stale.add(row >> _SHIFT)
            return
        rows = np.array(changes.rows, np.int64)
        passed_k = filtered.plugin_n[rows] == PASSED
        sum_n[rows] = np.where(passed_k, fixed_n[rows], _NOT_FEASIBLE)
        self._stale.update((rows >> _SHIFT).tolist())


class TiedInBlocks(msgspec.Struct, eq=False):
    """The rows with the greatest sum, ascending; read before any row changes.

    Parameters
    ----------
    sum_n
        int64, (n,): the sum of each row.
    top
        The greatest sum.
    blocks
        The first row of each block with such rows, ascending, and int64, their positions in it.
    length
        How many rows there are.
    """

    sum_n: ScoreArray
    top: int
    blocks: list[tuple[int, NDArray[np.int64]]]
    length: int

    def __len__(self) -> int:
        return self.length

    def __contains__(self, row: int) -> bool:
        return 0 <= row < len(self.sum_n) and self.sum_n.item(row) == self.top

    def __getitem__(self, position: int) -> int:
        left = position
        if left >= 0:
            for begin, tied in self.blocks:
                if left < len(tied):
                    return begin + tied.item(left)
                left -= len(tied)
        raise IndexError(f"there are {self.length} rows, and none at position {position}")

    def __iter__(self) -> Iterator[int]:
        for begin, tied in self.blocks:
            yield from (tied + begin).tolist()
