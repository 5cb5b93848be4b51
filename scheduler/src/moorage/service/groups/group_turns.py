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

_TURN_NS: Final = 5_000_000  # with the step that ends a turn, others wait about 10 ms
# Timers come late by so much where nothing arrives; the lease and a health check can wait longer.
_TURN_WITHOUT_ARRIVALS_NS: Final = 20_000_000
# Between members, those before are put off their nodes and on again. A guess: below what timers can
# wait, and long enough for 1000 members to cost little.
_TURN_BETWEEN_MEMBERS_NS: Final = 500_000_000
# Where something arrives between members, a turn is at least so many times as long as putting them
# off and on took, so that a large group loses a fifth of its time at most.
_WORK_PER_COST: Final = 4


class Turns:
    """Takes the steps of a decision, and lets others have a turn after some.

    Parameters
    ----------
    now_ns
        Monotonic time, nanoseconds.
    hold
        Keeps changes of the cluster back meanwhile: a step builds on the steps before it. None
        where nobody else is waiting, so that every decision is made at once.
    arrivals_are_there
        Whether something has arrived for other tasks. A turn ends early only then, because each end
        costs time.
    """

    def __init__(
        self,
        now_ns: Callable[[], int],
        hold: aio.Hold | None,
        arrivals_are_there: Callable[[], bool],
    ) -> None:
        self._now_ns = now_ns
        self._hold = hold
        self._arrivals_are_there = arrivals_are_there
        self._stopped: Suspendable | None = None
        # The time to put members off their nodes and on again, nanoseconds.
        self._cost_ns = 0

    def begun(self, steps: Steps) -> GroupDecision | None:
        """Take steps until it is the others' turn; None where the decision takes longer."""
        began_ns = self._now_ns()
        while True:
            try:
                stopped = next(steps)
            except StopIteration as end:
                found: GroupDecision = end.value
                return found
            now_ns = self._now_ns()
            if self._hold is None or not self._is_over(now_ns - began_ns, stopped):
                continue
            if stopped is not None:
                stopped.suspend()
                self._cost_ns = self._now_ns() - now_ns
            self._stopped = stopped
            return None

    def _is_over(self, turn_ns: int, stopped: Suspendable | None) -> bool:
        """Whether a turn that is so long ends at a step."""
        least_ns, most_ns = _TURN_NS, _TURN_WITHOUT_ARRIVALS_NS
        if stopped is not None:
            least_ns = max(_TURN_NS, _WORK_PER_COST * self._cost_ns)
            most_ns = _TURN_BETWEEN_MEMBERS_NS
        return turn_ns >= least_ns and (turn_ns >= most_ns or self._arrivals_are_there())

    async def rest(self, steps: Steps) -> GroupDecision:
        """Take the other steps, turn by turn."""
        assert self._hold is not None, "others have turns"
        with self._hold.keeping_back(), contextlib.closing(steps):
            decision = None
            while decision is None:
                await aio.sleep(0)
                stopped, self._stopped = self._stopped, None
                if stopped is not None:
                    resumed_ns = self._now_ns()
                    stopped.resume()
                    self._cost_ns += self._now_ns() - resumed_ns
                decision = self.begun(steps)
            self._cost_ns = 0
        return decision
