"""The columns that a score of one row reads, kept for pods of equal requests.

A changed row is scored for every shape that is asked for again. To find the columns by name takes
longer than to compute the score.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Generic, TypeVar

from moorage.snapshot.shape import Part, PodRequests
from moorage.snapshot.table import NodeTable

C = TypeVar("C")

_KEPT_MOST: Final = 4096  # distinct requests; a guess: a megabyte


class KeptColumns(Generic[C]):
    """Columns by the pod's requests, as long as no node changes and the arrays stay the same.

    Parameters
    ----------
    table
        The columns.
    find
        Finds the columns for requests; it may read nodes and the list of columns.
    """

    def __init__(self, table: NodeTable, find: Callable[[Part[PodRequests]], C]) -> None:
        self._table = table
        self._find = find
        self._kept: dict[int, C] = {}
        self._generation = -1
        self._nodes = -1

    def of(self, requests: Part[PodRequests]) -> C:
        """Return the columns for requests."""
        table, kept = self._table, self._kept
        generation, nodes = table.columns.generation, table.node_log.position
        if generation != self._generation or nodes != self._nodes or len(kept) > _KEPT_MOST:
            kept.clear()
            self._generation, self._nodes = generation, nodes
        found = kept.get(requests.id)
        if found is None:
            found = kept[requests.id] = self._find(requests)
        return found
