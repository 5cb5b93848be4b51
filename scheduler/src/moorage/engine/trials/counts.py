"""The counts of Filters on many rows of a trial, while pods leave their rows and come back.

`rows` asks the Filters that see sums, and this module those that count pods by kind.

Rules: scheduling spec, cycle section 3.4 (AddPod and RemovePod of PreFilter).
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from moorage.engine.attempt import Attempt
from moorage.engine.filters.asking import ask_contained
from moorage.framework.forms import FilterForms
from moorage.framework.status import Code, FilterAnswer
from moorage.framework.what_if import RowCounts
from moorage.snapshot.importance import RankedPods
from moorage.snapshot.view import NodeView

IntArray = NDArray[np.int64]
Mask = NDArray[np.bool_]

_PENDING: Final = np.uint8(Code.PENDING)


class FollowedCounts:
    """The counts of one Filter on some rows, less the pods that left their rows.

    Parameters
    ----------
    attempt, forms
        The attempt, and the Filter.
    view, ranked
        The rows, and their pods with kinds.
    which
        bool, (rows, ranks): the pods that left.
    waives
        Whether a row that only waits for nominated pods passes.

    Attributes
    ----------
    index
        The index of the Filter.
    follows
        Whether any of these pods adds to a count; no answer changes else.
    """

    def __init__(
        self,
        attempt: Attempt,
        forms: FilterForms,
        view: NodeView,
        ranked: RankedPods,
        which: Mask,
        *,
        waives: bool,
    ) -> None:
        self._attempt, self._forms, self._view, self._waives = attempt, forms, view, waives
        self.index, self.follows = forms.index, False
        self._counts: RowCounts | None = None
        self._moving: list[int] = []
        self._gone = np.zeros((0, len(view)), np.int64)
        self._take_off(ranked, which)

    def _take_off(self, ranked: RankedPods, which: Mask) -> None:
        forms, at = self._forms, self._attempt
        assert forms.counts is not None, "a Filter by counts"
        try:
            counts = self._counts = forms.counts(at.state, at.pod, self._view, ranked)
        except Exception:  # such as no state of PreFilter: the Filter itself answers so, too
            return
        self._gone = np.zeros((len(counts.by_kind), len(self._view)), np.int64)
        self._moving = [index for index, adds in enumerate(counts.by_kind) if adds.any()]
        for index in self._moving:
            gone = (counts.by_kind[index][counts.kinds] * which).sum(axis=1)
            self._gone[index] = gone * counts.counting_rows[index]
        self.follows = bool(self._gone.any())

    @property
    def alone(self) -> Mask | None:
        """The rows that the Filter cannot judge so; None for no row."""
        return None if self._counts is None else self._counts.alone

    def put_back(self, ranks: IntArray, which: Mask) -> None:
        """Put a pod back on each of some rows; ranks are int64, (rows,)."""
        self._move(ranks, which, -1)

    def take_again(self, ranks: IntArray, which: Mask) -> None:
        """Undo `put_back` on some of its rows."""
        self._move(ranks, which, +1)

    def judge(self) -> FilterAnswer | None:
        """Return the Filter's answer about the rows as they are now."""
        counts = self._counts
        if counts is None:
            answer = ask_contained(self._attempt, self._forms, self._view)
        else:
            gone = self._gone
            answer = ask_contained(
                self._attempt, self._forms, self._view, lambda: counts.judge_without(gone)
            )
        if answer is None or not self._waives:
            return answer
        failing = answer.code_n != _PENDING
        return FilterAnswer(answer.code_n * failing, answer.reason_n * failing)

    def counts_any(self, which: Mask) -> Mask:
        """Return bool, (rows,): where any of some pods counts; pods are bool, (rows, ranks)."""
        there = np.zeros(len(self._view), np.bool_)
        counts = self._counts
        if counts is not None:
            for index in self._moving:
                counts_there = ((counts.by_kind[index][counts.kinds] != 0) & which).any(axis=1)
                there |= counts_there & counts.counting_rows[index]
        return there

    def _move(self, ranks: IntArray, which: Mask, step: int) -> None:
        counts = self._counts
        if counts is not None:
            kinds = counts.kinds[np.arange(len(ranks)), ranks]
            for index in self._moving:
                adds = counts.by_kind[index][kinds] * (which & counts.counting_rows[index])
                self._gone[index] += step * adds
