"""The wait before another try; the reflector and the recorder sleep for it."""

from __future__ import annotations

import msgspec

from moorage.base.clock import NS_PER_SECOND, Clock
from moorage.base.rng import Random


class BackoffRule(msgspec.Struct, frozen=True):
    """Exponential delays.

    Parameters
    ----------
    start_seconds
        First delay before jitter.
    factor
        Growth from one delay to the next.
    jitter
        Each delay is stretched by a random share of itself, up to this many times.
    max_seconds
        Cap before jitter.
    reset_seconds
        After this long without a failure the delays start from the beginning.
    """

    start_seconds: float = 0.8
    factor: float = 2.0
    jitter: float = 1.0
    max_seconds: float = 30.0
    reset_seconds: float = 120.0


class Backoff:
    """Hands out growing delays.

    Notes
    -----
    The defaults are kubernetes v1.36 client-go tools/cache/reflector.go.
    """

    __slots__ = ("_clock", "_last_ns", "_next_seconds", "_rng", "_rule")

    def __init__(self, rule: BackoffRule, *, clock: Clock, rng: Random) -> None:
        self._rule = rule
        self._clock = clock
        self._rng = rng
        self._next_seconds = rule.start_seconds
        self._last_ns = clock.monotonic_ns()

    def next_seconds(self) -> float:
        """Return the delay to wait now, and remember the failure."""
        now = self._clock.monotonic_ns()
        if now - self._last_ns > self._rule.reset_seconds * NS_PER_SECOND:
            self._next_seconds = self._rule.start_seconds
        self._last_ns = now
        delay = self._next_seconds
        self._next_seconds = min(delay * self._rule.factor, self._rule.max_seconds)
        return delay * (1.0 + self._rule.jitter * self._rng.random())
