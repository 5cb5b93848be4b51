"""Turns for the other tasks of the loop while a pod group is decided about.

A gang of 1000 pods that may go into any of 50 racks takes some 20 s. The lease is lost after 10 s
without a renewal, and a probe of the scheduler's health fails earlier still.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from moorage.base import aio
from moorage.engine.groups.cycle import Steps
from moorage.engine.groups.decision import GroupDecision

_TURN_NS: Final = 20_000_000  # well below what a health check or the lease can wait


class Turns:
    """Takes the steps of a decision, and lets others have a turn after some.

    Parameters
    ----------
    now_ns
        Monotonic time, nanoseconds.
    hold
        Keeps changes of the cluster back meanwhile: a step builds on the steps before it. None
        where nobody else is waiting, so that every decision is made at once.
    """

    def __init__(self, now_ns: Callable[[], int], hold: aio.Hold | None) -> None:
        self._now_ns = now_ns
        self._hold = hold

    def begun(self, steps: Steps) -> GroupDecision | None:
        """Take steps until it is the others' turn; None where the decision takes longer."""
        turn_ns = self._now_ns() + _TURN_NS
        while True:
            try:
                next(steps)
            except StopIteration as end:
                found: GroupDecision = end.value
                return found
            if self._hold is not None and self._now_ns() >= turn_ns:
                return None

    async def rest(self, steps: Steps) -> GroupDecision:
        """Take the other steps, turn by turn."""
        assert self._hold is not None, "others have turns"
        with self._hold.keeping_back():
            found = None
            while found is None:
                await aio.sleep(0)
                found = self.begun(steps)
        return found
