"""A cache of bounded size whose entries expire."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

from moorage.base.clock import Clock

KeyT = TypeVar("KeyT", bound=Hashable)
ValueT = TypeVar("ValueT")


class ExpiringCache(Generic[KeyT, ValueT]):
    """Keeps values for a while; the least recently used value goes first.

    Parameters
    ----------
    clock
        For the age of the entries.
    size_max
        Most entries.
    """

    def __init__(self, clock: Clock, *, size_max: int) -> None:
        self._clock = clock
        self._size_max = size_max
        self._entries: OrderedDict[KeyT, tuple[int, ValueT]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: KeyT) -> ValueT | None:
        """Return a value that has not expired; None if there is none."""
        found = self._entries.get(key)
        if found is None:
            return None
        expires_ns, value = found
        if self._clock.monotonic_ns() >= expires_ns:
            del self._entries[key]
            return None
        self._entries.move_to_end(key)
        return value

    def put_value(self, key: KeyT, value: ValueT, *, ttl_ns: int) -> None:
        """Keep a value for some nanoseconds; none if `ttl_ns` is not above 0."""
        if ttl_ns <= 0:
            return
        self._entries[key] = (self._clock.monotonic_ns() + ttl_ns, value)
        self._entries.move_to_end(key)
        while len(self._entries) > self._size_max:
            self._entries.popitem(last=False)
