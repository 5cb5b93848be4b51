"""The choice among several nodes with the greatest total.

kube-scheduler v1.36 takes the node that its parallel filter calls happened to put first, so every
choice is correct. The default here draws from a seeded stream; conformance takes the smallest name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from moorage.base.rng import Random


class TiedRows(Protocol):
    """Rows with the greatest total, ascending; an array of row numbers is one, too."""

    def __len__(self) -> int: ...

    def __getitem__(self, position: int, /) -> Any: ...

    def __contains__(self, row: Any, /) -> bool: ...

    def __iter__(self) -> Iterator[Any]: ...


# (rows with the greatest total; node names by row) -> the chosen row
TieBreak = Callable[[TiedRows, Sequence[str]], int]


def smallest_name(rows: TiedRows, names: Sequence[str]) -> int:
    """Take the node whose name sorts first, bytewise."""
    return min((int(row) for row in rows), key=lambda row: names[row].encode())


def positional(rows: TiedRows, names: Sequence[str]) -> int:
    """Take the first row; the cycle passes the rows in `heap_order` to this tie-break."""
    return int(rows[0])


def heap_order(positions: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return positions in a heap in pre-order: a node, its left subtree, then its right one.

    kube-scheduler v1.36 puts the feasible nodes, as they were found, into a heap by total, and
    takes its root. Building a heap prefers a parent to its children and the left child to the right
    one unless the other's total is greater, so among equal totals the first node of this walk wins
    (scheduling spec, cycle section 3.6).

    Parameters
    ----------
    positions
        int64, ascending, 0 is the root.
    """
    depth = np.frexp(positions + 1)[1]  # bits of the path from the root, after a leading one
    aligned = (positions + 1) << (depth.max(initial=0) - depth)
    return positions[np.lexsort((depth, aligned))]


def seeded(rng: Random) -> TieBreak:
    """Return a tie-break that draws uniformly from a seeded stream."""

    def draw(rows: TiedRows, names: Sequence[str]) -> int:
        count = len(rows)
        return int(rows[0 if count == 1 else rng.randrange(count)])

    return draw
