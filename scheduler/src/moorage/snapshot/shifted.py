"""Sums shifted by row and restored: as if the pods of many rows requested less.

A `Trial` moves pods, one by one. Shifting changes numbers only. That suffices for Filters that see
the pods of a row only as their count and the sums of their requests.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from moorage.snapshot.table import NodeTable
from moorage.snapshot.view import NodeView

Amounts = NDArray[np.int64]


class RowSums:
    """The additional amounts of a row; negative amounts are less.

    Parameters
    ----------
    amounts
        Requests by resource.
    pods
        Number of pods.
    """

    __slots__ = ("amounts", "pods")

    def __init__(self, amounts: Mapping[str, int], pods: int) -> None:
        self.amounts = amounts
        self.pods = pods


NOTHING_MORE: Final = RowSums({}, 0)


class ShiftedSums:
    """Shifted sums of some rows, as a context manager.

    Parameters
    ----------
    table
        The table to change; nothing else may change it meanwhile.
    view
        The rows; each at most once.
    resources
        The resources whose sums may be shifted.
    """

    def __init__(self, table: NodeTable, view: NodeView, resources: frozenset[str]) -> None:
        ensure = table.columns.ensure
        n = table.columns.n
        self._index: Any = view.index
        self._requested = {name: ensure(("requested", name))[:n] for name in sorted(resources)}
        self._pod_count = ensure("pod_count")[:n]
        self._before = [(column, column[self._index].copy()) for column in self._columns()]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for column, before in self._before:
            column[self._index] = before

    def shift(self, amounts: Mapping[str, Amounts], pods: Amounts) -> None:
        """Add to the sums of each row.

        Parameters
        ----------
        amounts
            By resource int64, (rows,); resources not named at the start are left aside.
        pods
            int64, (rows,): change of the number of pods.
        """
        for name, column in self._requested.items():
            amount = amounts.get(name)
            if amount is not None:
                column[self._index] += amount
        self._pod_count[self._index] += pods

    def _columns(self) -> list[NDArray[Any]]:
        return [*self._requested.values(), self._pod_count]
