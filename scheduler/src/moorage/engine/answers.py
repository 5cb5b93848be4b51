"""The answers of a profile's plugins about one attempt; the cycle asks only through them.

`Answers` asks the plugins each time. `reuse.answers.ReusedAnswers` has the same methods and gives
equal answers, from caches where possible. The rest of the cycle does not distinguish the two.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from moorage.engine.attempt import Attempt
from moorage.engine.filters.asking import run_filters
from moorage.engine.filters.filter_results import FilterResults
from moorage.engine.filters.nominated import filter_nominated
from moorage.engine.notes.score_log import ScoreLog
from moorage.engine.scoring import run_scores
from moorage.engine.select_node import TiedRows
from moorage.framework.diagnosis import Diagnosis
from moorage.framework.points import PreFilterOutcome, ScoreArray
from moorage.framework.runner import PostFilterOutcome, run_pre_filter
from moorage.snapshot.view import NodeView

Rows = NDArray[np.int64]


class CachedPart(NamedTuple):
    """A plugin whose raw scores of every row are cached.

    Parameters
    ----------
    name, weight
        The plugin.
    final
        Whether raw scores need no normalising.
    flat
        The normalised score where all rows have the same one; None where they differ.
    raw
        The raw score where all rows have the same one, which is then kept here alone; None where
        each row has its own.
    """

    name: str
    weight: int
    final: bool
    flat: int | None
    raw: int | None = None


OpenedPart: TypeAlias = tuple[str, int, ScoreArray | None, ScoreArray]
"""(plugin, weight, raw scores or None where they are cached, normalised scores)."""


class ScoreNotes(msgspec.Struct, gc=False):
    """The scores of the plugins in one attempt, to be noted.

    Parameters
    ----------
    cached
        The plugins with cached scores. Those whose `raw` is None are the rows of `raw_pn`.
    log, length
        The log of the cached raw scores, and its length now; None and 0 where none is written. The
        length is -1 before the nodes are scored.
    raw_pn
        int64, (cached plugins, n): the cached raw scores where no log is written. They are changed
        after the attempt.
    opened
        The plugins whose scores depend on the feasible rows: int64, (feasible rows,).
    extended
        Whether extenders rejected nodes or added scores.
    """

    cached: tuple[CachedPart, ...] = ()
    log: ScoreLog | None = None
    length: int = -1
    raw_pn: NDArray[np.int64] | None = None
    opened: tuple[OpenedPart, ...] = ()
    extended: bool = False


class Best(msgspec.Struct, frozen=True, gc=False):
    """The greatest total, and the feasible rows that have it."""

    total: int
    rows: TiedRows


class KnownRows(Protocol):
    """The cached filter results for pods of one shape; compared by identity."""

    @property
    def filtered(self) -> FilterResults | None:
        """Result of the reusable Filters on every row; it changes with the rows."""
        ...

    @property
    def by_node(self) -> FilterResults | None:
        """Result of the Filters that read a row's node alone; pods do not change it."""
        ...


class Rejection(NamedTuple):
    """The reason why no row passed, and the answer of PostFilter; None where it was not asked."""

    diagnosis: Diagnosis
    after: PostFilterOutcome | None


class Answers(msgspec.Struct, eq=False):
    """The answers about one attempt; each plugin is asked when its answer is needed.

    Parameters
    ----------
    attempt
        The attempt.
    """

    attempt: Attempt

    @property
    def known(self) -> KnownRows | None:
        """The cached filter results on every row; None where the plugins were asked."""
        return None

    def pre_filter(self) -> PreFilterOutcome:
        """Run PreFilter."""
        at = self.attempt
        return run_pre_filter(at.profile, at.state, at.pod, at.snapshot)

    def filter_row(self, row: int) -> FilterResults:
        """Run Filter on one row, next to the pods nominated to it.

        Raises
        ------
        CycleError
            A plugin broke.
        """
        return self.filter_view(self.attempt.snapshot.rows([row]))

    def filter_view(self, view: NodeView) -> FilterResults:
        """Run Filter on the rows of a view, next to the pods nominated to them.

        Raises
        ------
        CycleError
            A plugin broke.
        """
        filtered = run_filters(self.attempt, view)
        if self.attempt.snapshot.nominations:
            filter_nominated(self.attempt, view, filtered)
        return filtered

    def feasible(self, view: NodeView, filtered: FilterResults) -> Rows:
        """Return int64: the rows of a view that passed Filter, in the order of the view."""
        positions = filtered.passing
        return positions if view.rows is None else view.rows[positions]

    def best(self, rows: Rows, notes: ScoreNotes | None = None) -> Best | None:
        """Return the feasible rows with the greatest total, where they are kept; else None.

        Parameters
        ----------
        rows, notes
            As for `totals`. Notes are written only where the answer is not None.

        Raises
        ------
        CycleError
            A plugin failed, or a score is out of range.
        """
        del rows, notes
        return None

    def totals(self, rows: Rows, notes: ScoreNotes | None = None) -> ScoreArray:
        """Return int64, (rows,): the weighted sums of all scores.

        Parameters
        ----------
        rows
            The feasible rows, ascending.
        notes
            Takes the scores of each plugin; None where they are not noted.

        Raises
        ------
        CycleError
            A plugin failed, or a score is out of range.
        """
        table = run_scores(self.attempt, self.view_of(rows))
        if notes is not None:
            notes.length = 0
            notes.opened = tuple(
                [
                    (name, each.weight, each.raw_n, each.normalized_n)
                    for name, each in table.plugins.items()
                ]
            )
        return table.total_n

    def rejection(
        self, outcome: PreFilterOutcome, filtered: FilterResults, find: Callable[[], Rejection]
    ) -> Rejection:
        """Return why no row passed.

        Parameters
        ----------
        outcome, filtered
            Outcomes of PreFilter and Filter.
        find
            Finds the reasons, and asks PostFilter.
        """
        del outcome, filtered
        return find()

    def view_of(self, rows: Rows) -> NodeView:
        """Return the view of ascending rows; the view of all rows copies no column."""
        snapshot = self.attempt.snapshot
        return snapshot.all() if len(rows) == snapshot.num_nodes else snapshot.rows(rows)
