"""Limits the nodes to those kube-scheduler would have filtered, between filtering and scoring.

kube-scheduler filters nodes in an order that starts where the last search ended, and stops when it
has found enough. Here every row already has its filter result. So the step computes how far
kube-scheduler's search would have come, and hides the remaining rows.

Rules: kubernetes v1.36 ``pkg/scheduler/schedule_one.go`` (``findNodesThatPassFilters``,
``numFeasibleNodesToFind``) with one goroutine; scheduling spec, cycle sections 3.1 and 3.3.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from moorage.engine.attempt import CycleError
from moorage.engine.filters.filter_results import FilterResults
from moorage.framework.profile import Profile
from moorage.snapshot.snapshot import Snapshot
from moorage.snapshot.view import NodeView

IntArray = NDArray[np.int64]
Judge = Callable[[NodeView], FilterResults]

ALL: Final = 100
"""The percentage at which nothing is left out."""

_ALWAYS_SEARCHED: Final = 100
_MOST_PERCENT: Final = 50
_LEAST_PERCENT: Final = 5
_NODES_A_PERCENT: Final = 125

_BATCH: Final = 64  # rows judged at once after a plugin broke; a guess without effect on decisions


def num_to_find(percentage: int, n: int) -> int:
    """Return the number of feasible nodes after which a search stops.

    Parameters
    ----------
    percentage
        Of the nodes, 0 to 100; 0 takes a share that falls from 50 to 5 as the cluster grows.
    n
        Number of nodes searched.
    """
    if n < _ALWAYS_SEARCHED:
        return n
    if percentage == 0:
        percentage = max(_MOST_PERCENT - n // _NODES_A_PERCENT, _LEAST_PERCENT)
    return max(n * percentage // 100, _ALWAYS_SEARCHED)


def placements_to_find(percentage: int, nodes: Sequence[int]) -> int:
    """Return in how many placements a pod group has to fit before no other is tried.

    Parameters
    ----------
    percentage
        Of the placements, 0 to 100; 0 takes a share that falls from 100 to 5 with the nodes.
    nodes
        Number of nodes of each placement.

    Notes
    -----
    Mirrors kubernetes v1.37 ``pkg/scheduler/schedule_one_podgroup.go``.
    """
    if percentage == 0:
        percentage = max(ALL - sum(nodes) * 9 // 500, _LEAST_PERCENT)
    return max(len(nodes) * percentage // 100, 1)


class Rotation:
    """The node at which the next search starts; one rotation for all profiles of a scheduler.

    Attributes
    ----------
    start
        Position in the order of all nodes.
    """

    __slots__ = ("start",)

    def __init__(self) -> None:
        self.start = 0

    def advance(self, evaluated: int, num_nodes: int) -> None:
        """Advance the start by the number of filtered nodes, modulo the number of nodes."""
        self.start = (self.start + evaluated) % max(num_nodes, 1)


class Sampler:
    """Narrows one profile's searches to the nodes that kube-scheduler would have filtered.

    Parameters
    ----------
    profile
        Tells the percentage, and whether anything is scored at all.
    snapshot
        The cluster.
    rotation
        Shared by the profiles.
    """

    def __init__(self, profile: Profile, snapshot: Snapshot, rotation: Rotation) -> None:
        self._profile = profile
        self._snapshot = snapshot
        self.rotation = rotation
        self.on = profile.percentage_of_nodes_to_score < ALL

    def sample_rows(
        self, view: NodeView, filtered: FilterResults
    ) -> tuple[NodeView, FilterResults]:
        """Return the rows kube-scheduler would have filtered, ascending, and their filter result.

        The feasible rows wanted are among them, and every row that fails before one feasible row
        too many is met. The view and the filter result are returned unchanged when no row is
        hidden.

        Parameters
        ----------
        view
            The rows filtered, ascending.
        filtered
            The filter result on them.
        """
        self._snapshot.search_order()  # kept for this attempt, even if not used
        wanted = self._wanted(len(view))
        if wanted >= len(view):
            return view, filtered
        return self._cut(view, filtered, self.order(view), wanted=wanted)

    def search(self, view: NodeView, judge: Judge) -> tuple[NodeView, FilterResults]:
        """Search from the start position, after a plugin broke in a search over all rows.

        Only rows that kube-scheduler would have filtered may end the attempt, so plugins are asked
        about no other rows.

        Parameters
        ----------
        view
            The rows to search, ascending.
        judge
            Filters a view.

        Raises
        ------
        CycleError
            A plugin broke for a row that would have been looked at; `rotation` has moved on.
        """
        order, wanted = self.order(view), self._wanted(len(view))
        feasible, end, size = 0, 0, _BATCH
        while end < len(order) and feasible <= wanted:
            batch = self._snapshot.rows(order[end : end + size])
            try:
                feasible += int(judge(batch).passed.sum())
            except CycleError:
                if size == 1:
                    self.rotation.advance(end, self._snapshot.num_nodes)
                    raise
                size = 1  # enough rows may pass before the row that broke it
            else:
                end += len(batch)
        looked_at = self._snapshot.rows(np.sort(order[:end]))
        return self._cut(looked_at, judge(looked_at), order[:end], wanted=wanted)

    def order(self, view: NodeView, start: int | None = None) -> IntArray:
        """Return the rows of a view in the order in which they are looked at.

        Parameters
        ----------
        view
            Every row the search was about, feasible or not: the start counts among them.
        start
            Position of the first; where the rotation is when not given.
        """
        order = self._snapshot.search_order()
        if not view.is_all:
            order = order[np.isin(order, view.row_numbers())]
        start = (self.rotation.start if start is None else start) % max(len(order), 1)
        return np.concatenate((order[start:], order[:start]))

    def _cut(
        self,
        view: NodeView,
        filtered: FilterResults,
        order: IntArray,
        *,
        wanted: int,
    ) -> tuple[NodeView, FilterResults]:
        positions = order if view.is_all else np.searchsorted(view.row_numbers(), order)
        passed_n = filtered.passed[positions]
        passing = np.flatnonzero(passed_n)
        if len(passing) <= wanted:
            return view, filtered
        end = int(passing[wanted])
        looked_at = ~passed_n[:end]
        looked_at[passing[:wanted]] = True
        kept = np.sort(positions[:end][looked_at])
        rows = kept if view.is_all else view.row_numbers()[kept]
        return self._snapshot.rows(rows), filtered.at_rows(kept)

    def _wanted(self, n: int) -> int:
        asking = any(each.filters or each.prioritizes for each in self._profile.extenders)
        if not self._profile.scores and not asking:
            return 1
        return num_to_find(self._profile.percentage_of_nodes_to_score, n)
