"""Which rows changed since something was known about them."""

from __future__ import annotations

from typing import Final, NamedTuple

ROWS_MOST: Final = 8
"""From more rows on one pass over them in arrays costs less than scalars; a guess."""


class Changes(NamedTuple):
    """Rows that changed.

    Parameters
    ----------
    rows
        Every row whose node or pods changed, ascending unless `are_few`.
    nodes
        The rows among them whose node changed, ascending.
    """

    rows: list[int]
    nodes: list[int]

    @classmethod
    def of(cls, nodes: list[int], pods: list[int]) -> Changes:
        """Return the changes of rows whose node changed, and of rows whose pods changed."""
        return cls(sorted({*nodes, *pods}), sorted(nodes)) if nodes else cls(pods, nodes)

    def are_many(self, num_nodes: int) -> bool:
        """Whether a pass over all rows costs less than to follow these."""
        return not self.are_few and len(self.rows) * 4 > num_nodes + 4

    @property
    def are_few(self) -> bool:
        """Whether no node changed, and so few rows that scalars cost less than arrays."""
        return not self.nodes and len(self.rows) <= ROWS_MOST
