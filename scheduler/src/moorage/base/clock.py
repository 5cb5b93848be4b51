"""Time comes from a `Clock` handed in, so a test of five minutes takes a millisecond.

Two readings: *wall* time, for timestamps other programs see, and *monotonic* time, for
durations and deadlines. Both are integer nanoseconds: floats lose the order of two events a
microsecond apart after a year of uptime.
"""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Protocol

NS_PER_SECOND = 1_000_000_000

_IMPORTED_NS = time.monotonic_ns()


class Clock(Protocol):
    """Source of time. Implementations: `SystemClock`, `ScaledClock`, `ManualClock` for tests."""

    def now_ns(self) -> int:
        """Wall-clock time, nanoseconds since the Unix epoch."""
        ...

    def monotonic_ns(self) -> int:
        """Time for durations and deadlines, nanoseconds from an arbitrary start."""
        ...


class SystemClock:
    """The machine's own clocks."""

    # The machine's functions themselves, not methods that call them: time is read some fifty times
    # an attempt, and a method around each reading would take longer than the reading.
    now_ns = staticmethod(time.time_ns)
    """Wall-clock time, nanoseconds since the Unix epoch."""
    monotonic_ns = staticmethod(time.monotonic_ns)
    """Monotonic time, nanoseconds."""


class ScaledClock:
    """Time that runs faster than the machine's; equal in every process with the same start.

    Parameters
    ----------
    speed
        Seconds of this clock in one second of the machine.
    start_ns
        Moment of the machine, nanoseconds since the Unix epoch, from which the speed applies.
    ahead_ns
        How far the clock is ahead of the machine at that moment.
    """

    def __init__(self, speed: float, start_ns: int, ahead_ns: int = 0) -> None:
        self._speed = speed
        self._start_ns = start_ns
        self._first_ns = start_ns + ahead_ns

    def now_ns(self) -> int:
        """Wall-clock time as scaled, nanoseconds since the Unix epoch."""
        return self._first_ns + round((time.time_ns() - self._start_ns) * self._speed)

    def monotonic_ns(self) -> int:
        """Monotonic time as scaled, nanoseconds."""
        return round(time.monotonic_ns() * self._speed)


class ManualClock:
    """A clock that moves only when told to; wall and monotonic time advance together.

    Parameters
    ----------
    start_ns
        First wall-clock reading, nanoseconds since the Unix epoch. The default is
        2026-01-01T00:00:00Z, a whole second, so that backoff windows are easy to read in tests.
    """

    def __init__(self, start_ns: int = 1_767_225_600 * NS_PER_SECOND) -> None:
        self._start_ns = start_ns
        self._elapsed_ns = 0

    def now_ns(self) -> int:
        """Wall-clock time, nanoseconds since the Unix epoch."""
        return self._start_ns + self._elapsed_ns

    def monotonic_ns(self) -> int:
        """Time since this clock was made, nanoseconds."""
        return self._elapsed_ns

    def advance(self, seconds: float) -> None:
        """Move both readings forward by a non-negative number of seconds."""
        self.advance_ns(round(seconds * NS_PER_SECOND))

    def advance_ns(self, nanoseconds: int) -> None:
        """Move both readings forward by a non-negative number of nanoseconds."""
        assert nanoseconds >= 0, "time does not run backwards"
        self._elapsed_ns += nanoseconds


def process_age_seconds() -> float:
    """Return how long ago this process was started, the interpreter and all imports included.

    Where the system does not tell, return the time since the import of this module, which is a
    little less.
    """
    try:
        stat = Path("/proc/self/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return (time.monotonic_ns() - _IMPORTED_NS) / NS_PER_SECOND
    # Field 22 of proc(5): ticks since the machine was started; the second is in parentheses.
    started = int(stat.rpartition(")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")
    return time.clock_gettime(time.CLOCK_BOOTTIME) - started


def processor_ns() -> int:
    """Return the processor time of this process so far, nanoseconds; for measurements only."""
    return time.process_time_ns()


def rfc3339(ns: int) -> str:
    """Format wall-clock nanoseconds as Kubernetes ``Time``: whole seconds, UTC, ``Z``."""
    return f"{_second(ns // NS_PER_SECOND)}Z"


def rfc3339_micro(ns: int) -> str:
    """Format wall-clock nanoseconds as Kubernetes ``MicroTime``: six decimals, UTC, ``Z``."""
    seconds, rest = divmod(ns, NS_PER_SECOND)
    return f"{_second(seconds)}.{rest // 1000:06d}Z"


# Thousands of objects are written in one second, and each has its time.
@lru_cache(maxsize=8)
def _second(seconds: int) -> str:
    moment = datetime.fromtimestamp(seconds, UTC)
    return moment.replace(tzinfo=None).isoformat(timespec="seconds")


def parse_rfc3339(text: str) -> int:
    """Parse a Kubernetes ``Time`` or ``MicroTime`` to wall-clock nanoseconds.

    Raises
    ------
    ValueError
        The text is not RFC 3339 with a time zone.
    """
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} has no time zone")
    delta = moment - datetime(1970, 1, 1, tzinfo=UTC)
    whole = delta.days * 86_400 + delta.seconds
    return whole * NS_PER_SECOND + delta.microseconds * 1000
