"""Which of several nodes with the greatest total is taken.

kube-scheduler v1.36 takes whichever its parallel filter calls happened to put first, so any of
them is right. The default here draws from a seeded stream; conformance takes the smallest name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from moorage.base.rng import Random

# (rows with the greatest total, ascending; node names by row) -> the chosen row
TieBreak = Callable[[NDArray[np.int64], Sequence[str]], int]


def smallest_name(rows: NDArray[np.int64], names: Sequence[str]) -> int:
    """Take the node whose name sorts first, bytewise."""
    return min((int(row) for row in rows), key=lambda row: names[row].encode())


def positional(rows: NDArray[np.int64], names: Sequence[str]) -> int:
    """Take the first row."""
    return int(rows[0])


def seeded(rng: Random) -> TieBreak:
    """Return a tie-break that draws uniformly from a seeded stream."""

    def draw(rows: NDArray[np.int64], names: Sequence[str]) -> int:
        return int(rows[0] if len(rows) == 1 else rows[rng.randrange(len(rows))])

    return draw
