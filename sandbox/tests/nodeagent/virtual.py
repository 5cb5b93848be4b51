"""An event loop whose time jumps to the next deadline, and the clock that reads it."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

from moorage.base.clock import NS_PER_SECOND

T = TypeVar("T")

START_NS = 1_767_225_600 * NS_PER_SECOND


class _JumpingSelector(selectors.SelectSelector):
    """Never waits: it tells the loop how long it would have waited."""

    loop: VirtualLoop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        assert timeout is not None, "nothing left to wait for: the test hangs"
        self.loop.elapsed += max(0.0, timeout)
        return super().select(0)


class VirtualLoop(asyncio.SelectorEventLoop):
    """Time passes only when there is nothing else to do."""

    def __init__(self) -> None:
        self.elapsed = 0.0
        selector = _JumpingSelector()
        selector.loop = self
        super().__init__(selector)

    def time(self) -> float:
        return self.elapsed


class LoopClock:
    """A clock that reads the running virtual loop."""

    def now_ns(self) -> int:
        return START_NS + self.monotonic_ns()

    def monotonic_ns(self) -> int:
        # Rounded up: a timer that fired must find its moment reached.
        return round(asyncio.get_running_loop().time() * NS_PER_SECOND) + 1


def run_virtual(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine under virtual time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)
