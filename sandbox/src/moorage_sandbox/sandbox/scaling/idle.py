"""Tells since when nodes have been empty. Pure."""

from __future__ import annotations

from collections.abc import Collection

from moorage.base.clock import NS_PER_SECOND


class IdleNodes:
    """The nodes that are empty, and since when.

    Parameters
    ----------
    seconds
        Time for which a node has to be empty before it is due.
    """

    def __init__(self, seconds: float) -> None:
        self._after_ns = round(seconds * NS_PER_SECOND)
        self._since: dict[str, int] = {}

    def due(self, empty: Collection[str], now_ns: int) -> list[str]:
        """Take in the nodes that are empty now; return those that have been so for long enough."""
        self._since = {name: self._since.get(name, now_ns) for name in sorted(empty)}
        return [name for name, since in self._since.items() if now_ns - since >= self._after_ns]
