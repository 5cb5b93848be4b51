"""The best nodes of an attempt with every plugin's score: how they are kept, and rebuilt.

Most attempts take their scores from the cache of a shape, and change few of them. Such an attempt
notes only the moment in the log of these scores (`score_log`). The totals, the best nodes and their
scores are computed when somebody asks, from the nodes that passed Filter and the scores of that
moment. Where a plugin's scores depend on the feasible rows, or no log is written, the nodes near
the greatest total are noted with copies of their scores.
"""

from __future__ import annotations

from typing import Final, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from moorage.engine.answers import CachedPart, OpenedPart, Rows
from moorage.engine.notes.score_log import ScoreLog
from moorage.framework.points import ScoreArray

BEST_MAX: Final = 10
"""Nodes that a ranking lists."""
# At most so many nodes near the greatest total are noted; a guess.
_NEAR_MAX: Final = 32
# Equal totals are looked for among the first nodes before all; a guess.
_FIRST: Final = 256
_BYTES: Final = 400
_NODE_BYTES: Final = 24
_SCORE_BYTES: Final = 8


class PluginScore(msgspec.Struct, frozen=True, gc=False):
    """The scores that one plugin gave the best nodes.

    Parameters
    ----------
    plugin
        Its name.
    weight
        Its weight in the total.
    raw, normalized
        By node, in the order of `Ranking.nodes`. Weighted is `normalized` times `weight`.
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
    drawn
        The place of the chosen node among the nodes with the greatest total, in the order of rows.
    """

    nodes: tuple[str, ...]
    totals: tuple[int, ...]
    plugins: tuple[PluginScore, ...]
    drawn: int


class NearNodes(msgspec.Struct, frozen=True, gc=False):
    """The nodes near the greatest total, `BEST_MAX` or more of them, in the order of rows.

    Parameters
    ----------
    rows
        Their rows at that time, int64.
    totals
        int64: their totals, extenders included.
    raw_pk
        int64, (plugins, nodes): the cached raw scores; None where a log has them.
    opened
        The scores that depend on the feasible rows, of these nodes.
    drawn
        As in `Ranking`: not all nodes with the greatest total are noted.
    """

    rows: Rows
    totals: ScoreArray
    raw_pk: NDArray[np.int64] | None
    opened: tuple[OpenedPart, ...]
    drawn: int

    @property
    def nbytes(self) -> int:
        """Memory, bytes."""
        plugins = 2 * len(self.opened) + (0 if self.raw_pk is None else len(self.raw_pk))
        each = _NODE_BYTES + _SCORE_BYTES * plugins
        return _BYTES * (1 + len(self.opened)) + each * len(self.rows)


class PassedNodes(Protocol):
    """The nodes that passed Filter."""

    def passed_rows(self) -> Rows:
        """Return int64: their rows, ascending."""
        ...

    def name_of(self, row: int) -> str:
        """Return the name of the node in a row, as it was."""
        ...


class BestNodes(msgspec.Struct, frozen=True, gc=False):
    """The best nodes of an attempt with their scores, as noted.

    Parameters
    ----------
    chosen
        The row that was taken.
    cached
        The plugins with cached scores.
    log, length
        The cached scores at a length of their log; None where `near` has copies.
    near
        The nodes near the greatest total; None where all scores are cached, and the log suffices.
    """

    chosen: int
    cached: tuple[CachedPart, ...]
    log: ScoreLog | None
    length: int
    near: NearNodes | None

    def ranking(self, passed: PassedNodes) -> Ranking:
        """Return the nodes in order, with every score.

        Parameters
        ----------
        passed
            The nodes that passed Filter. Their rows are read only where no near nodes are noted.
        """
        near, raw_pk = self.near, None
        rows = passed.passed_rows() if near is None else near.rows
        if self.log is not None:
            raw_pk = self.log.scores_after(self.length)[:, rows]
        elif near is not None:
            raw_pk = near.raw_pk
        opened = () if near is None else near.opened
        scores = _scores(self.cached, raw_pk, opened, len(rows))
        totals: ScoreArray
        if near is None:
            totals = sum((each[1] * each[3] for each in scores), np.zeros(len(rows), np.int64))
            tied = rows[totals == totals.max()]
            drawn = int(np.flatnonzero(tied == self.chosen)[0])
        else:
            totals, drawn = near.totals, near.drawn
        order = np.lexsort((-totals, rows != self.chosen))[:BEST_MAX]
        return Ranking(
            tuple([passed.name_of(row) for row in rows[order].tolist()]),
            tuple(totals[order].tolist()),
            tuple(
                PluginScore(
                    name, weight, tuple(raw_k[order].tolist()), tuple(scores_k[order].tolist())
                )
                for name, weight, raw_k, scores_k in scores
            ),
            drawn,
        )


