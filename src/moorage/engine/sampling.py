"""Which nodes kube-scheduler would have looked at: the cycle's step between filtering and scoring.

kube-scheduler filters nodes in an order that starts where the last search ended, and stops when it
has found enough. Here every row has its verdict already, so the step only tells how far that
search would have come, and hides the rest.

Rules: kubernetes v1.36 ``pkg/scheduler/schedule_one.go`` (``findNodesThatPassFilters``,
``numFeasibleNodesToFind``) and ``pkg/scheduler/framework/parallelize``; scheduling spec, cycle
sections 3.1, 3.3 and 11.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isqrt
from typing import Final

import numpy as np
from numpy.typing import NDArray

from moorage.engine.filtering import CycleError, FilterPass, ask_filters
from moorage.framework.cycle_state import CycleState
from moorage.framework.profile import Profile
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot
from moorage.snapshot.view import NodeView

IntArray = NDArray[np.int64]
Judge = Callable[[CycleState, PodInfo, NodeView], FilterPass]

ALL: Final = 100
"""The percentage at which nothing is left out."""

_ALWAYS_SEARCHED: Final = 100
_MOST_PERCENT: Final = 50
_LEAST_PERCENT: Final = 5
_NODES_A_PERCENT: Final = 125


def num_to_find(percentage: int, n: int) -> int:
    """Return after how many feasible nodes a search is content.

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


def chunk_size(n: int, parallelism: int) -> int:
    """Return how many nodes a worker looks at before it asks whether enough were found."""
    return max(1, min(isqrt(n), n // parallelism + 1))


class Rotation:
    """Where the next search starts; one for all profiles of a scheduler.

    Attributes
    ----------
    start
        Position in the order of all nodes.
    """

    __slots__ = ("start",)

    def __init__(self) -> None:
        self.start = 0

    def advance(self, evaluated: int, num_nodes: int) -> None:
        """Move on by the nodes that were looked at, round the number of all nodes."""
        self.start = (self.start + evaluated) % max(num_nodes, 1)


class Sampler:
    """Narrows the searches of one profile to what kube-scheduler would have looked at.

    Parameters
    ----------
    profile
        Tells the percentage, the chunks, and whether anything is scored at all.
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

    def take(self, view: NodeView, verdict: FilterPass) -> tuple[NodeView, FilterPass]:
        """Return the rows that would have been looked at, ascending, and the verdict on them.

        Those are the feasible rows wanted, and every row that fails up to the end of the chunk in
        which one feasible row too many is met. Both come back as they are when that is all.

        Parameters
        ----------
        view
            The rows filtered, ascending.
        verdict
            The verdict on them.
        """
        wanted = self._wanted(len(view))
        if wanted >= len(view):
            return view, verdict
        return self._cut(view, verdict, self.order(view), wanted=wanted)

    def search(
        self, state: CycleState, pod: PodInfo, view: NodeView, judge: Judge
    ) -> tuple[NodeView, FilterPass]:
        """Search chunk by chunk: for a search in which a plugin broke.

        Only the rows that would have been looked at may break it, so no others are asked about.

        Parameters
        ----------
        state, pod
            The attempt.
        view
            The rows to search, ascending.
        judge
            Filters a view.

        Raises
        ------
        CycleError
            A plugin broke for a row that would have been looked at; `rotation` has moved on.
        """
        order, wanted, size = self.order(view), self._wanted(len(view)), self._chunk(len(view))
        feasible = failed = end = 0
        while end < len(order) and feasible <= wanted:
            chunk = self._snapshot.rows(order[end : end + size])
            try:
                passed = int(judge(state, pod, chunk).passed.sum())
            except CycleError:
                asked = range(len(self._profile.filters))
                verdict = ask_filters(self._profile, state, pod, chunk, only=asked)
                feasible += int(verdict.passed.sum())
                failed += int((~verdict.passed & ~verdict.broken).sum())
                self.rotation.advance(min(feasible, wanted) + failed, self._snapshot.num_nodes)
                raise
            feasible, failed = feasible + passed, failed + len(chunk) - passed
            end += len(chunk)
        looked_at = self._snapshot.rows(np.sort(order[:end]))
        verdict = judge(state, pod, looked_at)
        return self._cut(looked_at, verdict, order[:end], wanted=wanted, size=size)

    def order(self, view: NodeView, start: int | None = None) -> IntArray:
        """Return the rows of a view in the order in which they are looked at.

        Parameters
        ----------
        view
            The rows, in any order.
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
        verdict: FilterPass,
        order: IntArray,
        *,
        wanted: int,
        size: int | None = None,
    ) -> tuple[NodeView, FilterPass]:
        positions = order if view.is_all else np.searchsorted(view.row_numbers(), order)
        passed_n = verdict.passed[positions]
        found = np.flatnonzero(passed_n)
        if len(found) <= wanted:
            return view, verdict
        size = size or self._chunk(len(view))
        end = (int(found[wanted]) // size + 1) * size
        looked_at = ~passed_n[:end]
        looked_at[found[:wanted]] = True
        kept = np.sort(positions[:end][looked_at])
        rows = kept if view.is_all else view.row_numbers()[kept]
        return self._snapshot.rows(rows), verdict.at(kept)

    def _wanted(self, n: int) -> int:
        if not self._profile.scores:
            return 1
        return num_to_find(self._profile.percentage_of_nodes_to_score, n)

    def _chunk(self, n: int) -> int:
        return chunk_size(n, self._profile.parallelism)
