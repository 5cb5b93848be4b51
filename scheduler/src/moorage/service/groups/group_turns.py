"""Turns for the other tasks of the loop while a pod group is decided about.

A gang of 1000 pods that may go into any of 50 racks takes some 20 s, and so does a gang of 100 pods
that each look for victims on 100 nodes. The lease is lost after 10 s without a renewal, and a probe
of the scheduler's health fails earlier still.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Final

from moorage.base import aio
from moorage.engine.groups.decision import GroupDecision
from moorage.engine.groups.trying import Steps, Suspendable

_TURN_NS: Final = 20_000_000  # well below what a health check or the lease can wait
# Between members, those before are put off their nodes and on again. A guess: below what a health
# check can wait, and long enough for 1000 members to cost little.
_TURN_BETWEEN_MEMBERS_NS: Final = 500_000_000


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
        self._stopped: Suspendable | None = None

    def begun(self, steps: Steps) -> GroupDecision | None:
        """Take steps until it is the others' turn; None where the decision takes longer."""
        began_ns = self._now_ns()
        while True:
            try:
                stopped = next(steps)
            except StopIteration as end:
                found: GroupDecision = end.value
                return found
            wait_ns = _TURN_NS if stopped is None else _TURN_BETWEEN_MEMBERS_NS
            if self._hold is None or self._now_ns() - began_ns < wait_ns:
                continue
            if stopped is not None:
                stopped.suspend()
            self._stopped = stopped
            return None

    async def rest(self, steps: Steps) -> GroupDecision:
        """Take the other steps, turn by turn."""
        assert self._hold is not None, "others have turns"
        with self._hold.keeping_back(), contextlib.closing(steps):
            decision = None
            while decision is None:
                await aio.sleep(0)
                stopped, self._stopped = self._stopped, None
                if stopped is not None:
                    stopped.resume()
                decision = self.begun(steps)
        return decision
