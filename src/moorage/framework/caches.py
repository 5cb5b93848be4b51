"""The shape of every cache of answers about rows, and the follower that says which rows changed.

An owner keeps several caches by key: the caches of the engine by the shape of a pod, the outcomes
of preemption's dry runs by kind of preemptor. The owner hands each cache the rows that changed
since, counts its bytes, and drops it.
"""

from __future__ import annotations

from typing import Final, Protocol

import msgspec

from moorage.snapshot.key_log import KeyLog

ROWS_MOST: Final = 8
"""From this many rows on, one pass over them in arrays costs less than scalars; a guess."""


class Changes(msgspec.Struct, frozen=True):
    """Rows that changed.

    Parameters
    ----------
    rows
        Every row with a change, ascending unless `are_few`.
    nodes
        The rows among them whose node changed, ascending.
    are_few
        Whether no node changed, and so few rows that scalars cost less than arrays.
    """

    rows: list[int]
    nodes: list[int]
    are_few: bool

    def are_many(self, num_nodes: int) -> bool:
        """Whether a pass over all rows costs less than following the changed rows."""
        return not self.are_few and len(self.rows) * 4 > num_nodes + 4


NO_CHANGES: Final = Changes([], [], are_few=True)


class Cache(Protocol):
    """Answers for the attempts of one key; an answer from here equals a new answer."""

    def follow(self, changes: Changes) -> None:
        """Bring the answers about changed rows up to date, or forget them."""
        ...

    def forget(self) -> None:
        """Forget every answer."""
        ...

    @property
    def nbytes(self) -> int:
        """Memory of the answers, bytes; 0 without answers. Everything except arrays is a guess."""
        ...


class RowFollower:
    """Tells which rows changed since it was asked last.

    Parameters
    ----------
    nodes
        The log of rows whose node changed.
    others
        The logs of rows that changed otherwise.

    Attributes
    ----------
    positions
        The position in each log up to which changes were told; the log of nodes is first.
    """

    __slots__ = ("_logs", "positions")

    def __init__(self, nodes: KeyLog[int], *others: KeyLog[int]) -> None:
        self._logs = (nodes, *others)
        self.positions = [log.position for log in self._logs]

    def changes(self) -> Changes | None:
        """Return the changes since the last call; None where a log has forgotten some of them."""
        before, now = self.positions, [log.position for log in self._logs]
        if now == before:
            return NO_CHANGES
        self.positions = now
        if len(now) == 2 and now[0] == before[0]:  # pods alone came or went, as nearly always
            rows = self._logs[1].since(before[1])
            return None if rows is None else Changes(rows, [], len(rows) <= ROWS_MOST)
        return self._merged(before, now)

    def _merged(self, before: list[int], now: list[int]) -> Changes | None:
        found: list[list[int]] = []
        for log, start, end in zip(self._logs, before, now, strict=True):
            rows = log.since(start) if start != end else []
            if rows is None:
                return None
            if rows or not found:
                found.append(rows)
        nodes, rows = found[0], found[-1]
        if nodes or len(found) > 2:
            return Changes(sorted(set().union(*found)), sorted(nodes), are_few=False)
        return Changes(rows, nodes, len(rows) <= ROWS_MOST)
