"""The skews of PodTopologySpread for rows that are each tried without some of their pods.

As `HardSkew.moving`, for many rows at once: a pod counts on its row by its kind.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from moorage.framework.status import CodeArray, FilterAnswer
from moorage.plugins.nodes.terms import BoolArray
from moorage.plugins.spread.skew import TOO_SOON, HardSkew
from moorage.snapshot.importance import RankedPods
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.view import NodeView

IntArray = NDArray[np.int64]


class Skews(msgspec.Struct, frozen=True):
    """The result of PreFilter.

    Parameters
    ----------
    placed
        The skew of the pods on nodes; None for a pod without hard constraints.
    beside
        The skew with the pods nominated first as well, each on its node; None where no nominated
        pod changes a count.
    closed_n
        bool, (n,): rows kept for nominated pods; None for no row.
    in_trials
        The two skews without the pods whose eviction is decided and not shown yet: a trial without
        its victims counts on these evictions. None where there are no such pods.
    """

    placed: HardSkew | None
    beside: HardSkew | None
    closed_n: BoolArray | None = None
    in_trials: tuple[HardSkew, HardSkew | None] | None = None


def codes_beside(placed_n: CodeArray, beside_n: CodeArray) -> CodeArray:
    """Return uint8, (rows,): the codes of rows by the codes without nominated pods, and with them.

    A row that passes only with nominated pods is pending.
    """
    waits_n = np.where(placed_n, TOO_SOON, 0).astype(np.uint8)
    return np.where(beside_n, beside_n, waits_n)


class SkewsByRow:
    """`RowCounts` of PodTopologySpread: a count for each hard constraint.

    Parameters
    ----------
    skews, pod
        The skews, and the pod whose constraints they are of.
    view
        The rows.
    ranked
        The pods of the rows, with kinds.
    moves_terminating
        Whether a terminating pod that leaves its row lowers the count.
    judge
        Returns the plugin's answer for the codes of its constraints; None without constraints.

    Attributes
    ----------
    alone
        Rows that are tried alone; None for no row.
    """

    def __init__(
        self,
        skews: Skews,
        pod: PodInfo,
        view: NodeView,
        ranked: RankedPods,
        *,
        moves_terminating: bool,
        judge: Callable[[CodeArray | None], FilterAnswer | None],
    ) -> None:
        self._skews, self._pod, self._view, self._judge = skews, pod, view, judge
        self.kinds, kinds = ranked.kind, ranked.of_kind
        self.alone: BoolArray | None = None
        self.by_kind: IntArray = np.zeros((0, len(kinds) + 1), np.int64)
        self.counting_rows: BoolArray = np.zeros((0, len(view)), np.bool_)
        if skews.placed is not None:
            self.by_kind = skews.placed.adds(pod, kinds)
            self.counting_rows = skews.placed.counting_rows(view)
        if not moves_terminating:
            terminating = [bool(other.pod.metadata.deletion_timestamp) for other in kinds]
            self.by_kind[:, np.flatnonzero(terminating)] = 0

    def leave_out(self, evicted: Sequence[tuple[int, PodInfo]]) -> None:
        """Leave out the rows of pods whose eviction is decided, if the constraints count them.

        Such a pod changes no count when it leaves its row; another pod of its kind does.
        """
        placed = self._skews.placed
        if placed is None or not evicted:
            return
        adds: list[int] = (
            placed.adds(self._pod, [other for _, other in evicted]).sum(axis=0).tolist()
        )
        alone_n = np.zeros(self._view.size_of_all, np.bool_)
        alone_n[[row for (row, _), counts in zip(evicted, adds, strict=False) if counts]] = True
        self.alone = self._view.take_rows(alone_n)

    def judge_without(self, gone: IntArray) -> FilterAnswer | None:
        """Return the answer about the rows; None where all rows pass."""
        placed, beside = self._skews.placed, self._skews.beside
        if placed is None:
            return self._judge(None)
        code_n = placed.codes_without(self._view, gone)
        if beside is not None:
            code_n = codes_beside(code_n, beside.codes_without(self._view, gone))
        return self._judge(code_n)
