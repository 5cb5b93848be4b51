"""Notes of an attempt for its record: the filter results, the best nodes and their scores.

The cycle writes a note into the attempt's cycle state when it has found a node, or none. Whoever
carries the decision out may read it there (`NOTE`); no decision reads a note. A note refers to
arrays instead of copying them: filter results that are reused from pod to pod are shared by the
notes of all attempts between two changes.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import msgspec

from moorage.engine.answers import OpenedPart, Rows, ScoreNotes
from moorage.engine.filters.filter_pass import FilterPass
from moorage.engine.notes.best_nodes import BestNodes, NearNodes, NearTop
from moorage.engine.notes.filtered_nodes import FilteredNodes, LookedAt, MoreRejections, NodeNames
from moorage.engine.search import Search
from moorage.framework.cycle_state import StateKey
from moorage.framework.points import ScoreArray
from moorage.framework.profile import Profile
from moorage.framework.runner import PreFilterOutcome
from moorage.snapshot.snapshot import Snapshot
from moorage.snapshot.view import NodeView

Scored: TypeAlias = tuple[Rows, ScoreArray]
"""(scored rows, ascending; their totals), both int64."""

# Filter results that are shared at once, one for each shape of pods; a guess.
_KEPT_MAX: Final = 256


class AttemptNote(msgspec.Struct, frozen=True, gc=False):
    """The findings of an attempt on its way to a decision.

    Parameters
    ----------
    pre_filter
        The outcome of PreFilter.
    filtered
        The filter results; None where PreFilter rejected the pod.
    more
        What Filters that were asked afresh rejected besides.
    best
        The best nodes; None where no node was scored.
    """

    pre_filter: PreFilterOutcome
    filtered: FilteredNodes | None
    more: tuple[MoreRejections, ...]
    best: BestNodes | None

    @property
    def looked_at(self) -> LookedAt | None:
        """The nodes that the attempt looked at."""
        return None if self.filtered is None else LookedAt(self.filtered, self.more)


NOTE: StateKey[AttemptNote] = StateKey("note of the attempt")


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
        self._profile = profile
        self._snapshot = snapshot
        self._structure = -1
        self._names = NodeNames(())
        # Filter results that notes share, by identity.
        self._kept: dict[int, FilteredNodes] = {}
        self._top = NearTop()

    def note(self, search: Search, chosen: int = -1, near: NearNodes | None = None) -> None:
        """Write the note of an attempt that has searched.

        Parameters
        ----------
        search
            The search.
        chosen
            The row that was taken; -1 for none.
        near
            The nodes near the greatest total, where `near` found some.
        """
        filtered, known, scores, best = search.filtered, search.known, search.notes, None
        more: tuple[MoreRejections, ...] = ()
        shared = None if known is None else known.filtered
        if shared is None or search.view.rows is not None:
            looked_at = self._own(search.view, filtered)
        elif filtered is shared:
            looked_at = self._shared(shared)
        else:
            recorded = filtered.recorded_since(shared)
            if recorded is None:
                looked_at = self._own(search.view, filtered)
            else:
                looked_at = self._shared(shared)
                if recorded:
                    more = tuple([MoreRejections.of(each) for each in recorded])
        if scores is not None and (near is not None or scores.log is not None):
            best = BestNodes(chosen, scores.cached, scores.log, scores.length, near)
        note = AttemptNote(search.pre_filter, looked_at, more, best)
        search.answers.attempt.state.write(NOTE, note)

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
            int64: the positions to note among the scored rows, of `greatest`.
        chosen
            The row that was taken.
        tied
            int64: the positions of the greatest total, ascending.
        """
        rows, total_n = scored
        whole = len(rows) == self._snapshot.num_nodes
        own = chosen if whole else int(rows.searchsorted(chosen))
        if own > near.item(-1):  # a tie beyond the first ones
            near = near.copy()
            near[-1] = own
        at = near if whole else rows[near]
        names, raw_pn = self._snapshot.names, scores.raw_pn
        return NearNodes(
            tuple([names[row] for row in at.tolist()]),
            at,
            total_n[near],
            None if scores.log is not None or raw_pn is None else raw_pn.take(at, axis=1),
            tuple([_of(each, near) for each in scores.opened]),
            int(tied.searchsorted(own)) if len(tied) > 1 else 0,
        )

    def _own(self, view: NodeView, filtered: FilterPass) -> FilteredNodes | None:
        """Return the filter result of this attempt alone; None where PreFilter left no node."""
        if not len(view):
            return None
        return FilteredNodes(self._names_by_row(), view.rows, filtered, self._profile)

    def _shared(self, filtered: FilterPass) -> FilteredNodes:
        """Return the cached filter results as they are now; the same object until a row changes."""
        frozen = filtered.frozen()
        found = self._kept.get(id(frozen))
        if found is None or found.filtered is not frozen:
            if len(self._kept) >= _KEPT_MAX:
                self._kept.clear()
            names = self._names_by_row()
            found = self._kept[id(frozen)] = FilteredNodes(names, None, frozen, self._profile)
        return found

    def _names_by_row(self) -> NodeNames:
        """Return the names of all nodes; the same object until a node comes or goes."""
        structure = self._snapshot.table.columns.structure
        if structure != self._structure:
            self._names, self._structure = NodeNames(tuple(self._snapshot.names)), structure
        return self._names


def _of(opened: OpenedPart, positions: Rows) -> OpenedPart:
    """Return a copy of the scores at some positions."""
    name, weight, raw_n, scores_n = opened
    return name, weight, None if raw_n is None else raw_n[positions], scores_n[positions]
