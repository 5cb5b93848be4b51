"""An event loop whose time is a `ManualClock`: it never waits, it jumps to the next timer.

Programs run on this loop unchanged if they take time from the clock and sleep through the loop.
Waiting costs no real time, and every run happens the same way.
"""

from __future__ import annotations

import asyncio
import math
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

from moorage.base.clock import NS_PER_SECOND, ManualClock

T = TypeVar("T")


class StuckError(Exception):
    """The program waits, but no timer or callback is left that could wake it."""


class _JumpingSelector(selectors.DefaultSelector):
    """Advances the clock instead of waiting."""

    clock: ManualClock

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready: list[tuple[selectors.SelectorKey, int]] = super().select(0)
        if ready:
            return ready
        if timeout is None:
            raise StuckError("every task waits and no timer is set: the program hangs")
        if timeout > 0:
            # Rounded up, so that the due timer finds its time reached.
            self.clock.advance_ns(math.ceil(timeout * NS_PER_SECOND))
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop that reads and advances a clock.

    Parameters
    ----------
    clock
        Its monotonic time is the loop's time.

    Notes
    -----
    Meant for programs without sockets: other processes do not know of the jumps.
    """

    def __init__(self, clock: ManualClock) -> None:
        selector = _JumpingSelector()
        selector.clock = clock
        self._clock = clock
        super().__init__(selector)

    def time(self) -> float:
        """Return the clock's monotonic time, seconds."""
        return self._clock.monotonic_ns() / NS_PER_SECOND


def run_virtual(main: Coroutine[Any, Any, T], clock: ManualClock) -> T:
    """Run a coroutine to its end in virtual time.

    Parameters
    ----------
    main
        The coroutine.
    clock
        The clock that the coroutine's parts use.

    Raises
    ------
    StuckError
        The coroutine waits, but nothing can wake it.
    """
    with asyncio.Runner(loop_factory=lambda: VirtualLoop(clock)) as runner:
        return runner.run(main)
