"""A log of changed keys (names, or rows of a table); readers remember a position and catch up."""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")


class KeyLog(Generic[T]):
    """A bounded log of changed keys.

    Parameters
    ----------
    limit
        How many entries are kept at least. A reader that fell further behind is told to start
        again from the whole (a guess: replaying more entries would cost about as much).

    Attributes
    ----------
    position
        The position behind the newest entry; only `append` changes it.
    """

    __slots__ = ("_base", "_full", "_keys", "_limit", "position")

    def __init__(self, limit: int = 4096) -> None:
        self._keys: list[T] = []
        self._base = 0
        self._limit = limit
        self._full = 2 * limit
        self.position = 0

    def append(self, key: T) -> None:
        """Note that the object behind a key changed."""
        keys = self._keys
        keys.append(key)
        self.position += 1
        if len(keys) > self._full:
            drop = len(keys) - self._limit
            del keys[:drop]
            self._base += drop

    def since(self, position: int) -> list[T] | None:
        """Return the keys changed since a position, each once; None if the log starts later."""
        start = position - self._base
        if start < 0:
            return None
        keys = self._keys[start:]
        return keys if len(keys) < 2 else list(dict.fromkeys(keys))

    def may_have_changed(self, key: T, since: int) -> bool:
        """Whether a key changed since a position; True if the log starts later."""
        start = since - self._base
        return start < 0 or key in self._keys[start:]
