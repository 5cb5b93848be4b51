"""The answers about one attempt, from the caches of the pod's shape.

The cycle gets `ReusedAnswers` in place of `Answers`, and uses no other part of reuse.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from moorage.engine.answers import Answers, Best, KnownRows, Rejection, Rows, ScoreNotes
from moorage.engine.attempt import Attempt
from moorage.engine.filters.filter_results import FilterResults
from moorage.engine.filters.nominated import comes_first, filter_nominated
from moorage.engine.reuse.shapes import BUDGET_BYTES, Shape, ShapeCache
from moorage.framework.points import PreFilterOutcome, ScoreArray
from moorage.framework.profile import Profile
from moorage.snapshot.snapshot import Snapshot
from moorage.snapshot.view import NodeView

_ROW_PASSES: Final = FilterResults(1)
"""The filter result on one row that passes; never changed."""


class Reuse:
    """The caches of one profile.

    Parameters
    ----------
    profile
        The plugins that are asked.
    snapshot
        The cluster.
    budget_bytes
        Maximum memory of all answers together.

    Attributes
    ----------
    shapes
        The cached answers by shape.
    """

    def __init__(
        self, profile: Profile, snapshot: Snapshot, *, budget_bytes: int = BUDGET_BYTES
    ) -> None:
        self.shapes = ShapeCache(profile, snapshot, budget_bytes=budget_bytes)
        self._never_reused = [
            each.never_reused
            for each in profile.capabilities.values()
            if each.never_reused is not None
        ]

    def about(self, attempt: Attempt) -> Answers:
        """Return the answers about an attempt: without caches where a plugin forbids reuse."""
        pod = attempt.pod
        for never_reused in self._never_reused:
            if never_reused(pod):
                return Answers(attempt)
        answers = ReusedAnswers(attempt, self.shapes.find(pod), self)
        if not pod.pod.status.nominated_node_name:  # only one row may be needed
            answers.follow()
        return answers


class ReusedAnswers(Answers):
    """The answers about one attempt, reused from earlier pods of the same shape.

    Parameters
    ----------
    attempt
        The attempt.
    shape
        The cached answers for the pod's shape.
    reuse
        The caches.
    """

    _shape: Shape
    _reuse: Reuse
    _every_node: bool = True
    """Whether PreFilter lets every node be searched; the cached answers cover every row."""
    _followed: bool = False
    """Whether the shape is up to date. No row changes for good during an attempt."""
    _prepared: bool = False
    """Whether PreScore has run."""

    def follow(self) -> None:
        """Bring the shape's caches up to date."""
        if self._shape.follow():
            self._reuse.shapes.missed()
        self._followed = True

    @property
    def known(self) -> KnownRows | None:
        """The cached filter results on every row; None where PreFilter restricts the nodes."""
        return self._shape.filters if self._every_node else None

    def pre_filter(self) -> PreFilterOutcome:
        """Run PreFilter, from the cache where possible."""
        outcome = self._shape.pre_filters.run(self.attempt)
        self._every_node = outcome.node_names is None
        return outcome

    def filter_row(self, row: int) -> FilterResults:
        """Run Filter on one row, from the cache where possible."""
        at, shape = self.attempt, self._shape
        if shape.passes(at, row) and comes_first(at.snapshot, at.pod, row):
            return _ROW_PASSES
        if not self._followed:
            self.follow()
        if shape.filters.filtered is None and shape.comes_again and self._every_node:
            shape.filters.ask(at)  # more pods of the shape are likely to get nominated nodes
        filtered = shape.filters.on_row(at.state, row)
        if filtered is None:
            return super().filter_row(row)
        if at.snapshot.nominations:
            filter_nominated(at, at.snapshot.rows([row]), filtered)
        return filtered

    def filter_view(self, view: NodeView) -> FilterResults:
        """Run Filter on a view: every row from the cache; plugins are asked about other views."""
        if view.rows is not None:
            return super().filter_view(view)
        at, filters, shapes = self.attempt, self._shape.filters, self._reuse.shapes
        if not self._followed:
            self.follow()
        kept = filters.filtered
        if kept is None:
            kept = filters.ask(at)
        filtered = filters.complete(at, kept)
        if not at.snapshot.nominations:
            return filtered
        nominated = self._shape.nominated
        priorities = len(nominated)
        both = nominated.judge(at, filtered, is_kept=filters.is_whole(filtered, at.state))
        if len(nominated) != priorities:
            shapes.keep_budget(self._shape)
        return both

    def feasible(self, view: NodeView, filtered: FilterResults) -> Rows:
        """Return the rows that pass; a kept filter result keeps them too."""
        return (
            self._shape.filters.feasible(filtered)
            if view.rows is None
            else super().feasible(view, filtered)
        )

    def best(self, rows: Rows, notes: ScoreNotes | None = None) -> Best | None:
        """Return the best rows where the shape keeps them; None where all rows must be scored."""
        at, shape = self.attempt, self._shape
        # The first pod of a shape has every row scored: many shapes have no other pod.
        if rows is not shape.filters.rows or not shape.scores.known:
            return None
        shape.scores.prepare(at, self.view_of(rows))
        self._prepared = True
        part = shape.scores.flat_part(at, notes)
        if part is None:
            return None
        if not shape.best.known:
            shape.best.ask()
        tied = shape.best.find()
        return Best(tied.top + part, tied)

    def totals(self, rows: Rows, notes: ScoreNotes | None = None) -> ScoreArray:
        """Return the weighted sums, from cached scores of every row where possible."""
        if not self._every_node:
            return super().totals(rows, notes)
        at, shape = self.attempt, self._shape
        if not self._followed:
            self.follow()
        if not shape.scores.known:
            shape.state.metered_like(at.state)
            known = shape.scores.ask()
            at.state.absorb(shape.state)
            if not known:
                return super().totals(rows, notes)
        view = self.view_of(rows)
        if not self._prepared:
            shape.scores.prepare(at, view)
        return shape.scores.totals(at, view, notes)

    def rejection(
        self, outcome: PreFilterOutcome, filtered: FilterResults, find: Callable[[], Rejection]
    ) -> Rejection:
        """Return why no row passed, from the cache where possible."""
        cache, key = self._shape.rejections, None
        if self._every_node and self._shape.filters.is_whole(filtered, self.attempt.state):
            key = cache.key(self.attempt, outcome)
        cached = None if key is None else cache.find(key)
        if cached is None:
            cached = find()
            if key is not None:
                cache.keep(key, cached)
                self._reuse.shapes.keep_budget(self._shape)
        return cached
