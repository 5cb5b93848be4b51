"""Notes of an attempt for its record: the filter results, the best nodes and their scores.

The cycle writes a note and hands it out with its decision; no decision reads a note. A note refers
to arrays instead of copying them. What the attempts of a shape share from pod to pod is one object,
`ShapeNote`, until a row or the log of scores changes.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from moorage.engine.answers import CachedPart, OpenedPart, Rows, ScoreNotes
from moorage.engine.filters.filter_results import FilterResults, RecordedAnswer
from moorage.engine.notes.best_nodes import BestNodes, NearNodes, NearTop, Ranking
from moorage.engine.notes.extender_answers import ExtenderAnswer
from moorage.engine.notes.filtered_nodes import (
    FilteredNodes,
    FilterTexts,
    LookedAt,
    MoreRejections,
    NodeNames,
)
from moorage.engine.notes.score_log import ScoreLog
from moorage.engine.search import Search
from moorage.framework.points import ScoreArray
from moorage.framework.profile import Profile
from moorage.snapshot.snapshot import Snapshot
from moorage.snapshot.view import NodeView

Scored: TypeAlias = tuple[Rows, ScoreArray]
"""(scored rows, ascending; their totals), both int64."""

# Shape notes that are shared at once, one for each shape of pods; a guess.
_KEPT_MAX: Final = 256
# Filter results that one kept answer is joined with, one for each shape of pods; a guess.
_JOINED_MAX: Final = 8
_NOT_SCORED: Final = ScoreNotes()


class ShapeNote(msgspec.Struct, gc=False, eq=False):
    """The part of a note that the attempts of a shape share.

    Parameters
    ----------
    filtered
        The filter results.
    cached
        The plugins with cached scores.
    log
        The cached scores over time; None where no log is written.
    holders
        How many records hold this; kept by their ring.
    dropped
        Whether the ring gave up the rejections.
    """

    filtered: FilteredNodes
    cached: tuple[CachedPart, ...]
    log: ScoreLog | None
    holders: int = 0
    dropped: bool = False

    @classmethod
    def from_results(cls, filtered: FilteredNodes, scores: ScoreNotes) -> ShapeNote:
        """Return what attempts with these filter results and scores share."""
        if scores.log is not None:
            filtered.ranked = True
        return cls(filtered, scores.cached, scores.log)


class AttemptNote(msgspec.Struct, frozen=True, gc=False, eq=False):
    """The findings of an attempt on its way to a decision.

    Parameters
    ----------
    excluded_by
        The plugins whose PreFilter restricted or rejected the nodes.
    shape
        What the attempt shares with others; None where PreFilter left no node.
    more
        What Filters that were asked afresh rejected besides.
    chosen
        The row that was taken; -1 for none.
    length
        The length of the shape's log of scores; -1 where no node was scored.
    near
        The nodes near the greatest total; None where the log suffices to find them.
    extenders
        The answers of the extenders that took part.
    """

    excluded_by: frozenset[str]
    shape: ShapeNote | None
    more: tuple[MoreRejections, ...]
    chosen: int
    length: int
    near: NearNodes | None
    extenders: tuple[ExtenderAnswer, ...] = ()

    @property
    def looked_at(self) -> LookedAt | None:
        """The nodes that the attempt looked at."""
        return None if self.shape is None else LookedAt(self.shape.filtered, self.more)

    @property
    def best(self) -> BestNodes | None:
        """The best nodes; None where no node was scored."""
        shape = self.shape
        if shape is None or self.length < 0:
            return None
        return BestNodes(self.chosen, shape.cached, shape.log, self.length, self.near)

    @property
    def ranking(self) -> Ranking | None:
        """The best nodes in order, with every score; None where no node was scored."""
        best, looked_at = self.best, self.looked_at
        return None if best is None or looked_at is None else best.ranking(looked_at)


NOTHING_FOUND: Final = AttemptNote(frozenset(), None, (), -1, -1, None)
"""The note of an attempt that ended before it had looked at a node."""


class _Packed(NamedTuple):
    """The rejections of a kept answer, and the filter result that the answer joined."""

    joined: FilterResults
    more: tuple[MoreRejections, ...]


class NoteWriter:
    """Writes the notes of one profile's attempts.

    Parameters
    ----------
    profile
        The plugins.
    snapshot
        The cluster.
    """

    def __init__(self, profile: Profile, snapshot: Snapshot) -> None:
        self._texts = FilterTexts.from_profile(profile)
        self._snapshot = snapshot
        self._structure = -1
        self._names = NodeNames(())
        # The parts that notes share, by identity of the frozen filter result; and the newest part.
        self._shape_notes: dict[int, ShapeNote] = {}
        self._last = ShapeNote(FilteredNodes(self._names, None, None, self._texts), (), None)
        # Rejections that notes share, by their rows: spreading rejects few different sets of rows.
        self._rejections: dict[bytes, MoreRejections] = {}
        self._top = NearTop()

    def attempt_note(
        self, search: Search, chosen: int = -1, near: NearNodes | None = None
    ) -> AttemptNote:
        """Return the note of an attempt that has searched.

        Parameters
        ----------
        search
            The search.
        chosen
            The row that was taken; -1 for none.
        near
            The nodes near the greatest total, where `near` found some.
        """
        filtered, known, scores = search.filtered, search.known, search.notes or _NOT_SCORED
        shared = None if known is None or search.view.rows is not None else known.filtered
        more = () if filtered is shared else self._recorded(filtered, shared)
        shape: ShapeNote | None
        if shared is None or more is None:
            shape, more = self._own(search.view, filtered, scores), ()
        else:
            frozen, shape = shared.frozen(), self._last
            if (
                shape.filtered.filtered is not frozen
                or shape.log is not scores.log
                or shape.cached is not scores.cached
            ):
                shape = self._last = self._shared(frozen, scores)
        return AttemptNote(search.pre_filter.plugins, shape, more, chosen, scores.length, near)

    def greatest(self, total_n: ScoreArray, top: int) -> tuple[Rows, Rows]:
        """Return int64: the positions to note, and the positions of the greatest total."""
        return self._top.find(total_n, top)

    def near(
        self, scores: ScoreNotes, scored: Scored, near: Rows, *, chosen: int, tied: Rows
    ) -> NearNodes:
        """Return the nodes near the greatest total, with copies of their scores.

        Parameters
        ----------
        scores
            The scores of each plugin.
        scored
            The scored rows and their totals.
        near
            int64: the positions to note among the scored rows, of `greatest`; kept by the note.
        chosen
            The row that was taken.
        tied
            int64: the positions of the greatest total, ascending.
        """
        rows, total_n = scored
        whole = len(rows) == self._snapshot.num_nodes
        own = chosen if whole else int(rows.searchsorted(chosen))
        if own > near.item(-1):  # a tie beyond the first ones
            near[-1] = own
        at, raw_pn = near if whole else rows.take(near), scores.raw_pn
        return NearNodes(
            at,
            total_n.take(near),
            None if scores.log is not None or raw_pn is None else raw_pn.take(at, axis=1),
            tuple([_of(each, near) for each in scores.opened]),
            int(tied.searchsorted(own)) if len(tied) > 1 else 0,
        )

    def _own(self, view: NodeView, filtered: FilterResults, scores: ScoreNotes) -> ShapeNote | None:
        """Return what this attempt alone has; None where PreFilter left no node."""
        if not len(view):
            return None
        own = FilteredNodes(self._names_by_row(), view.rows, filtered, self._texts)
        return ShapeNote.from_results(own, scores)

    def _shared(self, frozen: FilterResults, scores: ScoreNotes) -> ShapeNote:
        """Return what attempts share from now on: until a row changes, or the log of scores."""
        found = self._shape_notes.get(id(frozen))
        if found is not None and found.filtered.filtered is frozen:
            if found.log is scores.log and found.cached is scores.cached:
                return found
            filtered = found.filtered
        else:
            if len(self._shape_notes) >= _KEPT_MAX:
                self._shape_notes.clear()
            filtered = FilteredNodes(self._names_by_row(), None, frozen, self._texts)
        made = self._shape_notes[id(frozen)] = ShapeNote.from_results(filtered, scores)
        return made

    def _recorded(
        self, filtered: FilterResults, shared: FilterResults | None
    ) -> tuple[MoreRejections, ...] | None:
        """Return what was rejected besides a shared filter result; None where more has changed."""
        recorded = None if shared is None else filtered.recorded_since(shared)
        if not recorded:  # nothing, as a rule; or more than can be recorded
            return None if recorded is None else ()
        if len(recorded) == 1 and shared is not None:
            made_of = recorded[0][2].made_of
            if made_of is not None:
                return self._packed_once(recorded[0], shared.frozen(), made_of)
        return tuple(
            [self._equal_rejections(MoreRejections.from_answer(each)) for each in recorded]
        )

    def _packed_once(
        self, recorded: RecordedAnswer, frozen: FilterResults, made_of: dict[int, Any]
    ) -> tuple[MoreRejections, ...]:
        """Return the rejections of an answer that is given again, packed at the first time.

        The rows that it is the first to reject depend on the filter result that it joined.
        """
        found: _Packed | None = made_of.get(id(frozen))
        if found is not None and found.joined is frozen:
            return found.more
        if len(made_of) >= _JOINED_MAX:
            made_of.clear()
        more = (self._equal_rejections(MoreRejections.from_answer(recorded)),)
        made_of[id(frozen)] = _Packed(frozen, more)
        return more

    def _equal_rejections(self, more: MoreRejections) -> MoreRejections:
        """Return equal rejections that were noted before, so that few are kept."""
        if more.arrays is not None:
            return more
        if len(self._rejections) >= _KEPT_MAX:
            self._rejections.clear()
        found = self._rejections.setdefault(more.failed, more)
        return found if found == more else more

    def _names_by_row(self) -> NodeNames:
        """Return the names of all nodes; the same object until a node comes or goes."""
        structure = self._snapshot.table.columns.structure
        if structure != self._structure:
            self._names, self._structure = NodeNames(tuple(self._snapshot.names)), structure
        return self._names


def _of(opened: OpenedPart, positions: Rows) -> OpenedPart:
    """Return a copy of the scores at some positions."""
    name, weight, raw_n, scores_n = opened
    noted_n = None if raw_n is None else raw_n.take(positions)
    return name, weight, noted_n, scores_n.take(positions)
