"""Limits the Events about one object: a burst, then one every few minutes.

Rules: kubernetes v1.36 client-go tools/record/events_cache.go (EventSourceObjectSpamFilter).
"""

from __future__ import annotations

from typing import Final

from moorage.base.clock import NS_PER_SECOND, Clock

_BURST: Final = 25
_REFILL_NS: Final = 300 * NS_PER_SECOND
_OBJECTS_MAX: Final = 4096  # as the cache upstream; the least recently used object is forgotten


class EventBudget:
    """Tokens by object.

    Parameters
    ----------
    clock
        Refills the tokens.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        # Uid -> (tokens left, monotonic nanoseconds of the last count).
        self._left: dict[str, tuple[float, int]] = {}

    def spend_one(self, uid: str) -> bool:
        """Whether one more Event about an object may be emitted."""
        now_ns = self._clock.monotonic_ns()
        left, since_ns = self._left.pop(uid, (float(_BURST), now_ns))
        left = min(float(_BURST), left + (now_ns - since_ns) / _REFILL_NS)
        allowed = left >= 1
        self._left[uid] = (left - allowed, now_ns)
        if len(self._left) > _OBJECTS_MAX:
            del self._left[next(iter(self._left))]
        return allowed
