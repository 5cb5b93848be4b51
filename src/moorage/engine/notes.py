"""Notes of an attempt for its record: the filter results, the best nodes and their scores.

The cycle writes a note into the attempt's cycle state when it has found a node, or none. Whoever
carries the decision out may read it there (`NOTE`); no decision reads a note. A note refers to
arrays instead of copying them: filter results that are reused from pod to pod are shared by the
notes of all attempts between two changes.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from moorage.engine.answers import CachedPart, Rows, ScoreNotes
from moorage.engine.filters.filter_pass import EXTENDED, PASSED, FilterPass
from moorage.engine.search import Search
from moorage.framework.cycle_state import StateKey
from moorage.framework.points import ScoreArray
from moorage.framework.profile import Profile
from moorage.framework.runner import PreFilterOutcome
from moorage.framework.status import Code
from moorage.snapshot.snapshot import Snapshot

Scored: TypeAlias = tuple[Rows, ScoreArray]
"""(scored rows, ascending; their totals), both int64."""

BEST_MAX: Final = 10
"""Nodes whose scores are noted."""
# Nodes that are noted before the best of them are looked for; a guess.
_NEAR_MAX: Final = 24
_NEAR_MANY: Final = 400
# Filter results that are shared at once, one for each shape of pods; a guess.
_KEPT_MAX: Final = 256
_NAME_BYTES: Final = 72
_ROW_BYTES: Final = 6
"""Index of the plugin, code and reasons of one row."""


class PluginScore(msgspec.Struct, frozen=True, gc=False):
    """The scores that one plugin gave the best nodes.

    Parameters
    ----------
    plugin
        Its name.
    weight
        Its weight in the total.
    raw, normalized
        By node, in the order of `BestNodes.ranking`. Weighted is `normalized` times `weight`.
    """

    plugin: str
    weight: int
    raw: tuple[int, ...]
    normalized: tuple[int, ...]


class Ranking(msgspec.Struct, frozen=True):
    """The best nodes of an attempt, the chosen one first, the others by total.

    Parameters
    ----------
    nodes
        Their names.
    totals
        Their totals, extenders included.
    plugins
        The scores of each plugin.
    """

    nodes: tuple[str, ...]
    totals: tuple[int, ...]
    plugins: tuple[PluginScore, ...]


Opened: TypeAlias = tuple[str, int, ScoreArray | None, ScoreArray]
"""(plugin, weight, raw scores, normalised scores), as in `ScoreNotes`, of the noted nodes."""


class BestNodes(msgspec.Struct, frozen=True, gc=False):
    """The best nodes of an attempt with their scores, as noted: in no order, put right when read.

    Parameters
    ----------
    chosen
        The node that was taken; it is among `nodes`.
    nodes
        The noted nodes, a few more than `BEST_MAX` at most.
    totals
        int64: their totals.
    cached, raw_pk
        The plugins with cached scores, and int64, (plugins, nodes): the raw scores.
    opened
        The other plugins, and plugins whose normalised scores depend on the feasible rows.
    """

    chosen: str
    nodes: tuple[str, ...]
    totals: ScoreArray
    cached: tuple[CachedPart, ...]
    raw_pk: NDArray[np.int64] | None
    opened: tuple[Opened, ...]

    def ranking(self) -> Ranking:
        """Return the nodes in order, with every score."""
        nodes, listed = self.nodes, self.totals.tolist()
        order = sorted(range(len(nodes)), key=lambda i: (nodes[i] != self.chosen, -listed[i], i))
        order = order[:BEST_MAX]
        normalized = {name: scores for name, _, _, scores in self.opened}
        plugins: list[PluginScore] = []
        for index, part in enumerate(self.cached):
            assert self.raw_pk is not None, "cached scores were noted"
            raw = [int(self.raw_pk[index, i]) for i in order]
            if part.final:
                scores = raw
            elif part.flat is not None:
                scores = [part.flat] * len(order)
            else:
                scores = [int(normalized[part.name][i]) for i in order]
            plugins.append(PluginScore(part.name, part.weight, tuple(raw), tuple(scores)))
        for name, weight, raw_n, scores_n in self.opened:
            if raw_n is not None:
                raw, scores = ([int(array[i]) for i in order] for array in (raw_n, scores_n))
                plugins.append(PluginScore(name, weight, tuple(raw), tuple(scores)))
        return Ranking(
            tuple([nodes[i] for i in order]),
            tuple(listed[i] for i in order),
            tuple(plugins),
        )


class NodeNames(msgspec.Struct, gc=False):
    """Node names by row, as they were; notes share them until a node comes or goes.

    Parameters
    ----------
    names
        The names.
    holders
        How many records hold this; kept by their ring.
    """

    names: tuple[str, ...]
    holders: int = 0

    @property
    def nbytes(self) -> int:
        """Memory, bytes; the length of a name is a guess."""
        return _NAME_BYTES * len(self.names)


class FilteredNodes(msgspec.Struct, gc=False):
    """The filter result on every node that an attempt looked at.

    Parameters
    ----------
    names
        Node names by row, as they were.
    rows
        The rows looked at, ascending; None for all.
    filtered
        The filter result on them; not changed any more.
    profile
        Tells the names of plugins, and the texts of reasons.
    holders
        How many records hold this; kept by their ring.
    """

    names: NodeNames
    rows: NDArray[np.int64] | None
    filtered: FilterPass
    profile: Profile
    holders: int = 0

    @property
    def nbytes(self) -> int:
        """Memory of the arrays, bytes, without the names."""
        own = 0 if self.rows is None else self.rows.nbytes
        return len(self.filtered.plugin_n) * _ROW_BYTES * self.filtered.held + own

    def rejections(self) -> dict[tuple[str, str, tuple[str, ...]], list[str]]:
        """Return (plugin, code, reasons) -> the nodes rejected so, in the order of rows.

        A node that is absent here was not looked at, or passed.
        """
        filtered, reasons = self.filtered, self.profile.handle.reasons
        found: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
        for position in np.flatnonzero(~filtered.passed).tolist():
            index, code, reason = filtered.result_at(position)
            plugin = "" if index == EXTENDED else self.profile.filters[index].name
            key = plugin, Code(code).text, reasons.reasons(reason)
            found.setdefault(key, []).append(self._name(position))
        return found

    def passed(self) -> list[str]:
        """Return the nodes that passed every Filter, in the order of rows."""
        return [self._name(each) for each in (self.filtered.plugin_n == PASSED).nonzero()[0]]

    def _name(self, position: int) -> str:
        return self.names.names[position if self.rows is None else int(self.rows[position])]


class AttemptNote(msgspec.Struct, frozen=True, gc=False):
    """What an attempt found on its way to a decision.

    Parameters
    ----------
    pre_filter
        The outcome of PreFilter.
    filtered
        The filter results; None where PreFilter rejected the pod.
    best
        The best nodes; None where no node was scored.
    """

    pre_filter: PreFilterOutcome
    filtered: FilteredNodes | None
    best: BestNodes | None


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
        # Totals so far below the greatest one are near it; it adapts, to have a few dozen near.
        self._gap = 0

    def note(self, search: Search, best: BestNodes | None = None) -> None:
        """Write the note of an attempt that has searched."""
        filtered, known = search.filtered, search.known
        if known is not None and filtered is known.filtered:
            looked_at: FilteredNodes | None = self._shared(filtered)
        elif len(search.view):
            looked_at = FilteredNodes(
                self._names_by_row(), search.view.rows, filtered, self._profile
            )
        else:
            looked_at = None
        search.attempt.state.write(NOTE, AttemptNote(search.pre_filter, looked_at, best))

    def greatest(self, total_n: ScoreArray, top: int) -> tuple[Rows, Rows]:
        """Return int64: the positions to note, and the positions of the greatest total; ascending.

        One look at all totals serves both.
        """
        if len(total_n) <= BEST_MAX:
            return np.arange(len(total_n)), (total_n == top).nonzero()[0]
        near = (total_n >= top - self._gap).nonzero()[0]
        if len(near) < BEST_MAX:
            wanted = min(2 * BEST_MAX, len(total_n) - 1)
            self._gap = top - int(np.partition(total_n, -wanted)[-wanted])
            near = (total_n >= top - self._gap).nonzero()[0]
        near_n = total_n[near]
        tied = near[near_n == top]
        if len(tied) >= BEST_MAX:
            self._gap = 0
            return tied[:BEST_MAX], tied
        if len(near) > _NEAR_MAX:
            if len(near) > _NEAR_MANY:
                self._gap -= 1
            near = near[near_n.argpartition(len(near) - BEST_MAX)[-BEST_MAX:]]
            near.sort()
        return near, tied

    def best_of(
        self, notes: ScoreNotes | None, scored: Scored, best: Rows, chosen: int
    ) -> BestNodes | None:
        """Return the best of the scored rows.

        Parameters
        ----------
        notes
            The scores of each plugin.
        scored
            The scored rows and their totals.
        best
            int64: the positions of the best among the scored rows.
        chosen
            The row that was taken.
        """
        if notes is None:
            return None
        rows, total_n = scored
        whole = len(rows) == self._snapshot.num_nodes
        own = chosen if whole else int(rows.searchsorted(chosen))
        if own > best.item(-1):  # a tie beyond the first ones
            best = best.copy()
            best[-1] = own
        at = best if whole else rows[best]
        opened, names = notes.opened, self._snapshot.names
        return BestNodes(
            names[chosen],
            tuple([names[row] for row in at.tolist()]),
            total_n[best],
            notes.cached,
            None if notes.raw_pn is None else notes.raw_pn[:, at],
            tuple([_of(each, best) for each in opened]) if opened else (),
        )

    def _shared(self, filtered: FilterPass) -> FilteredNodes:
        """Return the cached filter results as they are now; the same object until a row changes."""
        frozen, names = filtered.frozen(), self._names_by_row()
        found = self._kept.get(id(frozen))
        if found is None or found.filtered is not frozen or found.names is not names:
            if len(self._kept) >= _KEPT_MAX:
                self._kept.clear()
            found = self._kept[id(frozen)] = FilteredNodes(names, None, frozen, self._profile)
        return found

    def _names_by_row(self) -> NodeNames:
        """Return the names of all nodes; the same object until a node comes or goes."""
        structure = self._snapshot.table.columns.structure
        if structure != self._structure:
            self._names, self._structure = NodeNames(tuple(self._snapshot.names)), structure
        return self._names


def _of(opened: Opened, positions: Rows) -> Opened:
    """Return a copy of the scores at some positions."""
    name, weight, raw_n, scores_n = opened
    return name, weight, None if raw_n is None else raw_n[positions], scores_n[positions]
