"""The rows that changed since answers were cached."""

from __future__ import annotations

from typing import Final

import msgspec

ROWS_MOST: Final = 8
"""From this many rows on, one pass over them in arrays costs less than scalars; a guess."""


class Changes(msgspec.Struct, frozen=True):
    """Rows that changed.

    Parameters
    ----------
    rows
        Every row whose node or pods changed, ascending unless `are_few`.
    nodes
        The rows among them whose node changed, ascending.
    are_few
        Whether no node changed, and so few rows that scalars cost less than arrays.
    """

    rows: list[int]
    nodes: list[int]
    are_few: bool

    def are_many(self, num_nodes: int) -> bool:
        """Whether a pass over all rows costs less than following the changed rows."""
        return not self.are_few and len(self.rows) * 4 > num_nodes + 4


def changes(nodes: list[int], pods: list[int]) -> Changes:
    """Return the changes, from rows with a changed node and rows with changed pods."""
    if not nodes:
        return Changes(pods, nodes, len(pods) <= ROWS_MOST)
    return Changes(sorted({*nodes, *pods}), sorted(nodes), are_few=False)
