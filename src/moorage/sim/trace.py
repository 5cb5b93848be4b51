"""The trace of a simulation: what happened, and its digest."""

from __future__ import annotations

import hashlib

from moorage.base.clock import NS_PER_SECOND, ManualClock


class Trace:
    """The lines that tell what happened, and their digest."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self.lines: list[str] = []

    def note(self, who: str, what: str) -> None:
        """Add a line with the time."""
        self.lines.append(f"{self._clock.monotonic_ns() / NS_PER_SECOND:12.6f} {who:<14} {what}")

    @property
    def digest(self) -> str:
        """SHA-256 of all lines."""
        return hashlib.sha256("\n".join(self.lines).encode()).hexdigest()
