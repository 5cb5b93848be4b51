"""The shape of every cache of answers about rows, and the follower that says which rows changed.

An owner keeps several caches by key: the caches of the engine by the shape of a pod, the outcomes
of preemption's dry runs by kind of preemptor. The owner hands each cache the rows that changed
since, counts its bytes, and drops it.
"""

from __future__ import annotations

from typing import Final, Protocol

import msgspec

from moorage.snapshot.key_log import KeyLog

ROWS_MOST: Final = 16
"""From this many rows on, one pass over them in arrays costs less than scalars; a guess."""


class Changes(msgspec.Struct, frozen=True):
    """Rows that changed.

    Parameters
    ----------
    rows
        Every row with a change, once, ascending unless `are_few`; not to be changed.
    nodes
        The rows among them whose node changed, ascending.
    are_few
        Whether no node changed, and so few rows that scalars cost less than arrays.
    """

    rows: list[int]
    nodes: list[int]
    are_few: bool

    def are_many(self, num_nodes: int) -> bool:
        """Whether a pass over all rows costs less than following so many changed rows."""
        return len(self.rows) * 4 > num_nodes + 4


_NO_ROWS: Final[list[int]] = []
NO_CHANGES: Final = Changes(_NO_ROWS, _NO_ROWS, are_few=True)


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

    __slots__ = ("_nodes", "_others", "positions")

    def __init__(self, nodes: KeyLog[int], *others: KeyLog[int]) -> None:
        self._nodes = nodes
        self._others = tuple(enumerate(others, 1))
        self.positions = [log.position for log in (nodes, *others)]

    def changes(self) -> Changes | None:
        """Return the changes since the last call; None where a log has forgotten some of them."""
        positions, rows = self.positions, _NO_ROWS
        if self._nodes.position != positions[0]:
            return self._with_nodes()
        for index, log in self._others:
            before = positions[index]
            if log.position == before:
                continue
            newer = log.since(before)
            if newer is None:
                self._catch_up()
                return None
            positions[index] = log.position
            rows = list(dict.fromkeys(rows + newer)) if rows else newer
        if not rows:
            return NO_CHANGES
        if len(rows) <= ROWS_MOST:
            return Changes(rows, _NO_ROWS, True)
        rows.sort()
        return Changes(rows, _NO_ROWS, False)

    def _with_nodes(self) -> Changes | None:
        nodes = self._nodes.since(self.positions[0])
        others = [log.since(self.positions[index]) for index, log in self._others]
        self._catch_up()
        if nodes is None:
            return None
        rows = set(nodes)
        for found in others:
            if found is None:
                return None
            rows.update(found)
        return Changes(sorted(rows), sorted(nodes), are_few=False)

    def _catch_up(self) -> None:
        """Count every change as told."""
        self.positions = [self._nodes.position, *(log.position for _, log in self._others)]
