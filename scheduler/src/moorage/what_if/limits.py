"""The limits of time and memory of one answer.

What is computed never depends on them: an answer is the same, or there is none, or it says which
part was left out because a limit was reached.
"""

from __future__ import annotations

import resource
import sys
from pathlib import Path
from typing import Final

from moorage.base.clock import NS_PER_SECOND, Clock
from moorage.base.errors import LimitReachedError

SECONDS_MOST: Final = 120
"""Longest computation of one answer in the process of a command."""
MEMORY_BYTES_MOST: Final = 2 * 1024**3
"""Memory that one answer may take besides the cluster it is about: a guess, ten times what a
what-if at the limits of pods and nodes takes."""
# Memory is looked at once in so many checks; a check comes with each attempt about a pod.
_CHECKS_PER_LOOK: Final = 256
_MIB: Final = 1024 * 1024


class Limits:
    """The time and the memory that are left for an answer.

    Parameters
    ----------
    clock
        Measures the time.
    seconds
        Longest time from now on.
    memory_bytes
        Largest growth of this process from now on.
    """

    def __init__(
        self, clock: Clock, *, seconds: float = SECONDS_MOST, memory_bytes: int = MEMORY_BYTES_MOST
    ) -> None:
        self._clock = clock
        self._seconds = seconds
        self._until_ns = clock.monotonic_ns() + round(seconds * NS_PER_SECOND)
        self._growth = memory_bytes
        self._memory_most = _memory_bytes() + memory_bytes
        self._checks = 0

    @property
    def seconds_left(self) -> float:
        """The time that is left, not below 0."""
        return max(0.0, (self._until_ns - self._clock.monotonic_ns()) / NS_PER_SECOND)

    def check_limits(self) -> None:
        """Go on.

        Raises
        ------
        LimitReachedError
            A limit was reached.
        """
        if self._clock.monotonic_ns() >= self._until_ns:
            raise LimitReachedError(f"the limit of {self._seconds:.0f} s was reached")
        self._checks += 1
        if self._checks % _CHECKS_PER_LOOK == 0 and _memory_bytes() > self._memory_most:
            raise LimitReachedError(f"the limit of {self._growth // _MIB} MiB was reached")

    def share(self, parts: int) -> Limits:
        """Return the limits of one of several parts that share the time that is left."""
        return Limits(
            self._clock, seconds=self.seconds_left / max(1, parts), memory_bytes=self._growth
        )


def _memory_bytes() -> int:
    """Return the resident memory of this process; where it is not told, the most so far."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024
    return pages * resource.getpagesize()