def _scores(
    cached: tuple[CachedPart, ...],
    raw_pk: NDArray[np.int64] | None,
    opened: tuple[OpenedPart, ...],
    count: int,
) -> list[tuple[str, int, ScoreArray, ScoreArray]]:
    """Return (plugin, weight, raw scores, normalised scores) of each plugin."""
    normalized = {name: scores_k for name, _, _, scores_k in opened}
    scores: list[tuple[str, int, ScoreArray, ScoreArray]] = []
    raw_by_part = iter(() if raw_pk is None else raw_pk)
    for part in cached:
        raw_k: ScoreArray
        raw_k = next(raw_by_part) if part.raw is None else np.full(count, part.raw, np.int64)
        if part.final:
            scores_k = raw_k
        elif part.flat is not None:
            scores_k = np.full(count, part.flat, np.int64)
        else:
            scores_k = normalized[part.name]
        scores.append((part.name, part.weight, raw_k, scores_k))
    scores += [
        (name, weight, raw_k, scores_k)
        for name, weight, raw_k, scores_k in opened
        if raw_k is not None
    ]
    return scores


class NearTop:
    """Finds the nodes near the greatest total."""

    __slots__ = ("_limit",)

    def __init__(self) -> None:
        # Totals above it are near the greatest one. It adapts, so that at most a few dozen are; the
        # first nodes with a total at the limit fill them up to `BEST_MAX`.
        self._limit = 0

    def find(self, total_n: ScoreArray, top: int) -> tuple[Rows, Rows]:
        """Return int64: the positions to note, and the positions of the greatest total; ascending.

        One look at all totals serves both, as a rule.
        """
        near: Rows | None
        if self._limit >= top or len(total_n) <= BEST_MAX:
            tied: Rows = (total_n == top).nonzero()[0]
            if len(total_n) <= BEST_MAX:
                return np.arange(len(total_n)), tied
            if len(tied) >= BEST_MAX:
                self._limit = top
                return tied[:BEST_MAX].copy(), tied
            near = None
        else:
            near = _above(total_n, self._limit)
        if near is None:
            wanted = min(2 * BEST_MAX, len(total_n))
            self._limit = int(np.partition(total_n, -wanted)[-wanted])
            near = _above(total_n, self._limit)
            assert near is not None, "fewer than that many are above that one of them"
        if self._limit == top:
            return near, (total_n == top).nonzero()[0]
        return near, near[total_n.take(near) == top]


def _above(total_n: ScoreArray, limit: int) -> Rows | None:
    """Return the positions of totals above a limit; None for a limit too high or too low.

    Where these are fewer than `BEST_MAX`, the first ones at the limit are returned as well.
    """
    near: Rows = (total_n > limit).nonzero()[0]
    missing = BEST_MAX - len(near)
    if missing <= 0:
        return near if len(near) <= _NEAR_MAX else None
    at_limit = _first(total_n, limit, missing)
    if len(at_limit) < missing:
        return None
    near = np.concatenate((near, at_limit))
    near.sort()
    return near


def _first(total_n: ScoreArray, total: int, count: int) -> Rows:
    """Return the first positions of a total, ascending: `count` of them, or all."""
    found: Rows = (total_n[:_FIRST] == total).nonzero()[0]
    if len(found) < count < len(total_n):
        found = (total_n == total).nonzero()[0]
    return found[:count]
